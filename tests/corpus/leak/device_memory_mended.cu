// echolo-test: mode=sanitize n=1
// expect: correct
// It is freed.
#include <cuda_runtime.h>

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 4096);
  const int failed = cudaMemset(p, 0, 4096) != cudaSuccess;
  cudaFree(p);
  return failed;
}
