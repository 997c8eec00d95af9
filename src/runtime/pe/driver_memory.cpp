// Memory of the driver API (CUDA driver API, "Memory Management", "Unified Addressing"),
// without arrays.
#include <algorithm>
#include <cstring>

#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

using Class = wire::AllocationClass;

int allocate_at(const char* name, Class kind, CUdeviceptr* out, std::size_t bytes) {
  if (out == nullptr || bytes == 0) return kInvalidValue;
  void* p = nullptr;
  const int error = allocate(name, kind, &p, bytes);
  if (error == kSuccess) *out = device_pointer(p);
  return error;
}

int move(const char* name, const void* to, const void* from, std::size_t n, CUstream stream, Wait wait) {
  return copy(name, const_cast<void*>(to), from, {n, 1, 0, 0}, cudaMemcpyDefault, stream, wait);
}

// The side of a copy that a memory type names; null where it names none, or an array.
const std::uint8_t* side(CUmemorytype type, const void* host, CUdeviceptr device, std::size_t x,
                         std::size_t y, std::size_t pitch) {
  const std::uint64_t base = type == CU_MEMORYTYPE_HOST                                      ? number(host)
                             : type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED ? device
                                                                                             : 0;
  return base == 0 ? nullptr : pointer<const std::uint8_t*>(base + y * pitch + x);
}

int copy_2d(const char* name, const CUDA_MEMCPY2D* c, CUstream stream, Wait wait) {
  if (c == nullptr) return kInvalidValue;
  if (c->srcMemoryType == CU_MEMORYTYPE_ARRAY || c->dstMemoryType == CU_MEMORYTYPE_ARRAY)
    return unsupported(name, "CUDA arrays are not modelled by the virtual node");
  const std::size_t from_pitch = c->srcPitch != 0 ? c->srcPitch : c->WidthInBytes + c->srcXInBytes;
  const std::size_t to_pitch = c->dstPitch != 0 ? c->dstPitch : c->WidthInBytes + c->dstXInBytes;
  const auto* from = side(c->srcMemoryType, c->srcHost, c->srcDevice, c->srcXInBytes, c->srcY, from_pitch);
  const auto* to = side(c->dstMemoryType, c->dstHost, c->dstDevice, c->dstXInBytes, c->dstY, to_pitch);
  return copy(name, const_cast<std::uint8_t*>(to), from, {c->WidthInBytes, c->Height, to_pitch, from_pitch},
              cudaMemcpyDefault, stream, wait);
}

int set(const char* name, CUdeviceptr p, const FillShape& shape, CUstream stream, bool synchronous) {
  const bool waits = synchronous && !in_arena(host_pointer(p));
  return fill(name, host_pointer(p), shape, stream, waits ? Wait::kSync : Wait::kAsync);
}
FillShape line(std::uint8_t element, std::uint32_t value, std::size_t n) {
  return {n * element, n, 1, value, element};
}

int pointer_attribute(void* out, CUpointer_attribute attribute, CUdeviceptr p, bool fail_unknown) {
  PointerInfo info;
  const int error = pointer_info("cuPointerGetAttribute", host_pointer(p), &info);
  if (error != kSuccess) return error;
  const bool known = info.kind != Class::kPageable;
  if (!known && fail_unknown) return kInvalidValue;
  const auto put = [&](auto value) { *static_cast<decltype(value)*>(out) = value; };
  const bool on_host = info.kind == Class::kPinned;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      put(!known ? 0U : static_cast<unsigned>(on_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      put(known ? p : CUdeviceptr{0});
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (known && !on_host && info.kind != Class::kManaged && fail_unknown) return kInvalidValue;
      put(on_host || info.kind == Class::kManaged ? p : CUdeviceptr{0});
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      put(info.kind == Class::kManaged ? 1U : 0U);
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: {
      int device = 0;
      cudaGetDevice(&device);
      put(known ? device : -2);
      return kSuccess;
    }
    case CU_POINTER_ATTRIBUTE_CONTEXT: {
      CUcontext context = nullptr;
      if (known) cuCtxGetCurrent(&context);
      put(context);
      return kSuccess;
    }
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      put(static_cast<unsigned long long>(info.base));
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      put(CUdeviceptr{info.base});
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      put(static_cast<std::size_t>(info.size));
      return kSuccess;
    case CU_POINTER_ATTRIBUTE_MAPPED:
      put(known ? 1U : 0U);
      return kSuccess;
    default:
      return unsupported("cuPointerGetAttribute", "attribute " + std::to_string(static_cast<int>(attribute)) +
                                                      " is not modelled by the virtual node");
  }
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

// ---- allocation ----
ECHOLO_API CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return in_context([&] { return memory_info("cuMemGetInfo", free, total); });
}
ECHOLO_API CUresult cuMemAlloc(CUdeviceptr* p, std::size_t bytes) {
  return in_context([&] { return allocate_at("cuMemAlloc", Class::kDevice, p, bytes); });
}
ECHOLO_API CUresult cuMemAllocPitch(CUdeviceptr* p, std::size_t* pitch, std::size_t width, std::size_t height,
                                    unsigned element) {
  if (pitch == nullptr || (element != 4 && element != 8 && element != 16)) return CUDA_ERROR_INVALID_VALUE;
  *pitch = (width + 511) / 512 * 512;
  return in_context([&] { return allocate_at("cuMemAllocPitch", Class::kDevice, p, *pitch * height); });
}
ECHOLO_API CUresult cuMemAllocManaged(CUdeviceptr* p, std::size_t bytes, unsigned flags) {
  if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return allocate_at("cuMemAllocManaged", Class::kManaged, p, bytes); });
}
ECHOLO_API CUresult cuMemFree(CUdeviceptr p) {
  return in_context([&] { return release("cuMemFree", Class::kDevice, host_pointer(p)); });
}
ECHOLO_API CUresult cuMemAllocHost(void** p, std::size_t bytes) {
  return in_context([&] { return allocate("cuMemAllocHost", Class::kPinned, p, bytes); });
}
ECHOLO_API CUresult cuMemHostAlloc(void** p, std::size_t bytes, unsigned flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  if ((flags & ~kKnown) != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return allocate("cuMemHostAlloc", Class::kPinned, p, bytes); });
}
ECHOLO_API CUresult cuMemFreeHost(void* p) {
  return in_context([&] { return release("cuMemFreeHost", Class::kPinned, p); });
}
ECHOLO_API CUresult cuMemHostGetDevicePointer(CUdeviceptr* device, void* host, unsigned flags) {
  if (device == nullptr || flags != 0 || !in_host_range(host)) return CUDA_ERROR_INVALID_VALUE;
  *device = device_pointer(host);
  return entered();
}
ECHOLO_API CUresult cuMemHostGetFlags(unsigned* flags, void* host) {
  if (flags == nullptr || !in_host_range(host)) return CUDA_ERROR_INVALID_VALUE;
  *flags = CU_MEMHOSTALLOC_DEVICEMAP;
  return entered();
}
ECHOLO_API CUresult cuMemGetAddressRange(CUdeviceptr* base, std::size_t* size, CUdeviceptr p) {
  return in_context([&]() -> int {
    PointerInfo info;
    const int error = pointer_info("cuMemGetAddressRange", host_pointer(p), &info);
    if (error != kSuccess) return error;
    if (info.kind == Class::kPageable) return CUDA_ERROR_NOT_FOUND;
    if (base != nullptr) *base = info.base;
    if (size != nullptr) *size = info.size;
    return kSuccess;
  });
}
ECHOLO_API CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr p) {
  if (data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return pointer_attribute(data, attribute, p, true); });
}
ECHOLO_API CUresult cuPointerGetAttributes(unsigned n, CUpointer_attribute* attributes, void** data,
                                           CUdeviceptr p) {
  if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    for (unsigned i = 0; i < n; ++i) {
      if (const int error = pointer_attribute(data[i], attributes[i], p, false); error != kSuccess)
        return error;
    }
    return kSuccess;
  });
}

// ---- copies ----
ECHOLO_API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t n) {
  return in_context(
      [&] { return move("cuMemcpy", host_pointer(to), host_pointer(from), n, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream stream) {
  return in_context(
      [&] { return move("cuMemcpyAsync", host_pointer(to), host_pointer(from), n, stream, Wait::kAsync); });
}
ECHOLO_API CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t n) {
  return in_context([&] { return move("cuMemcpyHtoD", host_pointer(to), from, n, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t n, CUstream stream) {
  return in_context(
      [&] { return move("cuMemcpyHtoDAsync", host_pointer(to), from, n, stream, Wait::kAsync); });
}
ECHOLO_API CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t n) {
  return in_context([&] { return move("cuMemcpyDtoH", to, host_pointer(from), n, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t n, CUstream stream) {
  return in_context(
      [&] { return move("cuMemcpyDtoHAsync", to, host_pointer(from), n, stream, Wait::kAsync); });
}
ECHOLO_API CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t n) {
  return in_context(
      [&] { return move("cuMemcpyDtoD", host_pointer(to), host_pointer(from), n, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, std::size_t n, CUstream stream) {
  return in_context([&] {
    return move("cuMemcpyDtoDAsync", host_pointer(to), host_pointer(from), n, stream, Wait::kAsync);
  });
}
ECHOLO_API CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t n) {
  return in_context(
      [&] { return move("cuMemcpyPeer", host_pointer(to), host_pointer(from), n, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext, CUdeviceptr from, CUcontext, std::size_t n,
                                      CUstream stream) {
  return in_context([&] {
    return move("cuMemcpyPeerAsync", host_pointer(to), host_pointer(from), n, stream, Wait::kAsync);
  });
}
ECHOLO_API CUresult cuMemcpy2D(const CUDA_MEMCPY2D* c) {
  return in_context([&] { return copy_2d("cuMemcpy2D", c, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpy2DUnaligned(const CUDA_MEMCPY2D* c) {
  return in_context([&] { return copy_2d("cuMemcpy2DUnaligned", c, nullptr, Wait::kSync); });
}
ECHOLO_API CUresult cuMemcpy2DAsync(const CUDA_MEMCPY2D* c, CUstream stream) {
  return in_context([&] { return copy_2d("cuMemcpy2DAsync", c, stream, Wait::kAsync); });
}

// ---- fills ----
ECHOLO_API CUresult cuMemsetD8(CUdeviceptr p, unsigned char v, std::size_t n) {
  return in_context([&] { return set("cuMemsetD8", p, line(1, v, n), nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD16(CUdeviceptr p, unsigned short v, std::size_t n) {
  return in_context([&] { return set("cuMemsetD16", p, line(2, v, n), nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD32(CUdeviceptr p, unsigned v, std::size_t n) {
  return in_context([&] { return set("cuMemsetD32", p, line(4, v, n), nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD8Async(CUdeviceptr p, unsigned char v, std::size_t n, CUstream stream) {
  return in_context([&] { return set("cuMemsetD8Async", p, line(1, v, n), stream, false); });
}
ECHOLO_API CUresult cuMemsetD16Async(CUdeviceptr p, unsigned short v, std::size_t n, CUstream stream) {
  return in_context([&] { return set("cuMemsetD16Async", p, line(2, v, n), stream, false); });
}
ECHOLO_API CUresult cuMemsetD32Async(CUdeviceptr p, unsigned v, std::size_t n, CUstream stream) {
  return in_context([&] { return set("cuMemsetD32Async", p, line(4, v, n), stream, false); });
}
ECHOLO_API CUresult cuMemsetD2D8(CUdeviceptr p, std::size_t pitch, unsigned char v, std::size_t width,
                                 std::size_t height) {
  return in_context([&] { return set("cuMemsetD2D8", p, {pitch, width, height, v, 1}, nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD2D16(CUdeviceptr p, std::size_t pitch, unsigned short v, std::size_t width,
                                  std::size_t height) {
  return in_context([&] { return set("cuMemsetD2D16", p, {pitch, width, height, v, 2}, nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD2D32(CUdeviceptr p, std::size_t pitch, unsigned v, std::size_t width,
                                  std::size_t height) {
  return in_context([&] { return set("cuMemsetD2D32", p, {pitch, width, height, v, 4}, nullptr, true); });
}
ECHOLO_API CUresult cuMemsetD2D8Async(CUdeviceptr p, std::size_t pitch, unsigned char v, std::size_t width,
                                      std::size_t height, CUstream stream) {
  return in_context([&] { return set("cuMemsetD2D8Async", p, {pitch, width, height, v, 1}, stream, false); });
}
ECHOLO_API CUresult cuMemsetD2D16Async(CUdeviceptr p, std::size_t pitch, unsigned short v, std::size_t width,
                                       std::size_t height, CUstream stream) {
  return in_context([&] {
    return set("cuMemsetD2D16Async", p, {pitch, width, height, v, 2}, stream, false);
  });
}
ECHOLO_API CUresult cuMemsetD2D32Async(CUdeviceptr p, std::size_t pitch, unsigned v, std::size_t width,
                                       std::size_t height, CUstream stream) {
  return in_context([&] {
    return set("cuMemsetD2D32Async", p, {pitch, width, height, v, 4}, stream, false);
  });
}
