// echolo-test: mode=sanitize n=1
// expect: correct
// It compares with what the failed attempt returned.
#include <cuda_runtime.h>

__global__ void count(unsigned* p) {
  unsigned expected = *static_cast<volatile unsigned*>(p);
  __syncthreads();
  while (true) {
    const unsigned seen = atomicCAS(p, expected, expected + 1);
    if (seen == expected) break;
    expected = seen;
  }
}

int main() {
  unsigned* p = nullptr;
  cudaMalloc(&p, sizeof(unsigned));
  cudaMemset(p, 0, sizeof(unsigned));
  count<<<1, 64>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
