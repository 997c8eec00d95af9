// echolo-test: mode=sanitize n=1
// expect: correct
// __device__ and __constant__ variables, with initialisers and copied from the host.
#include <cuda_runtime.h>

__device__ int counter = 5;
__device__ int table[4] = {1, 2, 3};
__device__ int* where = &table[1];
__constant__ int factors[4];
__constant__ float scale = 2.5f;

__global__ void use(int* p) {
  const int t = threadIdx.x;
  atomicAdd(&counter, 1);
  p[t] = (t < 3 ? where[t] : table[0]) * factors[t] + static_cast<int>(scale * 2);
}

int main() {
  int* p = nullptr;
  static int h[4];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  const int f[4] = {10, 20, 30, 40}, want[4] = {25, 65, 5, 45};
  cudaMemcpyToSymbol(factors, f, sizeof(f));
  use<<<1, 4>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 4; ++i) wrong += !(h[i] == want[i]);
  int count = 0;
  cudaMemcpyFromSymbol(&count, counter, sizeof(count));
  wrong += count != 9;
  cudaFree(p);
  return wrong != 0;
}
