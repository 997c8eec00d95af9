// echolo-test: mode=sanitize n=1
// expect: barrier_divergence
// A named barrier is told to expect 96 threads, and 64 come.
#include <cuda_runtime.h>

__global__ void halves(int* p) {
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 96;" ::: "memory");  // <-- barrier-divergence
    p[threadIdx.x] = 1;
  }
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 128 * sizeof(int));
  halves<<<1, 128>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
