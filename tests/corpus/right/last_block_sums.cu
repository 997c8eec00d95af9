// echolo-test: mode=sanitize n=1
// expect: correct
// The last block to finish adds up what all have left, as a counter with fences tells it.
#include <cuda_runtime.h>

__global__ void sum(int* p) {
  __shared__ bool last;
  p[blockIdx.x] = blockIdx.x + 1;
  __threadfence();
  if (threadIdx.x == 0) last = atomicAdd(p + 16, 1) == static_cast<int>(gridDim.x) - 1;
  __syncthreads();
  if (last) {
    __threadfence();
    if (threadIdx.x == 0) {
      int total = 0;
      for (unsigned b = 0; b < gridDim.x; ++b) total += *static_cast<volatile int*>(p + b);
      p[17] = total;
    }
  }
}

int main() {
  int* p = nullptr;
  static int h[18];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  sum<<<16, 1>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 18; ++i) wrong += !(h[i] == (i < 16 ? i + 1 : i == 16 ? 16 : 136));
  cudaFree(p);
  return wrong != 0;
}
