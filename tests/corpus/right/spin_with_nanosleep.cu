// echolo-test: mode=sanitize n=1
// expect: correct
// A wait that sleeps between its looks.
#include <cuda_runtime.h>

__global__ void relay(int* p) {
  volatile int* turn = p;
  while (*turn != static_cast<int>(blockIdx.x)) __nanosleep(100);
  __threadfence();
  p[1 + blockIdx.x] = blockIdx.x * blockIdx.x;
  __threadfence();
  *turn = blockIdx.x + 1;
}

int main() {
  int* p = nullptr;
  static int h[9];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  relay<<<8, 1>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 9; ++i) wrong += !(h[i] == (i == 0 ? 8 : (i - 1) * (i - 1)));
  cudaFree(p);
  return wrong != 0;
}
