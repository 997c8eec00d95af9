// echolo-test: mode=sanitize n=1
// expect: correct
// The guard is right.
#include <cuda_runtime.h>

__global__ void fill(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = i;
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 100 * sizeof(int));
  fill<<<1, 128>>>(p, 100);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
