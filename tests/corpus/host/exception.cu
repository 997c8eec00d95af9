// echolo-test: mode=sanitize n=2
// expect: crashed
// PE 1 throws what nobody catches.
#include <nvshmem.h>
#include <stdexcept>

int main() {
  nvshmem_init();
  if (nvshmem_my_pe() == 1) throw std::runtime_error("no such plan");
  nvshmem_barrier_all();
  nvshmem_finalize();
  return 0;
}
