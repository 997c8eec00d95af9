// Small random kernels that are right by construction (no race, no undefined value, barriers and shuffles
// only where all threads come), as PTX text, and what a plain scalar evaluator says they compute. Used by the
// tests (fixed seeds) and by fuzz/valid_kernels.cpp.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.hpp"

namespace echolo::vgpu {

// Where the generator's decisions come from: a seed, or bytes (after their end every answer is 0).
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : rng_(seed), seeded_(true) {}
  explicit Choices(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint32_t below(std::uint32_t n);  // n > 0
  std::uint32_t word();                  // any value, odd ones (0, 1, -1, powers of two) more often

 private:
  Rng rng_{0};
  bool seeded_ = false;
  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
};

inline constexpr std::uint32_t kVariables = 6;     // 32-bit variables a thread
inline constexpr std::uint32_t kAccumulators = 8;  // words that all threads combine values into

struct RandomKernel {
  std::uint32_t threads = 32, blocks = 1;
  std::string ptx;                     // entry `k(.param .u64 in, .param .u64 out, .param .u64 acc)`
  std::vector<std::uint32_t> in;       // [blocks * threads * kVariables]
  std::vector<std::uint32_t> acc;      // [kAccumulators] before the kernel
  std::vector<std::uint32_t> out;      // [blocks * threads * kVariables] that it must give
  std::vector<std::uint32_t> acc_out;  // [kAccumulators]
};

RandomKernel make_random_kernel(Choices& choices);

}  // namespace echolo::vgpu
