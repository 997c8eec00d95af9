// echolo-test: mode=sanitize n=4
// expect: collective_mismatch
// PEs as a grid of two by two. PE 3 sums over PE 0's row, in which it is not.
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void fill(int* p) { *p = 1; }
__global__ void sum(nvshmem_team_t team, int* out, const int* in) {
  nvshmemx_int_sum_reduce_block(team, out, in, 1);  // <-- collective-mismatch
}

int main() {
  nvshmem_init();
  nvshmem_team_t row, column, first_row;
  nvshmem_team_split_2d(NVSHMEM_TEAM_WORLD, 2, nullptr, 0, &row, nullptr, 0, &column);
  int* in = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  int* out = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  int* handle = static_cast<int*>(nvshmem_malloc(sizeof(int)));
  cudaMemcpy(handle, &row, sizeof row, cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  first_row = nvshmem_int_g(handle, 0);
  fill<<<1, 1>>>(in);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  sum<<<1, 32>>>(nvshmem_my_pe() == 3 ? first_row : row, out, in);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(handle);
  nvshmem_free(out);
  nvshmem_free(in);
  nvshmem_finalize();
  return 0;
}
