// echolo-test: mode=sanitize n=1
// expect: barrier_divergence
// Half of a warp takes the branch with the barrier, the other half goes on to the next one.
#include <cuda_runtime.h>

__global__ void shift(int* p) {
  __shared__ int tile[32];
  tile[threadIdx.x] = threadIdx.x;
  if (threadIdx.x < 16) {
    __syncthreads();  // <-- barrier-divergence
    p[threadIdx.x] = tile[threadIdx.x];
  }
  __syncthreads();
  p[threadIdx.x + 32] = tile[31 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 64 * sizeof(int));
  shift<<<1, 32>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
