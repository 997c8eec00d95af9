// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: correct
// The flag of the peer is set behind a fence of system scope.
#include <nvshmem.h>
#include <nvshmemx.h>

#include <cuda/atomic>

__global__ void exchange(int* data, int* flag, int* out, int peer) {
  int* there = static_cast<int*>(nvshmem_ptr(data, peer));
  int* ready = static_cast<int*>(nvshmem_ptr(flag, peer));
  there[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    atomicExch_system(ready, 1);
    cuda::atomic_ref<int, cuda::thread_scope_system> mine(*flag);
    while (mine.load(cuda::memory_order_acquire) == 0) {
    }
  }
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x];
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* data = static_cast<int*>(nvshmem_malloc(64 * sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int* out = nullptr;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  exchange<<<1, 64>>>(data, flag, out, (pe + 1) % n);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(data);
  nvshmem_free(flag);
  cudaFree(out);
  nvshmem_finalize();
  return 0;
}
