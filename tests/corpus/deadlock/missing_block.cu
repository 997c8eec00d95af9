// echolo-test: mode=sanitize n=2
// expect: deadlock
// Block i waits for block i of the peer, and PE 1 launches one block less.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void meet(uint64_t* flags, int pe, int n) {
  if (threadIdx.x == 0) {
    nvshmemx_signal_op(flags + blockIdx.x, 1, NVSHMEM_SIGNAL_SET, (pe + 1) % n);
    nvshmem_signal_wait_until(flags + blockIdx.x, NVSHMEM_CMP_GE, 1);  // <-- deadlock
  }
}

int main() {
  nvshmem_init();
  uint64_t* flags = static_cast<uint64_t*>(nvshmem_calloc(4, sizeof(uint64_t)));
  nvshmem_barrier_all();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  meet<<<pe == 1 ? 3 : 4, 32>>>(flags, pe, n);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(flags);
  nvshmem_finalize();
  return failed;
}
