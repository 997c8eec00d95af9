// echolo-test: mode=sanitize n=1
// expect: correct
// The barrier stands before the branch.
#include <cuda_runtime.h>

__global__ void shift(int* p) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x < 16) {
    p[threadIdx.x] = tile[threadIdx.x];
  }
  __syncthreads();
  p[threadIdx.x + 32] = tile[31 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 64 * sizeof(int));
  shift<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
