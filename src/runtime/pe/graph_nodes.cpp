// Nodes of graphs: made, read, changed, in graphs and in executable graphs (CUDA runtime API, "Graph
// Management"). A node's parameters travel as the request that the same operation would send in a stream.
#include "runtime/pe/graph_nodes.hpp"

#include <pthread.h>
#include <algorithm>
#include <cstring>
#include <map>

namespace echolo::runtime::pe {

void write_nodes(wire::Writer& out, const cudaGraphNode_t* nodes, std::size_t n) {
  out.u32(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) out.u64(number(nodes[i]));
}

std::vector<cudaGraphNode_t> read_nodes(wire::Reader& in) {
  std::vector<cudaGraphNode_t> nodes;
  for (std::uint32_t n = in.u32(); n > 0 && in.ok(); --n) nodes.push_back(pointer<cudaGraphNode_t>(in.u64()));
  return nodes;
}

int plain_edges(const char* name, const cudaGraphEdgeData* edges, std::size_t n) {
  for (std::size_t i = 0; edges != nullptr && i < n; ++i) {
    if (edges[i].from_port != 0 || edges[i].to_port != 0 || edges[i].type != 0)
      return unsupported(name, "edges that let a kernel begin before its predecessor has ended");
  }
  return kSuccess;
}

namespace {

// What a node does, ready to be sent.
struct Content {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  std::uint64_t object = 0;
  std::uint16_t op = 0;
  wire::Writer request;
};

int describe_kernel(const void* function, const LaunchShape& shape, void** args, void** extra, Content* out) {
  int error = kSuccess;
  const Kernel* kernel = find_kernel(function, &error);
  if (kernel == nullptr) return error;
  if (extra != nullptr) return unsupported("graph node", "kernel arguments as one buffer in `extra`");
  std::vector<std::uint8_t> block;
  if (error = pack_arguments(*kernel, args, &block); error != kSuccess) return error;
  out->type = cudaGraphNodeTypeKernel;
  out->op = static_cast<std::uint16_t>(wire::Op::kLaunch);
  write_launch(out->request, *kernel, shape, block);
  return kSuccess;
}

int describe(const cudaKernelNodeParams* p, Content* out) {
  if (p == nullptr) return kInvalidValue;
  return describe_kernel(p->func, {p->gridDim, p->blockDim, p->sharedMemBytes}, p->kernelParams, p->extra,
                         out);
}

int describe_copy(void* to, const void* from, const CopyShape& shape, cudaMemcpyKind kind, Content* out) {
  out->type = cudaGraphNodeTypeMemcpy;
  out->op = static_cast<std::uint16_t>(wire::Op::kCopy);
  return write_copy("graph node", out->request, to, from, shape, kind);
}

int describe(const cudaMemcpy3DParms* p, Content* out) {
  if (p == nullptr) return kInvalidValue;
  if (p->srcArray != nullptr || p->dstArray != nullptr)
    return unsupported("graph node", "CUDA arrays are not modelled by the virtual node");
  if (p->extent.depth != 1 || p->srcPos.z != 0 || p->dstPos.z != 0)
    return unsupported("graph node", "a node that copies several layers: add one for each");
  const auto* from = static_cast<const std::uint8_t*>(p->srcPtr.ptr);
  auto* to = static_cast<std::uint8_t*>(p->dstPtr.ptr);
  if (from == nullptr || to == nullptr) return kInvalidValue;
  return describe_copy(to + p->dstPos.y * p->dstPtr.pitch + p->dstPos.x,
                       from + p->srcPos.y * p->srcPtr.pitch + p->srcPos.x,
                       {p->extent.width, p->extent.height, p->dstPtr.pitch, p->srcPtr.pitch}, p->kind, out);
}

int describe(const cudaMemsetParams* p, Content* out) {
  if (p == nullptr) return kInvalidValue;
  out->type = cudaGraphNodeTypeMemset;
  out->op = static_cast<std::uint16_t>(wire::Op::kFill);
  FillShape shape{p->pitch, p->width, p->height, p->value, static_cast<std::uint8_t>(p->elementSize)};
  if (shape.height == 1) shape.pitch = p->width * p->elementSize;
  return write_fill(out->request, p->dst, shape);
}

int describe(const cudaHostNodeParams* p, Content* out) {
  if (p == nullptr || p->fn == nullptr) return kInvalidValue;
  out->type = cudaGraphNodeTypeHost;
  out->op = static_cast<std::uint16_t>(wire::Op::kHostFunction);
  write_host_function(out->request, nullptr, reinterpret_cast<std::uint64_t>(p->fn), p->userData, false);
  return kSuccess;
}

int describe(cudaGraphNodeType type, std::uint64_t object, Content* out) {
  out->type = type;
  out->object = object;
  return type != cudaGraphNodeTypeEmpty && object == 0 ? kInvalidValue : kSuccess;
}

int describe(const cudaGraphNodeParams* p, Content* out) {
  if (p == nullptr) return kInvalidValue;
  switch (p->type) {
    case cudaGraphNodeTypeKernel:
      return describe_kernel(p->kernel.func,
                             {p->kernel.gridDim, p->kernel.blockDim, p->kernel.sharedMemBytes},
                             p->kernel.kernelParams, p->kernel.extra, out);
    case cudaGraphNodeTypeMemcpy:
      return describe(&p->memcpy.copyParams, out);
    case cudaGraphNodeTypeMemset: {
      const cudaMemsetParams plain{p->memset.dst,         p->memset.pitch, p->memset.value,
                                   p->memset.elementSize, p->memset.width, p->memset.height};
      return describe(&plain, out);
    }
    case cudaGraphNodeTypeHost: {
      const cudaHostNodeParams plain{p->host.fn, p->host.userData};
      return describe(&plain, out);
    }
    case cudaGraphNodeTypeGraph:
      return describe(p->type, number(p->graph.graph), out);
    case cudaGraphNodeTypeEmpty:
      return describe(p->type, 0, out);
    case cudaGraphNodeTypeWaitEvent:
      return describe(p->type, number(p->eventWait.event), out);
    case cudaGraphNodeTypeEventRecord:
      return describe(p->type, number(p->eventRecord.event), out);
    default:
      return unsupported("graph node", "nodes of type " + std::to_string(static_cast<int>(p->type)) +
                                           " (memory, semaphores, conditions) are not modelled");
  }
}

void write_content(wire::Writer& out, const Content& content) {
  out.u8(static_cast<std::uint8_t>(content.type)).u64(content.object).put(content.op);
  out.blob(content.request.bytes().data(), content.request.bytes().size());
}

template <typename... Described>
int add(const char* name, cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* before,
        std::size_t n, Described... described) {
  if (node == nullptr || (before == nullptr && n != 0)) return kInvalidValue;
  Content content;
  if (const int error = describe(described..., &content); error != kSuccess) return error;
  Call call(wire::Op::kGraphAddNode, name);
  call.in.u64(number(graph));
  write_nodes(call.in, before, n);
  write_content(call.in, content);
  const int error = call.send();
  if (error == kSuccess) *node = pointer<cudaGraphNode_t>(call.out.u64());
  return error;
}

template <typename... Described>
int set(const char* name, cudaGraphExec_t exec, cudaGraphNode_t node, Described... described) {
  Content content;
  if (const int error = describe(described..., &content); error != kSuccess) return error;
  Call call(wire::Op::kGraphSetNode, name);
  call.in.u64(number(exec)).u64(number(node));
  write_content(call.in, content);
  return call.send();
}

// ---- reading nodes ----

struct NodeInfo {
  std::uint64_t graph = 0, object = 0;
  cudaGraphNodeType type{};
  std::uint16_t op = 0;
  std::vector<std::uint8_t> request;
  std::vector<cudaGraphNode_t> before, after;
};

int read_node(const char* name, cudaGraphNode_t node, NodeInfo* info) {
  Call call(wire::Op::kGraphNodeInfo, name);
  call.in.u64(number(node));
  if (const int error = call.send(); error != kSuccess) return error;
  info->graph = call.out.u64();
  info->type = static_cast<cudaGraphNodeType>(call.out.u8());
  info->object = call.out.u64();
  info->op = call.out.get<std::uint16_t>();
  const std::string_view request = call.out.blob();
  info->request.assign(request.begin(), request.end());
  info->before = read_nodes(call.out);
  info->after = read_nodes(call.out);
  return kSuccess;
}

// A node of this type that was asked for by this request; the request of a node whose parameters can't be
// told (an NVSHMEM operation, say) is another.
int read_request(const char* name, cudaGraphNode_t node, cudaGraphNodeType type, wire::Op op,
                 NodeInfo* info) {
  if (const int error = read_node(name, node, info); error != kSuccess) return error;
  if (info->type != type) return kInvalidValue;
  if (info->op != static_cast<std::uint16_t>(op))
    return unsupported(name, "the node is an operation of NVSHMEM or of a stream without such parameters");
  return kSuccess;
}

// Arguments that GetParams has handed out: they live as long as the process, as those of a node would.
struct Arguments {
  std::vector<std::uint8_t> block;
  std::vector<void*> pointers;
};
Arguments& arguments_of(cudaGraphNode_t node) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static auto* all = new std::map<cudaGraphNode_t, Arguments>;  // NOLINT(cppcoreguidelines-owning-memory)
  pthread_mutex_lock(&lock);
  Arguments& found = (*all)[node];
  pthread_mutex_unlock(&lock);
  return found;
}

int kernel_params(cudaGraphNode_t node, cudaKernelNodeParams* p) {
  if (p == nullptr) return kInvalidValue;
  NodeInfo info;
  const char* const name = "cudaGraphKernelNodeGetParams";
  int error = read_request(name, node, cudaGraphNodeTypeKernel, wire::Op::kLaunch, &info);
  if (error != kSuccess) return error;
  wire::Reader in(info.request);
  const std::uint32_t module = in.u32();
  const std::string symbol(in.text());
  *p = {};
  p->func = function_of(module, symbol);
  for (dim3* dim : {&p->gridDim, &p->blockDim}) {
    dim->x = in.u32();
    dim->y = in.u32();
    dim->z = in.u32();
  }
  p->sharedMemBytes = static_cast<unsigned>(in.u64());
  in.u64();
  in.u8();
  for (int i = 0; i < 3; ++i) in.u32();
  const std::string_view block = in.blob();
  const Kernel* kernel = find_kernel(p->func, &error);
  if (kernel == nullptr || block.size() != kernel->parameter_bytes) return kUnknown;
  Arguments& arguments = arguments_of(node);
  arguments.block.assign(block.begin(), block.end());
  arguments.pointers.clear();
  for (const std::uint32_t offset : kernel->offsets)
    arguments.pointers.push_back(arguments.block.data() + offset);
  p->kernelParams = arguments.pointers.data();
  return kSuccess;
}

int copy_params(cudaGraphNode_t node, cudaMemcpy3DParms* p) {
  if (p == nullptr) return kInvalidValue;
  NodeInfo info;
  const int error =
      read_request("cudaGraphMemcpyNodeGetParams", node, cudaGraphNodeTypeMemcpy, wire::Op::kCopy, &info);
  if (error != kSuccess) return error;
  wire::Reader in(info.request);
  *p = {};
  p->dstPtr.ptr = pointer<void*>(in.u64());
  p->srcPtr.ptr = pointer<void*>(in.u64());
  p->extent.width = in.u64();
  p->extent.height = in.u64();
  p->extent.depth = 1;
  p->dstPtr.pitch = in.u64();
  p->srcPtr.pitch = in.u64();
  for (cudaPitchedPtr* side : {&p->dstPtr, &p->srcPtr}) {
    if (side->pitch == 0) side->pitch = p->extent.width;
    side->xsize = p->extent.width;
    side->ysize = p->extent.height;
  }
  p->kind = cudaMemcpyDefault;
  return kSuccess;
}

int fill_params(cudaGraphNode_t node, cudaMemsetParams* p) {
  if (p == nullptr) return kInvalidValue;
  NodeInfo info;
  const int error =
      read_request("cudaGraphMemsetNodeGetParams", node, cudaGraphNodeTypeMemset, wire::Op::kFill, &info);
  if (error != kSuccess) return error;
  wire::Reader in(info.request);
  *p = {};
  p->dst = pointer<void*>(in.u64());
  p->value = in.u32();
  p->elementSize = in.u8();
  p->pitch = in.u64();
  p->width = in.u64();
  p->height = in.u64();
  return kSuccess;
}

int host_params(cudaGraphNode_t node, cudaHostNodeParams* p) {
  if (p == nullptr) return kInvalidValue;
  NodeInfo info;
  const int error =
      read_request("cudaGraphHostNodeGetParams", node, cudaGraphNodeTypeHost, wire::Op::kHostFunction, &info);
  if (error != kSuccess) return error;
  wire::Reader in(info.request);
  in.u64();
  p->fn = pointer<cudaHostFn_t>(in.u64());
  p->userData = pointer<void*>(in.u64());
  return kSuccess;
}

int object_of(const char* name, cudaGraphNode_t node, cudaGraphNodeType type, std::uint64_t* object) {
  NodeInfo info;
  if (const int error = read_node(name, node, &info); error != kSuccess) return error;
  *object = info.object;
  return info.type == type ? kSuccess : kInvalidValue;
}

// CUDA's way to hand out a list: the number where `out` is null, else at most *n and the number written.
int hand_out(const std::vector<cudaGraphNode_t>& found, cudaGraphNode_t* out, std::size_t* n) {
  if (n == nullptr) return kInvalidValue;
  if (out != nullptr) {
    for (std::size_t i = 0; i < *n; ++i) out[i] = i < found.size() ? found[i] : nullptr;
  }
  *n = out == nullptr ? found.size() : std::min(*n, found.size());
  return kSuccess;
}

int list_nodes(const char* name, cudaGraph_t graph, bool roots, cudaGraphNode_t* out, std::size_t* n) {
  Call call(wire::Op::kGraphNodes, name);
  call.in.u64(number(graph)).u8(roots ? 1 : 0);
  const int error = call.send();
  return error != kSuccess ? error : hand_out(read_nodes(call.out), out, n);
}

int change_edges(const char* name, cudaGraph_t graph, bool remove, const cudaGraphNode_t* from,
                 const cudaGraphNode_t* to, const cudaGraphEdgeData* edges, std::size_t n) {
  if (n != 0 && (from == nullptr || to == nullptr)) return kInvalidValue;
  if (const int error = plain_edges(name, edges, n); error != kSuccess) return error;
  Call call(wire::Op::kGraphDepend, name);
  call.in.u64(number(graph)).u8(remove ? 1 : 0).u32(static_cast<std::uint32_t>(n));
  for (std::size_t i = 0; i < n; ++i) call.in.u64(number(from[i])).u64(number(to[i]));
  return call.send();
}

int enabled(const char* name, cudaGraphExec_t exec, cudaGraphNode_t node, std::uint8_t what, unsigned* is) {
  Call call(wire::Op::kGraphEnable, name);
  call.in.u64(number(exec)).u64(number(node)).u8(what);
  const int error = call.send();
  if (error == kSuccess && is != nullptr) *is = call.out.u8();
  return error;
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

// ---- kernels ----
ECHOLO_API cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* before, std::size_t n,
                                              const cudaKernelNodeParams* p) {
  return done(add("cudaGraphAddKernelNode", node, graph, before, n, p));
}
ECHOLO_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* p) {
  return done(kernel_params(node, p));
}
ECHOLO_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* p) {
  return done(set("cudaGraphKernelNodeSetParams", nullptr, node, p));
}
ECHOLO_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                        const cudaKernelNodeParams* p) {
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecKernelNodeSetParams", exec, node, p));
}

// ---- copies ----
ECHOLO_API cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* before, std::size_t n,
                                              const cudaMemcpy3DParms* p) {
  return done(add("cudaGraphAddMemcpyNode", node, graph, before, n, p));
}
namespace {
// One row as a copy in three dimensions.
cudaMemcpy3DParms row_of(void* to, const void* from, std::size_t n, cudaMemcpyKind kind) {
  cudaMemcpy3DParms p = {};
  p.srcPtr = {const_cast<void*>(from), n, n, 1};
  p.dstPtr = {to, n, n, 1};
  p.extent = {n, 1, 1};
  p.kind = kind;
  return p;
}
}  // namespace
ECHOLO_API cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                                const cudaGraphNode_t* before, std::size_t n, void* to,
                                                const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row_of(to, from, bytes, kind);
  return done(add("cudaGraphAddMemcpyNode1D", node, graph, before, n, &p));
}
ECHOLO_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, cudaMemcpy3DParms* p) {
  return done(copy_params(node, p));
}
ECHOLO_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* p) {
  return done(set("cudaGraphMemcpyNodeSetParams", nullptr, node, p));
}
ECHOLO_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void* to, const void* from,
                                                      std::size_t bytes, cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row_of(to, from, bytes, kind);
  return done(set("cudaGraphMemcpyNodeSetParams1D", nullptr, node, &p));
}
ECHOLO_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                        const cudaMemcpy3DParms* p) {
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecMemcpyNodeSetParams", exec, node, p));
}
ECHOLO_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                          void* to, const void* from, std::size_t bytes,
                                                          cudaMemcpyKind kind) {
  const cudaMemcpy3DParms p = row_of(to, from, bytes, kind);
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecMemcpyNodeSetParams1D", exec, node, &p));
}

// ---- fills ----
ECHOLO_API cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                              const cudaGraphNode_t* before, std::size_t n,
                                              const cudaMemsetParams* p) {
  return done(add("cudaGraphAddMemsetNode", node, graph, before, n, p));
}
ECHOLO_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, cudaMemsetParams* p) {
  return done(fill_params(node, p));
}
ECHOLO_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* p) {
  return done(set("cudaGraphMemsetNodeSetParams", nullptr, node, p));
}
ECHOLO_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                        const cudaMemsetParams* p) {
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecMemsetNodeSetParams", exec, node, p));
}

// ---- host functions ----
ECHOLO_API cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                            const cudaGraphNode_t* before, std::size_t n,
                                            const cudaHostNodeParams* p) {
  return done(add("cudaGraphAddHostNode", node, graph, before, n, p));
}
ECHOLO_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, cudaHostNodeParams* p) {
  return done(host_params(node, p));
}
ECHOLO_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* p) {
  return done(set("cudaGraphHostNodeSetParams", nullptr, node, p));
}
ECHOLO_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                      const cudaHostNodeParams* p) {
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecHostNodeSetParams", exec, node, p));
}

// ---- children, events, nothing ----
ECHOLO_API cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                  const cudaGraphNode_t* before, std::size_t n,
                                                  cudaGraph_t child) {
  return done(
      add("cudaGraphAddChildGraphNode", node, graph, before, n, cudaGraphNodeTypeGraph, number(child)));
}
ECHOLO_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  if (graph == nullptr) return done(kInvalidValue);
  std::uint64_t child = 0;
  const int error = object_of("cudaGraphChildGraphNodeGetGraph", node, cudaGraphNodeTypeGraph, &child);
  *graph = pointer<cudaGraph_t>(child);
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                            cudaGraph_t child) {
  if (exec == nullptr) return done(kInvalidValue);
  return done(set("cudaGraphExecChildGraphNodeSetParams", exec, node, cudaGraphNodeTypeGraph, number(child)));
}
ECHOLO_API cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                             const cudaGraphNode_t* before, std::size_t n) {
  return done(add("cudaGraphAddEmptyNode", node, graph, before, n, cudaGraphNodeTypeEmpty, std::uint64_t{0}));
}
ECHOLO_API cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                   const cudaGraphNode_t* before, std::size_t n,
                                                   cudaEvent_t event) {
  return done(add("cudaGraphAddEventRecordNode", node, graph, before, n, cudaGraphNodeTypeEventRecord,
                  number(event)));
}
ECHOLO_API cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                                 const cudaGraphNode_t* before, std::size_t n,
                                                 cudaEvent_t event) {
  return done(
      add("cudaGraphAddEventWaitNode", node, graph, before, n, cudaGraphNodeTypeWaitEvent, number(event)));
}
ECHOLO_API cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  if (event == nullptr) return done(kInvalidValue);
  std::uint64_t handle = 0;
  const int error =
      object_of("cudaGraphEventRecordNodeGetEvent", node, cudaGraphNodeTypeEventRecord, &handle);
  *event = pointer<cudaEvent_t>(handle);
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event) {
  if (event == nullptr) return done(kInvalidValue);
  std::uint64_t handle = 0;
  const int error = object_of("cudaGraphEventWaitNodeGetEvent", node, cudaGraphNodeTypeWaitEvent, &handle);
  *event = pointer<cudaEvent_t>(handle);
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return done(
      set("cudaGraphEventRecordNodeSetEvent", nullptr, node, cudaGraphNodeTypeEventRecord, number(event)));
}
ECHOLO_API cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event) {
  return done(
      set("cudaGraphEventWaitNodeSetEvent", nullptr, node, cudaGraphNodeTypeWaitEvent, number(event)));
}
ECHOLO_API cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                            cudaEvent_t event) {
  if (exec == nullptr) return done(kInvalidValue);
  return done(
      set("cudaGraphExecEventRecordNodeSetEvent", exec, node, cudaGraphNodeTypeEventRecord, number(event)));
}
ECHOLO_API cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                          cudaEvent_t event) {
  if (exec == nullptr) return done(kInvalidValue);
  return done(
      set("cudaGraphExecEventWaitNodeSetEvent", exec, node, cudaGraphNodeTypeWaitEvent, number(event)));
}

// ---- any kind ----
ECHOLO_API cudaError_t cudaGraphAddNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* before, const cudaGraphEdgeData* edges,
                                        std::size_t n, cudaGraphNodeParams* p) {
  if (const int error = plain_edges("cudaGraphAddNode", edges, n); error != kSuccess) return done(error);
  const cudaGraphNodeParams* const params = p;
  return done(add("cudaGraphAddNode", node, graph, before, n, params));
}
ECHOLO_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, cudaGraphNodeParams* p) {
  const cudaGraphNodeParams* const params = p;
  return done(set("cudaGraphNodeSetParams", nullptr, node, params));
}
ECHOLO_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                  cudaGraphNodeParams* p) {
  const cudaGraphNodeParams* const params = p;
  return done(exec == nullptr ? kInvalidValue : set("cudaGraphExecNodeSetParams", exec, node, params));
}
ECHOLO_API cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type) {
  if (type == nullptr) return done(kInvalidValue);
  NodeInfo info;
  const int error = read_node("cudaGraphNodeGetType", node, &info);
  if (error == kSuccess) *type = info.type;
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphNodeGetContainingGraph(cudaGraphNode_t node, cudaGraph_t* graph) {
  if (graph == nullptr) return done(kInvalidValue);
  NodeInfo info;
  const int error = read_node("cudaGraphNodeGetContainingGraph", node, &info);
  if (error == kSuccess) *graph = pointer<cudaGraph_t>(info.graph);
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t node,
                                                cudaGraph_t clone) {
  if (found == nullptr) return done(kInvalidValue);
  Call call(wire::Op::kGraphFindInClone, "cudaGraphNodeFindInClone");
  call.in.u64(number(node)).u64(number(clone));
  const int error = call.send();
  if (error == kSuccess) *found = pointer<cudaGraphNode_t>(call.out.u64());
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node) {
  Call call(wire::Op::kGraphDestroyNode, "cudaGraphDestroyNode");
  call.in.u64(number(node));
  return done(call.send());
}
ECHOLO_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned on) {
  return done(enabled("cudaGraphNodeSetEnabled", exec, node, on != 0 ? 1 : 0, nullptr));
}
ECHOLO_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned* on) {
  return done(on == nullptr ? kInvalidValue : enabled("cudaGraphNodeGetEnabled", exec, node, 2, on));
}

// ---- the graph of nodes ----
ECHOLO_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* n) {
  return done(list_nodes("cudaGraphGetNodes", graph, false, nodes, n));
}
ECHOLO_API cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* n) {
  return done(list_nodes("cudaGraphGetRootNodes", graph, true, nodes, n));
}
ECHOLO_API cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                                         cudaGraphEdgeData* edges, std::size_t* n) {
  if (n == nullptr || (from == nullptr) != (to == nullptr)) return done(kInvalidValue);
  Call call(wire::Op::kGraphEdges, "cudaGraphGetEdges");
  call.in.u64(number(graph));
  if (const int error = call.send(); error != kSuccess) return done(error);
  const std::size_t found = call.out.u32();
  const std::size_t told = from == nullptr ? found : std::min(*n, found);
  for (std::size_t i = 0; from != nullptr && i < told; ++i) {
    from[i] = pointer<cudaGraphNode_t>(call.out.u64());
    to[i] = pointer<cudaGraphNode_t>(call.out.u64());
    if (edges != nullptr) edges[i] = {};
  }
  *n = told;
  return cudaSuccess;
}
ECHOLO_API cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t* before,
                                                    cudaGraphEdgeData* edges, std::size_t* n) {
  NodeInfo info;
  if (const int error = read_node("cudaGraphNodeGetDependencies", node, &info); error != kSuccess)
    return done(error);
  const int error = hand_out(info.before, before, n);
  for (std::size_t i = 0; error == kSuccess && edges != nullptr && i < *n; ++i) edges[i] = {};
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t* after,
                                                      cudaGraphEdgeData* edges, std::size_t* n) {
  NodeInfo info;
  if (const int error = read_node("cudaGraphNodeGetDependentNodes", node, &info); error != kSuccess)
    return done(error);
  const int error = hand_out(info.after, after, n);
  for (std::size_t i = 0; error == kSuccess && edges != nullptr && i < *n; ++i) edges[i] = {};
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                                std::size_t n) {
  return done(change_edges("cudaGraphAddDependencies", graph, false, from, to, edges, n));
}
ECHOLO_API cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                                   const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                                   std::size_t n) {
  return done(change_edges("cudaGraphRemoveDependencies", graph, true, from, to, edges, n));
}
