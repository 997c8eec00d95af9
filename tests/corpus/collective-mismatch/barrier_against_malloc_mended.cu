// echolo-test: mode=sanitize n=2
// expect: correct
// Both do the same in the same order.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nullptr;
  if (nvshmem_my_pe() == 0) {
    nvshmem_barrier_all();
    p = nvshmem_malloc(64);
  } else {
    nvshmem_barrier_all();
    p = nvshmem_malloc(64);
  }
  nvshmem_free(p);
  nvshmem_finalize();
  return 0;
}
