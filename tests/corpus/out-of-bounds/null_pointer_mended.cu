// echolo-test: mode=sanitize n=1
// expect: correct
// It is allocated first.
#include <cuda_runtime.h>

__global__ void fill(int* p) { p[threadIdx.x] = 1; }

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 32 * sizeof(int));
  fill<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
