// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// The kernel writes memory that has been freed.
#include <cuda_runtime.h>

__global__ void fill(int* p) {
  p[threadIdx.x] = 1;  // <-- out-of-bounds
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 32 * sizeof(int));
  cudaFree(p);
  fill<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  return failed;
}
