// echolo-test: mode=sanitize n=2
// expect: correct
// A quiet before the buffer is filled again.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* inbox, int* source, uint64_t* flag, int* out, int pe, int n) {
  const int peer = (pe + 1) % n;
  for (int round = 0; round < 4; ++round) {
    source[threadIdx.x] = pe + round;
    __syncthreads();
    if (threadIdx.x == 0) {
      nvshmem_int_put_nbi(inbox + round * 16, source, 16, peer);
      nvshmem_quiet();
    }
    __syncthreads();
  }
  out[threadIdx.x] = source[threadIdx.x];
  __syncthreads();
  if (threadIdx.x == 0) nvshmem_quiet();
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* inbox = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_calloc(2, sizeof(uint64_t)));
  int *source = nullptr, *out = nullptr;
  cudaMalloc(&source, 64 * sizeof(int));
  cudaMemset(source, 1, 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  nvshmem_barrier_all();
  exchange<<<1, 64>>>(inbox, source, flag, out, pe, n);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  cudaFree(out);
  cudaFree(source);
  nvshmem_free(flag);
  nvshmem_free(inbox);
  nvshmem_finalize();
  return failed;
}
