// Kernels that call functions which tests/vgpu/core_device_calls.cpp implements.
extern "C" __device__ int test_add(int a, long long b, int c);
extern "C" __device__ void test_wait(const int* word, int at_least);
extern "C" __device__ int test_warp(int value);
extern "C" __device__ long long test_block_barrier(int team);
extern "C" __device__ int test_peek(const int* word);

extern "C" __global__ void thread_calls(int* out) { out[threadIdx.x] = test_add(threadIdx.x, 1000, 7); }

extern "C" __global__ void warp_calls(int* out) {
  if (threadIdx.x % 32 >= 8) out[64 + threadIdx.x] = threadIdx.x * threadIdx.x;  // diverges first
  out[threadIdx.x] = test_warp(threadIdx.x);
}

// Lane i waits for word i, which lane i - 1 writes.
extern "C" __global__ void chain(int* words) {
  int i = threadIdx.x;
  test_wait(words + i, 1);
  words[i + 1] = 1;
}

extern "C" __global__ void meet(int* out, int rounds) {
  long long sum = 0;
  for (int i = 0; i < rounds; ++i) sum += test_block_barrier(0);
  out[threadIdx.x] = (int)sum;
}

extern "C" __global__ void peeks(const int* word) {
  while (test_peek(word) < 3) {
  }
}

extern "C" __global__ void half_a_block(int* out) {
  if (threadIdx.x < 32) test_block_barrier(0);
  else __syncthreads();
  out[threadIdx.x] = 1;
}
