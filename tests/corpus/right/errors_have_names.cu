// echolo-test: mode=sanitize n=1
// expect: correct
// Errors are returned, remembered once and have names.
#include <cuda_runtime.h>

#include <cstring>

__global__ void nothing() {}

int main() {
  int wrong = cudaMalloc(nullptr, 16) != cudaErrorInvalidValue;
  wrong += cudaGetLastError() != cudaErrorInvalidValue;
  wrong += cudaGetLastError() != cudaSuccess;
  nothing<<<1, 2048>>>();
  wrong += cudaPeekAtLastError() != cudaErrorInvalidConfiguration;
  wrong += std::strcmp(cudaGetErrorName(cudaGetLastError()), "cudaErrorInvalidConfiguration") != 0;
  cudaDeviceProp prop;
  wrong += cudaGetDeviceProperties(&prop, 0) != cudaSuccess || prop.warpSize != 32 || prop.major != 9;
  return wrong != 0;
}
