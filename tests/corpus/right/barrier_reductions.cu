// echolo-test: mode=sanitize n=1
// expect: correct
// __syncthreads_count, _and and _or.
#include <cuda_runtime.h>

__global__ void vote(int* p) {
  const int t = threadIdx.x;
  const int count = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 96), any = __syncthreads_or(t == 95);
  p[t] = count * 100 + (all != 0) * 10 + (any != 0);
}

int main() {
  int* p = nullptr;
  static int h[96];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  vote<<<1, 96>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 96; ++i) wrong += !(h[i] == 3211);
  cudaFree(p);
  return wrong != 0;
}
