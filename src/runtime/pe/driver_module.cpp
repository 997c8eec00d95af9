// Modules and libraries, functions and kernels, launches and occupancy (CUDA driver API, "Module Management",
// "Library Management", "Execution Control", "Occupancy"). A library is a module, a CUkernel is a CUfunction:
// there is one context.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <set>

#include "runtime/pe/driver.hpp"
#include "runtime/pe/fatbin.hpp"

struct CUmod_st {
  std::uint32_t number = 0;  // as the node counts
  bool live = true;
  std::vector<std::string> names;  // of its kernels
  std::map<std::string, std::unique_ptr<echolo::runtime::pe::Kernel>> kernels;
};

namespace echolo::runtime::pe {
namespace {

constexpr std::uint32_t kContainerMagic = 0xba55ed50, kWrapperMagic = 0x466243b1, kElfMagic = 0x464c457f;

struct Modules {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  // Modules that were unloaded stay, so that a stale handle is an error and not a crash.
  std::set<std::unique_ptr<CUmod_st>> all;
};
Modules& modules() {
  static auto* the = new Modules;  // NOLINT(cppcoreguidelines-owning-memory): outlives static destructors
  return *the;
}
struct Lock {
  Lock() { pthread_mutex_lock(&modules().lock); }
  ~Lock() { pthread_mutex_unlock(&modules().lock); }
};

CUmod_st* find_module(const void* handle) {
  for (const auto& module : modules().all) {
    if (module.get() == handle) return module->live ? module.get() : nullptr;
  }
  return nullptr;
}

int load(const char* name, const void* image, CUmod_st** out) {
  if (image == nullptr) return kInvalidValue;
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof magic);
  auto module = std::make_unique<CUmod_st>();
  int error = kSuccess;
  if (magic == kElfMagic) {
    unsupported(name, "the image is machine code, which the virtual node does not execute: load PTX");
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  if (magic == kContainerMagic || magic == kWrapperMagic) {
    const auto* data = static_cast<const std::uint8_t*>(image);
    if (magic == kWrapperMagic) std::memcpy(&data, data + 8, sizeof data);
    error = load_container(data, &module->number);
  } else {
    const std::string text(static_cast<const char*>(image));
    if (text.find(".version") == std::string::npos) return CUDA_ERROR_INVALID_IMAGE;
    error = load_ptx("module", text, &module->number);
  }
  if (error != kSuccess) return error;
  Call call(wire::Op::kKernelNames, name);
  call.in.u32(module->number);
  if (error = call.send(); error != kSuccess) return error;
  for (std::uint32_t n = call.out.u32(); n > 0 && call.out.ok(); --n)
    module->names.emplace_back(call.out.text());
  const Lock lock;
  *out = module.get();
  modules().all.insert(std::move(module));
  return kSuccess;
}

int load_file(const char* name, const char* path, CUmod_st** out) {
  if (path == nullptr) return kInvalidValue;
  std::FILE* file = std::fopen(path, "rbe");
  if (file == nullptr) return CUDA_ERROR_FILE_NOT_FOUND;
  std::string bytes;
  char buffer[65536];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, file)) > 0;) bytes.append(buffer, n);
  std::fclose(file);
  return bytes.size() < 4 ? static_cast<int>(CUDA_ERROR_INVALID_IMAGE) : load(name, bytes.c_str(), out);
}

int unload(const char* name, CUmod_st* handle) {
  std::uint32_t number_on_node = 0;
  {
    const Lock lock;
    CUmod_st* module = find_module(handle);
    if (module == nullptr) return kInvalidResourceHandle;
    number_on_node = module->number;
    module->live = false;
    for (auto& [symbol, kernel] : module->kernels) disown(kernel.get());
  }
  Call call(wire::Op::kUnloadModule, name);
  call.in.u32(number_on_node);
  return call.send();
}

int get_kernel(CUmod_st* handle, const char* name, Kernel** out) {
  if (out == nullptr || name == nullptr) return kInvalidValue;
  const Lock lock;
  CUmod_st* module = find_module(handle);
  if (module == nullptr) return kInvalidResourceHandle;
  auto& kernel = module->kernels[name];
  if (kernel == nullptr) {
    auto fresh = std::make_unique<Kernel>();
    fresh->module = module->number;
    fresh->name = name;
    const int error = look_up(*fresh);
    if (error != kSuccess) {
      module->kernels.erase(name);
      return error == kInvalidDeviceFunction ? static_cast<int>(CUDA_ERROR_NOT_FOUND) : error;
    }
    kernel = std::move(fresh);
    adopt(kernel.get());
  }
  *out = kernel.get();
  return kSuccess;
}

int get_global(const char* api, CUmod_st* handle, const char* name, CUdeviceptr* address,
               std::size_t* bytes) {
  if (name == nullptr) return kInvalidValue;
  const Lock lock;
  const CUmod_st* module = find_module(handle);
  if (module == nullptr) return kInvalidResourceHandle;
  Call call(wire::Op::kVariable, api);
  call.in.u32(module->number).text(name);
  if (const int error = call.send(); error != kSuccess) return error;
  const std::uint64_t at = call.out.u64(), size = call.out.u64();
  if (address != nullptr) *address = at;
  if (bytes != nullptr) *bytes = size;
  return kSuccess;
}

int list_kernels(CUmod_st* handle, void** out, unsigned n) {
  if (out == nullptr && n != 0) return kInvalidValue;
  std::vector<std::string> names;
  {
    const Lock lock;
    const CUmod_st* module = find_module(handle);
    if (module == nullptr) return kInvalidResourceHandle;
    names = module->names;
  }
  for (std::size_t i = 0; i < std::min<std::size_t>(n, names.size()); ++i) {
    Kernel* kernel = nullptr;
    if (const int error = get_kernel(handle, names[i].c_str(), &kernel); error != kSuccess) return error;
    out[i] = kernel;
  }
  return kSuccess;
}

int kernel_count(CUmod_st* handle, unsigned* count) {
  if (count == nullptr) return kInvalidValue;
  const Lock lock;
  const CUmod_st* module = find_module(handle);
  if (module == nullptr) return kInvalidResourceHandle;
  *count = static_cast<unsigned>(module->names.size());
  return kSuccess;
}

CUmod_st* module_of(const Kernel* kernel) {
  const Lock lock;
  for (const auto& module : modules().all) {
    for (const auto& [name, own] : module->kernels) {
      if (own.get() == kernel) return module.get();
    }
  }
  return nullptr;
}

// The numbers of logs that a JIT compiler would have written: there is none.
void clear_logs(unsigned n, const CUjit_option* options, void** values) {
  for (unsigned i = 0; options != nullptr && values != nullptr && i < n; ++i) {
    if (options[i] == CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES || options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
      values[i] = nullptr;
  }
}

int attribute_of(const Kernel& kernel, int attribute, int* value) {
  if (value == nullptr) return kInvalidValue;
  cudaFuncAttributes all;
  if (const cudaError_t error = cudaFuncGetAttributes(&all, &kernel); error != cudaSuccess) return error;
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = all.maxThreadsPerBlock;
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(all.sharedSizeBytes);
      break;
    case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES:
      *value = static_cast<int>(all.constSizeBytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(all.localSizeBytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = all.numRegs;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
      *value = all.ptxVersion;
      break;
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = all.binaryVersion;
      break;
    case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA:
      *value = all.cacheModeCA;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = all.maxDynamicSharedSizeBytes;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = all.preferredShmemCarveout;
      break;
    default:
      return unsupported("cuFuncGetAttribute",
                         "attribute " + std::to_string(attribute) + " is not modelled by the virtual node");
  }
  return kSuccess;
}

int parameter_info(const Kernel& kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  if (offset == nullptr || index >= kernel.offsets.size()) return kInvalidValue;
  *offset = kernel.offsets[index];
  if (size != nullptr) *size = kernel.sizes[index];
  return kSuccess;
}

// The arguments as one block, as CU_LAUNCH_PARAM_BUFFER_POINTER passes them.
int block_from_extra(const Kernel& kernel, void** extra, std::vector<std::uint8_t>* block) {
  const void* data = nullptr;
  const std::size_t* bytes = nullptr;
  for (void** at = extra; *at != CU_LAUNCH_PARAM_END; at += 2) {
    if (*at == CU_LAUNCH_PARAM_BUFFER_POINTER) {
      data = at[1];
    } else if (*at == CU_LAUNCH_PARAM_BUFFER_SIZE) {
      bytes = static_cast<const std::size_t*>(at[1]);
    } else {
      return kInvalidValue;
    }
  }
  if (data == nullptr || bytes == nullptr || *bytes > kernel.parameter_bytes) return kInvalidValue;
  block->assign(kernel.parameter_bytes, 0);
  std::memcpy(block->data(), data, *bytes);
  return kSuccess;
}

int launch_driver(const char* name, const void* function, const LaunchShape& shape, void** args,
                  void** extra) {
  const Kernel* kernel = kernel_of(function);
  if (kernel == nullptr) return kInvalidResourceHandle;
  if (args != nullptr && extra != nullptr) return kInvalidValue;
  if (extra == nullptr) return launch(name, *kernel, shape, args);
  std::vector<std::uint8_t> block;
  if (const int error = block_from_extra(*kernel, extra, &block); error != kSuccess) return error;
  Call call(wire::Op::kLaunch, name);
  write_launch(call.in, *kernel, shape, block);
  return call.send();
}

// The runtime's attributes of a launch are the driver's under other names.
static_assert(sizeof(CUlaunchAttribute) == sizeof(cudaLaunchAttribute));
int shape_of(const char* name, const CUlaunchConfig& config, LaunchShape* shape) {
  shape->grid = dim3(config.gridDimX, config.gridDimY, config.gridDimZ);
  shape->block = dim3(config.blockDimX, config.blockDimY, config.blockDimZ);
  shape->shared = config.sharedMemBytes;
  shape->stream = config.hStream;
  return read_attributes(name, reinterpret_cast<const cudaLaunchAttribute*>(config.attrs), config.numAttrs,
                         shape);
}

// The largest block, a multiple of a warp, with which an SM holds the most threads.
int best_block(const Kernel& kernel, CUoccupancyB2DSize shared_of, std::size_t shared, int limit, int* grid,
               int* block) {
  if (grid == nullptr || block == nullptr) return kInvalidValue;
  const wire::Hello& gpu = *__cudaEcholoHello();
  const auto most = static_cast<int>(kernel.max_threads);
  int top = std::min(most, limit > 0 ? limit : gpu.max_threads_per_block);
  int best_threads = 0;
  for (int size = (top + 31) / 32 * 32; size > 0; size -= 32) {
    const int threads = std::min(size, top);
    int blocks = 0;
    const std::size_t dynamic = shared_of == nullptr ? shared : shared_of(threads);
    const int error = occupancy("cuOccupancyMaxPotentialBlockSize", kernel, threads, dynamic, &blocks);
    if (error != kSuccess) return error;
    if (blocks * threads <= best_threads) continue;
    best_threads = blocks * threads;
    *block = threads;
    *grid = blocks * gpu.sms;
    if (best_threads == gpu.max_threads_per_sm) break;
  }
  return best_threads == 0 ? static_cast<int>(cudaErrorLaunchOutOfResources) : kSuccess;
}

template <typename Body>
CUresult with_kernel(const void* handle, Body&& body) {
  return in_context([&]() -> int {
    Kernel* kernel = kernel_of(handle);
    return kernel == nullptr ? kInvalidResourceHandle : static_cast<int>(body(*kernel));
  });
}

}  // namespace

Kernel* kernel_of(const void* handle) {
  int error = kSuccess;
  return handle == nullptr ? nullptr : find_kernel(handle, &error);
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

namespace {
CUmod_st* as_module(CUlibrary library) { return reinterpret_cast<CUmod_st*>(library); }
}  // namespace

// ---- modules ----
ECHOLO_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return load("cuModuleLoadData", image, module); });
}
ECHOLO_API CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned n, CUjit_option* options,
                                       void** values) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  clear_logs(n, options, values);
  return in_context([&] { return load("cuModuleLoadDataEx", image, module); });
}
ECHOLO_API CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return load("cuModuleLoadFatBinary", image, module); });
}
ECHOLO_API CUresult cuModuleLoad(CUmodule* module, const char* path) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] { return load_file("cuModuleLoad", path, module); });
}
ECHOLO_API CUresult cuModuleUnload(CUmodule module) {
  return in_context([&] { return unload("cuModuleUnload", module); });
}
ECHOLO_API CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  if (mode == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *mode = CU_MODULE_EAGER_LOADING;
  return CUDA_SUCCESS;
}
ECHOLO_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  return in_context([&] { return get_kernel(module, name, reinterpret_cast<Kernel**>(function)); });
}
ECHOLO_API CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module) {
  return in_context([&] { return kernel_count(module, count); });
}
ECHOLO_API CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned n, CUmodule module) {
  return in_context([&] { return list_kernels(module, reinterpret_cast<void**>(functions), n); });
}
ECHOLO_API CUresult cuModuleGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUmodule module,
                                      const char* name) {
  return in_context([&] { return get_global("cuModuleGetGlobal", module, name, address, bytes); });
}

// ---- libraries: need no current context to be loaded ----
ECHOLO_API CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* options,
                                      void** values, unsigned n, CUlibraryOption*, void**, unsigned) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  clear_logs(n, options, values);
  return result(load("cuLibraryLoadData", code, reinterpret_cast<CUmod_st**>(library)));
}
ECHOLO_API CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* options,
                                          void** values, unsigned n, CUlibraryOption*, void**, unsigned) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  clear_logs(n, options, values);
  return result(load_file("cuLibraryLoadFromFile", path, reinterpret_cast<CUmod_st**>(library)));
}
ECHOLO_API CUresult cuLibraryUnload(CUlibrary library) {
  if (const CUresult state = initialised(); state != CUDA_SUCCESS) return state;
  return result(unload("cuLibraryUnload", as_module(library)));
}
ECHOLO_API CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return result(get_kernel(as_module(library), name, reinterpret_cast<Kernel**>(kernel)));
}
ECHOLO_API CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return result(kernel_count(as_module(library), count));
}
ECHOLO_API CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned n, CUlibrary library) {
  return result(list_kernels(as_module(library), reinterpret_cast<void**>(kernels), n));
}
ECHOLO_API CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *module = as_module(library);
  return entered();
}
ECHOLO_API CUresult cuLibraryGetGlobal(CUdeviceptr* address, std::size_t* bytes, CUlibrary library,
                                       const char* name) {
  return in_context(
      [&] { return get_global("cuLibraryGetGlobal", as_module(library), name, address, bytes); });
}
ECHOLO_API CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = reinterpret_cast<CUfunction>(kernel);
  return with_kernel(kernel, [](Kernel&) { return kSuccess; });
}
ECHOLO_API CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  if (library == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(kernel, [&](Kernel& own) {
    *library = reinterpret_cast<CUlibrary>(module_of(&own));
    return *library == nullptr ? kInvalidResourceHandle : kSuccess;
  });
}
ECHOLO_API CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(kernel, [&](Kernel& own) {
    *name = own.name.c_str();
    return kSuccess;
  });
}
ECHOLO_API CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel,
                                         CUdevice) {
  return with_kernel(kernel, [&](Kernel& own) { return attribute_of(own, attribute, value); });
}
ECHOLO_API CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel,
                                         CUdevice) {
  return with_kernel(kernel, [&](Kernel& own) {
    return set_function_attribute("cuKernelSetAttribute", own, attribute, value);
  });
}
ECHOLO_API CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset,
                                         std::size_t* size) {
  return with_kernel(kernel, [&](Kernel& own) { return parameter_info(own, index, offset, size); });
}

// ---- functions ----
ECHOLO_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return with_kernel(function, [&](Kernel& own) { return attribute_of(own, attribute, value); });
}
ECHOLO_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return with_kernel(function, [&](Kernel& own) {
    return set_function_attribute("cuFuncSetAttribute", own, attribute, value);
  });
}
ECHOLO_API CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache) {
  return with_kernel(function, [](Kernel&) { return kSuccess; });  // a hint
}
ECHOLO_API CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  if (module == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(function, [&](Kernel& own) {
    *module = module_of(&own);
    return *module == nullptr ? kInvalidResourceHandle : kSuccess;
  });
}
ECHOLO_API CUresult cuFuncGetName(const char** name, CUfunction function) {
  return cuKernelGetName(name, reinterpret_cast<CUkernel>(function));
}
ECHOLO_API CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset,
                                       std::size_t* size) {
  return with_kernel(function, [&](Kernel& own) { return parameter_info(own, index, offset, size); });
}
ECHOLO_API CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  if (state == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *state = CU_FUNCTION_LOADING_STATE_LOADED;
  return with_kernel(function, [](Kernel&) { return kSuccess; });
}
ECHOLO_API CUresult cuFuncLoad(CUfunction function) {
  return with_kernel(function, [](Kernel&) { return kSuccess; });
}

// ---- launches ----
ECHOLO_API CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                   unsigned by, unsigned bz, unsigned shared, CUstream stream, void** args,
                                   void** extra) {
  return in_context([&] {
    const LaunchShape shape{dim3(gx, gy, gz), dim3(bx, by, bz), shared, stream};
    return launch_driver("cuLaunchKernel", function, shape, args, extra);
  });
}
ECHOLO_API CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz,
                                              unsigned bx, unsigned by, unsigned bz, unsigned shared,
                                              CUstream stream, void** args) {
  return in_context([&] {
    const LaunchShape shape{dim3(gx, gy, gz), dim3(bx, by, bz), shared, stream, true};
    return launch_driver("cuLaunchCooperativeKernel", function, shape, args, nullptr);
  });
}
ECHOLO_API CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** args,
                                     void** extra) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return in_context([&] {
    LaunchShape shape;
    const int error = shape_of("cuLaunchKernelEx", *config, &shape);
    return error != kSuccess ? error : launch_driver("cuLaunchKernelEx", function, shape, args, extra);
  });
}

// ---- occupancy ----
ECHOLO_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction function, int threads,
                                                                std::size_t shared) {
  return with_kernel(function, [&](Kernel& own) {
    return occupancy("cuOccupancyMaxActiveBlocksPerMultiprocessor", own, threads, shared, blocks);
  });
}
ECHOLO_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                                         int threads, std::size_t shared,
                                                                         unsigned) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
ECHOLO_API CUresult cuOccupancyMaxPotentialBlockSize(int* grid, int* block, CUfunction function,
                                                     CUoccupancyB2DSize shared_of, std::size_t shared,
                                                     int limit) {
  return with_kernel(function,
                     [&](Kernel& own) { return best_block(own, shared_of, shared, limit, grid, block); });
}
ECHOLO_API CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* grid, int* block, CUfunction function,
                                                              CUoccupancyB2DSize shared_of,
                                                              std::size_t shared, int limit, unsigned) {
  return cuOccupancyMaxPotentialBlockSize(grid, block, function, shared_of, shared, limit);
}
ECHOLO_API CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, CUfunction function,
                                                            int blocks, int) {
  return with_kernel(function, [&](Kernel& own) { return available_shared(own, blocks, bytes); });
}
ECHOLO_API CUresult cuOccupancyMaxActiveClusters(int* clusters, CUfunction function,
                                                 const CUlaunchConfig* config) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return with_kernel(function, [&](Kernel& own) {
    const char* const name = "cuOccupancyMaxActiveClusters";
    LaunchShape shape;
    const int error = shape_of(name, *config, &shape);
    return error != kSuccess ? error : active_clusters(name, own, shape, clusters);
  });
}
ECHOLO_API CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function,
                                                       const CUlaunchConfig*) {
  if (size == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *size = 8;
  return with_kernel(function, [](Kernel&) { return kSuccess; });
}
