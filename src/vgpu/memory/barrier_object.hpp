// Private to vgpu/memory and vgpu/core: what an mbarrier object holds (PTX ISA, "Parallel Synchronization and
// Communication Instructions: mbarrier"). Its layout is the implementation's own: bits 0-19 pending arrivals,
// 20-39 expected arrivals, 40-61 pending bytes (two's complement), 63 the phase. A phase ends when no arrival
// and no byte is pending.
#pragma once

#include <cstdint>
#include <string>

namespace echolo::vgpu {

struct BarrierObject {
  static constexpr std::uint64_t kCountMask = (1U << 20U) - 1U;
  static constexpr std::int64_t kMaxBytes = (1 << 20) - 1;

  std::int64_t pending = 0, expected = 0, bytes = 0;
  bool phase = false;

  static BarrierObject unpack(std::uint64_t word) {
    BarrierObject out;
    out.pending = static_cast<std::int64_t>(word & kCountMask);
    out.expected = static_cast<std::int64_t>((word >> 20U) & kCountMask);
    out.bytes = static_cast<std::int64_t>(word << 2U) >> 42;
    out.phase = (word >> 63U) != 0;
    return out;
  }
  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(pending) | static_cast<std::uint64_t>(expected) << 20U |
           (static_cast<std::uint64_t>(bytes) & ((1U << 22U) - 1U)) << 40U | std::uint64_t{phase} << 63U;
  }
  bool complete_if_done() {
    if (pending != 0 || bytes != 0) return false;
    phase = !phase;
    pending = expected;
    return true;
  }
  bool bytes_in_range() const { return bytes <= kMaxBytes && bytes >= -kMaxBytes; }
  // "2 of 3 arrivals and 4096 bytes are missing"
  std::string missing() const {
    std::string text = std::to_string(pending) + " of " + std::to_string(expected) +
                       (expected == 1 ? " arrival" : " arrivals");
    if (bytes > 0) text += " and " + std::to_string(bytes) + " bytes are missing";
    if (bytes < 0) {
      text += " missing, and " + std::to_string(-bytes) + " bytes more came than were announced (expect_tx)";
    }
    if (bytes == 0) text += pending == 1 ? " is missing" : " are missing";
    return text;
  }
};

}  // namespace echolo::vgpu
