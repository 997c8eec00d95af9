// echolo-test: mode=sanitize n=1
// expect: data_race
// The same without a reason: the mark excuses nothing.
#include <cuda_runtime.h>

__global__ void hint(int* word) {
  if (threadIdx.x == 0) *word = blockIdx.x;  // echolo: benign()  // <-- data-race
}

int main() {
  int* word = nullptr;
  cudaMalloc(&word, sizeof(int));
  hint<<<2, 32>>>(word);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(word);
  return failed;
}
