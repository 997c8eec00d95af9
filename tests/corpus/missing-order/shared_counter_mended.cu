// echolo-test: mode=sanitize n=2
// expect: correct
// Each chunk has a signal of its own.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

constexpr int kChunk = 64;

__global__ void ring(int* inbox, const int* source, uint64_t* arrived, int* sums, int pe, int n, int chunks) {
  if (threadIdx.x == 0) {
    for (int c = 0; c < chunks; ++c) {
      nvshmem_int_put_signal_nbi(inbox + c * kChunk, source + c * kChunk, kChunk, arrived + c, 1, NVSHMEM_SIGNAL_ADD,
                                 (pe + 1) % n);
    }
  }
  for (int c = 0; c < chunks; ++c) {
    if (threadIdx.x == 0) nvshmem_signal_wait_until(arrived + c, NVSHMEM_CMP_GE, 1);
    __syncthreads();
    atomicAdd(sums + c, inbox[c * kChunk + threadIdx.x]);
  }
  if (threadIdx.x == 0) nvshmem_quiet();
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes(), chunks = 8;
  int* inbox = static_cast<int*>(nvshmem_calloc(chunks * kChunk, sizeof(int)));
  uint64_t* arrived = static_cast<uint64_t*>(nvshmem_calloc(chunks, sizeof(uint64_t)));
  int *source = nullptr, *sums = nullptr;
  cudaMalloc(&source, chunks * kChunk * sizeof(int));
  cudaMemset(source, 1, chunks * kChunk * sizeof(int));
  cudaMalloc(&sums, chunks * sizeof(int));
  cudaMemset(sums, 0, chunks * sizeof(int));
  nvshmem_barrier_all();
  ring<<<1, kChunk>>>(inbox, source, arrived, sums, pe, n, chunks);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  cudaFree(sums);
  cudaFree(source);
  nvshmem_free(arrived);
  nvshmem_free(inbox);
  nvshmem_finalize();
  return failed;
}
