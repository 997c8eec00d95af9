// Memory and addresses apart (CUDA driver API, "Virtual Memory Management"). A handle is mapped at one
// address at a time, by the process that made it: sharing memory between PEs is for IPC handles and NVSHMEM.
#include <algorithm>

#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

using What = wire::VirtualCall;
constexpr std::size_t kGranularity = std::size_t{2} << 20U;

int virtual_call(const char* name, What what, std::uint64_t address, std::uint64_t size, std::uint64_t third,
                 std::uint64_t* out = nullptr) {
  Call call(wire::Op::kVirtual, name);
  call.in.u8(static_cast<std::uint8_t>(what)).u64(address).u64(size).u64(third);
  const int error = call.send();
  if (error == kSuccess && out != nullptr) *out = call.out.u64();
  return error;
}

int check(const char* name, const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return kInvalidValue;
  if (prop->location.type != CU_MEM_LOCATION_TYPE_DEVICE)
    return unsupported(name, "physical memory of the host is not modelled");
  return prop->location.id >= 0 && prop->location.id < device_count() ? kSuccess : kInvalidDevice;
}

int set_access(CUdeviceptr p, std::size_t size, const CUmemAccessDesc* access, std::size_t n) {
  const char* const name = "cuMemSetAccess";
  if (access == nullptr || n == 0) return kInvalidValue;
  bool allowed = false;
  for (std::size_t i = 0; i < n; ++i) {
    if (access[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE || access[i].location.id < 0 ||
        access[i].location.id >= device_count())
      return unsupported(name, "access by others than the PE's GPU is not modelled");
    if (access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READ)
      return unsupported(name, "memory that can only be read is not modelled");
    allowed = allowed || access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  }
  return virtual_call(name, What::kAccess, p, size, allowed ? 1 : 0);
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp* prop,
                                                  CUmemAllocationGranularity_flags) {
  if (granularity == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    *granularity = kGranularity;
    return check("cuMemGetAllocationGranularity", prop);
  });
}
// Where the addresses lie is the node's choice: a wish is a hint.
ECHOLO_API CUresult cuMemAddressReserve(CUdeviceptr* p, std::size_t size, std::size_t alignment, CUdeviceptr,
                                        unsigned long long flags) {
  if (p == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t base = 0;
    const int error = virtual_call("cuMemAddressReserve", What::kReserve, 0, size, alignment, &base);
    if (error == kSuccess) *p = base;
    return error;
  });
}
ECHOLO_API CUresult cuMemAddressFree(CUdeviceptr p, std::size_t size) {
  return in_context([&] { return virtual_call("cuMemAddressFree", What::kUnreserve, p, size, 0); });
}
ECHOLO_API CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size,
                                const CUmemAllocationProp* prop, unsigned long long flags) {
  if (handle == nullptr || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t made = 0;
    int error = check("cuMemCreate", prop);
    if (error == kSuccess) error = virtual_call("cuMemCreate", What::kCreate, 0, size, 0, &made);
    if (error == kSuccess) *handle = made;
    return error;
  });
}
ECHOLO_API CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return in_context([&] { return virtual_call("cuMemRelease", What::kRelease, handle, 0, 0); });
}
ECHOLO_API CUresult cuMemMap(CUdeviceptr p, std::size_t size, std::size_t offset,
                             CUmemGenericAllocationHandle handle, unsigned long long flags) {
  if (offset != 0 || flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return virtual_call("cuMemMap", What::kMap, p, size, handle); });
}
ECHOLO_API CUresult cuMemUnmap(CUdeviceptr p, std::size_t size) {
  return in_context([&] { return virtual_call("cuMemUnmap", What::kUnmap, p, size, 0); });
}
ECHOLO_API CUresult cuMemSetAccess(CUdeviceptr p, std::size_t size, const CUmemAccessDesc* access,
                                   std::size_t n) {
  return in_context([&] { return set_access(p, size, access, n); });
}
ECHOLO_API CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location, CUdeviceptr p) {
  if (flags == nullptr || location == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t allowed = 0;
    const int error = virtual_call("cuMemGetAccess", What::kAccessOf, p, 0, 0, &allowed);
    if (error == kSuccess)
      *flags = allowed != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return error;
  });
}
ECHOLO_API CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle, void* p) {
  if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t found = 0;
    const int error = virtual_call("cuMemRetainAllocationHandle", What::kHandleOf, number(p), 0, 0, &found);
    if (error == kSuccess) *handle = found;
    return error;
  });
}
ECHOLO_API CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                           CUmemGenericAllocationHandle handle) {
  if (prop == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    std::uint64_t size = 0;
    *prop = {};
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    cudaGetDevice(&prop->location.id);
    return virtual_call("cuMemGetAllocationPropertiesFromHandle", What::kSizeOf, handle, 0, 0, &size);
  });
}
namespace {
CUresult not_shared(const char* name) {
  unsupported(
      name,
      "memory of cuMemCreate can't be shared between PEs on the virtual node: use cudaIpcGetMemHandle "
      "or NVSHMEM's symmetric heap");
  return CUDA_ERROR_NOT_SUPPORTED;
}
}  // namespace
ECHOLO_API CUresult cuMemExportToShareableHandle(void*, CUmemGenericAllocationHandle,
                                                 CUmemAllocationHandleType, unsigned long long) {
  return not_shared("cuMemExportToShareableHandle");
}
ECHOLO_API CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle*, void*,
                                                   CUmemAllocationHandleType) {
  return not_shared("cuMemImportFromShareableHandle");
}
