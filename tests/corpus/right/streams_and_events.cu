// echolo-test: mode=sanitize n=1
// expect: correct
// Two streams ordered by an event, and a third by the host.
#include <cuda_runtime.h>

__global__ void add(int* p, int value) { p[threadIdx.x] += value; }
__global__ void scale(int* p, int value) { p[threadIdx.x] *= value; }

int main() {
  int *p = nullptr, h[32];
  cudaStream_t a, b;
  cudaEvent_t added, scaled;
  cudaStreamCreate(&a);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEventCreate(&added);
  cudaEventCreateWithFlags(&scaled, cudaEventDisableTiming);
  cudaMallocAsync(reinterpret_cast<void**>(&p), sizeof(h), a);
  cudaMemsetAsync(p, 0, sizeof(h), a);
  add<<<1, 32, 0, a>>>(p, 3);
  cudaEventRecord(added, a);
  cudaStreamWaitEvent(b, added, 0);
  scale<<<1, 32, 0, b>>>(p, 7);
  cudaEventRecord(scaled, b);
  cudaStreamWaitEvent(a, scaled, 0);
  add<<<1, 32, 0, a>>>(p, 1);
  cudaMemcpyAsync(h, p, sizeof(h), cudaMemcpyDeviceToHost, a);
  cudaFreeAsync(p, a);
  int wrong = cudaStreamSynchronize(a) != cudaSuccess || cudaEventQuery(scaled) != cudaSuccess;
  for (int i = 0; i < 32; ++i) wrong += h[i] != 22;
  cudaEventDestroy(added);
  cudaEventDestroy(scaled);
  cudaStreamDestroy(a);
  cudaStreamDestroy(b);
  return wrong != 0;
}
