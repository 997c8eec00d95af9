// echolo-test: mode=sanitize n=2
// expect: livelock
// Each PE waits for the peer's counter to fall behind its own, and counts on while it waits.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void after_you(uint64_t* counter, int pe, int n) {
  uint64_t mine = pe;
  while (nvshmem_signal_fetch(counter) >= 0) {
    mine += 1;
    nvshmemx_signal_op(counter, mine + 2, NVSHMEM_SIGNAL_SET, (pe + 1) % n);
    nvshmem_fence();
  }
}

int main() {
  nvshmem_init();
  uint64_t* counter = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  after_you<<<1, 1>>>(counter, nvshmem_my_pe(), nvshmem_n_pes());
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(counter);
  nvshmem_finalize();
  return failed;
}
