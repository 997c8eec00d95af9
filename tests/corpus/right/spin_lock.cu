// echolo-test: mode=sanitize n=1
// expect: correct
// A lock taken by one lane at a time, by compare-and-swap.
#include <cuda_runtime.h>

__global__ void add(int* p) {
  bool done = false;
  while (!done) {
    if (atomicCAS(p, 0, 1) == 0) {
      __threadfence();
      volatile int* count = p + 1;
      *count = *count + 1;
      __threadfence();
      atomicExch(p, 0);
      done = true;
    }
  }
}

int main() {
  int* p = nullptr;
  static int h[2];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  add<<<4, 64>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 2; ++i) wrong += !(h[i] == (i == 0 ? 0 : 256));
  cudaFree(p);
  return wrong != 0;
}
