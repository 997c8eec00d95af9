// What an ordinary CUDA program does, one case an argument. Exit code 0: the case holds; otherwise the line that failed.
#include <cuda_runtime.h>

#include <atomic>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#define CHECK(condition)                                             \
  do {                                                               \
    if (!(condition)) {                                              \
      std::printf("line %d: %s\n", __LINE__, #condition);            \
      return 1;                                                      \
    }                                                                \
  } while (0)
#define OK(call)                                                                            \
  do {                                                                                      \
    const cudaError_t error_ = (call);                                                      \
    if (error_ != cudaSuccess) {                                                            \
      std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(error_));          \
      return 1;                                                                             \
    }                                                                                       \
  } while (0)

__device__ int g_counter;
__constant__ float c_table[4];
__managed__ int m_value = 5;

__global__ void add(int* p, int n, int v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] += v;
}
__global__ void scale(int* p, int n, int v) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= v;
}
__global__ void use_symbols(float* out) {
  if (threadIdx.x < 4) out[threadIdx.x] = c_table[threadIdx.x] * 2.0f;
  if (threadIdx.x == 0) g_counter += 1;
}
__global__ void bump_managed() { m_value += 1; }
__global__ void with_shared(int* out) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = static_cast<int>(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}
__global__ void mixed(char c, double d, short s, int* p, long long l) {
  if (blockIdx.x == 0 && threadIdx.x == 0) *p = static_cast<int>(c + d + s + l);
}
__global__ void wait_for_host(volatile int* flag, volatile int* answer) {
  while (*flag == 0) {
  }
  *answer = 42;
}

static int memory() {
  int *a = nullptr, *b = nullptr;
  OK(cudaMalloc(&a, 4000));
  OK(cudaMallocAsync(reinterpret_cast<void**>(&b), 4000, 0));
  std::vector<int> h(1000), back(1000);
  for (int i = 0; i < 1000; ++i) h[i] = i;
  OK(cudaMemcpy(a, h.data(), 4000, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(b, a, 4000, cudaMemcpyDeviceToDevice));
  OK(cudaMemcpy(back.data(), b, 4000, cudaMemcpyDefault));
  CHECK(back == h);
  OK(cudaMemset(a, 0xff, 400));
  OK(cudaMemcpy(back.data(), a, 4000, cudaMemcpyDeviceToHost));
  CHECK(back[99] == -1 && back[100] == 100);
  std::size_t free_bytes = 0, total = 0;
  OK(cudaMemGetInfo(&free_bytes, &total));
  CHECK(free_bytes < total && total > (100ULL << 30));
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, a));
  CHECK(attributes.type == cudaMemoryTypeDevice);
  OK(cudaPointerGetAttributes(&attributes, h.data()));
  CHECK(attributes.type == cudaMemoryTypeUnregistered);
  // Pitched: rows of 100 ints on the host, of 128 on the device.
  int* pitched = nullptr;
  std::size_t pitch = 0;
  OK(cudaMallocPitch(reinterpret_cast<void**>(&pitched), &pitch, 400, 10));
  CHECK(pitch >= 400 && pitch % 256 == 0);
  OK(cudaMemcpy2D(pitched, pitch, h.data(), 400, 400, 10, cudaMemcpyHostToDevice));
  OK(cudaMemset2D(pitched, pitch, 0, 4, 10));
  OK(cudaMemcpy2D(back.data(), 400, pitched, pitch, 400, 10, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 1000; ++i) CHECK(back[i] == (i % 100 == 0 ? 0 : i));
  // More than one message holds.
  const std::size_t big = 40u << 20;
  char* large = nullptr;
  OK(cudaMalloc(&large, big));
  std::vector<char> bytes(big), other(big);
  for (std::size_t i = 0; i < big; ++i) bytes[i] = static_cast<char>(i * 2654435761u >> 13);
  OK(cudaMemcpy(large, bytes.data(), big, cudaMemcpyHostToDevice));
  OK(cudaMemcpy(other.data(), large, big, cudaMemcpyDeviceToHost));
  CHECK(std::memcmp(bytes.data(), other.data(), big) == 0);
  OK(cudaFree(large));
  OK(cudaFree(pitched));
  OK(cudaFreeAsync(b, 0));
  OK(cudaFree(a));
  OK(cudaFree(nullptr));
  return 0;
}

static int pinned() {
  int *host = nullptr, *device = nullptr, *managed = nullptr;
  OK(cudaHostAlloc(&host, 400, cudaHostAllocMapped));
  for (int i = 0; i < 100; ++i) host[i] = i;
  OK(cudaHostGetDevicePointer(&device, host, 0));
  add<<<1, 128>>>(device, 100, 1);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 100; ++i) CHECK(host[i] == i + 1);
  OK(cudaMallocManaged(&managed, 400));
  for (int i = 0; i < 100; ++i) managed[i] = i;
  add<<<1, 128>>>(managed, 100, 5);
  OK(cudaDeviceSynchronize());
  for (int i = 0; i < 100; ++i) CHECK(managed[i] == i + 5);
  m_value = 10;
  bump_managed<<<1, 1>>>();
  OK(cudaDeviceSynchronize());
  CHECK(m_value == 11);
  cudaPointerAttributes attributes;
  OK(cudaPointerGetAttributes(&attributes, managed));
  CHECK(attributes.type == cudaMemoryTypeManaged);
  OK(cudaPointerGetAttributes(&attributes, host));
  CHECK(attributes.type == cudaMemoryTypeHost);
  // An asynchronous copy from pinned memory reads it when its turn in the stream comes, not when it is called.
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  int* d = nullptr;
  OK(cudaMalloc(&d, 400));
  OK(cudaMemcpyAsync(d, host, 400, cudaMemcpyHostToDevice, s));
  OK(cudaStreamSynchronize(s));
  OK(cudaMemcpyAsync(managed, d, 400, cudaMemcpyDeviceToHost, s));
  OK(cudaStreamSynchronize(s));
  CHECK(managed[7] == 8);
  OK(cudaFree(d));
  OK(cudaStreamDestroy(s));
  OK(cudaFree(managed));
  OK(cudaFreeHost(host));
  return 0;
}

static int symbols() {
  const float table[4] = {1, 2, 3, 4};
  float *out = nullptr, back[4];
  OK(cudaMemcpyToSymbol(c_table, table, sizeof table));
  int counter = 41;
  OK(cudaMemcpyToSymbol(g_counter, &counter, sizeof counter));
  OK(cudaMalloc(&out, sizeof back));
  use_symbols<<<1, 32>>>(out);
  OK(cudaMemcpy(back, out, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 4; ++i) CHECK(back[i] == 2 * table[i]);
  OK(cudaMemcpyFromSymbol(&counter, g_counter, sizeof counter));
  CHECK(counter == 42);
  void* address = nullptr;
  std::size_t size = 0;
  OK(cudaGetSymbolAddress(&address, g_counter));
  OK(cudaGetSymbolSize(&size, c_table));
  CHECK(size == sizeof table);
  OK(cudaMemset(address, 0, 4));
  OK(cudaMemcpyFromSymbol(&counter, g_counter, sizeof counter));
  CHECK(counter == 0);
  CHECK(cudaMemcpyToSymbol(c_table, table, 32) == cudaErrorInvalidValue);
  OK(cudaFree(out));
  cudaGetLastError();
  return 0;
}

static int streams() {
  int* p = nullptr;
  OK(cudaMalloc(&p, 400));
  OK(cudaMemset(p, 0, 400));
  OK(cudaDeviceSynchronize());  // stream b does not wait for the legacy stream
  cudaStream_t a, b, c;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
  OK(cudaStreamCreateWithPriority(&c, cudaStreamDefault, -2));
  int priority = 0;
  unsigned flags = 0;
  OK(cudaStreamGetPriority(c, &priority));
  OK(cudaStreamGetFlags(b, &flags));
  CHECK(priority == -2 && flags == cudaStreamNonBlocking);
  // (0 + 1) * 3, then in the legacy stream + 2, then in a blocking stream * 5: 25 only in this order.
  cudaEvent_t event;
  OK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  add<<<1, 128, 0, b>>>(p, 100, 1);
  OK(cudaEventRecord(event, b));
  OK(cudaStreamWaitEvent(a, event, 0));
  scale<<<1, 128, 0, a>>>(p, 100, 3);
  add<<<1, 128>>>(p, 100, 2);
  scale<<<1, 128, 0, c>>>(p, 100, 5);
  int h[100];
  OK(cudaMemcpyAsync(h, p, 400, cudaMemcpyDeviceToHost, c));
  OK(cudaStreamSynchronize(c));
  for (int i : h) CHECK(i == 25);
  CHECK(cudaStreamQuery(c) == cudaSuccess);
  add<<<1, 128, 0, a>>>(p, 100, 1);
  while (cudaStreamQuery(a) == cudaErrorNotReady) {
  }
  CHECK(cudaGetLastError() == cudaSuccess);
  // Per-thread default streams of two host threads.
  std::thread other([&] { add<<<1, 128, 0, cudaStreamPerThread>>>(p, 100, 1); cudaStreamSynchronize(cudaStreamPerThread); });
  other.join();
  add<<<1, 128, 0, cudaStreamPerThread>>>(p, 100, 1);
  OK(cudaDeviceSynchronize());
  OK(cudaMemcpy(h, p, 400, cudaMemcpyDeviceToHost));
  for (int i : h) CHECK(i == 28);
  OK(cudaEventDestroy(event));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
  OK(cudaStreamDestroy(c));
  CHECK(cudaStreamSynchronize(a) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  OK(cudaFree(p));
  return 0;
}

static int events() {
  int* p = nullptr;
  OK(cudaMalloc(&p, 4000));
  OK(cudaMemset(p, 0, 4000));
  cudaEvent_t start, stop, never;
  OK(cudaEventCreate(&start));
  OK(cudaEventCreate(&stop));
  OK(cudaEventCreate(&never));
  float ms = -1;
  CHECK(cudaEventElapsedTime(&ms, start, stop) == cudaErrorInvalidResourceHandle);
  CHECK(cudaEventQuery(never) == cudaSuccess);
  OK(cudaEventRecord(start));
  for (int i = 0; i < 4; ++i) add<<<8, 128>>>(p, 1000, 1);
  OK(cudaEventRecord(stop));
  CHECK(cudaEventElapsedTime(&ms, start, stop) == cudaErrorNotReady);
  OK(cudaEventSynchronize(stop));
  OK(cudaEventElapsedTime(&ms, start, stop));
  CHECK(ms >= 0 && ms < 1000);
  OK(cudaEventDestroy(start));
  OK(cudaEventDestroy(stop));
  OK(cudaEventDestroy(never));
  OK(cudaFree(p));
  cudaGetLastError();
  return 0;
}

static void CUDART_CB count_up(void* data) { ++*static_cast<std::atomic<int>*>(data); }
static void CUDART_CB called_back(cudaStream_t, cudaError_t status, void* data) {
  if (status == cudaSuccess) *static_cast<std::atomic<int>*>(data) += 10;
}

static int host_functions() {
  std::atomic<int> n{0};
  int* p = nullptr;
  OK(cudaMalloc(&p, 400));
  OK(cudaMemset(p, 0, 400));
  cudaStream_t s;
  OK(cudaStreamCreate(&s));
  add<<<1, 128, 0, s>>>(p, 100, 1);
  OK(cudaLaunchHostFunc(s, count_up, &n));
  OK(cudaStreamAddCallback(s, called_back, &n, 0));
  OK(cudaLaunchHostFunc(s, count_up, &n));
  OK(cudaStreamSynchronize(s));
  CHECK(n == 12);
  OK(cudaStreamDestroy(s));
  OK(cudaFree(p));
  return 0;
}

static int graphs() {
  int *p = nullptr, *q = nullptr;
  OK(cudaMalloc(&p, 400));
  OK(cudaMalloc(&q, 400));
  OK(cudaMemset(p, 0, 400));
  OK(cudaMemset(q, 0, 400));
  cudaStream_t a, b;
  OK(cudaStreamCreate(&a));
  OK(cudaStreamCreate(&b));
  cudaEvent_t fork, join;
  OK(cudaEventCreate(&fork));
  OK(cudaEventCreate(&join));
  std::atomic<int> n{0};
  int h[100] = {}, source[100];
  for (int& i : source) i = 7;
  OK(cudaDeviceSynchronize());
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  add<<<1, 128, 0, a>>>(p, 100, 1);
  OK(cudaEventRecord(fork, a));
  OK(cudaStreamWaitEvent(b, fork, 0));
  OK(cudaMemcpyAsync(q, source, 400, cudaMemcpyHostToDevice, b));
  add<<<1, 128, 0, b>>>(q, 100, 3);
  OK(cudaLaunchHostFunc(b, count_up, &n));
  OK(cudaEventRecord(join, b));
  scale<<<1, 128, 0, a>>>(p, 100, 2);
  OK(cudaStreamWaitEvent(a, join, 0));
  OK(cudaMemcpyAsync(h, p, 400, cudaMemcpyDeviceToHost, a));
  cudaStreamCaptureStatus status;
  OK(cudaStreamIsCapturing(b, &status));
  CHECK(status == cudaStreamCaptureStatusActive);
  unsigned long long id = 0;
  OK(cudaStreamGetCaptureInfo(a, &status, &id));
  CHECK(id != 0);
  cudaGraph_t graph;
  OK(cudaStreamEndCapture(a, &graph));
  std::size_t nodes = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &nodes));
  CHECK(nodes == 6);
  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  OK(cudaGraphDestroy(graph));
  CHECK(n == 0 && h[0] == 0);  // nothing ran yet
  for (int round = 0; round < 3; ++round) OK(cudaGraphLaunch(exec, a));
  OK(cudaStreamSynchronize(a));
  CHECK(n == 3);
  for (int i : h) CHECK(i == 14);  // ((0 + 1) * 2 + 1) * 2 ...
  for (int& i : source) i = 20;   // a captured copy reads its source when it runs
  OK(cudaGraphLaunch(exec, a));
  OK(cudaStreamSynchronize(a));
  OK(cudaMemcpy(h, q, 400, cudaMemcpyDeviceToHost));
  for (int i : h) CHECK(i == 23);
  CHECK(cudaGraphExecUpdate(exec, nullptr, nullptr) == cudaErrorInvalidValue);
  OK(cudaGraphExecDestroy(exec));
  // What breaks a capture.
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  CHECK(cudaStreamSynchronize(a) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  OK(cudaEventRecord(fork, a));
  OK(cudaStreamWaitEvent(b, fork, 0));
  add<<<1, 128, 0, b>>>(q, 100, 3);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureUnjoined);
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
  add<<<1, 128>>>(p, 100, 1);
  CHECK(cudaGetLastError() == cudaErrorStreamCaptureImplicit);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
  void* not_now = nullptr;
  CHECK(cudaMalloc(&not_now, 4) == cudaErrorStreamCaptureUnsupported);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorStreamCaptureInvalidated);
  CHECK(cudaStreamEndCapture(a, &graph) == cudaErrorIllegalState || cudaPeekAtLastError() != cudaSuccess);
  cudaGetLastError();
  OK(cudaEventDestroy(fork));
  OK(cudaEventDestroy(join));
  OK(cudaStreamDestroy(a));
  OK(cudaStreamDestroy(b));
  OK(cudaFree(p));
  OK(cudaFree(q));
  return 0;
}

static int launches() {
  int* p = nullptr;
  OK(cudaMalloc(&p, 4096));
  // More than 48 KiB of shared memory only after asking for it.
  with_shared<<<1, 256, 100 << 10>>>(p);
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  OK(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 100 << 10));
  with_shared<<<1, 256, 100 << 10>>>(p);
  OK(cudaGetLastError());
  int h[256];
  OK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 256; ++i) CHECK(h[i] == 255 - i);
  CHECK(cudaFuncSetAttribute(with_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 300 << 10) ==
        cudaErrorInvalidValue);
  mixed<<<1, 1>>>(1, 2.5, 3, p, 4LL);
  OK(cudaMemcpy(h, p, 4, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 10);
  char c = 2;
  double d = 1.0;
  short s = 5;
  long long l = 1000;
  void* args[] = {&c, &d, &s, &p, &l};
  OK(cudaLaunchKernel(reinterpret_cast<void*>(mixed), dim3(1), dim3(1), args, 0, nullptr));
  OK(cudaMemcpy(h, p, 4, cudaMemcpyDeviceToHost));
  CHECK(h[0] == 1008);
  OK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(mixed), dim3(132), dim3(64), args, 0, nullptr));
  CHECK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(mixed), dim3(100000), dim3(1024), args, 0, nullptr) ==
        cudaErrorCooperativeLaunchTooLarge);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  OK(cudaLaunchKernelEx(&config, mixed, char(1), 1.0, short(1), p, 1LL));
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = 2;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  CHECK(cudaLaunchKernelEx(&config, mixed, char(1), 1.0, short(1), p, 1LL) != cudaSuccess);
  add<<<1, 2000>>>(p, 1, 1);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  add<<<0, 32>>>(p, 1, 1);
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
  CHECK(cudaGetLastError() == cudaSuccess);
  int blocks = 0;
  OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, with_shared, 256, 100 << 10));
  CHECK(blocks == 2);
  int grid = 0, block = 0;
  OK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add, 0, 0));
  CHECK(block >= 128 && grid >= 132);
  cudaFuncAttributes attributes;
  OK(cudaFuncGetAttributes(&attributes, with_shared));
  CHECK(attributes.maxDynamicSharedSizeBytes == 100 << 10 && attributes.numRegs > 0);
  OK(cudaDeviceSynchronize());
  OK(cudaFree(p));
  return 0;
}

static int device() {
  int n = 0, value = 0, current = -1, can = -1;
  OK(cudaGetDeviceCount(&n));
  CHECK(n == 1);
  OK(cudaSetDevice(0));
  OK(cudaGetDevice(&current));
  CHECK(current == 0);
  CHECK(cudaSetDevice(7) == cudaErrorInvalidDevice);
  cudaDeviceProp p;
  OK(cudaGetDeviceProperties(&p, 0));
  CHECK(p.major == 9 && p.minor == 0 && p.multiProcessorCount == 132 && p.warpSize == 32);
  CHECK(std::strstr(p.name, "H200") != nullptr && std::strstr(p.name, "virtual") != nullptr);
  OK(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
  CHECK(value == 232448);
  OK(cudaDeviceCanAccessPeer(&can, 0, 0));
  CHECK(can == 0);
  OK(cudaRuntimeGetVersion(&value));
  CHECK(value == 13020);
  CHECK(std::string(cudaGetErrorName(cudaErrorInvalidValue)) == "cudaErrorInvalidValue");
  CHECK(std::string(cudaGetErrorString(cudaErrorInvalidDeviceFunction)) == "invalid device function");
  CHECK(std::string(cudaGetErrorString(cudaErrorECCUncorrectable)) == "ecc uncorrectable");
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  void* bad = nullptr;
  CHECK(cudaMalloc(&bad, 1ULL << 45) == cudaErrorMemoryAllocation);
  CHECK(cudaFree(reinterpret_cast<void*>(0x1234)) == cudaErrorInvalidValue);
  int x = 0;
  CHECK(cudaMemcpy(&x, &n, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
  CHECK(cudaMemcpy(&x, &n, 4, static_cast<cudaMemcpyKind>(9)) == cudaErrorInvalidMemcpyDirection);
  CHECK(cudaHostRegister(&x, 4, 0) == cudaErrorNotSupported);
  cudaGetLastError();
  return 0;
}

// A kernel waits for the host, and the host for the kernel, through mapped memory and without any call.
static int mapped_polling() {
  volatile int* flags = nullptr;
  OK(cudaHostAlloc(const_cast<int**>(&flags), 8, cudaHostAllocMapped));
  flags[0] = flags[1] = 0;
  wait_for_host<<<1, 1>>>(flags, flags + 1);
  OK(cudaGetLastError());
  flags[0] = 1;
  while (flags[1] != 42) {
  }
  OK(cudaDeviceSynchronize());
  OK(cudaFreeHost(const_cast<int*>(flags)));
  return 0;
}

// Threads of one process, each with calls of its own, joined by one that makes none meanwhile.
static int threads() {
  int* p = nullptr;
  OK(cudaMalloc(&p, 4 * 100 * sizeof(int)));
  OK(cudaMemset(p, 0, 4 * 100 * sizeof(int)));
  OK(cudaDeviceSynchronize());
  std::vector<std::thread> workers;
  std::atomic<int> failed{0};
  for (int t = 0; t < 4; ++t) {
    workers.emplace_back([&, t] {
      cudaStream_t s;
      if (cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking) != cudaSuccess) ++failed;
      for (int i = 0; i < 5; ++i) add<<<1, 128, 0, s>>>(p + t * 100, 100, t + 1);
      if (cudaStreamSynchronize(s) != cudaSuccess) ++failed;
      if (cudaStreamDestroy(s) != cudaSuccess) ++failed;
    });
  }
  for (std::thread& worker : workers) worker.join();
  CHECK(failed == 0);
  int h[400];
  OK(cudaMemcpy(h, p, sizeof h, cudaMemcpyDeviceToHost));
  for (int i = 0; i < 400; ++i) CHECK(h[i] == 5 * (i / 100 + 1));
  OK(cudaFree(p));
  return 0;
}

int main(int argc, char** argv) {
  const std::string name = argc > 1 ? argv[1] : "";
  if (name == "memory") return memory();
  if (name == "pinned") return pinned();
  if (name == "symbols") return symbols();
  if (name == "streams") return streams();
  if (name == "events") return events();
  if (name == "host_functions") return host_functions();
  if (name == "graphs") return graphs();
  if (name == "launches") return launches();
  if (name == "device") return device();
  if (name == "mapped_polling") return mapped_polling();
  if (name == "threads") return threads();
  std::printf("no such case\n");
  return 2;
}
