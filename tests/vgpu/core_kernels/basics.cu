// Kernels that tests/vgpu/core_machine.cpp runs.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cassert>
#include <cstdio>

namespace cg = cooperative_groups;

extern "C" __global__ void vector_add(const float* a, const float* b, float* c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

extern "C" __global__ void block_reverse(int* data) {
  __shared__ int tile[256];
  tile[threadIdx.x] = data[blockIdx.x * 256 + threadIdx.x];
  __syncthreads();
  data[blockIdx.x * 256 + threadIdx.x] = tile[255 - threadIdx.x];
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
extern "C" __global__ void recursion(int* out) { out[threadIdx.x] = fib(threadIdx.x % 12); }

__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int square(int x) { return x * x; }
__device__ __noinline__ int negate(int x) { return -x; }
typedef int (*Function)(int);
__device__ Function functions[3] = {twice, square, negate};
extern "C" __global__ void pointers(int* out) { out[threadIdx.x] = functions[threadIdx.x % 3](threadIdx.x); }

extern "C" __global__ void switches(const int* in, int* out) {
  int x = in[threadIdx.x];
  switch (x) {
    case 0: out[threadIdx.x] = 100; break;
    case 1: out[threadIdx.x] = x * 7 + 1; break;
    case 2: out[threadIdx.x] = -5; break;
    case 3: out[threadIdx.x] = x + (int)threadIdx.x; break;
    case 4: out[threadIdx.x] = 44; break;
    case 5: out[threadIdx.x] = 55; break;
    case 6: out[threadIdx.x] = 66; break;
    case 7: out[threadIdx.x] = x << threadIdx.x % 8; break;
    default: out[threadIdx.x] = 1;
  }
}

// Lane 0 waits for lane 31: needs forward progress among diverged lanes.
extern "C" __global__ void lanes_handshake(int* flag, int* out) {
  if (threadIdx.x == 0) {
    while (atomicAdd(flag, 0) != 3) {
    }
    out[0] = 1;
  } else if (threadIdx.x == 31) {
    for (int i = 0; i < 3; ++i) atomicAdd(flag, 1);
  }
}

extern "C" __global__ void warp_primitives(int* out) {
  int lane = threadIdx.x;
  int sum = lane;
  for (int d = 16; d > 0; d >>= 1) sum += __shfl_xor_sync(0xffffffffu, sum, d);
  out[lane] = sum;
  out[32 + lane] = __ballot_sync(0xffffffffu, lane % 3 == 0);
  if (lane < 16) {
    out[64 + lane] = __shfl_sync(0xffffu, lane, 15 - lane);
    __syncwarp(0xffffu);
  } else {
    out[64 + lane] = __reduce_add_sync(0xffff0000u, lane);
  }
  auto tile = cg::tiled_partition<8>(cg::this_thread_block());
  out[96 + lane] = tile.shfl(lane, 3);
  out[128 + lane] = tile.any(lane == 9);
}

// The two halves of a warp meet at different __syncwarp() calls.
extern "C" __global__ void two_syncwarps(int* out) {
  __shared__ int box[32];
  if (threadIdx.x < 16) {
    box[threadIdx.x] = threadIdx.x * 3;
    __syncwarp();
    out[threadIdx.x] = box[threadIdx.x + 16];
  } else {
    box[threadIdx.x] = threadIdx.x * 5;
    __syncwarp();
    out[threadIdx.x] = box[threadIdx.x - 16];
  }
}

// Warps 0 and 1 produce for warps 2 and 3, through named barriers.
extern "C" __global__ void producer_consumer(int* out, int rounds) {
  __shared__ int box[64];
  int t = threadIdx.x;
  if (t < 64) {
    for (int i = 0; i < rounds; ++i) {
      asm volatile("bar.sync 2, 128;" ::: "memory");
      box[t] = i * 1000 + t;
      asm volatile("bar.arrive 1, 128;" ::: "memory");
    }
  } else {
    int sum = 0;
    asm volatile("bar.arrive 2, 128;" ::: "memory");
    for (int i = 0; i < rounds; ++i) {
      asm volatile("bar.sync 1, 128;" ::: "memory");
      sum += box[t - 64];
      if (i + 1 < rounds) asm volatile("bar.arrive 2, 128;" ::: "memory");
    }
    out[t - 64] = sum;
  }
}

extern "C" __global__ void barrier_votes(int* out) {
  int n = __syncthreads_count(threadIdx.x % 5 == 0);
  int all = __syncthreads_and(threadIdx.x < 1000);
  int any = __syncthreads_or(threadIdx.x == 77);
  out[threadIdx.x] = n * 100 + all * 10 + any;
}

extern "C" __global__ void early_exit(int* out, int n) {
  if (threadIdx.x >= n) return;
  __syncthreads();
  out[threadIdx.x] = threadIdx.x;
}

extern "C" __global__ void grid_sync(int* data, int* out) {
  auto grid = cg::this_grid();
  data[grid.thread_rank()] = (int)grid.thread_rank() + 1;
  grid.sync();
  int n = (int)grid.size();
  out[grid.thread_rank()] = data[n - 1 - grid.thread_rank()];
  grid.sync();
  data[grid.thread_rank()] += out[(grid.thread_rank() + 1) % n];
}

extern "C" __global__ void prints(const int* values) {
  printf("int %d unsigned %u hex %#x long %lld char %c\n", values[0], 7u, 255, 1234567890123LL, 'x');
  printf("%5.2f|%-8s|%08.3f|%e|%g|%%|%s\n", 3.14159, "ab", -2.5, 12345.678, 0.0001, "text");
  printf("%*d %.*f %p\n", 6, 42, 2, 1.23456, (void*)0x10);
}

extern "C" __global__ void asserts(int* p) { assert(p[0] == 3); }
extern "C" __global__ void traps() { __trap(); }

extern "C" __global__ void local_array(const int* in, int* out) {
  int a[16];
  for (int i = 0; i < 16; ++i) a[i] = in[i] * (int)(threadIdx.x + 1);
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum += a[(in[i] + threadIdx.x) & 15];
  out[threadIdx.x] = sum;
}

struct Pair {
  int a;
  double b;
};
__device__ __noinline__ Pair make_pair(Pair p, int k) {
  p.a += k;
  p.b *= k;
  return p;
}
extern "C" __global__ void structs(double* out) {
  Pair p = make_pair(Pair{(int)threadIdx.x, 0.5 * threadIdx.x}, 3);
  out[threadIdx.x] = p.a + p.b;
}

__constant__ int table[4] = {10, 20, 30, 40};
__device__ int counter = 5;
__device__ int* pointer = &counter;
extern "C" __global__ void variables(int* out) {
  out[threadIdx.x] = table[threadIdx.x & 3] + *pointer;
  extern __shared__ int dynamic[];
  dynamic[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] += dynamic[31 - threadIdx.x];
}

extern "C" __global__ void indices(int* out) {
  int b = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  int t = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  int n = blockDim.x * blockDim.y * blockDim.z;
  out[b * n + t] = b * 1000 + t;
}

extern "C" __global__ void clocks(long long* out) {
  long long a = clock64();
  __nanosleep(1000);
  long long b = clock64();
  out[threadIdx.x] = b - a;
}

// ---- faults ----

extern "C" __global__ void wait_for_flag(volatile int* flag, int wanted) {
  if (threadIdx.x == 0) {
    while (flag[2] != wanted) {
    }
  }
  __syncthreads();
}

extern "C" __global__ void wait_with_sleep(volatile int* flag, int wanted) {
  while (flag[0] < wanted) __nanosleep(100);
}

extern "C" __global__ void divergent_barrier(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();
    out[threadIdx.x] = 1;
  }
  out[threadIdx.x + 32] = threadIdx.x;
}

extern "C" __global__ void two_barriers(int* out, int k) {
  if (threadIdx.x % 2 == k) {
    out[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] += 1;
  } else {
    out[threadIdx.x] = 2;
    __syncthreads();
    out[threadIdx.x] += 2;
  }
}

extern "C" __global__ void wrong_count(int* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");
  }
  out[threadIdx.x] = 1;
}

extern "C" __global__ void block_waits_for_block(volatile int* flags) {
  if (blockIdx.x == 0) {
    while (flags[gridDim.x - 1] == 0) {
    }
  }
  flags[blockIdx.x] = 1;
}
extern "C" __global__ void each_block_waits_for_last(volatile int* flags) {
  if (threadIdx.x == 0) flags[blockIdx.x] = 1;
  if (threadIdx.x == 0)
    while (flags[gridDim.x - 1] == 0) {
    }
  __syncthreads();
}

extern "C" __global__ void counts_forever(volatile int* flag, int* out) {
  int n = 0;
  while (*flag == 0) ++n;
  out[0] = n;
}

extern "C" __global__ void missing_thread(int* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 3, 96;" ::: "memory");
  } else if (threadIdx.x < 64) {
    asm volatile("bar.sync 3, 96;" ::: "memory");
  }
  out[threadIdx.x] = 1;
}

// The whole block polls together, with a barrier in the loop.
extern "C" __global__ void block_polls(volatile int* flag) {
  __shared__ int seen;
  do {
    if (threadIdx.x == 0) seen = flag[1];
    __syncthreads();
    int now = seen;
    __syncthreads();
    if (now != 0) break;
  } while (true);
}

// One warp counts rounds and then lets the others go: not a deadlock.
extern "C" __global__ void counts_rounds(int* out) {
  __shared__ volatile int done;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    for (int i = 0; i < 3000; ++i) __syncthreads();
    done = 1;
    __syncthreads();
    __syncthreads();
  } else {
    int rounds = 0;
    while (true) {
      __syncthreads();
      if (done) break;
    }
    __syncthreads();
    out[threadIdx.x] = rounds;
  }
}

// Its loop reads the clock to choose how long to sleep.
extern "C" __global__ void atomic_wait(int* flag, int old) {
  cuda::atomic_ref<int, cuda::thread_scope_system> word(*flag);
  word.wait(old, cuda::memory_order_acquire);
}

// A timeout ends this loop whatever memory holds.
extern "C" __global__ void times_out(volatile int* flag, int* out) {
  long long start = clock64();
  while (*flag == 0 && clock64() - start < 300000) {
  }
  out[threadIdx.x] = 1;
}
