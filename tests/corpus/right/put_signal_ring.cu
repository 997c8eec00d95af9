// echolo-test: mode=sanitize n=4
// expect: correct
// Data and signal to the next PE, round by round, each in its own slot.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void ring(int* slots, uint64_t* signal, int* source, int pe, int n, int rounds) {
  for (int round = 0; round < rounds; ++round) {
    source[threadIdx.x] = round == 0 ? pe * 100 + threadIdx.x : slots[(round - 1) * blockDim.x + threadIdx.x];
    __syncthreads();
    nvshmemx_int_put_signal_block(slots + round * blockDim.x, source, blockDim.x, signal + round, 1,
                                  NVSHMEM_SIGNAL_SET, (pe + 1) % n);
    if (threadIdx.x == 0) nvshmem_signal_wait_until(signal + round, NVSHMEM_CMP_EQ, 1);
    __syncthreads();
  }
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* slots = static_cast<int*>(nvshmem_malloc(n * 64 * sizeof(int)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(n, sizeof(uint64_t)));
  int *source = nullptr, h[64];
  cudaMalloc(&source, sizeof(h));
  nvshmem_barrier_all();
  ring<<<1, 64>>>(slots, signal, source, pe, n, n);
  wrong += cudaMemcpy(h, slots + (n - 1) * 64, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 64; ++i) wrong += h[i] != pe * 100 + i;  // once around
  nvshmem_barrier_all();
  cudaFree(source);
  nvshmem_free(signal);
  nvshmem_free(slots);
  nvshmem_finalize();
  return wrong != 0;
}
