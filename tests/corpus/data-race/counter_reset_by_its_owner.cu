// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: data_race
// expect-finding: deadlock
// The owner of an arrival counter resets it with a plain store when all have come; they may arrive again already.
#include <nvshmem.h>
#include <nvshmemx.h>

__device__ int acquire(const int* flag) {
  int seen = 0;
  asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  return seen;
}

__global__ void rounds(int* count, int pe, int n) {
  int* there = static_cast<int*>(nvshmem_ptr(count, 0));
  for (int round = 1; round <= 3; ++round) {
    __threadfence_system();
    atomicAdd_system(there, 1);  // <-- data-race
    if (pe == 0) {
      while (acquire(count) < n) {
      }
      *count = 0;  // <-- data-race
    }
  }
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int* count = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  rounds<<<1, 1>>>(count, pe, n);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(count);
  nvshmem_finalize();
  return 0;
}
