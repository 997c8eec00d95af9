// echolo-test: mode=sanitize n=1
// expect: uninitialised_read
// The kernel adds to memory that nobody has set.
#include <cuda_runtime.h>

__global__ void count(int* p) {
  p[threadIdx.x] += 1;  // <-- uninitialised-read
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 32 * sizeof(int));
  count<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
