// echolo-test: mode=sanitize n=1
// expect: correct
// The launch asks for all of it.
#include <cuda_runtime.h>

__global__ void reverse(int* p) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 128 * sizeof(int));
  cudaMemset(p, 0, 128 * sizeof(int));
  reverse<<<1, 128, 128 * sizeof(int)>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
