// echolo-test: mode=sanitize n=2
// expect: correct
// PE 1 reads memory of PE 0 through an IPC handle and waits for the event that says it is written.
#include <cuda_runtime.h>
#include <nvshmem.h>

constexpr int kCount = 128;
constexpr bool kWaits = true;

__global__ void fill(int* p, int v) { p[threadIdx.x] = v + static_cast<int>(threadIdx.x); }
__global__ void copy(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe();
  int *mine, *copied;
  cudaEvent_t written, theirs_written;
  cudaMalloc(&mine, kCount * sizeof(int));
  cudaMalloc(&copied, kCount * sizeof(int));
  cudaMemset(mine, 0, kCount * sizeof(int));
  cudaDeviceSynchronize();
  cudaEventCreateWithFlags(&written, cudaEventDisableTiming | cudaEventInterprocess);
  cudaStream_t work;
  cudaStreamCreateWithFlags(&work, cudaStreamNonBlocking);
  Handles handles, theirs;
  cudaIpcGetMemHandle(&handles.memory, mine);
  cudaIpcGetEventHandle(&handles.event, written);
  char* here = static_cast<char*>(nvshmem_malloc(sizeof handles));
  char* there = static_cast<char*>(nvshmem_malloc(sizeof handles));
  cudaMemcpy(here, &handles, sizeof handles, cudaMemcpyHostToDevice);
  cudaDeviceSynchronize();
  if (me == 0) {
    fill<<<1, kCount, 0, work>>>(mine, 1000);
    cudaEventRecord(written, work);
  }
  nvshmem_broadcastmem(NVSHMEM_TEAM_WORLD, there, here, sizeof handles, 0);
  cudaMemcpy(&theirs, there, sizeof theirs, cudaMemcpyDeviceToHost);
  if (me == 1) {
    void* opened;
    cudaIpcOpenMemHandle(&opened, theirs.memory, cudaIpcMemLazyEnablePeerAccess);
    cudaIpcOpenEventHandle(&theirs_written, theirs.event);
    if (kWaits) cudaStreamWaitEvent(work, theirs_written, 0);
    copy<<<1, kCount, 0, work>>>(copied, static_cast<const int*>(opened));
    cudaStreamSynchronize(work);
    cudaEventDestroy(theirs_written);
    cudaIpcCloseMemHandle(opened);
  }
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(there);
  nvshmem_free(here);
  cudaStreamDestroy(work);
  cudaEventDestroy(written);
  cudaFree(copied);
  cudaFree(mine);
  nvshmem_finalize();
  return 0;
}
