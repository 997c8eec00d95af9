// What the toolkit's headers expand to: cooperative groups, printf, assert, half and bfloat16, libcu++ atomics, CUB.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cassert>
#include <cstdio>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/std/complex>

namespace cg = cooperative_groups;

__global__ void groups(int* p) {
  cg::this_grid().sync();
  auto block = cg::this_thread_block();
  auto tile = cg::tiled_partition<16>(block);
  p[threadIdx.x] = cg::reduce(tile, p[threadIdx.x], cg::plus<int>()) + tile.shfl_xor(p[0], 3) + tile.any(p[1]);
  auto coalesced = cg::coalesced_threads();
  if (coalesced.thread_rank() == 0) p[3] = static_cast<int>(coalesced.size());
  cg::this_cluster().sync();
  p[4] = static_cast<int>(cg::this_cluster().block_rank());
}

__global__ void output(int n, float f) {
  assert(n > 3);
  if (n == 7) printf("n %d f %f %s\n", n, f, "text");
  if (n == 8) __trap();
}

__global__ void halves(__half* h, __nv_bfloat16* b, __half2* h2, __nv_bfloat162* b2, __nv_fp8_e4m3* e, float* f) {
  const int i = threadIdx.x;
  h[i] = __hfma(h[i], h[i + 1], __float2half(f[i]));
  b[i] = __hadd(b[i], __float2bfloat16(f[i])) / b[i + 2];
  h2[i] = __hmax2(h2[i], __float22half2_rn(make_float2(f[0], f[1])));
  b2[i] = __hfma2_relu(b2[i], b2[i + 1], b2[i + 2]);
  e[i] = __nv_fp8_e4m3(f[i]);
  f[i] = hsin(h[i]) > h[2] ? __half2float(hexp(h[i])) : __bfloat162float(htanh(b[i])) + static_cast<float>(e[i + 1]);
  atomicAdd(h2, h2[1]);
  atomicAdd(b, b[1]);
}

__global__ void atomics(int* p, unsigned long long* q, float* f, double* d) {
  cuda::atomic_ref<int, cuda::thread_scope_system> flag(p[0]);
  flag.store(1, cuda::memory_order_release);
  while (flag.load(cuda::memory_order_acquire) != 2) __nanosleep(20);
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> counter(q[0]);
  counter.fetch_add(3, cuda::memory_order_acq_rel);
  unsigned long long expected = 4;
  counter.compare_exchange_strong(expected, 9, cuda::memory_order_seq_cst);
  cuda::atomic_thread_fence(cuda::memory_order_seq_cst, cuda::thread_scope_system);
  p[1] = atomicCAS_system(p + 2, 1, 2) + atomicInc(reinterpret_cast<unsigned*>(p) + 3, 7) + atomicExch_block(p + 4, 2);
  atomicMax(p + 5, 3);
  atomicAdd(d, 1.0);
  atomicAdd(f, 1.0f);
  __threadfence_system();
  __threadfence_block();
}

__global__ void reductions(float* f, int* p) {
  using Reduce = cub::BlockReduce<float, 128>;
  using Scan = cub::BlockScan<int, 128>;
  __shared__ union {
    typename Reduce::TempStorage reduce;
    typename Scan::TempStorage scan;
  } storage;
  const float sum = Reduce(storage.reduce).Sum(f[threadIdx.x]);
  __syncthreads();
  Scan(storage.scan).ExclusiveSum(p[threadIdx.x], p[threadIdx.x]);
  if (threadIdx.x == 0) f[0] = sum;
}

__global__ void barriers(int* p) {
#pragma nv_diag_suppress static_var_with_dynamic_init
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  __shared__ int copy[128];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(copy + threadIdx.x, p + threadIdx.x, cuda::aligned_size_t<4>(4), barrier);
  barrier.arrive_and_wait();
  p[threadIdx.x] = copy[127 - threadIdx.x];
}

__global__ void arithmetic(double* d, float* f, long long* l, int* p) {
  const int i = threadIdx.x;
  d[0] = sin(d[1]) + pow(d[2], d[3]) + fma(d[4], d[5], d[6]) / d[7] + sqrt(d[8]) + erf(d[9]);
  f[0] = sinf(f[1]) + __expf(f[2]) + rsqrtf(f[3]) + __fdividef(f[4], f[5]) + fminf(f[6], f[7]) + copysignf(f[8], f[9]);
  l[0] = l[1] / l[2] + __mul64hi(l[3], l[4]) + __popcll(l[5]) + __clzll(l[6]) + __brevll(l[7]) + llrint(d[3]);
  p[0] = __dp4a(p[1], p[2], p[3]) + __byte_perm(p[4], p[5], 0x5140) + __funnelshift_l(p[6], p[7], p[8]) + __ffs(p[9]);
  p[1] = static_cast<int>(__match_any_sync(~0u, p[i]) + __ballot_sync(~0u, p[i] > 2) + __reduce_add_sync(~0u, p[3]));
  p[2] = __vadd4(p[3], p[4]) + __viaddmax_s32(p[5], p[6], p[7]) + __sad(p[5], p[6], p[7]) + __vabsdiffu4(p[3], p[4]);
  p[3] = static_cast<int>(clock64() + __cvta_generic_to_shared(p)) + __isShared(p) + __ldg(p + 3) + __ldcs(p + 5);
  const __int128 wide = static_cast<__int128>(l[0]) * l[1];
  l[9] = static_cast<long long>(wide >> 64);
  const auto z = cuda::std::complex<float>(f[0], f[1]) * cuda::std::complex<float>(f[2], f[3]);
  f[1] = z.real() + __int_as_float(0x7f800000) + __saturatef(f[4]) + __frcp_rz(f[4]) + truncf(f[5]) + log1pf(f[4]);
}
