// echolo-test: mode=sanitize n=1
// expect: uninitialised_read
// Half of what the host copies back was never written.
#include <cuda_runtime.h>

__global__ void fill(int* p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i] = i;
}

__global__ void sum(const int* p, int n, int* out) {
  int s = 0;
  for (int i = 0; i < n; ++i) s += p[i];  // <-- uninitialised-read
  *out = s;
}

int main() {
  int *p = nullptr, got = 0;
  cudaMalloc(&p, 65 * sizeof(int));
  fill<<<1, 32>>>(p, 32);
  sum<<<1, 1>>>(p, 64, p + 64);
  cudaMemcpy(&got, p + 64, sizeof(int), cudaMemcpyDeviceToHost);
  cudaFree(p);
  return got != 63 * 32;
}
