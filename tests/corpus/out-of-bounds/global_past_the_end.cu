// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// The guard lets one thread too many through.
#include <cuda_runtime.h>

__global__ void fill(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) p[i] = i;  // <-- out-of-bounds
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 100 * sizeof(int));
  fill<<<1, 128>>>(p, 100);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
