// echolo-test: mode=sanitize n=2
// expect: collective_mismatch
// PE 0 passes a barrier while PE 1 allocates.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nullptr;
  if (nvshmem_my_pe() == 0) {
    nvshmem_barrier_all();  // <-- collective-mismatch
    p = nvshmem_malloc(64);
  } else {
    p = nvshmem_malloc(64);  // <-- collective-mismatch
    nvshmem_barrier_all();
  }
  nvshmem_free(p);
  nvshmem_finalize();
  return 0;
}
