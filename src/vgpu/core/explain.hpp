// What waiting groups wait for, in words, and the findings made of it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {

// A group that cannot go on.
struct Waiter {
  enum class Kind : std::uint8_t {
    kWord,        // for a word in memory: a spin, or a device call that waits for one
    kCollective,  // in a device call, for other PEs
    kThreads,     // at a barrier, a warp-wide or a block-wide operation: for threads of its block
    kLoop,        // not stopped, but in a loop that has no effect
    kSleep,
  };
  Kind kind = Kind::kThreads;
  CoreWarp* warp = nullptr;
  const Group* group = nullptr;
  const Inst* inst = nullptr;  // where it waits
  int lane = 0;
  std::string waits_for, holds;
  std::uint64_t address = 0;  // kWord in device memory
};

// What the condition that ends a spinning loop compares, as far as the code shows it.
struct SpinCondition {
  const Inst* load = nullptr;        // the load, or atomic, that feeds it
  const Watch* watch = nullptr;      // what that load read, on the group's first lane where possible
  std::string comparison;            // ">= 3"; empty: not a plain comparison
  ptx::Type type = ptx::Type::kU32;  // of the loaded word
};
std::optional<SpinCondition> spin_condition(const Group& group);

// "flag[2] on PE 0", "`tile`[3] in shared memory", "the word at byte 8 of 64 KiB from nvshmem_malloc on PE
// 1".
std::string describe_word(const Memory& memory, std::uint64_t address, std::uint32_t bytes);
std::string describe_shared_word(const CoreWarp& warp, std::uint32_t offset, std::uint32_t bytes);
// A value as its type prints.
std::string print_value(ptx::Type type, std::uint64_t bits);

Waiter describe_group(const Memory& memory, CoreWarp& warp, const Group& group);
const Inst& inst_at(const Group& group);

// Where the block's threads wait for each other only, which they can never end: one finding for it.
std::optional<Finding> barrier_finding(const CoreBlock& block, const std::vector<Waiter>& waiters);

}  // namespace echolo::vgpu
