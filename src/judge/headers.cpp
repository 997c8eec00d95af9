// The headers that a candidate may include.
#include <algorithm>
#include <array>
#include <string_view>

#include "judge/screen.hpp"

namespace echolo::judge {
namespace {

constexpr std::array kOurs = {"nvshmem.h", "nvshmemx.h", "echolo/candidate.hpp"};

constexpr std::array kCuda = {"builtin_types.h",
                              "cooperative_groups.h",
                              "cuComplex.h",
                              "cuda.h",
                              "cuda_awbarrier.h",
                              "cuda_awbarrier_helpers.h",
                              "cuda_awbarrier_primitives.h",
                              "cuda_bf16.h",
                              "cuda_bf16.hpp",
                              "cuda_device_runtime_api.h",
                              "cuda_fp16.h",
                              "cuda_fp16.hpp",
                              "cuda_fp4.h",
                              "cuda_fp6.h",
                              "cuda_fp8.h",
                              "cuda_pipeline.h",
                              "cuda_pipeline_helpers.h",
                              "cuda_pipeline_primitives.h",
                              "cuda_runtime.h",
                              "cuda_runtime_api.h",
                              "device_atomic_functions.h",
                              "device_functions.h",
                              "device_launch_parameters.h",
                              "device_types.h",
                              "driver_types.h",
                              "host_defines.h",
                              "library_types.h",
                              "math_constants.h",
                              "math_functions.h",
                              "mma.h",
                              "sm_60_atomic_functions.h",
                              "sm_61_intrinsics.h",
                              "surface_types.h",
                              "texture_types.h",
                              "vector_functions.h",
                              "vector_types.h"};

// Folders of the toolkit whose headers only hold code for kernels.
constexpr std::array kCudaFolders = {"cooperative_groups/", "cub/", "cuda/", "thrust/", "nv/"};

constexpr std::array kStandard = {
    "algorithm", "any", "array", "atomic", "bit", "bitset", "cassert", "cctype", "cerrno", "cfenv", "cfloat",
    "charconv", "chrono", "cinttypes", "climits", "clocale", "cmath", "compare", "complex", "concepts",
    "condition_variable", "csetjmp", "csignal", "cstdarg", "cstddef", "cstdint", "cstdio", "cstdlib",
    "cstring", "ctime", "cuchar", "cwchar", "cwctype", "deque", "exception", "execution", "filesystem",
    "forward_list", "fstream", "functional", "future", "initializer_list", "iomanip", "ios", "iosfwd",
    "iostream", "istream", "iterator", "limits", "list", "locale", "map", "memory", "memory_resource",
    "mutex", "new", "numeric", "optional", "ostream", "queue", "random", "ratio", "regex", "scoped_allocator",
    "set", "shared_mutex", "span", "sstream", "stack", "stdexcept", "streambuf", "string", "string_view",
    "system_error", "thread", "tuple", "type_traits", "typeindex", "typeinfo", "unordered_map",
    "unordered_set", "utility", "valarray", "variant", "vector", "version",
    // C's
    "assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "iso646.h", "limits.h",
    "locale.h", "math.h", "setjmp.h", "signal.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h",
    "stddef.h", "stdint.h", "stdio.h", "stdlib.h", "string.h", "tgmath.h", "time.h", "uchar.h", "wchar.h",
    "wctype.h"};

template <std::size_t N>
bool holds(const std::array<const char*, N>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

}  // namespace

bool header_allowed(std::string_view header) {
  if (holds(kOurs, header) || holds(kCuda, header) || holds(kStandard, header)) return true;
  if (header.find("..") != std::string_view::npos || header.find('\\') != std::string_view::npos ||
      header.find("//") != std::string_view::npos) {
    return false;
  }
  return std::any_of(kCudaFolders.begin(), kCudaFolders.end(),
                     [&](const char* folder) { return header.starts_with(folder); });
}

}  // namespace echolo::judge
