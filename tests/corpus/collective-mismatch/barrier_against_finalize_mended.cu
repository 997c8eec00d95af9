// echolo-test: mode=sanitize n=2
// expect: correct
// Both pass it.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
