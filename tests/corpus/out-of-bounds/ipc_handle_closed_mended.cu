// echolo-test: mode=sanitize n=2
// expect: correct
// PE 1 uses memory of PE 0 until it closes the IPC handle.
#include <cuda_runtime.h>
#include <nvshmem.h>

__global__ void look(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  int *mine, *copied;
  cudaMalloc(&mine, 32 * sizeof(int));
  cudaMalloc(&copied, 32 * sizeof(int));
  cudaMemset(mine, me, 32 * sizeof(int));
  cudaIpcMemHandle_t handle, theirs;
  cudaIpcGetMemHandle(&handle, mine);
  char* here = static_cast<char*>(nvshmem_malloc(sizeof handle));
  char* there = static_cast<char*>(nvshmem_malloc(sizeof handle));
  cudaMemcpy(here, &handle, sizeof handle, cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();
  nvshmem_broadcastmem(NVSHMEM_TEAM_WORLD, there, here, sizeof handle, 0);
  cudaMemcpy(&theirs, there, sizeof theirs, cudaMemcpyDeviceToHost);
  if (me == 1) {
    void* opened;
    cudaIpcOpenMemHandle(&opened, theirs, cudaIpcMemLazyEnablePeerAccess);
    look<<<1, 32>>>(copied, static_cast<const int*>(opened));
    cudaDeviceSynchronize();
    cudaIpcCloseMemHandle(opened);
  }
  nvshmem_barrier_all();
  nvshmem_free(there);
  nvshmem_free(here);
  cudaFree(copied);
  cudaFree(mine);
  nvshmem_finalize();
  return 0;
}
