// echolo-test: mode=sanitize n=3
// expect: correct
// Each PE opens the private memory of the next one through an IPC handle, and an event of it: reads what the owner has
// written when the event says so, without the host waiting.
#include <cuda_runtime.h>
#include <nvshmem.h>

#include <cstdio>
#include <cstring>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      std::printf("PE %d, line %d: %s\n", nvshmem_my_pe(), __LINE__, #condition); \
      return 1;                                                                   \
    }                                                                             \
  } while (0)
#define OK(call) CHECK((call) == cudaSuccess)

constexpr int kCount = 128;

__global__ void fill(int* p, int v) { p[threadIdx.x] = v + static_cast<int>(threadIdx.x); }
__global__ void copy(int* to, const int* from) { to[threadIdx.x] = from[threadIdx.x]; }

struct Handles {
  cudaIpcMemHandle_t memory;
  cudaIpcEventHandle_t event;
};

int main() {
  nvshmem_init();
  const int me = nvshmem_my_pe(), n = nvshmem_n_pes(), next = (me + 1) % n;
  int *mine, *copied;
  cudaEvent_t written, theirs_written;
  OK(cudaMalloc(&mine, kCount * sizeof(int)));
  OK(cudaMalloc(&copied, kCount * sizeof(int)));
  OK(cudaEventCreateWithFlags(&written, cudaEventDisableTiming | cudaEventInterprocess));
  fill<<<1, kCount>>>(mine, 1000 * me);
  OK(cudaEventRecord(written, 0));

  Handles handles, all[8];
  OK(cudaIpcGetMemHandle(&handles.memory, mine));
  OK(cudaIpcGetEventHandle(&handles.event, written));
  char* here = static_cast<char*>(nvshmem_malloc(sizeof handles));
  char* gathered = static_cast<char*>(nvshmem_malloc(n * sizeof handles));
  OK(cudaMemcpy(here, &handles, sizeof handles, cudaMemcpyHostToDevice));
  CHECK(nvshmem_fcollectmem(NVSHMEM_TEAM_WORLD, gathered, here, sizeof handles) == 0);
  OK(cudaMemcpy(all, gathered, n * sizeof handles, cudaMemcpyDeviceToHost));

  void* theirs = nullptr;
  CHECK(cudaIpcOpenMemHandle(&theirs, all[me].memory, cudaIpcMemLazyEnablePeerAccess) != cudaSuccess);  // its own
  cudaGetLastError();
  OK(cudaIpcOpenMemHandle(&theirs, all[next].memory, cudaIpcMemLazyEnablePeerAccess));
  OK(cudaIpcOpenEventHandle(&theirs_written, all[next].event));
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  OK(cudaStreamWaitEvent(stream, theirs_written, 0));
  copy<<<1, kCount, 0, stream>>>(copied, static_cast<const int*>(theirs));
  OK(cudaStreamSynchronize(stream));
  int back[kCount];
  OK(cudaMemcpy(back, copied, sizeof back, cudaMemcpyDeviceToHost));
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == 1000 * next + i);
  // Plain copies reach it too.
  OK(cudaMemcpy(back, theirs, sizeof back, cudaMemcpyDeviceToHost));
  CHECK(back[5] == 1000 * next + 5);
  OK(cudaIpcCloseMemHandle(theirs));
  OK(cudaEventDestroy(theirs_written));
  nvshmem_barrier_all();
  OK(cudaStreamDestroy(stream));
  OK(cudaEventDestroy(written));
  OK(cudaFree(copied));
  OK(cudaFree(mine));
  nvshmem_free(gathered);
  nvshmem_free(here);
  nvshmem_finalize();
  return 0;
}
