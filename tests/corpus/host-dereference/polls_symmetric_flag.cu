// echolo-test: mode=sanitize n=2
// expect: host_dereference
// The host polls a flag in the symmetric heap, which is device memory.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  uint64_t got = 0;
  got = *flag;  // <-- host-dereference
  nvshmem_free(flag);
  nvshmem_finalize();
  return got != 0;
}
