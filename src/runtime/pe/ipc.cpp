// Memory and events of other PEs by handles (CUDA runtime API, "Device Management", cudaIpc*; the driver
// API's functions of the same names). A handle is plain bytes that a program passes on as it likes.
#include <cstring>

#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

using What = wire::IpcCall;

struct Handle {
  std::uint64_t magic = 0, owner = 0, a = 0, b = 0;
};
constexpr std::uint64_t kMemoryMagic = 0x4d454d4f52594548ULL, kEventMagic = 0x4556454e54454348ULL;

template <typename Bytes>
void write_handle(Bytes* out, const Handle& handle) {
  static_assert(sizeof handle <= sizeof *out);
  std::memset(out, 0, sizeof *out);
  std::memcpy(out, &handle, sizeof handle);
}
template <typename Bytes>
Handle read_handle(const Bytes& in) {
  Handle handle;
  std::memcpy(static_cast<void*>(&handle), &in, sizeof handle);
  return handle;
}

template <typename Bytes>
int get_memory(const char* name, Bytes* out, const void* p) {
  if (out == nullptr || !in_arena(p)) return kInvalidValue;
  Call call(wire::Op::kIpcMemory, name);
  call.in.u8(static_cast<std::uint8_t>(What::kGet)).u64(number(p)).u64(0);
  if (const int error = call.send(); error != kSuccess) return error;
  Handle handle{kMemoryMagic, static_cast<std::uint64_t>(__cudaEcholoHello()->pe), 0, 0};
  handle.a = call.out.u64();
  handle.b = call.out.u64();
  write_handle(out, handle);
  return kSuccess;
}

template <typename Bytes>
int open_memory(const char* name, std::uint64_t* out, const Bytes& bytes, unsigned flags) {
  const Handle handle = read_handle(bytes);
  if (flags != cudaIpcMemLazyEnablePeerAccess) return kInvalidValue;
  if (handle.magic != kMemoryMagic) return kInvalidResourceHandle;
  Call call(wire::Op::kIpcMemory, name);
  call.in.u8(static_cast<std::uint8_t>(What::kOpen)).u64(handle.a).u64(handle.b);
  const int error = call.send();
  if (error == kSuccess) *out = call.out.u64();
  return error;
}

int close_memory(const char* name, std::uint64_t p) {
  Call call(wire::Op::kIpcMemory, name);
  call.in.u8(static_cast<std::uint8_t>(What::kClose)).u64(p).u64(0);
  return call.send();
}

template <typename Bytes>
int get_event(const char* name, Bytes* out, cudaEvent_t event) {
  if (out == nullptr) return kInvalidValue;
  const Handle handle{kEventMagic, static_cast<std::uint64_t>(__cudaEcholoHello()->pe), number(event), 0};
  Call call(wire::Op::kIpcEvent, name);
  call.in.u8(static_cast<std::uint8_t>(What::kGet)).u64(handle.owner).u64(handle.a);
  const int error = call.send();
  if (error == kSuccess) write_handle(out, handle);
  return error;
}

template <typename Bytes>
int open_event(const char* name, cudaEvent_t* out, const Bytes& bytes) {
  const Handle handle = read_handle(bytes);
  if (out == nullptr) return kInvalidValue;
  if (handle.magic != kEventMagic || handle.owner >= static_cast<std::uint64_t>(__cudaEcholoHello()->n_pes))
    return kInvalidResourceHandle;
  Call call(wire::Op::kIpcEvent, name);
  call.in.u8(static_cast<std::uint8_t>(What::kOpen)).u64(handle.owner).u64(handle.a);
  const int error = call.send();
  if (error == kSuccess) *out = pointer<cudaEvent_t>(call.out.u64());
  return error;
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* p) {
  return done(get_memory("cudaIpcGetMemHandle", handle, p));
}
ECHOLO_API cudaError_t cudaIpcOpenMemHandle(void** p, cudaIpcMemHandle_t handle, unsigned flags) {
  if (p == nullptr) return done(kInvalidValue);
  std::uint64_t address = 0;
  const int error = open_memory("cudaIpcOpenMemHandle", &address, handle, flags);
  if (error == kSuccess) *p = pointer<void*>(address);
  return done(error);
}
ECHOLO_API cudaError_t cudaIpcCloseMemHandle(void* p) {
  return done(close_memory("cudaIpcCloseMemHandle", number(p)));
}
ECHOLO_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event) {
  return done(get_event("cudaIpcGetEventHandle", handle, event));
}
ECHOLO_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle) {
  return done(open_event("cudaIpcOpenEventHandle", event, handle));
}

ECHOLO_API CUresult cuIpcGetMemHandle(CUipcMemHandle* handle, CUdeviceptr p) {
  return in_context([&] { return get_memory("cuIpcGetMemHandle", handle, host_pointer(p)); });
}
ECHOLO_API CUresult cuIpcOpenMemHandle(CUdeviceptr* p, CUipcMemHandle handle, unsigned flags) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t address = 0;
    const int error = open_memory("cuIpcOpenMemHandle", &address, handle, flags);
    if (error == kSuccess) *p = address;
    return error;
  });
}
ECHOLO_API CUresult cuIpcCloseMemHandle(CUdeviceptr p) {
  return in_context([&] { return close_memory("cuIpcCloseMemHandle", p); });
}
ECHOLO_API CUresult cuIpcGetEventHandle(CUipcEventHandle* handle, CUevent event) {
  return in_context([&] { return get_event("cuIpcGetEventHandle", handle, event); });
}
ECHOLO_API CUresult cuIpcOpenEventHandle(CUevent* event, CUipcEventHandle handle) {
  return in_context([&] { return open_event("cuIpcOpenEventHandle", event, handle); });
}
