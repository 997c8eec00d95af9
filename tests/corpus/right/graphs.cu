// echolo-test: mode=sanitize n=1
// expect: correct
// A captured graph of two kernels and a copy, replayed with new contents.
#include <cuda_runtime.h>

__global__ void step(int* p, int* calls) { p[threadIdx.x] = p[threadIdx.x] * 2 + *calls; }
__global__ void count(int* calls) { *calls += 1; }

int main() {
  int *p = nullptr, *calls = nullptr, h[32];
  cudaMalloc(&p, sizeof(h));
  cudaMalloc(&calls, sizeof(int));
  cudaMemset(p, 0, sizeof(h));
  cudaMemset(calls, 0, sizeof(int));
  cudaStream_t s;
  cudaStreamCreate(&s);
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal);
  count<<<1, 1, 0, s>>>(calls);
  step<<<1, 32, 0, s>>>(p, calls);
  cudaStreamEndCapture(s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, s);
  int wrong = cudaStreamSynchronize(s) != cudaSuccess;
  cudaMemcpy(h, p, sizeof(h), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 32; ++i) wrong += h[i] != (1 * 2 + 2) * 2 + 3;
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(s);
  cudaFree(p);
  cudaFree(calls);
  return wrong != 0;
}
