// echolo-test: mode=sanitize n=1
// expect: correct
// For an odd one, as block 1 is.
#include <cuda_runtime.h>

__global__ void hand_over(volatile int* flag) {
  if (blockIdx.x == 0) {
    while (*flag == 0) {
    }
  } else if (threadIdx.x == 0 && blockIdx.x % 2 == 1) {
    *flag = 1;
  }
}

int main() {
  int* flag = nullptr;
  cudaMalloc(&flag, sizeof(int));
  cudaMemset(flag, 0, sizeof(int));
  hand_over<<<2, 32>>>(flag);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(flag);
  return failed;
}
