// Streams, events and host functions.
#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

int make_stream(const char* name, cudaStream_t* stream, unsigned flags, int priority) {
  if (stream == nullptr || (flags & ~static_cast<unsigned>(cudaStreamNonBlocking)) != 0) return kInvalidValue;
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kStreamCreate, name);
  call.in.u32(flags).i32(priority);
  const int error = call.send();
  if (error == kSuccess) *stream = pointer<cudaStream_t>(call.out.u64());
  return error;
}

int stream_info(const char* name, cudaStream_t stream, unsigned* flags, int* priority,
                unsigned long long* id) {
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kStreamInfo, name);
  call.in.u64(number(stream));
  const int error = call.send();
  if (error != kSuccess) return error;
  const std::uint32_t f = call.out.u32();
  const std::int32_t p = call.out.i32();
  const std::uint64_t i = call.out.u64();
  if (flags != nullptr) *flags = f;
  if (priority != nullptr) *priority = p;
  if (id != nullptr) *id = i;
  return kSuccess;
}

int make_event(const char* name, cudaEvent_t* event, unsigned flags) {
  if (event == nullptr) return kInvalidValue;
  // CUDA demands that events between processes take no times.
  if ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0) return kInvalidValue;
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kEventCreate, name);
  call.in.u32(flags);
  const int error = call.send();
  if (error == kSuccess) *event = pointer<cudaEvent_t>(call.out.u64());
  return error;
}

void write_host_function(wire::Writer& out, cudaStream_t stream, std::uint64_t function, void* data,
                         bool callback) {
  out.u64(number(stream)).u64(function).u64(number(data)).u8(callback ? 1 : 0);
}

int host_function(const char* name, cudaStream_t stream, std::uint64_t function, void* data, bool callback) {
  if (function == 0) return kInvalidValue;
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kHostFunction, name);
  write_host_function(call.in, stream, function, data, callback);
  return call.send();
}

// Modelled time, from the node's virtual clock: never comparable with a measured one.
int event_time(const char* name, float* ms, cudaEvent_t start, cudaEvent_t end) {
  if (ms == nullptr) return kInvalidValue;
  Call call(wire::Op::kEventElapsed, name);
  call.in.u64(number(start)).u64(number(end));
  const int error = call.send();
  if (error == kSuccess)
    *ms = static_cast<float>(static_cast<double>(static_cast<std::int64_t>(call.out.u64())) * 1e-6);
  return error;
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return done(make_stream("cudaStreamCreate", stream, cudaStreamDefault, 0));
}
ECHOLO_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return done(make_stream("cudaStreamCreateWithFlags", stream, flags, 0));
}
ECHOLO_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  return done(make_stream("cudaStreamCreateWithPriority", stream, flags, priority));
}
ECHOLO_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return done(simple(wire::Op::kStreamDestroy, "cudaStreamDestroy", number(stream)));
}
ECHOLO_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return done(simple(wire::Op::kStreamSync, "cudaStreamSynchronize", number(stream)));
}
ECHOLO_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return done(simple(wire::Op::kStreamQuery, "cudaStreamQuery", number(stream)));
}
ECHOLO_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  if (flags > cudaEventWaitExternal) return done(kInvalidValue);
  const std::uint64_t external = flags == cudaEventWaitExternal ? 1 : 0;
  return done(
      simple(wire::Op::kStreamWaitEvent, "cudaStreamWaitEvent", number(stream), number(event), external));
}
ECHOLO_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return done(flags == nullptr ? kInvalidValue
                               : stream_info("cudaStreamGetFlags", stream, flags, nullptr, nullptr));
}
ECHOLO_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  if (priority == nullptr) return done(kInvalidValue);
  return done(stream_info("cudaStreamGetPriority", stream, nullptr, priority, nullptr));
}
ECHOLO_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return done(id == nullptr ? kInvalidValue : stream_info("cudaStreamGetId", stream, nullptr, nullptr, id));
}
ECHOLO_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  if (device == nullptr) return done(kInvalidValue);
  const int error = stream_info("cudaStreamGetDevice", stream, nullptr, nullptr, nullptr);
  return error == kSuccess ? cudaGetDevice(device) : done(error);
}
ECHOLO_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return done(
      host_function("cudaLaunchHostFunc", stream, reinterpret_cast<std::uint64_t>(function), data, false));
}
ECHOLO_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                             unsigned flags) {
  if (flags != 0) return done(kInvalidValue);
  return done(
      host_function("cudaStreamAddCallback", stream, reinterpret_cast<std::uint64_t>(callback), data, true));
}

ECHOLO_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return done(make_event("cudaEventCreate", event, cudaEventDefault));
}
ECHOLO_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return done(make_event("cudaEventCreateWithFlags", event, flags));
}
ECHOLO_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return done(simple(wire::Op::kEventDestroy, "cudaEventDestroy", number(event)));
}
ECHOLO_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return done(
      simple(wire::Op::kEventRecord, "cudaEventRecord", number(event), number(stream), std::uint64_t{0}));
}
ECHOLO_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags > cudaEventRecordExternal) return done(kInvalidValue);
  const std::uint64_t external = flags;
  return done(
      simple(wire::Op::kEventRecord, "cudaEventRecordWithFlags", number(event), number(stream), external));
}
ECHOLO_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return done(simple(wire::Op::kEventSync, "cudaEventSynchronize", number(event)));
}
ECHOLO_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  return done(simple(wire::Op::kEventQuery, "cudaEventQuery", number(event)));
}
ECHOLO_API cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t start, cudaEvent_t end) {
  return done(event_time("cudaEventElapsedTime", ms, start, end));
}
