// echolo-test: mode=sanitize n=2
// expect: correct
// Both set the flag of their peer.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void look(uint64_t* flag, unsigned* tries, int pe, int n) {
  if (pe >= 0) nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, (pe + 1) % n);
  while (nvshmem_signal_fetch(flag) == 0) atomicAdd(tries, 1);
}

int main() {
  nvshmem_init();
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  unsigned* tries = nullptr;
  cudaMalloc(&tries, sizeof(unsigned));
  cudaMemset(tries, 0, sizeof(unsigned));
  nvshmem_barrier_all();
  look<<<1, 1>>>(flag, tries, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  cudaFree(tries);
  nvshmem_free(flag);
  nvshmem_finalize();
  return failed;
}
