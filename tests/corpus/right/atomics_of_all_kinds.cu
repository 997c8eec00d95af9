// echolo-test: mode=sanitize n=1
// expect: correct
// Global and shared atomics: integer, float, 64 bit, bitwise, exchange, compare-and-swap, with scopes.
#include <cuda_runtime.h>

__global__ void atomics(int* p) {
  __shared__ int s[3];
  __shared__ unsigned long long wide;
  __shared__ float f;
  const int t = threadIdx.x;
  if (t == 0) {
    s[0] = s[1] = s[2] = 0;
    wide = 0;
    f = 0;
  }
  __syncthreads();
  atomicAdd(&s[0], 1);
  atomicMax(&s[1], t);
  atomicXor(&s[2], 1 << (t % 31));
  atomicAdd(&wide, 1ull << 32);
  atomicAdd(&f, 0.5f);
  atomicAdd(p + 0, t);
  atomicSub(p + 1, 1);
  atomicMin(p + 2, -t);
  atomicMax(reinterpret_cast<unsigned*>(p + 3), static_cast<unsigned>(t));
  atomicOr(p + 4, 1 << (t % 8));
  atomicAnd(p + 5, t);
  atomicInc(reinterpret_cast<unsigned*>(p + 6), 9);
  atomicDec(reinterpret_cast<unsigned*>(p + 7), 63);
  atomicAdd_block(p + 8, 2);
  atomicAdd_system(p + 9, 3);
  if (atomicCAS(p + 10, 0, 7) == 0) p[11] = 1;
  atomicExch(p + 12, 5);
  atomicAdd(reinterpret_cast<double*>(p + 14), 0.25);
  atomicAdd(reinterpret_cast<float*>(p + 16), 2.0f);
  __syncthreads();
  if (t == 0) {
    p[17] = s[0];
    p[18] = s[1];
    p[19] = s[2];
    p[20] = static_cast<int>(wide >> 32);
    p[21] = static_cast<int>(f);
    p[22] = *reinterpret_cast<double*>(p + 14) == 16.0 && *reinterpret_cast<float*>(p + 16) == 128.0f;
    p[14] = p[15] = p[16] = 0;
  }
}

int main() {
  const int want[23] = {2016, -64, -63, 63, 255, 0,  4,  0, 128, 192, 7, 1,
                        5,    0,   0,   0,  0,   64, 63, 3, 64,  32,  1};
  int* p = nullptr;
  static int h[23];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  atomics<<<1, 64>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 23; ++i) wrong += !(h[i] == want[i]);
  cudaFree(p);
  return wrong != 0;
}
