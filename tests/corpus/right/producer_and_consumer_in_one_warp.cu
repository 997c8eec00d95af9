// echolo-test: mode=sanitize n=1
// expect: correct
// Divergent lanes of a warp make progress past each other: lane 0 waits for lane 1.
#include <cuda_runtime.h>

__global__ void hand_over(int* p) {
  volatile int* box = p;
  if (threadIdx.x == 0) {
    while (box[0] == 0) {
    }
    __threadfence();
    box[2] = box[1] + 1;
  } else if (threadIdx.x == 1) {
    box[1] = 41;
    __threadfence();
    box[0] = 1;
  }
}

int main() {
  int* p = nullptr;
  static int h[3];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  hand_over<<<1, 32>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 3; ++i) wrong += !(h[i] == (i == 0 ? 1 : 40 + i));
  cudaFree(p);
  return wrong != 0;
}
