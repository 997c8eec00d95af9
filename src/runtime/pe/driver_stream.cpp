// Streams, events and memory operations of streams (CUDA driver API, "Stream Management", "Event Management",
// "Stream Memory Operations").
#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

// What the node knows of a word in memory that a stream waits for or writes.
struct WordOperation {
  bool write = false;
  std::uint64_t address = 0, value = 0;
  std::uint8_t bytes = 4;
  unsigned flags = 0;
};

int word_operation(const char* name, CUstream stream, const WordOperation& op) {
  constexpr unsigned kComparisons =
      CU_STREAM_WAIT_VALUE_GEQ | CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_AND;
  // Device memory is flushed or not at a barrier that only matters for writes from outside the GPU.
  const unsigned flags = op.write ? op.flags & ~static_cast<unsigned>(CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER)
                                  : op.flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
  if (!op.write && flags == CU_STREAM_WAIT_VALUE_NOR)
    return unsupported(name, "CU_STREAM_WAIT_VALUE_NOR is not modelled by the virtual node");
  if ((op.write && flags != 0) || (flags & ~kComparisons) != 0 || op.address % op.bytes != 0)
    return kInvalidValue;
  const void* p = pointer<const void*>(op.address);
  if (!in_arena(p) && !in_host_range(p)) return kInvalidValue;
  Call call(wire::Op::kStreamWord, name);
  const bool orders = !op.write || (op.flags & CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER) == 0;
  call.in.u64(number(stream)).u64(op.address).u64(op.value).u8(op.bytes).u8(op.write ? 1 : 0);
  call.in.u8(static_cast<std::uint8_t>(flags)).u8(orders ? 1 : 0);
  return call.send();
}

int batch(CUstream stream, unsigned n, const CUstreamBatchMemOpParams* params) {
  const char* const name = "cuStreamBatchMemOp";
  if (params == nullptr || n > 256) return kInvalidValue;
  for (unsigned i = 0; i < n; ++i) {
    const CUstreamBatchMemOpParams& one = params[i];
    const auto& wait = one.waitValue;
    const auto& write = one.writeValue;
    int error = kSuccess;
    switch (one.operation) {
      case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        error = word_operation(name, stream, {false, wait.address, wait.value, 4, wait.flags});
        break;
      case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        error = word_operation(name, stream, {false, wait.address, wait.value64, 8, wait.flags});
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        error = word_operation(name, stream, {true, write.address, write.value, 4, write.flags});
        break;
      case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        error = word_operation(name, stream, {true, write.address, write.value64, 8, write.flags});
        break;
      case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        break;
      default:
        error = unsupported(name, "operation " + std::to_string(static_cast<int>(one.operation)) +
                                      " is not modelled by the virtual node");
    }
    if (error != kSuccess) return error;
  }
  return kSuccess;
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

// ---- streams ----
ECHOLO_API CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return in_context([&] { return make_stream("cuStreamCreate", stream, flags, 0); });
}
ECHOLO_API CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return in_context([&] { return make_stream("cuStreamCreateWithPriority", stream, flags, priority); });
}
ECHOLO_API CUresult cuStreamDestroy(CUstream stream) {
  return in_context([&] { return simple(wire::Op::kStreamDestroy, "cuStreamDestroy", number(stream)); });
}
ECHOLO_API CUresult cuStreamSynchronize(CUstream stream) {
  return in_context([&] { return simple(wire::Op::kStreamSync, "cuStreamSynchronize", number(stream)); });
}
ECHOLO_API CUresult cuStreamQuery(CUstream stream) {
  return in_context([&] { return simple(wire::Op::kStreamQuery, "cuStreamQuery", number(stream)); });
}
ECHOLO_API CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  if (flags > CU_EVENT_WAIT_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t external = flags;
  return in_context([&] {
    return simple(wire::Op::kStreamWaitEvent, "cuStreamWaitEvent", number(stream), number(event), external);
  });
}
ECHOLO_API CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return stream_info("cuStreamGetPriority", stream, nullptr, priority, nullptr); });
}
ECHOLO_API CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return stream_info("cuStreamGetFlags", stream, flags, nullptr, nullptr); });
}
ECHOLO_API CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return stream_info("cuStreamGetId", stream, nullptr, nullptr, id); });
}
ECHOLO_API CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  if (context == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult found = in_context([&] { return stream_info("cuStreamGetCtx", stream, {}, {}, {}); });
  return found != CUDA_SUCCESS ? found : cuCtxGetCurrent(context);
}
ECHOLO_API CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                                        unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    return host_function("cuStreamAddCallback", stream, reinterpret_cast<std::uint64_t>(callback), data,
                         true);
  });
}
ECHOLO_API CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return in_context([&] {
    return host_function("cuLaunchHostFunc", stream, reinterpret_cast<std::uint64_t>(function), data, false);
  });
}

// ---- capture: the graphs are the runtime's ----
ECHOLO_API CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  return in_context([&] { return cudaStreamBeginCapture(stream, static_cast<cudaStreamCaptureMode>(mode)); });
}
ECHOLO_API CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return in_context([&] { return cudaStreamEndCapture(stream, graph); });
}
ECHOLO_API CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return in_context(
      [&] { return cudaStreamIsCapturing(stream, reinterpret_cast<cudaStreamCaptureStatus*>(status)); });
}
ECHOLO_API CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return in_context(
      [&] { return cudaThreadExchangeStreamCaptureMode(reinterpret_cast<cudaStreamCaptureMode*>(mode)); });
}
ECHOLO_API CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return in_context([&] { return cudaGraphInstantiate(exec, graph, flags); });
}
ECHOLO_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return in_context([&] { return cudaGraphLaunch(exec, stream); });
}
ECHOLO_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream) {
  return in_context([&] { return cudaGraphUpload(exec, stream); });
}
ECHOLO_API CUresult cuGraphDestroy(CUgraph graph) {
  return in_context([&] { return cudaGraphDestroy(graph); });
}
ECHOLO_API CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return in_context([&] { return cudaGraphExecDestroy(exec); });
}

// ---- events ----
ECHOLO_API CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return in_context([&] { return make_event("cuEventCreate", event, flags); });
}
ECHOLO_API CUresult cuEventDestroy(CUevent event) {
  return in_context([&] { return simple(wire::Op::kEventDestroy, "cuEventDestroy", number(event)); });
}
ECHOLO_API CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  if (flags > CU_EVENT_RECORD_EXTERNAL) return CUDA_ERROR_INVALID_VALUE;
  const std::uint64_t external = flags;
  return in_context([&] {
    return simple(wire::Op::kEventRecord, "cuEventRecord", number(event), number(stream), external);
  });
}
ECHOLO_API CUresult cuEventRecord(CUevent event, CUstream stream) {
  return cuEventRecordWithFlags(event, stream, 0);
}
ECHOLO_API CUresult cuEventSynchronize(CUevent event) {
  return in_context([&] { return simple(wire::Op::kEventSync, "cuEventSynchronize", number(event)); });
}
ECHOLO_API CUresult cuEventQuery(CUevent event) {
  return in_context([&] { return simple(wire::Op::kEventQuery, "cuEventQuery", number(event)); });
}
ECHOLO_API CUresult cuEventElapsedTime(float* ms, CUevent start, CUevent end) {
  return in_context([&] { return event_time("cuEventElapsedTime", ms, start, end); });
}

// ---- words in memory ----
ECHOLO_API CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr p, cuuint32_t v, unsigned flags) {
  return in_context([&] { return word_operation("cuStreamWaitValue32", stream, {false, p, v, 4, flags}); });
}
ECHOLO_API CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr p, cuuint64_t v, unsigned flags) {
  return in_context([&] { return word_operation("cuStreamWaitValue64", stream, {false, p, v, 8, flags}); });
}
ECHOLO_API CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr p, cuuint32_t v, unsigned flags) {
  return in_context([&] { return word_operation("cuStreamWriteValue32", stream, {true, p, v, 4, flags}); });
}
ECHOLO_API CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr p, cuuint64_t v, unsigned flags) {
  return in_context([&] { return word_operation("cuStreamWriteValue64", stream, {true, p, v, 8, flags}); });
}
ECHOLO_API CUresult cuStreamBatchMemOp(CUstream stream, unsigned n, CUstreamBatchMemOpParams* params,
                                       unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return batch(stream, n, params); });
}
