// echolo-test: mode=sanitize n=1
// expect: correct
// All threads go round equally often.
#include <cuda_runtime.h>

__global__ void steps(int* p, int n) {
  for (int i = threadIdx.x; i < (n + 31) / 32 * 32; i += 32) {
    if (i < n) p[i] = i;
    __syncthreads();
  }
  __syncthreads();
  p[64 + threadIdx.x] = p[39 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 96 * sizeof(int));
  steps<<<1, 32>>>(p, 40);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
