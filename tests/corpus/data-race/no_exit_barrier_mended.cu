// echolo-test: mode=sanitize n=3 fabric=nvlink
// expect: correct
// A one-shot all-reduce that ends with a second round of flags, so nobody overwrites what is still read.
#include <nvshmem.h>
#include <nvshmemx.h>

__device__ int acquire(const int* flag) {
  int seen = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  return seen;
}

__device__ void release(int* flag, int value) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(value) : "memory");
}

// Each PE adds `round` to a slot of its own on every peer, and waits for all.
__device__ void meet(int* flags, int round, int pe, int n) {
  __syncthreads();
  if (threadIdx.x < n) {
    release(static_cast<int*>(nvshmem_ptr(flags, threadIdx.x)) + pe, round);
    while (acquire(flags + threadIdx.x) < round) {
    }
  }
  __syncthreads();
}

__global__ void all_reduce(const int* in, int* buffer, int* flags, int* out, int call, int pe, int n) {
  buffer[threadIdx.x] = in[threadIdx.x];
  meet(flags, 2 * call - 1, pe, n);
  int sum = 0;
  for (int q = 0; q < n; ++q) sum += static_cast<int*>(nvshmem_ptr(buffer, q))[threadIdx.x];
  meet(flags, 2 * call, pe, n);
  out[threadIdx.x] = sum;
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* buffer = static_cast<int*>(nvshmem_malloc(64 * sizeof(int)));
  int* flags = static_cast<int*>(nvshmem_calloc(n, sizeof(int)));
  int* in = nullptr;
  int* out = nullptr;
  cudaMalloc(&in, 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMemset(in, 0, 64 * sizeof(int));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  for (int call = 1; call <= 3; ++call) all_reduce<<<1, 64>>>(in, buffer, flags, out, call, pe, n);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(buffer);
  nvshmem_free(flags);
  cudaFree(in);
  cudaFree(out);
  nvshmem_finalize();
  return 0;
}
