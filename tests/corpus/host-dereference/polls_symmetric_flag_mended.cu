// echolo-test: mode=sanitize n=2
// expect: correct
// It copies the flag.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

int main() {
  nvshmem_init();
  uint64_t* flag = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  uint64_t got = 0;
  cudaMemcpy(&got, flag, sizeof(got), cudaMemcpyDeviceToHost);
  nvshmem_free(flag);
  nvshmem_finalize();
  return got != 0;
}
