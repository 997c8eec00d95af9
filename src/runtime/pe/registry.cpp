// What static constructors of the compiled program register: fat binaries, kernels, variables. Nothing is
// sent to the node before the first call that needs a device, so that a program may run its own code first.
#include <pthread.h>

#include <cstdio>
#include <map>
#include <memory>

#include "runtime/pe/driver.hpp"
#include "runtime/pe/fatbin.hpp"

namespace echolo::runtime::pe {
namespace {

struct Wrapper {       // what nvcc emits in .nvFatBinSegment
  std::int32_t magic;  // 0x466243b1
  std::int32_t version;
  const std::uint8_t* data;
  void* others;
};
constexpr std::int32_t kWrapperMagic = 0x466243b1;

struct Variable {
  int fatbin = -1;
  std::string name;
  std::uint64_t address = 0, size = 0;
  void** managed = nullptr;  // where the host keeps the pointer of a __managed__ variable
};

struct Fatbin {
  const std::uint8_t* data = nullptr;
  std::uint32_t module = 0;
  bool loaded = false;
  bool gone = false;
};

struct Registry {
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  std::vector<std::unique_ptr<Fatbin>> fatbins;
  std::map<const void*, Kernel> kernels;
  std::map<const void*, Variable> variables;
  std::map<const void*, Kernel*> adopted;
  bool changed = true;
};

// Constructed at first use: static constructors of the program run before this library's would in some link
// orders.
Registry& registry() {
  static auto* the =
      new Registry;  // NOLINT(cppcoreguidelines-owning-memory): must outlive every static destructor
  return *the;
}

struct Lock {
  Lock() { pthread_mutex_lock(&registry().lock); }
  ~Lock() { pthread_mutex_unlock(&registry().lock); }
};

int index_of(void** handle) {
  for (std::size_t i = 0; i < registry().fatbins.size(); ++i) {
    if (reinterpret_cast<void**>(registry().fatbins[i].get()) == handle) return static_cast<int>(i);
  }
  return -1;
}

int load_fatbin(Fatbin& fatbin) {
  const int error = load_container(fatbin.data, &fatbin.module);
  fatbin.loaded = error == kSuccess;
  return error;
}

int fill(Variable& variable) {
  if (variable.address != 0) return kSuccess;
  const Fatbin& fatbin = *registry().fatbins[static_cast<std::size_t>(variable.fatbin)];
  Call call(wire::Op::kVariable, "look up a variable");
  call.in.u32(fatbin.module).text(variable.name);
  if (const int error = call.send(); error != kSuccess) return error;
  variable.address = call.out.u64();
  variable.size = call.out.u64();
  if (variable.managed != nullptr) *variable.managed = pointer<void*>(variable.address);
  return kSuccess;
}

int fill(Kernel& kernel) {
  if (kernel.known) return kSuccess;
  kernel.module = registry().fatbins[static_cast<std::size_t>(kernel.fatbin)]->module;
  return look_up(kernel);
}

int load_all() {
  Registry& r = registry();
  if (!r.changed) return kSuccess;
  for (auto& fatbin : r.fatbins) {
    if (fatbin->loaded || fatbin->gone) continue;
    if (const int error = load_fatbin(*fatbin); error != kSuccess) return error;
  }
  for (auto& [host, variable] : r.variables) {
    if (variable.managed == nullptr) continue;
    if (const int error = fill(variable); error != kSuccess) return error;
  }
  r.changed = false;
  return kSuccess;
}

}  // namespace

int load_ptx(const std::string& name, const std::string& ptx, std::uint32_t* module) {
  Call call(wire::Op::kLoadModule, "load module");
  call.in.text(name).text(ptx);
  if (const int error = call.send(); error != kSuccess) return error;
  *module = call.out.u32();
  return kSuccess;
}

int load_container(const std::uint8_t* data, std::uint32_t* module) {
  FatbinContents contents = parse_fatbin(data, fatbin_size(data));
  if (!contents.error.empty()) {
    unsupported("load", contents.error);
    return static_cast<int>(cudaErrorInvalidKernelImage);
  }
  if (contents.ptx.empty()) {
    unsupported("load",
                contents.n_compressed != 0
                    ? "the program's PTX is compressed: compile with --no-compress"
                    : "the program holds no PTX: compile with -gencode arch=compute_90a,code=compute_90a");
    return static_cast<int>(cudaErrorNoKernelImageForDevice);
  }
  // Several translation units may have been packed into one binary; nvcc embeds one PTX text each.
  const FatbinPtx& ptx = contents.ptx.front();
  return load_ptx(ptx.source.empty() ? "program" : ptx.source, ptx.text, module);
}

int look_up(Kernel& kernel) {
  if (kernel.known) return kSuccess;
  Call call(wire::Op::kKernelInfo, "look up a kernel");
  call.in.u32(kernel.module).text(kernel.name);
  if (const int error = call.send(); error != kSuccess) return error;
  const std::uint32_t n = call.out.u32();
  for (std::uint32_t i = 0; i < n && call.out.ok(); ++i) {
    kernel.offsets.push_back(call.out.u32());
    kernel.sizes.push_back(call.out.u32());
  }
  kernel.parameter_bytes = call.out.u32();
  kernel.static_shared = call.out.u32();
  kernel.local_bytes = call.out.u32();
  kernel.registers = call.out.u32();
  kernel.const_bytes = call.out.u32();
  kernel.max_threads = call.out.u32();
  kernel.known = call.out.ok();
  return kernel.known ? kSuccess : kUnknown;
}

void adopt(Kernel* kernel) {
  const Lock lock;
  registry().adopted[kernel] = kernel;
}
void disown(Kernel* kernel) {
  const Lock lock;
  registry().adopted.erase(kernel);
}

int ready() {
  if (__cudaEcholoHello() == nullptr) return kInitializationError;
  runtime_entered();
  const Lock lock;
  return load_all();
}

Kernel* find_kernel(const void* function, int* error) {
  *error = ready();
  if (*error != kSuccess) return nullptr;
  const Lock lock;
  const auto it = registry().kernels.find(function);
  if (it != registry().kernels.end()) {
    *error = fill(it->second);
    return *error == kSuccess ? &it->second : nullptr;
  }
  if (const auto own = registry().adopted.find(function); own != registry().adopted.end()) return own->second;
  // A cudaKernel_t (from __cudaGetKernel) is the Kernel itself.
  for (auto& [host, kernel] : registry().kernels) {
    if (&kernel == function) {
      *error = fill(kernel);
      return *error == kSuccess ? &kernel : nullptr;
    }
  }
  *error = kInvalidDeviceFunction;
  return nullptr;
}

void* function_of(std::uint32_t module, const std::string& name) {
  const Lock lock;
  for (const auto& [host, kernel] : registry().kernels) {
    if (kernel.module == module && kernel.name == name) return const_cast<void*>(host);
  }
  for (const auto& [handle, kernel] : registry().adopted) {
    if (kernel->module == module && kernel->name == name) return kernel;
  }
  return nullptr;
}

int find_symbol(const void* symbol, std::uint64_t* address, std::uint64_t* size) {
  if (const int error = ready(); error != kSuccess) return error;
  const Lock lock;
  const auto it = registry().variables.find(symbol);
  if (it == registry().variables.end()) return kInvalidSymbol;
  if (const int error = fill(it->second); error != kSuccess) return error;
  *address = it->second.address;
  *size = it->second.size;
  return kSuccess;
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API void** __cudaRegisterFatBinary(void* wrapper) {
  const auto* header = static_cast<const Wrapper*>(wrapper);
  if (header == nullptr || header->magic != kWrapperMagic || header->data == nullptr ||
      fatbin_size(header->data) == 0) {
    std::fprintf(stderr, "echolo: the program's fat binary has an unknown form\n");
    return nullptr;
  }
  const Lock lock;
  auto fatbin = std::make_unique<Fatbin>();
  fatbin->data = header->data;
  registry().fatbins.push_back(std::move(fatbin));
  registry().changed = true;
  return reinterpret_cast<void**>(registry().fatbins.back().get());
}

ECHOLO_API void __cudaRegisterFatBinaryEnd(void**) {}

ECHOLO_API void __cudaUnregisterFatBinary(void** handle) {
  const Lock lock;
  const int index = index_of(handle);
  if (index >= 0) registry().fatbins[static_cast<std::size_t>(index)]->gone = true;
}

ECHOLO_API void __cudaRegisterFunction(void** handle, const char* host, char*, const char* name, int, void*,
                                       void*, void*, void*, int*) {
  const Lock lock;
  Kernel kernel;
  kernel.name = name;
  kernel.fatbin = index_of(handle);
  if (kernel.fatbin >= 0) registry().kernels[host] = std::move(kernel);
}

ECHOLO_API void __cudaRegisterVar(void** handle, char* host, char*, const char* name, int, std::size_t size,
                                  int, int) {
  const Lock lock;
  Variable variable;
  variable.fatbin = index_of(handle);
  variable.name = name;
  variable.size = size;
  if (variable.fatbin >= 0) registry().variables[host] = std::move(variable);
}

ECHOLO_API void __cudaRegisterManagedVar(void** handle, void** host, char*, const char* name, int,
                                         std::size_t size, int, int) {
  const Lock lock;
  Variable variable;
  variable.fatbin = index_of(handle);
  variable.name = name;
  variable.size = size;
  variable.managed = host;
  // The program refers to the variable through `host`, the pointer it keeps; either address names it.
  if (variable.fatbin >= 0) registry().variables[host] = std::move(variable);
}

// Called before the host first touches a __managed__ variable; returns whether it is usable.
ECHOLO_API char __cudaInitModule(void**) { return ready() == kSuccess ? 1 : 0; }

ECHOLO_API cudaError_t __cudaGetKernel(cudaKernel_t* kernel, const void* function) {
  int error = kSuccess;
  Kernel* found = find_kernel(function, &error);
  *kernel = reinterpret_cast<cudaKernel_t>(found);
  return done(error);
}

// A cudaFunction_t, or the driver's CUfunction, is the same.
ECHOLO_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol) {
  if (function == nullptr) return done(kInvalidValue);
  int error = kSuccess;
  *function = reinterpret_cast<cudaFunction_t>(find_kernel(symbol, &error));
  return done(error);
}
ECHOLO_API cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol) {
  return kernel == nullptr ? done(kInvalidValue) : __cudaGetKernel(kernel, symbol);
}

ECHOLO_API cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  if (address == nullptr) return done(kInvalidValue);
  std::uint64_t at = 0, size = 0;
  const int error = find_symbol(symbol, &at, &size);
  if (error == kSuccess) *address = pointer<void*>(at);
  return done(error);
}

ECHOLO_API cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  if (bytes == nullptr) return done(kInvalidValue);
  std::uint64_t at = 0, size = 0;
  const int error = find_symbol(symbol, &at, &size);
  if (error == kSuccess) *bytes = size;
  return done(error);
}
