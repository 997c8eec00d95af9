// echolo-test: mode=sanitize n=1
// expect: data_race
// A stream tells another that its data is there by a word whose write orders nothing.
#include <cuda.h>
#include <cuda_runtime.h>

__global__ void fill(int* p) { p[threadIdx.x] = static_cast<int>(threadIdx.x); }  // <-- data-race
__global__ void twice(int* out, const int* p) { out[threadIdx.x] = 2 * p[threadIdx.x]; }  // <-- data-race

int main() {
  int *p, *out;
  unsigned* word;
  cudaMalloc(&p, 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMalloc(&word, sizeof(unsigned));
  cudaMemset(word, 0, sizeof(unsigned));
  cudaDeviceSynchronize();
  cudaStream_t a, b;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  const CUdeviceptr flag = reinterpret_cast<CUdeviceptr>(word);
  cuStreamWaitValue32(b, flag, 1, CU_STREAM_WAIT_VALUE_GEQ);
  twice<<<1, 64, 0, b>>>(out, p);
  fill<<<1, 64, 0, a>>>(p);
  cuStreamWriteValue32(a, flag, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  cudaDeviceSynchronize();
  cudaStreamDestroy(b);
  cudaStreamDestroy(a);
  cudaFree(word);
  cudaFree(out);
  cudaFree(p);
  return 0;
}
