// echolo-test: mode=sanitize n=1
// expect: correct
// The last thread wraps around.
#include <cuda_runtime.h>

__global__ void neighbours(int* out) {
  __shared__ int tile[64];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = tile[(threadIdx.x + 1) % 64];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 64 * sizeof(int));
  neighbours<<<1, 64>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
