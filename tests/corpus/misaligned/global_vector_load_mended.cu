// echolo-test: mode=sanitize n=1
// expect: correct
// Every thread has its own four words.
#include <cuda_runtime.h>

__global__ void sum(const float* x, float* y) {
  const float4 v = *reinterpret_cast<const float4*>(x + threadIdx.x * 4);
  y[threadIdx.x] = v.x + v.y + v.z + v.w;
}

int main() {
  float* p = nullptr;
  cudaMalloc(&p, 256 * sizeof(float));
  cudaMemset(p, 0, 256 * sizeof(float));
  sum<<<1, 32>>>(p, p + 128);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
