// echolo-test: mode=sanitize n=1
// expect: correct
// The barrier stands before the branch.
#include <cuda_runtime.h>

__global__ void shift(int* p) {
  __shared__ int tile[32];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 16) {
    p[threadIdx.x] = tile[threadIdx.x + 16];
  }
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 32 * sizeof(int));
  cudaMemset(p, 0, 32 * sizeof(int));
  shift<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
