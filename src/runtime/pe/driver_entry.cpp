// Errors by name, and functions by name (CUDA driver API, "Error Handling", "Driver Entry Point Access"; CUDA
// runtime API, "Driver Entry Point Access").
#include <dlfcn.h>

#include <cctype>
#include <cstring>
#include <string>

#include "runtime/pe/driver.hpp"

namespace echolo::runtime::pe {
namespace {

const char* name_of(CUresult error) {
  switch (error) {
#define ECHOLO_CU_ERROR(name) \
  case name:                  \
    return #name;
#include "runtime/pe/driver_errors.def"
#undef ECHOLO_CU_ERROR
  }
  return nullptr;
}

// "CUDA_ERROR_INVALID_VALUE" -> "invalid value": the names say what the errors mean.
std::string describe(const char* name) {
  if (std::strcmp(name, "CUDA_SUCCESS") == 0) return "no error";
  std::string out;
  for (const char* p = name + std::strlen("CUDA_ERROR_"); *p != 0; ++p)
    out += *p == '_' ? ' ' : static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  return out;
}

constexpr int kNewest = 13020;

// The function that a program compiled for `version` would mean by `symbol`: of several forms the newest that
// there is. cuCtxCreate took fewer arguments before CUDA 13.
void* find_driver_function(const std::string& symbol, int version) {
  if (symbol.rfind("cu", 0) != 0 || symbol.rfind("cuda", 0) == 0) return nullptr;
  if (symbol == "cuCtxCreate" && version < 13000) return dlsym(RTLD_DEFAULT, "cuCtxCreate_v2");
  for (const char* form : {"_v4", "_v3", "_v2", ""}) {
    if (void* found = dlsym(RTLD_DEFAULT, (symbol + form).c_str()); found != nullptr) return found;
  }
  if (symbol == "cuGraphInstantiate") return dlsym(RTLD_DEFAULT, "cuGraphInstantiateWithFlags");
  return nullptr;
}

CUresult proc_address(const char* symbol, void** function, int version, cuuint64_t flags,
                      CUdriverProcAddressQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *function = nullptr;
  if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) != 0) {
    unsupported("cuGetProcAddress", "functions for a default stream per thread are not there");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  *function = find_driver_function(symbol, version);
  const bool found = *function != nullptr;
  if (status != nullptr) *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  // With a place for the status, not being there is no error.
  return found || status != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

cudaError_t entry_point(const char* symbol, void** function, int version,
                        cudaDriverEntryPointQueryResult* status) {
  if (symbol == nullptr || function == nullptr) return done(kInvalidValue);
  *function = find_driver_function(symbol, version);
  if (status != nullptr)
    *status = *function != nullptr ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
  return done(*function != nullptr || status != nullptr ? kSuccess
                                                        : static_cast<int>(cudaErrorSymbolNotFound));
}

}  // namespace
}  // namespace echolo::runtime::pe

using namespace echolo::runtime;      // NOLINT(google-build-using-namespace)
using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API CUresult cuGetErrorName(CUresult error, const char** name) {
  if (name == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *name = name_of(error);
  return *name == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

ECHOLO_API CUresult cuGetErrorString(CUresult error, const char** text) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  // One text an error, kept for the life of the process.
  static thread_local std::string texts[1024];
  const char* const name = name_of(error);
  const auto index = static_cast<unsigned>(error);
  *text = nullptr;
  if (name == nullptr || index >= 1024) return CUDA_ERROR_INVALID_VALUE;
  if (texts[index].empty()) texts[index] = describe(name);
  *text = texts[index].c_str();
  return CUDA_SUCCESS;
}

ECHOLO_API CUresult cuGetProcAddress(const char* symbol, void** function, int version, cuuint64_t flags,
                                     CUdriverProcAddressQueryResult* status) {
  return proc_address(symbol, function, version, flags, status);
}
#undef cuGetProcAddress
extern "C" __attribute__((visibility("default"))) CUresult cuGetProcAddress(const char* symbol,
                                                                            void** function, int version,
                                                                            cuuint64_t flags) {
  return proc_address(symbol, function, version, flags, nullptr);
}

ECHOLO_API cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned version,
                                                        unsigned long long,
                                                        cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, static_cast<int>(version), status);
}

#undef cudaGetDriverEntryPoint
ECHOLO_API cudaError_t cudaGetDriverEntryPoint(const char* symbol, void** function, unsigned long long,
                                               cudaDriverEntryPointQueryResult* status) {
  return entry_point(symbol, function, kNewest, status);
}
