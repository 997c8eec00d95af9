// echolo-test: mode=sanitize n=2
// expect: correct
// A kernel that signals its peer, captured once and replayed; it counts its calls on the device.
#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void turn(uint64_t* signal, uint64_t* calls, int* sum, int pe, int n) {
  const uint64_t call = *calls + 1;
  nvshmemx_signal_op(signal, 1, NVSHMEM_SIGNAL_ADD, (pe + 1) % n);
  nvshmem_signal_wait_until(signal, NVSHMEM_CMP_GE, call);
  *sum += static_cast<int>(call);
  *calls = call;
}

int main() {
  nvshmem_init();
  const int pe = nvshmem_my_pe(), n = nvshmem_n_pes();
  int wrong = 0;
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  uint64_t* calls = nullptr;
  int *sum = nullptr, got = 0;
  cudaMalloc(&calls, sizeof(uint64_t));
  cudaMalloc(&sum, sizeof(int));
  cudaMemset(calls, 0, sizeof(uint64_t));
  cudaMemset(sum, 0, sizeof(int));
  cudaStream_t s;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamCreate(&s);
  nvshmem_barrier_all();
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  turn<<<1, 1, 0, s>>>(signal, calls, sum, pe, n);
  cudaStreamEndCapture(s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 5; ++i) cudaGraphLaunch(exec, s);
  wrong += cudaStreamSynchronize(s) != cudaSuccess;
  wrong += cudaMemcpy(&got, sum, sizeof(got), cudaMemcpyDeviceToHost) != cudaSuccess || got != 15;
  nvshmem_barrier_all();
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(s);
  cudaFree(sum);
  cudaFree(calls);
  nvshmem_free(signal);
  nvshmem_finalize();
  return wrong != 0;
}
