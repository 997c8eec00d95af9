// echolo-test: mode=sanitize n=1
// expect: correct
// Two blocks leave a hint in one word; which of them stays does not matter, and the line says so.
#include <cuda_runtime.h>

__global__ void hint(int* word) {
  if (threadIdx.x == 0) *word = blockIdx.x;  // echolo: benign(either hint will do)
}

int main() {
  int* word = nullptr;
  cudaMalloc(&word, sizeof(int));
  hint<<<2, 32>>>(word);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(word);
  return failed;
}
