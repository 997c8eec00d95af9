// echolo-test: mode=sanitize n=1
// expect: correct
// A graph of two kernels, built by nodes: the second reads what the first writes, as the edge says.
#include <cuda_runtime.h>

__global__ void fill(int* p) { p[threadIdx.x] = static_cast<int>(threadIdx.x); }
__global__ void twice(int* out, const int* p) { out[threadIdx.x] = 2 * p[threadIdx.x]; }

static cudaKernelNodeParams kernel(void* function, void** args) {
  cudaKernelNodeParams p = {};
  p.func = function;
  p.gridDim = dim3(1);
  p.blockDim = dim3(64);
  p.kernelParams = args;
  return p;
}

int main() {
  int *p, *out;
  cudaMalloc(&p, 64 * sizeof(int));
  cudaMalloc(&out, 64 * sizeof(int));
  cudaMemset(p, 0, 64 * sizeof(int));
  cudaDeviceSynchronize();
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t first, second;
  void *fill_args[] = {&p}, *twice_args[] = {&out, &p};
  const cudaKernelNodeParams fills = kernel(reinterpret_cast<void*>(fill), fill_args);
  const cudaKernelNodeParams doubles = kernel(reinterpret_cast<void*>(twice), twice_args);
  cudaGraphCreate(&graph, 0);
  cudaGraphAddKernelNode(&first, graph, nullptr, 0, &fills);
  const int edges = 1;
  cudaGraphAddKernelNode(&second, graph, &first, edges, &doubles);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, 0);
  cudaDeviceSynchronize();
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
  cudaFree(out);
  cudaFree(p);
  return 0;
}
