// Graphs by stream capture. Graphs built node by node are not part of this library: such programs fail to
// link.
#include "runtime/pe/cudart.hpp"

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
  if (graph != nullptr || dependencies != nullptr || edges != nullptr || n_dependencies != nullptr) {
    return done(
        unsupported("cudaStreamGetCaptureInfo", "the nodes of a graph under capture can't be reached"));
  }
  if (const int error = ready(); error != kSuccess) return done(error);
  Call call(wire::Op::kCaptureInfo, "cudaStreamGetCaptureInfo");
  call.in.u64(number(stream));
  const int error = call.send();
  if (error != kSuccess) return done(error);
  *status = static_cast<cudaStreamCaptureStatus>(call.out.u32());
  const std::uint64_t number_of_capture = call.out.u64();
  if (id != nullptr) *id = number_of_capture;
  return done(kSuccess);
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

ECHOLO_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* n_nodes) {
  if (n_nodes == nullptr) return done(kInvalidValue);
  if (nodes != nullptr)
    return done(unsupported("cudaGraphGetNodes", "nodes have no handles; their number is known"));
  Call call(wire::Op::kGraphNodeCount, "cudaGraphGetNodes");
  call.in.u64(number(graph));
  const int error = call.send();
  if (error == kSuccess) *n_nodes = call.out.u64();
  return done(error);
}

ECHOLO_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t, cudaGraph_t,
                                           cudaGraphExecUpdateResultInfo* result) {
  if (result != nullptr) {
    *result = {};
    result->result = cudaGraphExecUpdateErrorNotSupported;
  }
  return done(unsupported("cudaGraphExecUpdate", "instantiate the new graph instead"));
}
