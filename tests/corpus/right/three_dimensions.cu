// echolo-test: mode=sanitize n=1
// expect: correct
// Grids and blocks of three dimensions, and partial warps.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(60) place(int* p) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
  const int z = blockIdx.z * blockDim.z + threadIdx.z;
  p[(z * 8 + y) * 10 + x] = x + 100 * y + 10000 * z;
}

int main() {
  int* p = nullptr;
  static int h[480];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  place<<<dim3(2, 2, 2), dim3(5, 4, 3)>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 480; ++i) wrong += !(h[i] == i % 10 + i / 10 % 8 * 100 + i / 80 * 10000);
  cudaFree(p);
  return wrong != 0;
}
