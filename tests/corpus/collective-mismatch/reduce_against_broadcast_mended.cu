// echolo-test: mode=sanitize n=2
// expect: correct
// Both reduce.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void gather(int* to, int* from, int pe) {
  if (pe >= 0) {
    nvshmem_int_sum_reduce(NVSHMEM_TEAM_WORLD, to, from, 4);
  } else {
    nvshmem_int_broadcast(NVSHMEM_TEAM_WORLD, to, from, 4, 0);
  }
}

int main() {
  nvshmem_init();
  int* p = static_cast<int*>(nvshmem_calloc(8, sizeof(int)));
  int pe = nvshmem_my_pe();
  void* arguments[] = {nullptr, nullptr, &pe};
  int* from = p + 4;
  arguments[0] = &p;
  arguments[1] = &from;
  nvshmem_barrier_all();
  nvshmemx_collective_launch(reinterpret_cast<const void*>(gather), 1, 1, arguments, 0, nullptr);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(p);
  nvshmem_finalize();
  return failed;
}
