// echolo-test: mode=sanitize n=2
// expect: early_exit
// The source of a put is freed after the kernel, which has not waited for the put.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* inbox, const int* source, int pe, int n) {
  if (threadIdx.x == 0) {
    nvshmem_int_put_nbi(inbox, source, 64, (pe + 1) % n);  // <-- early-exit
  }
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* inbox = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  int* source = nullptr;
  cudaMalloc(&source, 64 * sizeof(int));
  cudaMemset(source, 1, 64 * sizeof(int));
  nvshmem_barrier_all();
  exchange<<<1, 32>>>(inbox, source, pe, n);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(source);  // <-- early-exit
  nvshmem_free(inbox);
  nvshmem_finalize();
  return failed;
}
