// echolo-test: mode=sanitize n=1
// expect: correct
// A message passed between blocks with st.release and ld.acquire at gpu scope.
#include <cuda_runtime.h>

__global__ void pass(int* p) {
  if (blockIdx.x == 1) {
    p[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(p + 64) : "memory");
  } else {
    if (threadIdx.x == 0) {
      int seen = 0;
      while (seen == 0)
        asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(p + 64) : "memory");
    }
    __syncthreads();
    p[65 + threadIdx.x] = p[threadIdx.x] * 2;
  }
}

int main() {
  int* p = nullptr;
  static int h[129];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  pass<<<2, 64>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 129; ++i) wrong += !(h[i] == (i < 64 ? i + 1 : i == 64 ? 1 : (i - 64) * 2));
  cudaFree(p);
  return wrong != 0;
}
