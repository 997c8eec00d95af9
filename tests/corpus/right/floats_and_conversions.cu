// echolo-test: mode=sanitize n=1
// expect: correct
// Float, half, bf16 and double arithmetic, conversions and special values.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cmath>

__global__ void sums(int* p) {
  const int t = threadIdx.x;
  const float x = t - 16;
  p[t * 8] = __float2int_rn(x / 2);
  p[t * 8 + 1] = static_cast<int>(floorf(x / 3));
  p[t * 8 + 2] = static_cast<int>(__half2float(__float2half(x)) * 2);
  p[t * 8 + 3] = static_cast<int>(__bfloat162float(__float2bfloat16(x + 0.5f)) * 4);
  p[t * 8 + 4] = static_cast<int>(sqrt(static_cast<double>(t) * t) * 3);
  p[t * 8 + 5] = static_cast<int>(fmaf(x, x, 1.0f));
  p[t * 8 + 6] = isnan(0.0f / (x - x)) + 2 * isinf(1.0f / (x - x));
  p[t * 8 + 7] = static_cast<int>(static_cast<long long>(t) * 1000000007LL % 97);
}

static int expected(int t, int what) {
  const float x = t - 16;
  switch (what) {
    case 0:
      return static_cast<int>(std::nearbyint(x / 2));
    case 1:
      return static_cast<int>(std::floor(x / 3));
    case 2:
      return (t - 16) * 2;
    case 3:
      return (t - 16) * 4 + 2;
    case 4:
      return t * 3;
    case 5:
      return (t - 16) * (t - 16) + 1;
    case 6:
      return 3;
    default:
      return static_cast<int>(t * 1000000007LL % 97);
  }
}

int main() {
  int* p = nullptr;
  static int h[256];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  sums<<<1, 32>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 256; ++i) wrong += !(h[i] == expected(i / 8, i % 8));
  cudaFree(p);
  return wrong != 0;
}
