// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: scope_too_narrow
// The peer writes the flag at system scope; it is read with an acquire at gpu scope.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* data, int* flag, int* out, int peer) {
  int* there = static_cast<int*>(nvshmem_ptr(data, peer));
  int* ready = static_cast<int*>(nvshmem_ptr(flag, peer));
  there[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(ready) : "memory");
    int seen = 0;
    while (seen == 0)
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");  // <-- scope-too-narrow
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
