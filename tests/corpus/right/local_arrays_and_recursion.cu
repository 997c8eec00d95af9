// echolo-test: mode=sanitize n=1
// expect: correct
// Locals that need an address, a recursive function, function pointers, virtual functions, a switch.
#include <cuda_runtime.h>

struct Shape {
  __device__ virtual int area(int side) const = 0;
};
struct Square : Shape {
  __device__ int area(int side) const override { return side * side; }
};
struct Box : Shape {
  __device__ int area(int side) const override { return side * 2; }
};

__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
__device__ __noinline__ int twice(int x) { return 2 * x; }
__device__ __noinline__ int next(int x) { return x + 1; }
using Function = int (*)(int);
__device__ Function functions[2] = {twice, next};

__device__ __noinline__ int classify(int x) {
  switch (x) {
    case 0:
      return 70;
    case 1:
      return 3;
    case 2:
      return 99;
    case 3:
      return 12;
    case 4:
      return 5;
    case 5:
      return 41;
    default:
      return -1;
  }
}

__global__ void all(int* p) {
  const int t = threadIdx.x;
  int order[8];
  for (int i = 0; i < 8; ++i) order[(i * 3 + t) % 8] = i;
  const Square square;
  const Box box;
  const Shape& shape = t % 2 ? static_cast<const Shape&>(square) : box;
  p[t * 5] = order[t % 8];
  p[t * 5 + 1] = fibonacci(t % 8);
  p[t * 5 + 2] = functions[t % 2](t);
  p[t * 5 + 3] = shape.area(t);
  p[t * 5 + 4] = classify(t % 7);
}

static int expected(int t, int what) {
  const int fib[8] = {0, 1, 1, 2, 3, 5, 8, 13}, classes[7] = {70, 3, 99, 12, 5, 41, -1};
  switch (what) {
    case 0:  // i with (i * 3 + t) % 8 == t % 8
      return 0;
    case 1:
      return fib[t % 8];
    case 2:
      return t % 2 ? t + 1 : 2 * t;
    case 3:
      return t % 2 ? t * t : 2 * t;
    default:
      return classes[t % 7];
  }
}

int main() {
  int* p = nullptr;
  static int h[80];
  cudaMalloc(&p, sizeof(h));
  cudaMemset(p, 0, sizeof(h));
  all<<<1, 16>>>(p);
  int wrong = cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 80; ++i) wrong += !(h[i] == expected(i / 5, i % 5));
  cudaFree(p);
  return wrong != 0;
}
