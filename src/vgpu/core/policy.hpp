// Scheduling policies: in which order warps that can run take their turns. Every policy depends on its seed
// and on what was executed only, and lets every warp that can run go on in the end, whatever the others do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace echolo::vgpu {

enum class Policy : std::uint8_t {
  kFair,    // turn and turn about, equal slices
  kRandom,  // any warp next, slices of any length
  kPct1,    // Probabilistic Concurrency Testing (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS 2010):
  kPct2,    // the highest of random priorities runs until it waits; at d - 1 random points, d = 1 .. 3, the
  kPct3,    // running one falls behind all others. Seeds choose whether warps, blocks or PEs have priorities
  kOneSlowPe,      // one PE, drawn from the seed, goes on only when nobody else can, or ever so seldom
  kReversed,       // blocks start in reverse order, and the last PE's last block runs as long as it can
  kLazyDelivery,   // as fair; NVSHMEM operations on their way are done as late as allowed
  kEagerDelivery,  // as fair; they are done as soon as they are issued
};

struct PolicyInfo {
  Policy policy;
  const char* name;
  const char* about;  // half a sentence for help texts
};
// All of them, in the order in which --schedules spreads over them.
std::span<const PolicyInfo> policies();

std::string_view name_of(Policy policy);
// Error (kUsage): no such policy; names those that exist.
Result<Policy> parse_policy(std::string_view name);
// "fair, random, ..."
std::string policy_names();

}  // namespace echolo::vgpu
