// echolo-test: mode=sanitize n=2
// expect: source_reuse
// A fence orders puts; it does not say that their source has been read.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* inbox, int* source, uint64_t* flag, int* out, int pe, int n) {
  const int peer = (pe + 1) % n;
  source[threadIdx.x] = pe;
  __syncwarp();
  nvshmemx_int_put_nbi_warp(inbox + threadIdx.x / 32 * 32, source + threadIdx.x / 32 * 32, 32, peer);  // <-- source-reuse
  nvshmem_fence();
  __syncwarp();
  source[threadIdx.x] = -1;  // <-- source-reuse
  out[threadIdx.x] = source[threadIdx.x];
  nvshmem_quiet();
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
