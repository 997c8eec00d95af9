// echolo-test: mode=sanitize n=2
// expect: crashed
// PE 0 finds its own result wrong and says so with its exit code.
#include <nvshmem.h>

int main() {
  nvshmem_init();
  const int wrong = nvshmem_my_pe() == 0;
  nvshmem_finalize();
  return wrong;
}
