// Stream-ordered allocation and memory pools (CUDA runtime API, "Stream Ordered Memory Allocator"; the driver
// API's functions of the same names).
#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

constexpr std::uint64_t kDefaultPool = 1;
std::uint64_t g_current = kDefaultPool;  // of the device

std::uint64_t handle_of(const void* pool) { return number(pool); }

int pool_call(const char* name, wire::PoolCall what, std::uint64_t pool, std::uint64_t attribute,
              std::uint64_t value, std::uint64_t* result = nullptr) {
  if (const int error = ready(); error != kSuccess) return error;
  Call call(wire::Op::kPool, name);
  call.in.u8(static_cast<std::uint8_t>(what)).u64(pool).u64(attribute).u64(value);
  const int error = call.send();
  if (error == kSuccess && result != nullptr) *result = call.out.u64();
  return error;
}

// The reuse switches are ints, the rest are 64 bits wide; the numbers of both APIs agree.
bool is_switch(int attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

int set_attribute(const char* name, std::uint64_t pool, int attribute, const void* value) {
  if (value == nullptr) return kInvalidValue;
  const std::uint64_t number_given = is_switch(attribute)
                                         ? static_cast<std::uint64_t>(*static_cast<const int*>(value))
                                         : *static_cast<const std::uint64_t*>(value);
  return pool_call(name, wire::PoolCall::kSet, pool, static_cast<std::uint64_t>(attribute), number_given);
}

int get_attribute(const char* name, std::uint64_t pool, int attribute, void* value) {
  if (value == nullptr) return kInvalidValue;
  std::uint64_t found = 0;
  const int error =
      pool_call(name, wire::PoolCall::kGet, pool, static_cast<std::uint64_t>(attribute), 0, &found);
  if (error != kSuccess) return error;
  if (is_switch(attribute)) {
    *static_cast<int*>(value) = static_cast<int>(found);
  } else {
    *static_cast<std::uint64_t*>(value) = found;
  }
  return kSuccess;
}

template <typename Props>
int create(const char* name, const Props* props, std::uint64_t* pool) {
  if (props == nullptr || static_cast<int>(props->allocType) != static_cast<int>(cudaMemAllocationTypePinned))
    return kInvalidValue;
  if (static_cast<int>(props->handleTypes) != 0)
    return unsupported(name, "pools that other processes can open are not modelled");
  if (static_cast<int>(props->location.type) != static_cast<int>(cudaMemLocationTypeDevice))
    return unsupported(name, "pools of host memory are not modelled");
  if (props->location.id < 0 || props->location.id >= device_count()) return kInvalidValue;
  return pool_call(name, wire::PoolCall::kCreate, 0, 0, props->maxSize, pool);
}

int destroy(const char* name, std::uint64_t pool) {
  const int error = pool_call(name, wire::PoolCall::kDestroy, pool, 0, 0);
  if (error == kSuccess && g_current == pool) g_current = kDefaultPool;
  return error;
}

int make_current(const char* name, int device, std::uint64_t pool) {
  if (device < 0 || device >= device_count()) return kInvalidDevice;
  // Asking for an attribute tells whether there is such a pool.
  std::uint64_t ignored = 0;
  const int error = pool_call(name, wire::PoolCall::kGet, pool, cudaMemPoolAttrReleaseThreshold, 0, &ignored);
  if (error == kSuccess) g_current = pool;
  return error;
}

}  // namespace

std::uint64_t current_pool() { return g_current; }

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaMallocAsync(void** p, std::size_t bytes, cudaStream_t) {
  return done(allocate("cudaMallocAsync", wire::AllocationClass::kAsync, p, bytes, current_pool()));
}
ECHOLO_API cudaError_t cudaMallocFromPoolAsync(void** p, std::size_t bytes, cudaMemPool_t pool,
                                               cudaStream_t) {
  return done(allocate("cudaMallocFromPoolAsync", wire::AllocationClass::kAsync, p, bytes, handle_of(pool)));
}
ECHOLO_API cudaError_t cudaFreeAsync(void* p, cudaStream_t stream) {
  return done(release_async("cudaFreeAsync", p, stream));
}
ECHOLO_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  if (pool == nullptr) return done(kInvalidValue);
  if (device < 0 || device >= device_count()) return done(kInvalidDevice);
  *pool = pointer<cudaMemPool_t>(kDefaultPool);
  return done(kSuccess);
}
ECHOLO_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  if (pool == nullptr) return done(kInvalidValue);
  if (device < 0 || device >= device_count()) return done(kInvalidDevice);
  *pool = pointer<cudaMemPool_t>(current_pool());
  return done(kSuccess);
}
ECHOLO_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return done(make_current("cudaDeviceSetMemPool", device, handle_of(pool)));
}
ECHOLO_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  if (pool == nullptr) return done(kInvalidValue);
  std::uint64_t made = 0;
  const int error = create("cudaMemPoolCreate", props, &made);
  if (error == kSuccess) *pool = pointer<cudaMemPool_t>(made);
  return done(error);
}
ECHOLO_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return done(destroy("cudaMemPoolDestroy", handle_of(pool)));
}
ECHOLO_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, std::size_t bytes) {
  return done(pool_call("cudaMemPoolTrimTo", wire::PoolCall::kTrim, handle_of(pool), 0, bytes));
}
ECHOLO_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return done(set_attribute("cudaMemPoolSetAttribute", handle_of(pool), attribute, value));
}
ECHOLO_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute, void* value) {
  return done(get_attribute("cudaMemPoolGetAttribute", handle_of(pool), attribute, value));
}
// A process has one GPU, which reaches its own pools whatever number it goes by.
ECHOLO_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t, const cudaMemAccessDesc* access, std::size_t n) {
  if (access == nullptr && n != 0) return done(kInvalidValue);
  for (std::size_t i = 0; i < n; ++i) {
    if (access[i].flags != cudaMemAccessFlagsProtReadWrite) return done(kInvalidValue);
  }
  return done(kSuccess);
}
ECHOLO_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t, cudaMemLocation*) {
  if (flags == nullptr) return done(kInvalidValue);
  *flags = cudaMemAccessFlagsProtReadWrite;
  return done(kSuccess);
}

// ---- the driver's ----
ECHOLO_API CUresult cuMemAllocAsync(CUdeviceptr* p, std::size_t bytes, CUstream) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    return allocate("cuMemAllocAsync", wire::AllocationClass::kAsync, reinterpret_cast<void**>(p), bytes,
                    current_pool());
  });
}
ECHOLO_API CUresult cuMemAllocFromPoolAsync(CUdeviceptr* p, std::size_t bytes, CUmemoryPool pool, CUstream) {
  if (p == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    return allocate("cuMemAllocFromPoolAsync", wire::AllocationClass::kAsync, reinterpret_cast<void**>(p),
                    bytes, handle_of(pool));
  });
}
ECHOLO_API CUresult cuMemFreeAsync(CUdeviceptr p, CUstream stream) {
  return in_context([&] { return release_async("cuMemFreeAsync", host_pointer(p), stream); });
}
ECHOLO_API CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return result(cudaDeviceGetDefaultMemPool(pool, device));
}
ECHOLO_API CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return result(cudaDeviceGetMemPool(pool, device));
}
ECHOLO_API CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return result(make_current("cuDeviceSetMemPool", device, handle_of(pool)));
}
ECHOLO_API CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  if (pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
  std::uint64_t made = 0;
  const int error = create("cuMemPoolCreate", props, &made);
  if (error == kSuccess) *pool = pointer<CUmemoryPool>(made);
  return result(error);
}
ECHOLO_API CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return result(destroy("cuMemPoolDestroy", handle_of(pool)));
}
ECHOLO_API CUresult cuMemPoolTrimTo(CUmemoryPool pool, std::size_t bytes) {
  return result(pool_call("cuMemPoolTrimTo", wire::PoolCall::kTrim, handle_of(pool), 0, bytes));
}
ECHOLO_API CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return result(set_attribute("cuMemPoolSetAttribute", handle_of(pool), attribute, value));
}
ECHOLO_API CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value) {
  return result(get_attribute("cuMemPoolGetAttribute", handle_of(pool), attribute, value));
}
