// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// The pointer was never allocated.
#include <cuda_runtime.h>

__global__ void fill(int* p) {
  p[threadIdx.x] = 1;  // <-- out-of-bounds
}

int main() {
  int* p = nullptr;
  fill<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
