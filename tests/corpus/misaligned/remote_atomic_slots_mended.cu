// echolo-test: mode=sanitize n=2
// expect: correct
// They lie 4 bytes apart.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void arrive(char* slots, int pe, int n) {
  nvshmem_int_atomic_add(reinterpret_cast<int*>(slots + pe * 4), 1, (pe + 1) % n);
  nvshmem_quiet();
}

int main() {
  nvshmem_init();
  char* slots = static_cast<char*>(nvshmem_malloc(64));
  cudaMemset(slots, 0, 64);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  arrive<<<1, 1>>>(slots, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(slots);
  nvshmem_finalize();
  return failed;
}
