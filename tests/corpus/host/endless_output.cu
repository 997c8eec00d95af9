// echolo-test: mode=sanitize n=2 timeout=12
// expect: timeout
// PE 1 prints for ever.
#include <nvshmem.h>
#include <cstdio>

int main() {
  nvshmem_init();
  while (nvshmem_my_pe() == 1) std::puts("still here");
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
