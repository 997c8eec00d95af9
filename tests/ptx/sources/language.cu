// Virtual functions, function pointers, switches, recursion, constants, globals with pointers.
struct Node {
  int value;
  const Node* next;
};
__device__ Node second = {2, nullptr};
__device__ Node first = {1, &second};
__device__ int table[4] = {1, 2, 3};
__device__ int* middle = &table[1];
__constant__ float weights[3] = {0.5f, 1.5f, 2.5f};
__device__ const char* text = "hello";
__managed__ double shared_with_host = 2.5;
__device__ struct __attribute__((packed)) {
  char tag;
  int* pointer;
  short end;
} packed = {7, &table[2], 3};

struct Shape {
  virtual __device__ int area(int x) const { return x; }
};
struct Square : Shape {
  __device__ int area(int x) const override { return x * x; }
};

using Function = int (*)(int);
__device__ int plus3(int x) { return x + 3; }
__device__ int times5(int x) { return x * 5; }
__device__ Function functions[2] = {plus3, times5};
__device__ __noinline__ int fibonacci(int n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }

struct Big {
  double d[5];
  char c;
};
__device__ __noinline__ Big make(int x) {
  Big big{};
  big.d[x & 3] = x;
  big.c = static_cast<char>(x);
  return big;
}

template <int N>
__device__ int sum(const int* p) {
  int local[N];
  for (int i = 0; i < N; ++i) local[i] = p[i];
  int s = 0;
  for (int i = 0; i < N; ++i) s += local[(i * 7 + p[0]) % N];
  return s;
}

__global__ void __launch_bounds__(128, 2) language(int* out, int n, Big by_value) {
  extern __shared__ int dynamic[];
  __shared__ int fixed[32];
  fixed[threadIdx.x % 32] = n;
  dynamic[threadIdx.x] = n;
  __syncthreads();
  switch (n) {
    case 0: out[0] = 11; break;
    case 1: out[1] = plus3(n); break;
    case 2: out[2] = fixed[3]; break;
    case 3: out[3] = n * 4; break;
    case 4: out[4] = dynamic[n]; break;
    case 5: out[5] = fibonacci(n); break;
    case 6: out[6] = 99; break;
    case 7: out[7] = sum<16>(out); break;
    default: out[8] = first.next->value + *middle + text[n] + *packed.pointer;
  }
  Shape shape;
  Square square;
  const Shape* chosen = n > 3 ? &shape : &square;
  out[9] = chosen->area(n) + functions[n & 1](n);
  out[10] = static_cast<int>(make(n).d[n & 3] + by_value.d[n & 3] + weights[n % 3] + shared_with_host);
}
