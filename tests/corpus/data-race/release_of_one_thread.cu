// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: data_race
// Every thread writes to the peer, thread 0 releases the flag: no barrier lies between.
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

__global__ void send(int* data, int* flag, int peer) {
  int* there = static_cast<int*>(nvshmem_ptr(data, peer));
  there[threadIdx.x] = threadIdx.x + 1;  // <-- data-race
  if (threadIdx.x == 0) release(static_cast<int*>(nvshmem_ptr(flag, peer)), 1);
}

__global__ void receive(const int* data, const int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (acquire(flag) == 0) {
    }
  }
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x];  // <-- data-race
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* data = static_cast<int*>(nvshmem_malloc(128 * sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int* out = nullptr;
  cudaMalloc(&out, 128 * sizeof(int));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  send<<<1, 128>>>(data, flag, (pe + 1) % n);
  receive<<<1, 128>>>(data, flag, out);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(data);
  nvshmem_free(flag);
  cudaFree(out);
  nvshmem_finalize();
  return 0;
}
