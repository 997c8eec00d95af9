// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: data_race
// Each PE sets a byte of a word that its owner polls as a whole: strong accesses, but of different sizes.
#include <nvshmem.h>
#include <nvshmemx.h>

__device__ void set(unsigned char* flag) {
  asm volatile("st.release.sys.global.u8 [%0], %1;" ::"l"(flag), "r"(1) : "memory");
}

__device__ uint64_t poll(const uint64_t* word) {
  uint64_t seen = 0;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(word) : "memory");  // <-- data-race
  return seen;
}

__device__ bool all_set(const uint64_t* word, int n) {
  return poll(word) == (n == 2 ? 0x0101 : 0);
}

__global__ void meet(uint64_t* word, int pe, int n) {
  for (int q = 0; q < n; ++q) set(static_cast<unsigned char*>(nvshmem_ptr(word, q)) + pe);  // <-- data-race
  while (!all_set(word, n)) {
  }
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  uint64_t* word = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  meet<<<1, 1>>>(word, pe, n);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(word);
  nvshmem_finalize();
  return 0;
}
