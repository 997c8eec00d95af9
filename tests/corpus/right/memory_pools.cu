// echolo-test: mode=sanitize n=1
// expect: correct
// Pools: the default one and one of its own, their counters, a limit, trimming, the device's current pool; host threads
// with a stream each that allocate, work and free in stream order.
#include <cuda_runtime.h>

#include <cstdio>
#include <thread>
#include <vector>

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                           \
    }                                                     \
  } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

constexpr int kCount = 512;

__global__ void fill(int* p, int v) { p[threadIdx.x] = v + static_cast<int>(threadIdx.x); }
__global__ void add(int* to, const int* from) { to[threadIdx.x] += from[threadIdx.x]; }

static unsigned long long counter(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  unsigned long long value = ~0ULL;
  return cudaMemPoolGetAttribute(pool, attribute, &value) == cudaSuccess ? value : ~0ULL;
}

struct Work {
  cudaStream_t stream;
  cudaEvent_t done;
  int* result;
  int seed, called;
};

static void note(void* called) { ++*static_cast<int*>(called); }

static void work(Work* w) {
  int* scratch = nullptr;
  cudaMallocAsync(&scratch, kCount * sizeof(int), w->stream);
  fill<<<1, kCount, 0, w->stream>>>(scratch, w->seed);
  cudaMemsetAsync(w->result, 0, kCount * sizeof(int), w->stream);
  add<<<1, kCount, 0, w->stream>>>(w->result, scratch);
  cudaFreeAsync(scratch, w->stream);
  cudaLaunchHostFunc(w->stream, note, &w->called);
  cudaEventRecord(w->done, w->stream);
}

int main() {
  cudaMemPool_t normal, current, own;
  OK(cudaDeviceGetDefaultMemPool(&normal, 0));
  OK(cudaDeviceGetMemPool(&current, 0));
  CHECK(normal == current);
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.maxSize = 1 << 20;
  OK(cudaMemPoolCreate(&own, &props));
  unsigned long long keep = 300 << 10;
  OK(cudaMemPoolSetAttribute(own, cudaMemPoolAttrReleaseThreshold, &keep));
  int reuse = 1;
  OK(cudaMemPoolGetAttribute(own, cudaMemPoolReuseAllowOpportunistic, &reuse));
  CHECK(reuse == 1);
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int *a, *b;
  OK(cudaMallocFromPoolAsync(&a, 400 << 10, own, stream));
  OK(cudaMallocFromPoolAsync(&b, 100 << 10, own, stream));
  CHECK(counter(own, cudaMemPoolAttrUsedMemCurrent) == 500 << 10);
  void* more = nullptr;
  CHECK(cudaMallocFromPoolAsync(&more, 600 << 10, own, stream) == cudaErrorMemoryAllocation);
  cudaGetLastError();
  OK(cudaFreeAsync(a, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(counter(own, cudaMemPoolAttrUsedMemCurrent) == 100 << 10);
  CHECK(counter(own, cudaMemPoolAttrReservedMemCurrent) == 300 << 10);
  CHECK(counter(own, cudaMemPoolAttrUsedMemHigh) == 500 << 10);
  OK(cudaMemPoolTrimTo(own, 0));
  CHECK(counter(own, cudaMemPoolAttrReservedMemCurrent) == 100 << 10);
  OK(cudaFreeAsync(b, stream));
  OK(cudaDeviceSetMemPool(0, own));
  int* c;
  OK(cudaMallocAsync(&c, 4096, stream));
  OK(cudaStreamSynchronize(stream));
  CHECK(counter(own, cudaMemPoolAttrUsedMemCurrent) == 4096);
  OK(cudaDeviceSetMemPool(0, normal));
  OK(cudaFree(c));
  OK(cudaMemPoolDestroy(own));
  CHECK(cudaMallocFromPoolAsync(&more, 4096, own, stream) == cudaErrorInvalidValue);
  cudaGetLastError();

  std::vector<Work> all(4);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    Work& w = all[i];
    w.seed = 1000 * i;
    w.called = 0;
    OK(cudaStreamCreateWithFlags(&w.stream, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&w.done, cudaEventDisableTiming));
    OK(cudaMalloc(&w.result, kCount * sizeof(int)));
  }
  for (Work& w : all) threads.emplace_back(work, &w);
  for (std::thread& thread : threads) thread.join();
  int* total;
  OK(cudaMallocAsync(&total, kCount * sizeof(int), stream));
  OK(cudaMemsetAsync(total, 0, kCount * sizeof(int), stream));
  for (Work& w : all) {
    OK(cudaStreamWaitEvent(stream, w.done, 0));
    add<<<1, kCount, 0, stream>>>(total, w.result);
  }
  std::vector<int> back(kCount);
  OK(cudaMemcpyAsync(back.data(), total, kCount * sizeof(int), cudaMemcpyDeviceToHost, stream));
  OK(cudaFreeAsync(total, stream));
  OK(cudaStreamSynchronize(stream));
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == 6000 + 4 * i);
  CHECK(counter(normal, cudaMemPoolAttrUsedMemCurrent) == 0);
  for (Work& w : all) {
    CHECK(w.called == 1);
    OK(cudaFree(w.result));
    OK(cudaEventDestroy(w.done));
    OK(cudaStreamDestroy(w.stream));
  }
  OK(cudaStreamDestroy(stream));
  return 0;
}
