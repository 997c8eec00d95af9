// echolo-test: mode=sanitize n=1
// expect: correct
// It copies the word there.
#include <cuda_runtime.h>

int main() {
  int* p = nullptr;
  cudaMalloc(&p, sizeof(int));
  const int one = 1;
  cudaMemcpy(p, &one, sizeof(int), cudaMemcpyHostToDevice);
  cudaFree(p);
  return 0;
}
