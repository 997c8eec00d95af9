// echolo-test: mode=sanitize n=2
// expect: correct
// Puts, signals and barriers from the host and on a stream.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void fill(int* p, int value) { p[threadIdx.x] = value + threadIdx.x; }

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* box = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  int* source = static_cast<int*>(nvshmem_malloc(32 * sizeof(int)));
  const int peer = (pe + 1) % n;
  cudaStream_t s;
  cudaStreamCreate(&s);
  nvshmem_barrier_all();
  fill<<<1, 32, 0, s>>>(source, pe * 50);
  nvshmemx_putmem_signal_on_stream(box, source, 32 * sizeof(int), signal, 1, NVSHMEM_SIGNAL_SET, peer, s);
  nvshmemx_signal_wait_until_on_stream(signal, NVSHMEM_CMP_EQ, 1, s);
  nvshmemx_barrier_all_on_stream(s);
  wrong += cudaStreamSynchronize(s) != cudaSuccess;
  nvshmem_int_put(box + 32, source, 32, peer);
  nvshmem_barrier_all();
  int h[64];
  wrong += cudaMemcpy(h, box, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 64; ++i) wrong += h[i] != peer * 50 + i % 32;
  cudaStreamDestroy(s);
  nvshmem_free(source);
  nvshmem_free(signal);
  nvshmem_free(box);
  nvshmem_finalize();
  return wrong != 0;
}
