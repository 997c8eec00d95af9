// echolo-test: mode=sanitize n=2
// expect: correct
// Both use the same number.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void rounds(uint64_t* flag, int pe, int n) {
  for (int round = 1; round <= 3; ++round) {
    nvshmemx_signal_op(flag, round, NVSHMEM_SIGNAL_SET, (pe + 1) % n);
    nvshmem_fence();  // the next round's signal comes after this one
    nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, round);
  }
}

int main() {
  nvshmem_init();
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  rounds<<<1, 1>>>(flag, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(flag);
  nvshmem_finalize();
  return failed;
}
