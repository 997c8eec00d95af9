// The interface between the judge and a candidate in the `cuda` dialect. A candidate is one .cu file with
//
//   struct State;                                                  // whatever it wants to keep between calls
//   extern "C" State* candidate_create(const echolo::Launch&);     // once per PE: symmetric allocations
//   extern "C" void   candidate_run(State*, const echolo::Launch&, echolo::TensorList in,
//                                   echolo::TensorList out, cudaStream_t stream);
//   extern "C" void   candidate_destroy(State*);
//
// What is promised: NVSHMEM is initialised and the device is set; create, run and destroy are called in the
// same order on every PE; inputs and outputs are ordinary device memory (not symmetric), with new contents on
// every call and possibly at new addresses; `run` only enqueues on `stream` (or on streams that it joins back
// to it). What is not promised: any synchronisation among PEs between two calls of `run`. One PE may be in
// call k+1 while another is still in call k, and `run` may be captured into a CUDA graph and replayed. Flags,
// signals and buffers must survive that; a counter of calls therefore lives on the device. One State serves
// one (problem, parameters, dtype, world). The same file compiles against the virtual node and against real
// CUDA + NVSHMEM. C++17; no other header needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace echolo {

enum class DType : std::int32_t {
  kBool,
  kU8,
  kI8,
  kI16,
  kI32,
  kI64,
  kF16,
  kBf16,
  kF32,
  kF64,
  kF8E4M3,
  kF8E5M2
};

struct Tensor {
  void* data;  // device memory, contiguous, row-major
  DType dtype;
  std::int32_t rank;      // number of dimensions, 0..8
  std::int64_t shape[8];  // elements; shape[0..rank) are valid

  template <typename T>
  T* as() const {
    return static_cast<T*>(data);
  }
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (std::int32_t i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

// In the order in which problem.toml declares them.
struct TensorList {
  const Tensor* items;
  std::int32_t count;
  const Tensor& operator[](std::int32_t i) const { return items[i]; }
};

struct Param {
  const char* name;
  std::int64_t value;
};

struct Launch {
  std::int32_t pe;  // this PE, 0 .. n_pes-1
  std::int32_t n_pes;
  DType dtype;  // the problem's dtype of this State
  std::int32_t n_params;
  const Param* params;  // the problem's parameters (M, N, K ...)
  const char* problem;  // its name

  // The value of parameter `name`; `otherwise` where the problem has none.
  std::int64_t param(const char* name, std::int64_t otherwise = 0) const {
    for (std::int32_t i = 0; i < n_params; ++i) {
      if (std::strcmp(params[i].name, name) == 0) return params[i].value;
    }
    return otherwise;
  }
};

}  // namespace echolo
