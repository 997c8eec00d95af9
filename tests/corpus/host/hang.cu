// echolo-test: mode=sanitize n=2 timeout=12
// expect: timeout
// PE 1 computes for ever on the host.
#include <nvshmem.h>

int main() {
  nvshmem_init();
  volatile unsigned long spins = 0;
  while (nvshmem_my_pe() == 1) spins = spins + 1;
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
