// echolo-test: mode=sanitize n=2 fabric=nvlink
// expect: correct
// Plain loads and stores through nvshmem_ptr, released and acquired at system scope.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void swap(int* mine, int* peers, int* flag, int* peers_flag, int* out, int pe) {
  const int t = threadIdx.x;
  peers[t] = pe * 1000 + t;
  __syncthreads();
  if (t == 0) {
    asm volatile("st.release.sys.global.u32 [%0], 1;" ::"l"(peers_flag) : "memory");
    int seen = 0;
    while (seen == 0) asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  }
  __syncthreads();
  out[t] = mine[t];
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  int* box = static_cast<int*>(nvshmem_malloc(64 * sizeof(int)));
  int* flag = static_cast<int*>(nvshmem_calloc(1, sizeof(int)));
  int *out = nullptr, h[64];
  cudaMalloc(&out, sizeof(h));
  const int peer = (pe + 1) % n;
  nvshmem_barrier_all();
  swap<<<1, 64>>>(box, static_cast<int*>(nvshmem_ptr(box, peer)), flag,
                  static_cast<int*>(nvshmem_ptr(flag, peer)), out, pe);
  wrong += cudaMemcpy(h, out, sizeof(h), cudaMemcpyDeviceToHost) != cudaSuccess;
  for (int i = 0; i < 64; ++i) wrong += h[i] != peer * 1000 + i;
  nvshmem_barrier_all();
  cudaFree(out);
  nvshmem_free(flag);
  nvshmem_free(box);
  nvshmem_finalize();
  return wrong != 0;
}
