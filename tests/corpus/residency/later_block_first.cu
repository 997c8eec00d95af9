// echolo-test: mode=sanitize n=1
// expect: residency
// The first blocks wait for the last one, which has no room until one of them ends.
#include <cuda_runtime.h>

__global__ void backwards(volatile int* next) {
  extern __shared__ char memory[];
  memory[0] = 1;
  const int turn = gridDim.x - 1 - blockIdx.x;
  while (*next != turn) {  // <-- residency
  }
  *next = turn + 1;
}

int main() {
  int* next = nullptr;
  int sms = 0;
  cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0);
  cudaMalloc(&next, sizeof(int));
  cudaMemset(next, 0, sizeof(int));
  cudaFuncSetAttribute(backwards, cudaFuncAttributeMaxDynamicSharedMemorySize, 160 * 1024);
  backwards<<<sms + 4, 1, 160 * 1024>>>(next);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  cudaFree(next);
  return failed;
}
