// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// A table in constant memory is read past its end.
#include <cuda_runtime.h>

__constant__ int table[4] = {1, 2, 4, 8};

__global__ void look_up(int* p, int n) {
  for (int i = 0; i < n; ++i) p[i] = table[i];  // <-- out-of-bounds
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 8 * sizeof(int));
  look_up<<<1, 1>>>(p, 5);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
