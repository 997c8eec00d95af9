// echolo-test: mode=sanitize n=2
// expect: crashed
// PE 1 dereferences a null pointer on the host.
#include <nvshmem.h>

int main() {
  nvshmem_init();
  volatile int* p = nullptr;
  if (nvshmem_my_pe() == 1) *p = 1;
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
