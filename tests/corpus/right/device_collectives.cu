// echolo-test: mode=sanitize n=4
// expect: correct
// Barrier, broadcast, fcollect, alltoall and reduce inside a collectively launched kernel.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void everything(int* p, int pe, int n) {
  const int t = threadIdx.x;
  int *source = p, *to = p + 16;
  if (t < 16) source[t] = pe * 16 + t;
  __syncthreads();
  nvshmemx_barrier_all_block();
  nvshmemx_int_broadcast_block(NVSHMEM_TEAM_WORLD, to, source, 4, 1);
  nvshmemx_int_fcollect_block(NVSHMEM_TEAM_WORLD, to + 4, source, 2);
  nvshmemx_int_alltoall_block(NVSHMEM_TEAM_WORLD, to + 16, source, 3);
  nvshmemx_int_sum_reduce_block(NVSHMEM_TEAM_WORLD, to + 32, source, 5);
  nvshmemx_sync_all_block();
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* p = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  int me = pe, all_pes = n;
  void* arguments[] = {&p, &me, &all_pes};
  nvshmemx_collective_launch(reinterpret_cast<const void*>(everything), 1, 64, arguments, 0, nullptr);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  int h[64];
  wrong += cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 4; ++i) wrong += h[16 + i] != 16 + i;
  for (int q = 0; q < n; ++q) {
    for (int i = 0; i < 2; ++i) wrong += h[20 + 2 * q + i] != q * 16 + i;
    for (int i = 0; i < 3; ++i) wrong += h[32 + 3 * q + i] != q * 16 + 3 * pe + i;
  }
  for (int i = 0; i < 5; ++i) wrong += h[48 + i] != 16 * n * (n - 1) / 2 + n * i;
  nvshmem_free(p);
  nvshmem_finalize();
  return wrong != 0;
}
