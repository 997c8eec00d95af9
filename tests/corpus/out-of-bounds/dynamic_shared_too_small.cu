// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// The launch asks for half of the shared memory that the kernel uses.
#include <cuda_runtime.h>

__global__ void reverse(int* p) {
  extern __shared__ int tile[];
  tile[threadIdx.x] = p[threadIdx.x];  // <-- out-of-bounds
  __syncthreads();
  p[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 128 * sizeof(int));
  cudaMemset(p, 0, 128 * sizeof(int));
  reverse<<<1, 128, 64 * sizeof(int)>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
