// echolo-test: mode=sanitize n=1
// expect: correct
// They begin at a multiple of 8.
#include <cuda_runtime.h>

__global__ void store(double* out) {
  extern __shared__ __align__(16) char memory[];
  double* tile = reinterpret_cast<double*>(memory + 8);
  tile[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  double* p = nullptr;
  cudaMalloc(&p, 32 * sizeof(double));
  store<<<1, 32, 33 * sizeof(double)>>>(p);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
