// echolo-test: mode=sanitize n=2
// expect: collective_mismatch
// PE 1 leaves out the barrier that PE 0 waits in.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  if (nvshmem_my_pe() == 0) nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
