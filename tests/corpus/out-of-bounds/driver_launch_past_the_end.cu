// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// A kernel of the program is launched through the driver API over more elements than were allocated.
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void clear(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 0;  // <-- out-of-bounds
}

int main() {
  cudaSetDevice(0);
  CUfunction function;
  CUdeviceptr p;
  cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(clear));
  const int allocated = 1000;
  int n = 1024;
  cuMemAlloc(&p, allocated * sizeof(int));
  void* args[] = {&p, &n};
  cuLaunchKernel(function, 4, 1, 1, 256, 1, 1, 0, nullptr, args, nullptr);
  const CUresult end = cuCtxSynchronize();
  cuMemFree(p);
  return end == CUDA_SUCCESS ? 0 : 1;
}
