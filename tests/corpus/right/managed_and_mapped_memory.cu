// echolo-test: mode=sanitize n=1
// expect: correct
// Managed memory and mapped pinned memory, which the host may touch when no kernel uses them.
#include <cuda_runtime.h>

__global__ void increment(int* p) { p[threadIdx.x] += 1; }

int main() {
  int *managed = nullptr, *pinned = nullptr, *device = nullptr;
  cudaMallocManaged(&managed, 32 * sizeof(int));
  cudaHostAlloc(reinterpret_cast<void**>(&pinned), 32 * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), pinned, 0);
  for (int i = 0; i < 32; ++i) managed[i] = pinned[i] = i;
  increment<<<1, 32>>>(managed);
  increment<<<1, 32>>>(device);
  int wrong = cudaDeviceSynchronize() != cudaSuccess;
  for (int i = 0; i < 32; ++i) wrong += managed[i] != i + 1 || pinned[i] != i + 1;
  cudaFree(managed);
  cudaFreeHost(pinned);
  return wrong != 0;
}
