// echolo-test: mode=sanitize n=2
// expect: data_race
// A PE clears its signal after the collective allocation; a quick peer may have signalled by then.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void hello(uint64_t* signal, int peer) {
  nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, peer);  // <-- data-race
}

__global__ void wait(uint64_t* signal) { nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, 1); }

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_malloc(sizeof(uint64_t)));
  cudaMemset(signal, 0, sizeof(uint64_t));  // <-- data-race
  hello<<<1, 1>>>(signal, (pe + 1) % n);
  wait<<<1, 1>>>(signal);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(signal);
  nvshmem_finalize();
  return 0;
}
