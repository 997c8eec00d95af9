// echolo-test: mode=sanitize n=1
// expect: correct
// shfl in its four modes, vote, match, redux, activemask within diverged halves.
#include <cuda_runtime.h>

__global__ void warp(int* p) {
  const int t = threadIdx.x;
  const unsigned all = 0xffffffffu;
  int* out = p + t * 12;
  out[0] = __shfl_sync(all, t * 10, 5);
  out[1] = __shfl_up_sync(all, t, 3);
  out[2] = __shfl_down_sync(all, t, 4, 16);
  out[3] = __shfl_xor_sync(all, t, 9);
  out[4] = __popc(__ballot_sync(all, t % 3 == 0));
  out[5] = __all_sync(all, t >= 0) * 10 + __any_sync(all, t == 31);
  out[6] = __popc(__match_any_sync(all, t % 5));
  int same = 0;
  __match_all_sync(all, t / 32, &same);
  out[7] = same;
  out[8] = __reduce_add_sync(all, t);
  out[9] = __reduce_max_sync(all, t ^ 5);
  out[10] = static_cast<int>(__reduce_xor_sync(all, 1u << t));
  if (t < 16) {
    out[11] = __popc(__ballot_sync(0x0000ffffu, t % 2 == 0));
  } else {
    out[11] = __shfl_sync(0xffff0000u, t, 20);
  }
}

static int expected(int t, int what) {
  switch (what) {
    case 0:
      return 50;
    case 1:
      return t < 3 ? t : t - 3;
    case 2:
      return t % 16 + 4 < 16 ? t + 4 : t;
    case 3:
      return t ^ 9;
    case 4:
      return 11;
    case 5:
      return 11;
    case 6:
      return t % 5 < 2 ? 7 : 6;
    case 7:
      return 1;
    case 8:
      return 496;
    case 9:
      return 31;
    case 10:
      return -1;
    default:
      return t < 16 ? 8 : 20;
  }
}

int main() {
  int* p = nullptr;
  static int h[384];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  warp<<<1, 32>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 384; ++i) wrong += !(h[i] == expected(i / 12, i % 12));
  cudaFree(p);
  return wrong != 0;
}
