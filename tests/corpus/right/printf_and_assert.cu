// echolo-test: mode=sanitize n=1 output="thread 2 of 4: ready  1.50 x 1099511627776"
// expect: correct
// Output from a kernel, and an assertion that holds.
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>

__global__ void speak(int* p) {
  assert(blockDim.x == 4);
  p[threadIdx.x] = 1;
  if (threadIdx.x == 2) printf("thread %d of %d: %s %5.2f %c %llu\n", 2, 4, "ready", 1.5, 'x', 1ull << 40);
}

int main() {
  int* p = nullptr;
  static int h[4];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  speak<<<1, 4>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 4; ++i) wrong += !(h[i] == 1);
  cudaFree(p);
  return wrong != 0;
}
