// echolo-test: mode=sanitize n=1
// expect: correct
// Graphs built node by node: kernels, copies, fills, host functions, a child, events; read back, changed in the graph
// and in its executable form, updated as a whole, with nodes switched off, cloned; a captured graph that is then edited.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#define CHECK(condition)                                  \
  do {                                                    \
    if (!(condition)) {                                   \
      std::printf("line %d: %s\n", __LINE__, #condition); \
      return 1;                                           \
    }                                                     \
  } while (0)
#define OK(call)                                                                   \
  do {                                                                             \
    const cudaError_t error_ = (call);                                             \
    if (error_ != cudaSuccess) {                                                   \
      std::printf("line %d: %s: %s\n", __LINE__, #call, cudaGetErrorName(error_)); \
      return 1;                                                                    \
    }                                                                              \
  } while (0)

constexpr int kCount = 256;

__global__ void add(int* p, int v) { p[threadIdx.x] += v; }
__global__ void scale(int* p, int v) { p[threadIdx.x] *= v; }
__global__ void sum(int* out, const int* a, const int* b) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

static void count(void* n) { ++*static_cast<int*>(n); }

static cudaKernelNodeParams kernel(void* function, void** args) {
  cudaKernelNodeParams p = {};
  p.func = function;
  p.gridDim = dim3(1);
  p.blockDim = dim3(kCount);
  p.kernelParams = args;
  return p;
}

static int run(cudaGraphExec_t exec, cudaStream_t stream, const int* out, std::vector<int>* back) {
  back->assign(kCount, -1);
  OK(cudaGraphLaunch(exec, stream));
  OK(cudaStreamSynchronize(stream));
  OK(cudaMemcpy(back->data(), out, kCount * sizeof(int), cudaMemcpyDeviceToHost));
  return 0;
}

int main() {
  int *a, *b, *out;
  OK(cudaMalloc(&a, kCount * sizeof(int)));
  OK(cudaMalloc(&b, kCount * sizeof(int)));
  OK(cudaMalloc(&out, kCount * sizeof(int)));
  cudaStream_t stream;
  OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<int> input(kCount), back;
  for (int i = 0; i < kCount; ++i) input[i] = i;

  // input -> a; 7 -> b; a += 1 (a child graph) and b *= 2 beside it; out = a + b; a host function at the end.
  cudaGraph_t graph, child;
  OK(cudaGraphCreate(&graph, 0));
  OK(cudaGraphCreate(&child, 0));
  int one = 1, two = 2, calls = 0;
  void* add_args[] = {&a, &one};
  void* scale_args[] = {&b, &two};
  void* sum_args[] = {&out, &a, &b};
  cudaGraphNode_t copied, filled, added, in_child, scaled, summed, joined, told;
  cudaKernelNodeParams add_params = kernel(reinterpret_cast<void*>(add), add_args);
  OK(cudaGraphAddKernelNode(&in_child, child, nullptr, 0, &add_params));
  OK(cudaGraphAddMemcpyNode1D(&copied, graph, nullptr, 0, a, input.data(), kCount * sizeof(int),
                              cudaMemcpyHostToDevice));
  cudaMemsetParams fill = {};
  fill.dst = b;
  fill.value = 7;
  fill.elementSize = 4;
  fill.width = kCount;
  fill.height = 1;
  OK(cudaGraphAddMemsetNode(&filled, graph, nullptr, 0, &fill));
  OK(cudaGraphAddChildGraphNode(&added, graph, &copied, 1, child));
  cudaGraphNodeParams any = {};
  any.type = cudaGraphNodeTypeKernel;
  any.kernel.func = reinterpret_cast<void*>(scale);
  any.kernel.gridDim = dim3(1);
  any.kernel.blockDim = dim3(kCount);
  any.kernel.kernelParams = scale_args;
  OK(cudaGraphAddNode(&scaled, graph, &filled, nullptr, 1, &any));
  // Added before what it comes after is known: the edges follow.
  cudaKernelNodeParams sum_params = kernel(reinterpret_cast<void*>(sum), sum_args);
  OK(cudaGraphAddKernelNode(&summed, graph, nullptr, 0, &sum_params));
  OK(cudaGraphAddEmptyNode(&joined, graph, nullptr, 0));
  const cudaGraphNode_t from[] = {added, scaled, joined}, to[] = {joined, joined, summed};
  OK(cudaGraphAddDependencies(graph, from, to, nullptr, 3));
  cudaHostNodeParams host = {count, &calls};
  OK(cudaGraphAddHostNode(&told, graph, &summed, 1, &host));

  std::size_t n = 0;
  OK(cudaGraphGetNodes(graph, nullptr, &n));
  CHECK(n == 7);
  OK(cudaGraphGetRootNodes(graph, nullptr, &n));
  CHECK(n == 2);
  OK(cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &n));
  CHECK(n == 6);
  OK(cudaGraphNodeGetDependencies(joined, nullptr, nullptr, &n));
  CHECK(n == 2);
  cudaGraphNodeType type;
  OK(cudaGraphNodeGetType(added, &type));
  CHECK(type == cudaGraphNodeTypeGraph);

  cudaGraphExec_t exec;
  OK(cudaGraphInstantiate(&exec, graph, 0));
  if (run(exec, stream, out, &back) != 0) return 1;
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == i + 1 + 14);
  CHECK(calls == 1);

  // The executable graph changes, the graph doesn't.
  int ten = 10;
  void* other_args[] = {&b, &ten};
  cudaKernelNodeParams read;
  OK(cudaGraphKernelNodeGetParams(scaled, &read));
  CHECK(read.func == reinterpret_cast<void*>(scale) && read.blockDim.x == kCount);
  CHECK(*static_cast<int**>(read.kernelParams[0]) == b && *static_cast<int*>(read.kernelParams[1]) == 2);
  read.kernelParams = other_args;
  OK(cudaGraphExecKernelNodeSetParams(exec, scaled, &read));
  fill.value = 3;
  OK(cudaGraphExecMemsetNodeSetParams(exec, filled, &fill));
  if (run(exec, stream, out, &back) != 0) return 1;
  for (int i = 0; i < kCount; ++i) CHECK(back[i] == i + 1 + 30);
  OK(cudaGraphNodeSetEnabled(exec, scaled, 0));
  if (run(exec, stream, out, &back) != 0) return 1;
  CHECK(back[5] == 5 + 1 + 3);
  OK(cudaGraphNodeSetEnabled(exec, scaled, 1));

  // The whole again: a clone with another input, then one of another shape.
  cudaGraph_t clone;
  cudaGraphNode_t copied_there;
  OK(cudaGraphClone(&clone, graph));
  OK(cudaGraphNodeFindInClone(&copied_there, copied, clone));
  std::vector<int> zeros(kCount, 0);
  OK(cudaGraphMemcpyNodeSetParams1D(copied_there, a, zeros.data(), kCount * sizeof(int), cudaMemcpyHostToDevice));
  cudaGraphExecUpdateResultInfo info;
  OK(cudaGraphExecUpdate(exec, clone, &info));
  if (run(exec, stream, out, &back) != 0) return 1;
  CHECK(back[5] == 0 + 1 + 14 && calls == 4);
  cudaGraphNode_t more;
  OK(cudaGraphAddEmptyNode(&more, clone, nullptr, 0));
  CHECK(cudaGraphExecUpdate(exec, clone, &info) == cudaErrorGraphExecUpdateFailure);
  CHECK(info.result == cudaGraphExecUpdateErrorTopologyChanged);
  cudaGetLastError();
  OK(cudaGraphDestroyNode(more));
  OK(cudaGraphExecUpdate(exec, clone, &info));

  // A cycle can't be instantiated.
  cudaGraphExec_t none;
  cudaGraphNode_t x, y;
  cudaGraph_t ring;
  OK(cudaGraphCreate(&ring, 0));
  OK(cudaGraphAddEmptyNode(&x, ring, nullptr, 0));
  OK(cudaGraphAddEmptyNode(&y, ring, &x, 1));
  OK(cudaGraphAddDependencies(ring, &y, &x, nullptr, 1));
  CHECK(cudaGraphInstantiate(&none, ring, 0) == cudaErrorInvalidValue);
  cudaGetLastError();

  // Events: a graph that waits for work of another stream, and tells when it is done.
  cudaStream_t other;
  cudaEvent_t ready, done;
  OK(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking));
  OK(cudaEventCreate(&ready));
  OK(cudaEventCreate(&done));
  cudaGraph_t timed;
  cudaGraphNode_t waits, works, records;
  OK(cudaGraphCreate(&timed, 0));
  OK(cudaGraphAddEventWaitNode(&waits, timed, nullptr, 0, ready));
  OK(cudaGraphAddKernelNode(&works, timed, &waits, 1, &add_params));
  OK(cudaGraphAddEventRecordNode(&records, timed, &works, 1, done));
  cudaGraphExec_t timed_exec;
  OK(cudaGraphInstantiate(&timed_exec, timed, 0));
  OK(cudaMemsetAsync(a, 0, kCount * sizeof(int), other));
  OK(cudaEventRecord(ready, other));
  OK(cudaGraphLaunch(timed_exec, stream));
  OK(cudaStreamWaitEvent(other, done, 0));
  OK(cudaMemcpyAsync(back.data(), a, kCount * sizeof(int), cudaMemcpyDeviceToHost, other));
  OK(cudaStreamSynchronize(other));
  CHECK(back[17] == 1);

  // A captured graph, its last kernel found and changed.
  cudaGraph_t captured;
  OK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
  OK(cudaMemsetAsync(a, 0, kCount * sizeof(int), stream));
  add<<<1, kCount, 0, stream>>>(a, 5);
  cudaStreamCaptureStatus status;
  cudaGraph_t under_way;
  const cudaGraphNode_t* last;
  OK(cudaStreamGetCaptureInfo(stream, &status, nullptr, &under_way, &last, nullptr, &n));
  CHECK(status == cudaStreamCaptureStatusActive && n == 1);
  cudaGraphNode_t by_hand, kernel_node = last[0];
  OK(cudaGraphAddKernelNode(&by_hand, under_way, last, n, &add_params));
  OK(cudaStreamUpdateCaptureDependencies(stream, &by_hand, nullptr, 1, cudaStreamSetCaptureDependencies));
  scale<<<1, kCount, 0, stream>>>(a, 2);
  OK(cudaStreamEndCapture(stream, &captured));
  OK(cudaGraphNodeGetType(kernel_node, &type));
  CHECK(type == cudaGraphNodeTypeKernel);
  cudaGraphExec_t captured_exec;
  OK(cudaGraphInstantiate(&captured_exec, captured, 0));
  if (run(captured_exec, stream, a, &back) != 0) return 1;
  CHECK(back[9] == (5 + 1) * 2);
  OK(cudaGraphKernelNodeGetParams(kernel_node, &read));
  *static_cast<int*>(read.kernelParams[1]) = 8;
  OK(cudaGraphExecKernelNodeSetParams(captured_exec, kernel_node, &read));
  if (run(captured_exec, stream, a, &back) != 0) return 1;
  CHECK(back[9] == (8 + 1) * 2);

  for (cudaGraphExec_t e : {exec, timed_exec, captured_exec}) OK(cudaGraphExecDestroy(e));
  for (cudaGraph_t g : {graph, child, clone, ring, timed, captured}) OK(cudaGraphDestroy(g));
  OK(cudaEventDestroy(done));
  OK(cudaEventDestroy(ready));
  OK(cudaStreamDestroy(other));
  OK(cudaStreamDestroy(stream));
  OK(cudaFree(out));
  OK(cudaFree(b));
  OK(cudaFree(a));
  return 0;
}
