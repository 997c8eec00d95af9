// echolo-test: mode=sanitize n=1
// expect: correct
// A cooperative launch whose blocks meet twice.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void phases(int* p) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  p[i] = i;
  cg::this_grid().sync();
  const int next = p[(i + blockDim.x) % n];
  cg::this_grid().sync();
  p[i] = next;
}

int main() {
  int* p = nullptr;
  static int h[256];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  int* argument = p;
  void* arguments[] = {&argument};
  cudaLaunchCooperativeKernel(phases, 8, 32, arguments, 0, nullptr);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 256; ++i) wrong += !(h[i] == (i + 32) % 256);
  cudaFree(p);
  return wrong != 0;
}
