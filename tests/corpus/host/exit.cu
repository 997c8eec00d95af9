// echolo-test: mode=sanitize n=2
// expect: crashed
// PE 1 exits with a code of its own while PE 0 waits for it.
#include <nvshmem.h>
#include <cstdlib>

int main() {
  nvshmem_init();
  if (nvshmem_my_pe() == 1) std::exit(3);
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
