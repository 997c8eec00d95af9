// echolo-test: mode=sanitize n=1
// expect: correct
// No further than its end.
#include <cuda_runtime.h>

__constant__ int table[4] = {1, 2, 4, 8};

__global__ void look_up(int* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = table[i];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 8 * sizeof(int));
  look_up<<<1, 1>>>(p, 4);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
