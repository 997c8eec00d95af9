// echolo-test: mode=sanitize n=3
// expect: correct
// A quiet completes the put before anybody is told.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* inbox, const int* source, uint64_t* flag, int* out, int pe, int n) {
  if (threadIdx.x == 0) {
    if (pe == 0) {
      nvshmem_int_put(inbox, source, 64, 1);
      nvshmem_quiet();
      nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 2);
    } else if (pe == 2) {
      nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
      nvshmemx_signal_op(flag, 1, NVSHMEM_SIGNAL_SET, 1);
    } else {
      nvshmem_signal_wait_until(flag, NVSHMEM_CMP_EQ, 1);
    }
  }
  __syncthreads();
  if (pe == 1) out[threadIdx.x] = inbox[threadIdx.x];
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
