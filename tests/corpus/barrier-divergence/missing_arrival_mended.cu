// echolo-test: mode=sanitize n=1
// expect: correct
// It is told 64.
#include <cuda_runtime.h>

__global__ void halves(int* p) {
  if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
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
