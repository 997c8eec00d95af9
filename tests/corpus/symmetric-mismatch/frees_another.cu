// echolo-test: mode=sanitize n=2
// expect: symmetric_mismatch
// PEs free different buffers at the same time.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* a = nvshmem_malloc(64);
  void* b = nvshmem_malloc(64);
  nvshmem_free(nvshmem_my_pe() == 0 ? a : b);  // <-- symmetric-mismatch
  nvshmem_free(nvshmem_my_pe() == 0 ? b : a);
  nvshmem_finalize();
  return 0;
}
