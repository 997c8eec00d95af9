// echolo-test: mode=sanitize n=1
// expect: host_dereference
// The host stores into device memory.
#include <cuda_runtime.h>

int main() {
  int* p = nullptr;
  cudaMalloc(&p, sizeof(int));
  *p = 1;  // <-- host-dereference
  cudaFree(p);
  return 0;
}
