// echolo-test: mode=sanitize n=1
// expect: correct
// More blocks than are resident, none of which waits for another.
#include <cuda_runtime.h>

__global__ void fill(int* p) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = blockIdx.x;
  __syncthreads();
  if (threadIdx.x == 0) p[blockIdx.x] = tile[31];
}

int main() {
  int* p = nullptr;
  static int h[400];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  cudaFuncSetAttribute(fill, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024);
  fill<<<400, 32, 160 * 1024>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 400; ++i) wrong += !(h[i] == i);
  cudaFree(p);
  return wrong != 0;
}
