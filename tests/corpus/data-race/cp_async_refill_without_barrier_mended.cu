// echolo-test: mode=sanitize n=1
// expect: correct
// A barrier stands between the last read of a stage and its next copy.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(64) ring(const int* from, int* to) {
  __shared__ __align__(16) int stage[2][256];
  const int t = threadIdx.x;
  auto fetch = [&](int step) {
    const auto at = static_cast<unsigned>(__cvta_generic_to_shared(&stage[step % 2][t * 4]));
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from + step * 256 + t * 4) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  fetch(0);
  for (int step = 0; step < 4; ++step) {
    if (step < 3) fetch(step + 1);
    if (step < 3) {
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    }
    __syncthreads();
    for (int i = 0; i < 4; ++i) to[step * 256 + i * 64 + t] = stage[step % 2][255 - i * 64 - t];
    __syncthreads();
  }
}

int main() {
  int *from = nullptr, *to = nullptr;
  static int h[1024];
  for (int i = 0; i < 1024; ++i) h[i] = i;
  cudaMalloc(&from, sizeof(h));
  cudaMalloc(&to, sizeof(h));
  cudaMemcpy(from, h, sizeof(h), cudaMemcpyHostToDevice);
  ring<<<1, 64>>>(from, to);
  cudaMemcpy(h, to, sizeof(h), cudaMemcpyDeviceToHost);
  cudaFree(from);
  cudaFree(to);
  return 0;
}
