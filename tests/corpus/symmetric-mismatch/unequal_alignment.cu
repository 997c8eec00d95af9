// echolo-test: mode=sanitize n=2
// expect: symmetric_mismatch
// PEs allocate with different alignments.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nvshmem_align(nvshmem_my_pe() == 0 ? 64 : 128, 256);  // <-- symmetric-mismatch
  nvshmem_free(p);
  nvshmem_finalize();
  return 0;
}
