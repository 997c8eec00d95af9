// echolo-test: mode=sanitize n=1
// expect: correct
// Different warps may meet at different `bar.sync 0`; only each warp must be whole.
#include <cuda_runtime.h>

__global__ void meet(int* p) {
  __shared__ int tile[64];
  if (threadIdx.x < 32) {
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = tile[threadIdx.x + 32];
  } else {
    tile[threadIdx.x] = threadIdx.x;
    __syncthreads();
    p[threadIdx.x] = tile[threadIdx.x - 32];
  }
}

int main() {
  int* p = nullptr;
  static int h[64];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  meet<<<1, 64>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 64; ++i) wrong += !(h[i] == (i + 32) % 64);
  cudaFree(p);
  return wrong != 0;
}
