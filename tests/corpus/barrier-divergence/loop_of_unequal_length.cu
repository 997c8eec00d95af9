// echolo-test: mode=sanitize n=1
// expect: barrier_divergence
// Threads leave a loop with a barrier in it at different times.
#include <cuda_runtime.h>

__global__ void steps(int* p, int n) {
  for (int i = threadIdx.x; i < n; i += 32) {
    if (i < n) p[i] = i;
    __syncthreads();  // <-- barrier-divergence
  }
  __syncthreads();
  p[64 + threadIdx.x] = p[39 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 96 * sizeof(int));
  steps<<<1, 32>>>(p, 40);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
