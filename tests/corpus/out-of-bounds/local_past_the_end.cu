// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// A local array is indexed with a value from outside, which is far too large.
#include <cuda_runtime.h>

__global__ void histogram(const int* values, int* out, int n) {
  int bins[8];
  for (int i = 0; i < 8; ++i) bins[i] = 0;
  for (int i = 0; i < n; ++i) bins[values[i]] += 1;  // <-- out-of-bounds
  for (int i = 0; i < 8; ++i) out[i] = bins[i];
}

int main() {
  const int values[4] = {1, 300, 3, 300};
  int* p = nullptr;
  cudaMalloc(&p, 12 * sizeof(int));
  cudaMemcpy(p, values, sizeof(values), cudaMemcpyHostToDevice);
  histogram<<<1, 1>>>(p, p + 4, 4);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
