// echolo-test: mode=sanitize n=2
// expect: correct
// expect-finding: leak
// A symmetric buffer is never freed.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  void* p = nvshmem_malloc(256);  // <-- leak
  const int failed = p == nullptr;
  nvshmem_finalize();
  return failed;
}
