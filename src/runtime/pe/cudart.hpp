// What the files of the CUDA runtime library share.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/pe/client.hpp"

namespace echolo::runtime::pe {

// Remembers a failure for cudaGetLastError and passes it on. Every API function returns through here.
cudaError_t done(int error);

inline std::uint64_t number(const void* p) { return reinterpret_cast<std::uint64_t>(p); }
template <typename T>
T pointer(std::uint64_t value) {
  return reinterpret_cast<T>(value);
}

struct Kernel {
  std::uint32_t module = 0;  // as the node numbers it; 0 until it is loaded
  std::string name;          // mangled
  int fatbin = -1;
  bool known = false;                         // the fields below are filled
  std::vector<std::uint32_t> offsets, sizes;  // of the parameters, in the parameter block
  std::uint32_t parameter_bytes = 0, static_shared = 0, local_bytes = 0, registers = 0, const_bytes = 0,
                max_threads = 0;
  std::uint64_t dynamic_limit = 0;  // 0: never set
};

// Loads every registered module on the node, once. All API functions that need the device call it first.
int ready();
// The kernel that a host function stands for; null where there is none (`*error` says why).
Kernel* find_kernel(const void* function, int* error);
// Address and size of a __device__ or __constant__ variable by its host shadow.
int find_symbol(const void* symbol, std::uint64_t* address, std::uint64_t* size);

int launch(Kernel& kernel, dim3 grid, dim3 block, void** args, std::size_t shared, cudaStream_t stream,
           bool cooperative, const char* name, dim3 cluster = dim3(0, 0, 0));

enum class Wait : std::uint8_t { kAsync = 0, kSync = 1 };
struct CopyShape {
  std::uint64_t width = 0, height = 1, to_pitch = 0, from_pitch = 0;
};
int copy(const char* name, void* to, const void* from, const CopyShape& shape, cudaMemcpyKind kind,
         cudaStream_t stream, Wait wait);

}  // namespace echolo::runtime::pe

#define ECHOLO_API extern "C" __attribute__((visibility("default")))
