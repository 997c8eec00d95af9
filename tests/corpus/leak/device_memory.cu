// echolo-test: mode=sanitize n=1
// expect: correct
// expect-finding: leak
// Device memory is never freed.
#include <cuda_runtime.h>

int main() {
  int* p = nullptr;
  cudaMalloc(&p, 4096);  // <-- leak
  const int failed = cudaMemset(p, 0, 4096) != cudaSuccess;
  return failed;
}
