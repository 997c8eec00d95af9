// echolo-test: mode=sanitize n=2
// expect: correct
// It is freed.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nvshmem_malloc(256);
  const int failed = p == nullptr;
  nvshmem_free(p);
  nvshmem_finalize();
  return failed;
}
