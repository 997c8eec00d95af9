// echolo-test: mode=sanitize n=2
// expect: uninitialised_read
// The flag that a PE polls has never been cleared: symmetric memory is not zero.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void pass(uint64_t* flag, int pe, int n) {
  nvshmem_fence();
  nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_ADD, (pe + 1) % n);
  nvshmem_signal_wait_until(flag, NVSHMEM_CMP_GE, 1);
}

int main() {
  nvshmem_init();
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_malloc(sizeof(uint64_t)));
  nvshmem_barrier_all();
  pass<<<1, 1>>>(flag, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(flag);
  nvshmem_finalize();
  return failed;
}
