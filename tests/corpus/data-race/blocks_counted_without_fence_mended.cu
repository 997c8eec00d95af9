// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: correct
// Each block fences before it counts itself in, the last one after it, so its signal covers all blocks.
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

__global__ void send(int* data, int* flag, unsigned* count, int peer) {
  int* there = static_cast<int*>(nvshmem_ptr(data, peer));
  there[blockIdx.x * blockDim.x + threadIdx.x] = threadIdx.x + 1;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    const bool last = atomicAdd(count, 1) == gridDim.x - 1;
    __threadfence();
    if (last) release(static_cast<int*>(nvshmem_ptr(flag, peer)), 1);
  }
}

__global__ void receive(const int* data, const int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (acquire(flag) == 0) {
    }
  }
  __syncthreads();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  out[i] = data[i];
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* data = static_cast<int*>(nvshmem_malloc(8 * 64 * sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int* out = nullptr;
  unsigned* count = nullptr;
  cudaMalloc(&out, 8 * 64 * sizeof(int));
  cudaMalloc(&count, sizeof(unsigned));
  cudaMemset(count, 0, sizeof(unsigned));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  send<<<8, 64>>>(data, flag, count, (pe + 1) % n);
  receive<<<8, 64>>>(data, flag, out);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(data);
  nvshmem_free(flag);
  cudaFree(out);
  cudaFree(count);
  nvshmem_finalize();
  return 0;
}
