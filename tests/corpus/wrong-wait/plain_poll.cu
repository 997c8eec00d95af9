// echolo-test: mode=sanitize n=2
// expect: wrong_wait
// The signal of a put-with-signal is polled with plain loads: the compiler may make one load of them.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* inbox, const int* source, uint64_t* flag, int* out, int pe, int n) {
  if (threadIdx.x == 0) {
    nvshmem_int_put_signal(inbox, source, 64, flag, 1, NVSHMEM_SIGNAL_SET, (pe + 1) % n);
    while (*flag == 0) continue;  // <-- deadlock
  }
  __syncthreads();
  out[threadIdx.x] = inbox[threadIdx.x];
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
