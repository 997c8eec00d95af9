// echolo-test: mode=sanitize n=1
// expect: correct
// More than 48 KiB of it, asked for with cudaFuncSetAttribute.
#include <cuda_runtime.h>

__global__ void reverse(int* p) {
  extern __shared__ int tile[];
  for (int i = threadIdx.x; i < 16384; i += blockDim.x) tile[i] = i;
  __syncthreads();
  for (int i = threadIdx.x; i < 1024; i += blockDim.x) p[i] = tile[16383 - i];
}

int main() {
  int* p = nullptr;
  static int h[1024];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536);
  reverse<<<1, 256, 65536>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 1024; ++i) wrong += !(h[i] == 16383 - i);
  cudaFree(p);
  return wrong != 0;
}
