#include <cctype>
#include <cstring>
#include <string>

#include "runtime/pe/cudart.hpp"

namespace echolo::runtime::pe {
namespace {

thread_local cudaError_t t_last = cudaSuccess;

const char* name_of_error(cudaError_t error) {
  switch (static_cast<int>(error)) {
#define ECHOLO_CUDA_ERROR(name) \
  case name:                    \
    return #name;
#include "runtime/pe/cuda_errors.def"
#undef ECHOLO_CUDA_ERROR
  }
  return "unrecognized error code";
}

// "cudaErrorInvalidDevicePointer" -> "invalid device pointer": the names say what the errors mean.
std::string describe(cudaError_t error) {
  if (error == cudaSuccess) return "no error";
  const char* name = name_of_error(error);
  if (std::strncmp(name, "cudaError", 9) != 0) return name;
  std::string out;
  for (const char* p = name + 9; *p != 0; ++p) {
    const bool upper = std::isupper(static_cast<unsigned char>(*p)) != 0;
    const bool next_lower = std::islower(static_cast<unsigned char>(p[1])) != 0;
    const bool before_lower = std::islower(static_cast<unsigned char>(p[-1])) != 0;
    if (upper && !out.empty() && (next_lower || before_lower)) out += ' ';
    out += static_cast<char>(std::tolower(static_cast<unsigned char>(*p)));
  }
  return out;
}

}  // namespace

cudaError_t done(int error) {
  const auto result = static_cast<cudaError_t>(error);
  // cudaErrorNotReady is an answer, not a failure (cudaStreamQuery).
  if (result != cudaSuccess && result != cudaErrorNotReady) t_last = result;
  return result;
}

}  // namespace echolo::runtime::pe

using namespace echolo::runtime::pe;  // NOLINT(google-build-using-namespace)

ECHOLO_API cudaError_t cudaGetLastError() {
  const cudaError_t last = t_last;
  t_last = cudaSuccess;
  return last;
}

ECHOLO_API cudaError_t cudaPeekAtLastError() { return t_last; }

ECHOLO_API const char* cudaGetErrorName(cudaError_t error) { return name_of_error(error); }

ECHOLO_API const char* cudaGetErrorString(cudaError_t error) {
  // One text an error value, kept for the life of the process.
  static thread_local std::string texts[1024];
  const auto index = static_cast<unsigned>(error);
  if (index >= 1024) return "unrecognized error code";
  if (texts[index].empty()) texts[index] = describe(error);
  return texts[index].c_str();
}
