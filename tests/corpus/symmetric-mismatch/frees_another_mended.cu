// echolo-test: mode=sanitize n=2
// expect: correct
// All free the same one.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* a = nvshmem_malloc(64);
  void* b = nvshmem_malloc(64);
  nvshmem_free(true ? a : b);
  nvshmem_free(true ? b : a);
  nvshmem_finalize();
  return 0;
}
