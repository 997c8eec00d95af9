// echolo-test: mode=sanitize n=1
// expect: correct
// Accesses of 1 to 16 bytes, through the read-only path and with cache hints.
#include <cuda_runtime.h>

__global__ void move(int* p) {
  const int t = threadIdx.x;
  for (int i = t; i < 256; i += 32) p[i] = i;
  __syncthreads();
  const int4 v = __ldcg(reinterpret_cast<const int4*>(p) + t);
  __stcs(reinterpret_cast<int2*>(p + 256) + t, make_int2(v.x + v.y, v.z + v.w));
  reinterpret_cast<short*>(p + 320)[t] = static_cast<short>(__ldcs(p + t) * 2);
  reinterpret_cast<char*>(p + 336)[t] = static_cast<char>(__ldcv(p + t));
}

static int expected(int i) {
  if (i < 256) return i;
  if (i < 320) return (i - 256) * 4 + 1;
  if (i < 336) return (i - 320) * 4 | ((i - 320) * 4 + 2) << 16;
  const int b = (i - 336) * 4;
  return b | (b + 1) << 8 | (b + 2) << 16 | (b + 3) << 24;
}

int main() {
  int* p = nullptr;
  static int h[344];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  move<<<1, 32>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 344; ++i) wrong += !(h[i] == expected(i));
  cudaFree(p);
  return wrong != 0;
}
