// Initialisation, devices and contexts (CUDA driver API, "Initialization", "Device Management", "Primary
// Context Management", "Context Management"). A PE has one GPU with one context: the primary one, or one that
// the program has made. A second beside it is refused.
#include <pthread.h>

#include <cstdio>
#include <cstring>
#include <vector>

#include "runtime/pe/driver.hpp"

struct CUctx_st {
  bool live = false, primary = false;
  int device = 0;
  unsigned flags = 0;
  int retained = 0;
};

namespace echolo::runtime::pe {
namespace {

constexpr unsigned kContextFlags = CU_CTX_FLAGS_MASK;

bool g_initialised = false;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
CUctx_st g_primary{false, true, 0, 0, 0};
CUctx_st g_made;  // one at a time

struct Lock {
  Lock() { pthread_mutex_lock(&g_lock); }
  ~Lock() { pthread_mutex_unlock(&g_lock); }
};

// The stack of current contexts. Never freed: destructors of other objects of the thread still make calls.
thread_local std::vector<CUcontext>* t_stack = nullptr;
std::vector<CUcontext>& stack() {
  if (t_stack == nullptr) t_stack = new std::vector<CUcontext>;  // NOLINT(cppcoreguidelines-owning-memory)
  return *t_stack;
}
CUcontext current() { return stack().empty() ? nullptr : stack().back(); }

bool known(CUcontext context) { return context == &g_primary || context == &g_made; }
bool usable(CUcontext context) { return known(context) && context->live; }
bool valid_device(int device) { return device >= 0 && device < device_count(); }

CUresult second_context(const char* name) {
  unsupported(name, "the virtual node has one context a PE; use the one that is there");
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult make_context(const char* name, CUcontext* out, unsigned flags, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (out == nullptr || (flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  {
    const Lock lock;
    if (g_made.live || g_primary.live) return second_context(name);
    g_made.live = true;
    g_made.device = device;
    g_made.flags = flags;
  }
  stack().push_back(&g_made);
  *out = &g_made;
  return result(ready());
}

int synchronize(const char* name) {
  Call call(wire::Op::kDeviceSync, name);
  return call.send();
}

}  // namespace

CUresult result(int error) {
  switch (error) {
    case cudaErrorInvalidSymbol:
    case cudaErrorInvalidDeviceFunction:
      return CUDA_ERROR_NOT_FOUND;
    case cudaErrorInvalidConfiguration:
    case cudaErrorInvalidPitchValue:
    case cudaErrorInvalidMemcpyDirection:
      return CUDA_ERROR_INVALID_VALUE;
    default:
      return static_cast<CUresult>(error);
  }
}

CUresult initialised() { return g_initialised ? CUDA_SUCCESS : CUDA_ERROR_NOT_INITIALIZED; }

CUresult entered() {
  if (!g_initialised) return CUDA_ERROR_NOT_INITIALIZED;
  const CUcontext context = current();
  if (context == nullptr) return CUDA_ERROR_INVALID_CONTEXT;
  return context->live ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

void runtime_entered() {
  const Lock lock;
  g_initialised = true;
  if (current() != nullptr) return;
  // Where the program has a context of its own that is not current here, the runtime would make the primary
  // one; there is only one context to work in, so the program's goes on being it.
  CUctx_st& context = g_made.live ? g_made : g_primary;
  context.live = true;
  stack().push_back(&context);
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API CUresult cuInit(unsigned flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  if (__cudaEcholoHello() == nullptr) return CUDA_ERROR_NO_DEVICE;
  g_initialised = true;
  return CUDA_SUCCESS;
}

ECHOLO_API CUresult cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return result(cudaDriverGetVersion(version));
}

// ---- devices ----
ECHOLO_API CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  *device = ordinal;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDeviceGetCount(int* count) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *count = device_count();
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDeviceGetName(char* name, int n, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (name == nullptr || n <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::snprintf(name, static_cast<std::size_t>(n), "%s", __cudaEcholoHello()->device_name);
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  std::memset(uuid, 0, sizeof *uuid);
  std::snprintf(uuid->bytes, sizeof uuid->bytes, "virtual GPU %d", __cudaEcholoHello()->pe);
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *bytes = __cudaEcholoHello()->device_bytes;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  return result(device_attribute("cuDeviceGetAttribute", attribute, device, value));
}
ECHOLO_API CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (major == nullptr || minor == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const CUresult first = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
  if (first != CUDA_SUCCESS) return first;
  return cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}
ECHOLO_API CUresult cuDeviceGetPCIBusId(char* id, int n, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  return result(cudaDeviceGetPCIBusId(id, n, device));
}
ECHOLO_API CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  return result(cudaDeviceCanAccessPeer(can, device, peer));
}

// ---- the primary context ----
ECHOLO_API CUresult cuDevicePrimaryCtxRetain(CUcontext* out, CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Lock lock;
  if (g_made.live) return second_context("cuDevicePrimaryCtxRetain");
  g_primary.live = true;
  g_primary.device = device;
  ++g_primary.retained;
  *out = &g_primary;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  const Lock lock;
  if (g_primary.retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
  // What the runtime began to use stays.
  --g_primary.retained;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (flags == nullptr || active == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  *flags = g_primary.flags;
  *active = g_primary.live ? 1 : 0;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuDevicePrimaryCtxSetFlags(CUdevice device, unsigned flags) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if ((flags & ~kContextFlags) != 0) return CUDA_ERROR_INVALID_VALUE;
  if (!valid_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  g_primary.flags = flags;
  return CUDA_SUCCESS;
}

// ---- contexts ----
ECHOLO_API CUresult cuCtxCreate(CUcontext* out, CUctxCreateParams* params, unsigned flags, CUdevice device) {
  if (params != nullptr) {
    unsupported("cuCtxCreate", "execution affinity and graphics contexts are not modelled");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  return make_context("cuCtxCreate", out, flags, device);
}
#undef cuCtxCreate_v2
extern "C" __attribute__((visibility("default"))) CUresult cuCtxCreate_v2(CUcontext* out, unsigned flags,
                                                                          CUdevice device) {
  return make_context("cuCtxCreate", out, flags, device);
}
ECHOLO_API CUresult cuCtxDestroy(CUcontext context) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (context != &g_made || !g_made.live) return CUDA_ERROR_INVALID_CONTEXT;
  if (const int error = synchronize("cuCtxDestroy"); error != kSuccess) return result(error);
  const Lock lock;
  g_made.live = false;
  if (current() == context) stack().pop_back();
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuCtxPushCurrent(CUcontext context) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (!usable(context)) return CUDA_ERROR_INVALID_CONTEXT;
  stack().push_back(context);
  return result(ready());
}
ECHOLO_API CUresult cuCtxPopCurrent(CUcontext* out) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (stack().empty()) return CUDA_ERROR_INVALID_CONTEXT;
  if (out != nullptr) *out = current();
  stack().pop_back();
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuCtxSetCurrent(CUcontext context) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (context != nullptr && !usable(context)) return CUDA_ERROR_INVALID_CONTEXT;
  if (!stack().empty()) stack().pop_back();
  if (context == nullptr) return CUDA_SUCCESS;
  stack().push_back(context);
  return result(ready());
}
ECHOLO_API CUresult cuCtxGetCurrent(CUcontext* out) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  if (out == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *out = current();
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuCtxGetDevice(CUdevice* device) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    *device = current()->device;
    return kSuccess;
  });
}
ECHOLO_API CUresult cuCtxGetFlags(unsigned* flags) {
  if (flags == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    *flags = current()->flags;
    return kSuccess;
  });
}
ECHOLO_API CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  if (id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context == nullptr) context = current();
  if (!usable(context)) return CUDA_ERROR_CONTEXT_IS_DESTROYED;
  *id = context == &g_primary ? 1 : 2;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuCtxGetApiVersion(CUcontext context, unsigned* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (context != nullptr && !usable(context)) return CUDA_ERROR_INVALID_CONTEXT;
  *version = 3020;  // that of every context since the functions got their _v2
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuCtxSynchronize() {
  return in_context([] { return synchronize("cuCtxSynchronize"); });
}
ECHOLO_API CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return in_context([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}
// How caches are split changes time, not results.
ECHOLO_API CUresult cuCtxSetCacheConfig(CUfunc_cache) {
  return in_context([] { return kSuccess; });
}
ECHOLO_API CUresult cuCtxGetCacheConfig(CUfunc_cache* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    *config = CU_FUNC_CACHE_PREFER_NONE;
    return kSuccess;
  });
}
