// echolo-test: mode=sanitize n=1
// expect: deadlock
// A compare-and-swap loop keeps comparing with the value that it read before the loop.
#include <cuda_runtime.h>

__global__ void count(unsigned* p) {
  unsigned expected = *static_cast<volatile unsigned*>(p);
  __syncthreads();
  while (true) {
    const unsigned seen = atomicCAS(p, expected, expected + 1);  // <-- deadlock
    if (seen == expected) break;
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
