// echolo-test: mode=sanitize n=1
// expect: correct
// Warp-specialised producers and consumers with bar.arrive and bar.sync on named barriers.
#include <cuda_runtime.h>

// 32 producers fill, 32 consumers take, a full and an empty barrier of 64 threads each.
__global__ void pipe(int* p) {
  __shared__ int slot[32];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    for (int round = 0; round < 4; ++round) {
      if (round > 0) asm volatile("bar.sync 2, 64;" ::: "memory");
      slot[lane] = round * 100 + lane;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
    }
  } else {
    for (int round = 0; round < 4; ++round) {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      p[round * 32 + lane] = slot[31 - lane];
      if (round < 3) asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
}

int main() {
  int* p = nullptr;
  static int h[128];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  pipe<<<1, 64>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 128; ++i) wrong += !(h[i] == i / 32 * 100 + 31 - i % 32);
  cudaFree(p);
  return wrong != 0;
}
