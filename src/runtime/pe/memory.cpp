// Allocation of device, pinned, mapped and managed memory.
#include <cstring>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {

int allocate(const char* name, wire::AllocationClass kind, void** pointer_out, std::size_t bytes,
             std::uint64_t pool) {
  if (pointer_out == nullptr) return kInvalidValue;
  *pointer_out = nullptr;
  if (const int error = ready(); error != kSuccess) return error;
  if (bytes == 0) return kind == wire::AllocationClass::kManaged ? kInvalidValue : kSuccess;
  Call call(wire::Op::kAllocate, name);
  call.in.u8(static_cast<std::uint8_t>(kind)).u64(bytes).u64(pool);
  const int error = call.send();
  if (error == kSuccess) *pointer_out = pointer<void*>(call.out.u64());
  return error;
}

int release(const char* name, wire::AllocationClass kind, void* p) {
  if (p == nullptr) return kSuccess;
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kFree, name);
  call.in.u8(static_cast<std::uint8_t>(kind)).u64(number(p));
  return call.send();
}

int release_async(const char* name, void* p, cudaStream_t stream) {
  if (p == nullptr) return kInvalidValue;
  Call call(wire::Op::kFreeAsync, name);
  call.in.u64(number(p)).u64(number(stream));
  return call.send();
}

int pointer_info(const char* name, const void* p, PointerInfo* info) {
  *info = {};
  if (!in_arena(p) && !in_host_range(p)) return kSuccess;
  Call call(wire::Op::kPointerInfo, name);
  call.in.u64(number(p));
  if (const int error = call.send(); error != kSuccess) return error;
  info->kind = call.out.choice(wire::AllocationClass::kAsync);
  info->base = call.out.u64();
  info->size = call.out.u64();
  return kSuccess;
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaMalloc(void** p, std::size_t bytes) {
  return done(allocate("cudaMalloc", wire::AllocationClass::kDevice, p, bytes));
}

ECHOLO_API cudaError_t cudaFree(void* p) {
  return done(release("cudaFree", wire::AllocationClass::kDevice, p));
}

ECHOLO_API cudaError_t cudaMallocPitch(void** p, std::size_t* pitch, std::size_t width, std::size_t height) {
  if (pitch == nullptr) return done(kInvalidValue);
  *pitch = (width + 511) / 512 * 512;
  return done(allocate("cudaMallocPitch", wire::AllocationClass::kDevice, p, *pitch * height));
}

ECHOLO_API cudaError_t cudaMallocHost(void** p, std::size_t bytes) {
  return done(allocate("cudaMallocHost", wire::AllocationClass::kPinned, p, bytes));
}

ECHOLO_API cudaError_t cudaHostAlloc(void** p, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
  if ((flags & ~kKnown) != 0) return done(kInvalidValue);
  return done(allocate("cudaHostAlloc", wire::AllocationClass::kPinned, p, bytes));
}

ECHOLO_API cudaError_t cudaFreeHost(void* p) {
  return done(release("cudaFreeHost", wire::AllocationClass::kPinned, p));
}

ECHOLO_API cudaError_t cudaMallocManaged(void** p, std::size_t bytes, unsigned flags) {
  if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost) return done(kInvalidValue);
  return done(allocate("cudaMallocManaged", wire::AllocationClass::kManaged, p, bytes));
}

// Pinned memory has one address on host and device (unified addressing).
ECHOLO_API cudaError_t cudaHostGetDevicePointer(void** device, void* host, unsigned flags) {
  if (device == nullptr || flags != 0) return done(kInvalidValue);
  *device = nullptr;
  if (!in_host_range(host)) return done(kInvalidValue);
  *device = host;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaHostGetFlags(unsigned* flags, void* host) {
  if (flags == nullptr || !in_host_range(host)) return done(kInvalidValue);
  *flags = cudaHostAllocMapped;
  return done(kSuccess);
}

ECHOLO_API cudaError_t cudaHostRegister(void*, std::size_t, unsigned) {
  return done(
      unsupported("cudaHostRegister",
                  "the virtual node can't pin memory that the process has already; use cudaMallocHost"));
}

ECHOLO_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* p) {
  if (attributes == nullptr) return done(kInvalidValue);
  std::memset(attributes, 0, sizeof *attributes);
  attributes->type = cudaMemoryTypeUnregistered;
  attributes->device = -2;  // cudaInvalidDeviceId
  attributes->hostPointer = const_cast<void*>(p);
  if (!in_arena(p) && !in_host_range(p)) return done(kSuccess);
  PointerInfo info;
  if (const int error = pointer_info("cudaPointerGetAttributes", p, &info); error != kSuccess)
    return done(error);
  cudaGetDevice(&attributes->device);
  attributes->devicePointer = const_cast<void*>(p);
  switch (info.kind) {
    case wire::AllocationClass::kDevice:
    case wire::AllocationClass::kAsync:
      attributes->type = cudaMemoryTypeDevice;
      attributes->hostPointer = nullptr;
      break;
    case wire::AllocationClass::kPinned:
      attributes->type = cudaMemoryTypeHost;
      break;
    case wire::AllocationClass::kManaged:
      attributes->type = cudaMemoryTypeManaged;
      break;
    case wire::AllocationClass::kPageable:
      return done(kInvalidValue);
  }
  return done(kSuccess);
}

// Advice moves pages on a real machine and changes no result; managed memory has one copy here.
ECHOLO_API cudaError_t cudaMemAdvise(const void* p, std::size_t, cudaMemoryAdvise, cudaMemLocation) {
  return done(in_host_range(p) ? kSuccess : kInvalidValue);
}
ECHOLO_API cudaError_t cudaMemPrefetchAsync(const void* p, std::size_t, cudaMemLocation, unsigned,
                                            cudaStream_t) {
  return done(in_host_range(p) ? kSuccess : kInvalidValue);
}
