// echolo-test: mode=sanitize n=1
// expect: correct
// Lanes that have left a warp are not waited for at its barrier.
#include <cuda_runtime.h>

__global__ void few(int* p) {
  if (threadIdx.x % 32 >= 20) return;
  p[threadIdx.x] = 1;
  __syncthreads();
  p[64 + threadIdx.x] = p[threadIdx.x] + p[(threadIdx.x + 32) % 64];
}

int main() {
  int* p = nullptr;
  static int h[128];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  few<<<1, 64>>>(p + 0);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 128; ++i) wrong += !(h[i] == (i % 32 >= 20 ? 0 : 1 + i / 64));
  cudaFree(p);
  return wrong != 0;
}
