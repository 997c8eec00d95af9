// echolo-test: mode=sanitize n=1
// expect: out_of_bounds
// Memory of a pool is freed in one stream while another still has to use it.
#include <cuda_runtime.h>

__global__ void fill(int* p) { p[threadIdx.x] = static_cast<int>(threadIdx.x); }
__global__ void twice(int* out, const int* p) { out[threadIdx.x] = 2 * p[threadIdx.x]; }  // <-- out-of-bounds

int main() {
  cudaStream_t a, b;
  cudaEvent_t filled, used;
  cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking);
  cudaEventCreateWithFlags(&filled, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&used, cudaEventDisableTiming);
  int *p, *out;
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMallocAsync(&p, 64 * sizeof(int), a);
  fill<<<1, 64, 0, a>>>(p);
  cudaEventRecord(filled, a);
  cudaFreeAsync(p, a);
  cudaStreamWaitEvent(b, filled, 0);
  twice<<<1, 64, 0, b>>>(out, p);
  cudaEventRecord(used, b);
  cudaDeviceSynchronize();
  cudaFree(out);
  cudaEventDestroy(used);
  cudaEventDestroy(filled);
  cudaStreamDestroy(b);
  cudaStreamDestroy(a);
  return 0;
}
