// Graphs by stream capture, their executable form and their life. Nodes: graph_nodes.cpp.
#include "runtime/pe/graph_nodes.hpp"

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace {

int instantiate(const char* name, cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  if (exec == nullptr) return kInvalidValue;
  constexpr unsigned long long kHints = cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                        cudaGraphInstantiateFlagUseNodePriority |
                                        cudaGraphInstantiateFlagUpload;
  if ((flags & ~kHints) != 0) return unsupported(name, "graphs launched from the device are not modelled");
  Call call(wire::Op::kGraphInstantiate, name);
  call.in.u64(number(graph));
  const int error = call.send();
  if (error == kSuccess) *exec = pointer<cudaGraphExec_t>(call.out.u64());
  return error;
}

int one(wire::Op op, const char* name, std::uint64_t handle) {
  Call call(op, name);
  call.in.u64(handle);
  return call.send();
}

}  // namespace

ECHOLO_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) return done(kInvalidValue);
  if (const int error = ready(); error != kSuccess) return done(error);
  Call call(wire::Op::kCaptureBegin, "cudaStreamBeginCapture");
  call.in.u64(number(stream)).u32(static_cast<std::uint32_t>(mode));
  return done(call.send());
}

ECHOLO_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  if (graph == nullptr) return done(kInvalidValue);
  *graph = nullptr;
  Call call(wire::Op::kCaptureEnd, "cudaStreamEndCapture");
  call.in.u64(number(stream));
  const int error = call.send();
  if (error == kSuccess) *graph = pointer<cudaGraph_t>(call.out.u64());
  return done(error);
}

ECHOLO_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return cudaStreamGetCaptureInfo(stream, status, nullptr, nullptr, nullptr, nullptr, nullptr);
}

ECHOLO_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                                unsigned long long* id, cudaGraph_t* graph,
                                                const cudaGraphNode_t** dependencies,
                                                const cudaGraphEdgeData** edges,
                                                std::size_t* n_dependencies) {
  if (status == nullptr) return done(kInvalidValue);
  if (const int error = ready(); error != kSuccess) return done(error);
  Call call(wire::Op::kCaptureInfo, "cudaStreamGetCaptureInfo");
  call.in.u64(number(stream));
  const int error = call.send();
  if (error != kSuccess) return done(error);
  *status = static_cast<cudaStreamCaptureStatus>(call.out.u32());
  const std::uint64_t number_of_capture = call.out.u64(), graph_handle = call.out.u64();
  if (*status != cudaStreamCaptureStatusActive) return cudaSuccess;
  if (id != nullptr) *id = number_of_capture;
  if (graph != nullptr) *graph = pointer<cudaGraph_t>(graph_handle);
  // Stays valid until the thread asks again.
  static thread_local std::vector<cudaGraphNode_t> before;
  before = read_nodes(call.out);
  if (dependencies != nullptr) *dependencies = before.data();
  if (edges != nullptr) *edges = nullptr;
  if (n_dependencies != nullptr) *n_dependencies = before.size();
  return cudaSuccess;
}

ECHOLO_API cudaError_t cudaStreamUpdateCaptureDependencies(cudaStream_t stream, cudaGraphNode_t* nodes,
                                                           const cudaGraphEdgeData* edges, std::size_t n,
                                                           unsigned flags) {
  const char* const name = "cudaStreamUpdateCaptureDependencies";
  if (flags > cudaStreamSetCaptureDependencies || (nodes == nullptr && n != 0)) return done(kInvalidValue);
  if (const int error = plain_edges(name, edges, n); error != kSuccess) return done(error);
  Call call(wire::Op::kCaptureDepend, name);
  call.in.u64(number(stream)).u8(flags == cudaStreamSetCaptureDependencies ? 1 : 0);
  write_nodes(call.in, nodes, n);
  return done(call.send());
}

ECHOLO_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  if (mode == nullptr) return done(kInvalidValue);
  Call call(wire::Op::kCaptureMode, "cudaThreadExchangeStreamCaptureMode");
  call.in.u32(static_cast<std::uint32_t>(*mode));
  const int error = call.send();
  if (error == kSuccess) *mode = static_cast<cudaStreamCaptureMode>(call.out.u32());
  return done(error);
}

ECHOLO_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                            unsigned long long flags) {
  return done(instantiate("cudaGraphInstantiate", exec, graph, flags));
}
ECHOLO_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                     unsigned long long flags) {
  return done(instantiate("cudaGraphInstantiateWithFlags", exec, graph, flags));
}

ECHOLO_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  Call call(wire::Op::kGraphLaunch, "cudaGraphLaunch");
  call.in.u64(number(exec)).u64(number(stream));
  return done(call.send());
}

ECHOLO_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t) {
  return done(exec == nullptr ? kInvalidValue
                              : kSuccess);  // moves nothing that the virtual node keeps elsewhere
}

ECHOLO_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return done(one(wire::Op::kGraphDestroy, "cudaGraphDestroy", number(graph)));
}
ECHOLO_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return done(one(wire::Op::kGraphExecDestroy, "cudaGraphExecDestroy", number(exec)));
}

ECHOLO_API cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned flags) {
  if (graph == nullptr || flags != 0) return done(kInvalidValue);
  if (const int error = ready(); error != kSuccess) return done(error);
  Call call(wire::Op::kGraphCreate, "cudaGraphCreate");
  const int error = call.send();
  if (error == kSuccess) *graph = pointer<cudaGraph_t>(call.out.u64());
  return done(error);
}
ECHOLO_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph) {
  if (clone == nullptr) return done(kInvalidValue);
  Call call(wire::Op::kGraphClone, "cudaGraphClone");
  call.in.u64(number(graph));
  const int error = call.send();
  if (error == kSuccess) *clone = pointer<cudaGraph_t>(call.out.u64());
  return done(error);
}

// The whole of another graph of the same shape; executions that were launched before keep what they had.
ECHOLO_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                           cudaGraphExecUpdateResultInfo* result) {
  Call call(wire::Op::kGraphUpdate, "cudaGraphExecUpdate");
  call.in.u64(number(exec)).u64(number(graph));
  const int error = call.send();
  const auto how = static_cast<cudaGraphExecUpdateResult>(call.out.u8());
  const std::uint64_t node = call.out.u64();
  if (result != nullptr) {
    *result = {};
    result->result = error != kSuccess && how == cudaGraphExecUpdateSuccess ? cudaGraphExecUpdateError : how;
    result->errorNode = pointer<cudaGraphNode_t>(node);
  }
  return done(error);
}
