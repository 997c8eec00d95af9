// Memory pools (CUDA runtime API, "Stream Ordered Memory Allocator"). A pool counts what was allocated from
// it; memory that is freed is never handed out again while fresh addresses last, so that a use after free is
// found.
#include <algorithm>

#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

constexpr std::uint64_t kDefaultPool = 1;
// cudaMemPoolAttr
constexpr std::uint64_t kReuseFirst = 1, kReuseLast = 3, kThreshold = 4, kReservedHigh = 6, kUsedHigh = 8;

}  // namespace

int Node::pool_takes(PeState& state, std::uint64_t pool, std::uint64_t bytes) {
  const auto it = state.pools.find(pool);
  if (it == state.pools.end() || it->second.destroyed) return kBadValue;
  PeState::Pool& p = it->second;
  if (p.limit != 0 && bytes > p.limit - std::min(p.limit, p.used)) return 2;
  p.used += bytes;
  p.used_high = std::max(p.used_high, p.used);
  p.reserved = std::max(p.reserved, p.used);
  p.reserved_high = std::max(p.reserved_high, p.reserved);
  return kOk;
}

void Node::pool_gets_back(PeState& state, std::uint64_t address) {
  const auto it = state.pooled.find(address);
  if (it == state.pooled.end()) return;
  const auto [pool, bytes] = it->second;
  state.pooled.erase(it);
  const auto found = state.pools.find(pool);
  if (found == state.pools.end()) return;
  PeState::Pool& p = found->second;
  p.used -= std::min(p.used, bytes);
  p.reserved = std::max(p.used, std::min(p.reserved, p.threshold));
  if (p.destroyed && p.used == 0) state.pools.erase(found);
}

Answer Node::pool_call(int pe, HostThread& thread, wire::Reader in) {
  const auto what = in.choice(wire::PoolCall::kTrim);
  const std::uint64_t handle = in.u64(), attribute = in.u64(), value = in.u64();
  if (!in.done()) return Answer::malformed();
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  wire::Writer out;
  if (what == wire::PoolCall::kCreate) {
    const std::uint64_t made = 0x10000 + 16 * state.next_handle++;
    state.pools[made].limit = value;
    out.u64(made);
    return Answer::of(out);
  }
  const auto it = state.pools.find(handle);
  if (it == state.pools.end() || it->second.destroyed) return Answer::fail(kBadValue);
  PeState::Pool& p = it->second;
  switch (what) {
    case wire::PoolCall::kDestroy:
      if (handle == kDefaultPool) return Answer::fail(kBadValue);
      // What was allocated from it stays until it is freed.
      p.destroyed = true;
      if (p.used == 0) state.pools.erase(it);
      return Answer::ok();
    case wire::PoolCall::kTrim:
      p.reserved = std::max(p.used, std::min(p.reserved, value));
      return Answer::ok();
    case wire::PoolCall::kSet:
      if (attribute >= kReuseFirst && attribute <= kReuseLast) {
        p.reuse[attribute - kReuseFirst] = value != 0 ? 1 : 0;
      } else if (attribute == kThreshold) {
        p.threshold = value;
      } else if (attribute == kReservedHigh && value == 0) {
        p.reserved_high = p.reserved;
      } else if (attribute == kUsedHigh && value == 0) {
        p.used_high = p.used;
      } else {
        return Answer::fail(kBadValue);
      }
      return Answer::ok();
    case wire::PoolCall::kGet:
      if (attribute >= kReuseFirst && attribute <= kReuseLast) {
        out.u64(p.reuse[attribute - kReuseFirst]);
      } else if (attribute >= kThreshold && attribute <= kUsedHigh) {
        const std::uint64_t values[] = {p.threshold, p.reserved, p.reserved_high, p.used, p.used_high};
        out.u64(values[attribute - kThreshold]);
      } else {
        return Answer::fail(refuse(pe, thread,
                                   usage_error("cudaErrorNotSupported: attribute " +
                                               std::to_string(attribute) + " of a memory pool")));
      }
      return Answer::of(out);
    case wire::PoolCall::kCreate:
      break;
  }
  return Answer::malformed();
}

}  // namespace echolo::runtime
