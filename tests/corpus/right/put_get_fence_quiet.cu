// echolo-test: mode=sanitize n=2
// expect: correct
// Puts, fence, quiet, gets, single elements, strided and non-blocking forms.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void exchange(int* box, int* flag, int pe, int n) {
  const int peer = (pe + 1) % n;
  if (threadIdx.x == 0) {
    int* local = box + 24;
    for (int i = 0; i < 4; ++i) local[i] = pe + 10 * i;
    nvshmem_int_put(box, local, 4, peer);
    nvshmem_int_p(box + 4, pe + 40, peer);
    nvshmem_int_iput(box + 5, local, 2, 1, 4, peer);
    nvshmem_int_put_nbi(box + 16, box + 32, 4, peer);
    nvshmem_fence();
    nvshmem_int_p(flag, 1, peer);
    nvshmem_int_wait_until(flag, NVSHMEM_CMP_EQ, 1);
    nvshmem_quiet();
    nvshmem_int_get(box + 48, box + 32, 4, peer);
    box[52] = nvshmem_int_g(box + 33, peer);
    nvshmem_int_get_nbi(box + 53, box + 34, 1, peer);
    nvshmem_quiet();
  }
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* box = static_cast<int*>(nvshmem_calloc(64, sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int h[64] = {};
  for (int i = 0; i < 4; ++i) h[32 + i] = pe * 7 + i;
  cudaMemcpy(box, h, sizeof(h), cudaMemcpyHostToDevice);
  nvshmem_barrier_all();
  exchange<<<1, 32>>>(box, flag, pe, n);
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  wrong += cudaMemcpy(h, box, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  const int from = (pe + n - 1) % n, peer = (pe + 1) % n;
  for (int i = 0; i < 5; ++i) wrong += h[i] != from + 10 * i;
  for (int i = 0; i < 4; ++i) wrong += h[5 + 2 * i] != from + 10 * i;
  for (int i = 0; i < 4; ++i) wrong += h[16 + i] != from * 7 + i || h[48 + i] != peer * 7 + i;
  wrong += h[52] != peer * 7 + 1 || h[53] != peer * 7 + 2;
  nvshmem_free(flag);
  nvshmem_free(box);
  nvshmem_finalize();
  return wrong != 0;
}
