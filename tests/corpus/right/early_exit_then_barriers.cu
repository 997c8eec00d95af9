// echolo-test: mode=sanitize n=1
// expect: correct
// Some warps leave; the barriers of the rest no longer count them.
#include <cuda_runtime.h>

__global__ void reduce(int* p) {
  __shared__ int tile[128];
  tile[threadIdx.x] = 1;
  __syncthreads();
  for (int half = 64; half >= 32; half /= 2) {
    if (static_cast<int>(threadIdx.x) >= half) return;
    tile[threadIdx.x] += tile[threadIdx.x + half];
    __syncthreads();
  }
  p[threadIdx.x] = tile[threadIdx.x];
}

int main() {
  int* p = nullptr;
  static int h[32];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  reduce<<<1, 128>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 32; ++i) wrong += !(h[i] == 4);
  cudaFree(p);
  return wrong != 0;
}
