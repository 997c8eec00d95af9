// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: out_of_bounds
// Plain stores through a peer pointer run past the symmetric buffer of the peer.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void fill(int* peer) {
  peer[threadIdx.x] = threadIdx.x;  // <-- out-of-bounds
}

int main() {
  nvshmem_init();
  int* buffer = static_cast<int*>(nvshmem_malloc(64 * sizeof(int)));
  int* peer = static_cast<int*>(nvshmem_ptr(buffer, (nvshmem_my_pe() + 1) % nvshmem_n_pes()));
  fill<<<1, 96>>>(peer);
  const int failed = cudaDeviceSynchronize() != cudaSuccess;
  nvshmem_barrier_all();
  nvshmem_free(buffer);
  nvshmem_finalize();
  return failed;
}
