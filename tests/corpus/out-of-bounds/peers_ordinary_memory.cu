// echolo-test: mode=sanitize n=2
// expect: out_of_bounds
// A put goes to an address of ordinary device memory, which no peer can address.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void greet(int* inbox, int pe, int n) {
  nvshmem_int_p(inbox, pe, (pe + 1) % n);  // <-- out-of-bounds
  nvshmem_quiet();
}

int main() {
  nvshmem_init();
  int* inbox = nullptr;
  cudaMalloc(&inbox, sizeof(int));
  cudaMemset(inbox, 0, sizeof(int));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  greet<<<1, 1>>>(inbox, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  cudaFree(inbox);
  nvshmem_finalize();
  return failed;
}
