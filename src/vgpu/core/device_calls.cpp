// Calls of functions that somebody else implements (NVSHMEM's device API), see device_calls.hpp.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

void copy_result(const CoreWarp& warp, const Activation& frame, const CallSite& site, int lane,
                 const std::uint8_t* result) {
  for (const ParamPiece& piece : site.results) {
    const std::uint32_t at = frame.local_base + piece.at;
    std::memcpy(warp.lane_local(lane) + at, result + piece.callee_at, piece.bytes);
    const std::size_t first = static_cast<std::size_t>(lane) * warp.local_bytes + at;
    for (std::size_t i = first; i < first + piece.bytes; ++i) {
      warp.local_written[i / 8] = static_cast<std::uint8_t>(warp.local_written[i / 8] | 1U << (i % 8));
    }
  }
}

constexpr std::size_t kResultBytes = 64;

// Calls of a warp or block that move data read and write for each thread as it comes; barriers and
// collectives bring the threads together first. All of them end together.
bool gathers(const DeviceCall& call) {
  return call.name.find("put") == std::string::npos && call.name.find("get") == std::string::npos;
}

}  // namespace

CallOutcome Machine::State::attempt(CoreWarp& warp, const Group& group, const Inst& inst,
                                    const CallSite& site, int lane, std::uint64_t& token,
                                    std::unique_ptr<WaitReason>& reason, std::uint8_t* result) {
  std::uint8_t small[256];
  std::vector<std::uint8_t> large;
  std::uint8_t* arguments = small;
  if (site.argument_bytes > sizeof small) {
    large.resize(site.argument_bytes);
    arguments = large.data();
  }
  const std::uint8_t* from = warp.lane_local(lane) + group.frame->local_base;
  for (const ParamPiece& piece : site.arguments)
    std::memcpy(arguments + piece.callee_at, from + piece.at, piece.bytes);
  std::memset(result, 0, kResultBytes);
  const std::uint64_t token_before = token;
  DeviceCallContext context{warp,
                            inst,
                            lane,
                            warp.core_block->grid->pe,
                            *memory,
                            findings,
                            token,
                            to_ns(now_cycles_of(warp)),
                            {},
                            arguments,
                            site.argument_offsets.data(),
                            result};
  const CallOutcome outcome = site.device->function(site.device->self, context, site.device->variant);
  if (outcome != CallOutcome::kBlocked || token != token_before) ++call_progress;
  if (outcome == CallOutcome::kBlocked && reason == nullptr) {
    reason = std::make_unique<WaitReason>(std::move(context.wait));
  }
  if (outcome == CallOutcome::kDone) token = 0;
  return outcome;
}

bool Machine::State::device_call(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  const CallSite& site = warp.groups[warp.current].frame->image->calls[inst.aux[0]];
  if (site.device->granularity == Granularity::kBlock) return block_call(warp, inst, site, mask);
  const bool whole_warp = site.device->granularity == Granularity::kWarp;
  if (whole_warp && !converged(warp, mask, warp.live)) return false;
  Group& group = warp.groups[warp.current];
  if (warp.trace) group.track.complete = false;
  alignas(16) std::uint8_t result[kResultBytes];
  std::unique_ptr<WaitReason> reason;
  std::uint32_t done = 0;
  int reason_lane = 0;
  const std::uint64_t changes_before = memory->changes();
  if (whole_warp && gathers(*site.device)) memory->order().warp_sync(warp, mask);
  for (std::uint32_t bits = whole_warp ? mask & (0U - mask) : mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    const bool had_reason = reason != nullptr;
    const CallOutcome outcome =
        attempt(warp, group, inst, site, lane, warp.tokens[static_cast<std::size_t>(lane)], reason, result);
    if (!had_reason && reason != nullptr) reason_lane = lane;
    if (outcome == CallOutcome::kFault) return false;
    if (outcome != CallOutcome::kDone) continue;
    done |= 1U << static_cast<unsigned>(lane);
    copy_result(warp, *group.frame, site, lane, result);
  }
  if (whole_warp && done != 0) {
    memory->order().warp_sync(warp, mask);
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
      copy_result(warp, *group.frame, site, std::countr_zero(bits), result);
    }
    done = mask;
  }
  if (warp.trace && memory->changes() != changes_before) group.track.own_change = true;
  if (tracer != nullptr && done != 0) note_event(warp, inst, done, std::string(site.device->name) + ": done");
  if (tracer != nullptr && done != mask)
    note_event(warp, inst, mask & ~done, std::string(site.device->name) + ": waits");
  if (done == mask) {
    group.reason.reset();
    ++group.pc;
    return true;
  }
  const std::uint32_t passing = done | (group.mask & ~mask);
  const std::int32_t next = group.pc + 1;
  group.state = GroupState::kCall;
  group.reason = std::move(reason);
  group.reason_lane = reason_lane;
  group.parked_changes = memory->changes();
  group.parked_progress = call_progress;
  park(warp);
  if (passing != 0) split(warp, passing, next);
  return false;
}

// All live threads of the block come to the call; then the lowest warp's lowest lane makes it for all.
bool Machine::State::block_call(CoreWarp& warp, const Inst& inst, const CallSite& site, std::uint32_t mask) {
  CoreBlock& block = *warp.core_block;
  const auto find_call = [&] {
    return std::find_if(block.calls.begin(), block.calls.end(),
                        [&](const BlockCall& c) { return c.inst == &inst; });
  };
  auto at = find_call();
  if (at == block.calls.end()) {
    block.calls.push_back({&inst, 0, 0, false});
    at = block.calls.end() - 1;
  }
  ++warp.effects;
  Group* group = &warp.groups[warp.current];
  if (!at->gathered) {
    at->arrived += static_cast<std::uint32_t>(std::popcount(mask));
    const std::uint32_t passing = group->mask & ~mask;
    group->state = GroupState::kBlockCall;
    if (passing != 0) split(warp, passing, group->pc + 1);
    check_block_calls(block);
    return false;
  }
  // The leader, trying on behalf of everybody.
  alignas(16) std::uint8_t result[kResultBytes];
  std::unique_ptr<WaitReason> reason;
  const int lane = std::countr_zero(group->mask);
  if (gathers(*site.device)) memory->order().block_barrier(block);
  const CallOutcome outcome = attempt(warp, *group, inst, site, lane, at->token, reason, result);
  if (outcome == CallOutcome::kFault) return false;
  if (outcome == CallOutcome::kBlocked) {
    group->state = GroupState::kCall;
    group->reason = std::move(reason);
    group->reason_lane = lane;
    group->parked_changes = memory->changes();
    group->parked_progress = call_progress;
    park(warp);
    return false;
  }
  block.calls.erase(at);
  memory->order().block_barrier(block);
  for (CoreWarp* other : block.warps) {
    bool freed = false;
    for (Group& waiting : other->groups) {
      const bool leader = other == &warp && &waiting == group;
      const bool here = waiting.state == GroupState::kBlockCall &&
                        &waiting.frame->image->code[static_cast<std::size_t>(waiting.pc)] == &inst;
      if (!leader && !here) continue;
      for (std::uint32_t bits = waiting.mask; bits != 0; bits &= bits - 1) {
        copy_result(*other, *waiting.frame, site, std::countr_zero(bits), result);
      }
      waiting.state = GroupState::kRunnable;
      waiting.reason.reset();
      ++waiting.pc;
      freed = true;
    }
    if (freed && other != &warp) make_ready(*other);
  }
  return warp.groups.size() == 1;
}

void Machine::State::check_block_calls(CoreBlock& block) {
  for (BlockCall& call : block.calls) {
    if (call.gathered || call.arrived < block.live_threads || block.live_threads == 0) continue;
    call.gathered = true;
    for (CoreWarp* warp : block.warps) {
      bool found = false;
      for (Group& group : warp->groups) {
        if (group.state != GroupState::kBlockCall ||
            &group.frame->image->code[static_cast<std::size_t>(group.pc)] != call.inst) {
          continue;
        }
        group.state = GroupState::kRunnable;
        found = true;
        break;
      }
      if (found) {
        make_ready(*warp);
        break;
      }
    }
  }
}

}  // namespace echolo::vgpu
