// echolo-test: mode=sanitize n=1
// expect: correct
// The copy fits.
#include <cuda_runtime.h>

int main() {
  const int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int* p = nullptr;
  cudaMalloc(&p, 4 * sizeof(int));
  cudaMemcpy(p, values, 4 * sizeof(int), cudaMemcpyHostToDevice);
  const int failed = cudaGetLastError() != cudaSuccess;
  cudaFree(p);
  return failed;
}
