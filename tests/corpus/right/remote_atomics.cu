// echolo-test: mode=sanitize n=4
// expect: correct
// Everybody counts on PE 0, fetching and not.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void count(int* p, long long* tickets, int pe) {
  nvshmem_int_atomic_inc(p, 0);
  nvshmem_int_atomic_add(p + 1, pe, 0);
  nvshmem_uint_atomic_or(reinterpret_cast<unsigned*>(p + 2), 1u << pe, 0);
  tickets[1] = nvshmem_longlong_atomic_fetch_add(tickets, 1, 0);
  if (nvshmem_int_atomic_compare_swap(p + 3, 0, pe + 1, 0) == 0) nvshmem_int_atomic_inc(p + 4, 0);
  nvshmem_quiet();
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* p = static_cast<int*>(nvshmem_calloc(8, sizeof(int)));
  long long* tickets = static_cast<long long*>(nvshmem_calloc(2, sizeof(long long)));
  nvshmem_barrier_all();
  count<<<1, 1>>>(p, tickets, pe);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  int h[8];
  long long t[2];
  cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost);
  wrong += cudaMemcpy(t, tickets, sizeof(t), cudaMemcpyDeviceToHost) != cudaSuccess;
  wrong += t[1] < 0 || t[1] >= n;
  if (pe == 0) {
    wrong +=
        h[0] != n || h[1] != n * (n - 1) / 2 || h[2] != (1 << n) - 1 || h[3] < 1 || h[3] > n || h[4] != 1;
    wrong += t[0] != n;
  }
  nvshmem_free(tickets);
  nvshmem_free(p);
  nvshmem_finalize();
  return wrong != 0;
}
