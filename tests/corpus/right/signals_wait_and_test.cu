// echolo-test: mode=sanitize n=2
// expect: correct
// Every kind of wait and test on symmetric words.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void waits(int* ints, uint64_t* signal, int pe, int n) {
  const int peer = (pe + 1) % n;
  for (int i = 0; i < 4; ++i) nvshmem_int_p(ints + i, i + 1, peer);
  nvshmem_int_wait_until_all(ints, 4, nullptr, NVSHMEM_CMP_GT, 0);
  nvshmem_fence();
  nvshmemx_signal_op(signal, 3, NVSHMEM_SIGNAL_ADD, peer);
  nvshmemx_signal_op(signal, 4, NVSHMEM_SIGNAL_ADD, peer);
  while (nvshmem_signal_fetch(signal) != 7) {
  }
  int round = 0;
  while (!nvshmem_int_test(ints + 1, NVSHMEM_CMP_EQ, 2)) ++round;
  ints[5] = static_cast<int>(nvshmem_int_wait_until_any(ints, 4, nullptr, NVSHMEM_CMP_EQ, 3));
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* ints = static_cast<int*>(nvshmem_calloc(8, sizeof(int)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  waits<<<1, 1>>>(ints, signal, pe, n);
  int h[8];
  wrong += cudaMemcpy(h, ints, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess || h[5] != 2;
  nvshmem_barrier_all();
  nvshmem_free(signal);
  nvshmem_free(ints);
  nvshmem_finalize();
  return wrong != 0;
}
