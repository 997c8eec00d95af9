// echolo-test: mode=sanitize n=2
// expect: correct
// With the same one.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nvshmem_align(128, 256);
  nvshmem_free(p);
  nvshmem_finalize();
  return 0;
}
