// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// A copy from the host is larger than the device buffer.
#include <cuda_runtime.h>

int main() {
  const int values[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  int* p = nullptr;
  cudaMalloc(&p, 4 * sizeof(int));
  cudaMemcpy(p, values, sizeof(values), cudaMemcpyHostToDevice);  // <-- out-of-bounds
  const int failed = cudaGetLastError() != cudaSuccess;
  cudaFree(p);
  return failed;
}
