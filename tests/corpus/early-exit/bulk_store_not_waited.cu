// echolo-test: mode=sanitize n=1
// expect: early_exit
#include <cuda_runtime.h>

__global__ void store(int* out) {
  __shared__ alignas(16) int tile[64];
  tile[threadIdx.x] = 3 * static_cast<int>(threadIdx.x);
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned from = static_cast<unsigned>(__cvta_generic_to_shared(tile));
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 256;" ::"l"(out), "r"(from) : "memory");  // <-- early-exit
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
  }
}

int main() {
  int* out;
  cudaMalloc(&out, 256);
  store<<<1, 64>>>(out);
  const cudaError_t error = cudaDeviceSynchronize();
  cudaFree(out);
  return error == cudaSuccess ? 0 : 1;
}
