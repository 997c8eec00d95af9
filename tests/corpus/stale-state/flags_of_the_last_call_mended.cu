// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: correct
// Each call waits for a value of its own.
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

__global__ void send(int* data, int* flag, int call, int peer) {
  static_cast<int*>(nvshmem_ptr(data, peer))[call * 32 + threadIdx.x] = call;
  __syncthreads();
  if (threadIdx.x == 0) release(static_cast<int*>(nvshmem_ptr(flag, peer)), call);
}

__global__ void receive(const int* data, const int* flag, int* out, int call) {
  if (threadIdx.x == 0) {
    while (acquire(flag) < call) {
    }
  }
  __syncthreads();
  out[threadIdx.x] = data[call * 32 + threadIdx.x];
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* data = static_cast<int*>(nvshmem_calloc(4 * 32, sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int* out = nullptr;
  cudaMalloc(&out, 32 * sizeof(int));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  for (int call = 1; call <= 3; ++call) {
    send<<<1, 32>>>(data, flag, call, (pe + 1) % n);
    receive<<<1, 32>>>(data, flag, out, call);
  }
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(data);
  nvshmem_free(flag);
  cudaFree(out);
  nvshmem_finalize();
  return 0;
}
