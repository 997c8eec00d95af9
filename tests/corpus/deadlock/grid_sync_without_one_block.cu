// echolo-test: mode=sanitize n=1
// expect: deadlock
// One block leaves before the others meet at a grid barrier.
#include <cooperative_groups.h>
#include <cuda_runtime.h>

namespace cg = cooperative_groups;

__global__ void meet(int* p) {
  if (blockIdx.x == 3) return;
  if (threadIdx.x == 0) p[blockIdx.x] = 1;
  cg::this_grid().sync();
  if (threadIdx.x == 0) p[blockIdx.x] += 1;
}

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 4 * sizeof(int));
  void* arguments[] = {&p};
  cudaLaunchCooperativeKernel(meet, 4, 32, arguments, 0, nullptr);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(p);
  return failed;
}
