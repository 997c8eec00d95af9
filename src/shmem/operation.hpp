// What an NVSHMEM function name means: one Operation a name. Internal to shmem/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "shmem/elements.hpp"
#include "vgpu/device_calls.hpp"

namespace echolo::shmem {

struct Call;

using Handler = vgpu::CallOutcome (*)(Call& call);

enum class Amo : std::uint8_t { kFetch, kSet, kAdd, kAnd, kOr, kXor, kSwap, kCompareSwap, kInc };
enum class Quantifier : std::uint8_t { kOne, kAll, kAny, kSome };

struct Operation {
  std::string name;  // as in the API
  Handler handler = nullptr;
  const Element* element = nullptr;
  vgpu::Granularity granularity = vgpu::Granularity::kThread;
  // One letter an argument: p pointer, z size, q 64-bit signal value, i int, v element value.
  std::string arguments;
  char result = 0;        // 0 nothing, i int, z size, q 64 bit, p pointer, v element value
  bool on_device = true;  // false: for hosts only
  bool on_host = true;    // false: declared for the device only
  // Details that a handler reads.
  bool get = false;  // put or get
  bool strided = false;
  bool signal = false;       // put with signal
  bool nonblocking = false;  // _nbi
  bool test = false;         // test rather than wait
  bool vector = false;       // cmp_values is an array
  bool barrier = false;      // barrier (completes operations) rather than sync
  bool whole_world = false;  // barrier_all / sync_all: no team argument
  bool fetches = false;      // the atomic returns the old value
  Amo amo = Amo::kFetch;
  Quantifier quantifier = Quantifier::kOne;
  Reduction reduction = Reduction::kNone;
};

// All functions, by name; made once.
const std::map<std::string, Operation, std::less<>>& operations();
// Also accepts the nvshmemx_..._on_stream forms, which mean the same at their place in the stream; nullptr:
// unknown.
const Operation* find_host_operation(std::string_view name);

}  // namespace echolo::shmem
