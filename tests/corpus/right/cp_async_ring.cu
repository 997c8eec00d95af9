// echolo-test: mode=sanitize n=1
// expect: correct
// cp.async in groups, with a short source that is filled up with zeros.
#include <cuda_runtime.h>

__global__ void __launch_bounds__(32) ring(int* p) {
  __shared__ __align__(16) int stage[2][128];
  const int t = threadIdx.x;
  auto fetch = [&](int step) {
    const auto to = static_cast<unsigned>(__cvta_generic_to_shared(&stage[step % 2][t * 4]));
    const int bytes = t == 31 ? 8 : 16;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(p + step * 128 + t * 4),
                 "r"(bytes)
                 : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  for (int i = t; i < 512; i += 32) p[i] = i;
  __syncwarp();
  fetch(0);
  for (int step = 0; step < 4; ++step) {
    if (step < 3) {
      fetch(step + 1);
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    } else {
      asm volatile("cp.async.wait_all;" ::: "memory");
    }
    __syncthreads();
    for (int i = t; i < 128; i += 32) p[512 + step * 128 + i] = stage[step % 2][i];
    __syncthreads();
  }
}

int main() {
  int* p = nullptr;
  static int h[1024];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  ring<<<1, 32>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 1024; ++i) wrong += !(h[i] == (i < 512 ? i : i % 128 >= 126 ? 0 : i - 512));
  cudaFree(p);
  return wrong != 0;
}
