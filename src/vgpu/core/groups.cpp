// Divergence and reconvergence of a warp's lanes. The group at the lowest place runs first (deeper calls
// before shallower ones), so lanes meet again where their paths join; a group that keeps branching backwards
// gives way to its siblings, so all lanes make progress.
#include <algorithm>
#include <bit>
#include <limits>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

bool can_merge(const Group& a, const Group& b) {
  return a.pc == b.pc && (a.frame == b.frame ||
                          (a.frame->image == b.frame->image && a.frame->local_base == b.frame->local_base));
}

bool may_join(const Group& group) {
  return group.state == GroupState::kRunnable || group.state == GroupState::kConverge;
}

// The order in which groups run: deeper calls first, then lower places.
bool runs_before(const Group& a, const Group& b) {
  if (a.frame->depth != b.frame->depth) return a.frame->depth > b.frame->depth;
  return a.pc < b.pc;
}

// Lanes that come back into a loop that is being watched bring along what they read on their way.
void merge_tracks(SpinTrack& into, SpinTrack& from) {
  constexpr auto kRecording = SpinTrack::Phase::kWholeGroup;
  if (into.follower && !from.follower && from.phase == kRecording) std::swap(into, from);
  if (into.phase != kRecording) return;
  if (from.phase != kRecording || (!from.follower && !into.follower)) {
    into.complete = false;
    return;
  }
  into.own_change = into.own_change || from.own_change;
  into.complete = into.complete && from.complete;
  into.watches.insert(into.watches.end(), from.watches.begin(), from.watches.end());
}

}  // namespace

void Machine::State::enter(CoreWarp& warp, const Group& group) {
  warp.lanes.registers = group.frame->registers;
  warp.param_base = group.frame->local_base;
  warp.trace = group.track.phase == SpinTrack::Phase::kWholeGroup;
}

std::int32_t Machine::State::stop_pc(const CoreWarp& warp) const {
  std::int32_t stop = std::numeric_limits<std::int32_t>::max();
  if (warp.groups.size() == 1) return stop;
  const Group& running = warp.groups[warp.current];
  for (const Group& other : warp.groups) {
    if (&other == &running || !may_join(other) || other.pc <= running.pc) continue;
    if (other.frame->image != running.frame->image || other.frame->local_base != running.frame->local_base)
      continue;
    stop = std::min(stop, other.pc);
  }
  return stop;
}

void Machine::State::merge_here(CoreWarp& warp) {
  for (std::size_t i = 0; i < warp.groups.size();) {
    Group& running = warp.groups[warp.current];
    Group& other = warp.groups[i];
    if (i == warp.current || !may_join(other) || !can_merge(running, other)) {
      ++i;
      continue;
    }
    if (other.frame != running.frame) merge_frames(warp, *running.frame, *other.frame, other.mask);
    running.mask |= other.mask;
    merge_tracks(running.track, other.track);
    warp.trace = running.track.phase == SpinTrack::Phase::kWholeGroup;
    drop_group(warp, i);
    warp.free_run = false;
    warp.back_branches = 0;
  }
}

void Machine::State::merge_frames(CoreWarp& warp, Activation& into, Activation& from, std::uint32_t mask) {
  const KernelImage& image = *into.image;
  for (const KernelImage::Region& region : image.regions) {
    if (region.lane_bytes == 0) {
      for (std::uint32_t at = region.begin; at < region.end; at += 4) {
        auto* to = reinterpret_cast<std::uint32_t*>(into.registers + at);
        const std::uint32_t bits = *reinterpret_cast<const std::uint32_t*>(from.registers + at);
        *to = (*to & ~mask) | (bits & mask);
      }
      continue;
    }
    // 128-bit registers are two arrays of 64-bit halves.
    const std::uint32_t step = std::min(region.lane_bytes, 8U);
    const std::uint32_t array = step * kWarpSize;
    for (std::uint32_t at = region.begin; at + array <= region.end; at += array) {
      for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
        const auto lane = static_cast<std::uint32_t>(std::countr_zero(bits));
        std::copy_n(from.registers + at + lane * step, step, into.registers + at + lane * step);
      }
    }
  }
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
    into.caller[lane] = from.caller[lane];
    into.return_pc[lane] = from.return_pc[lane];
  }
  into.lanes |= mask;
  leave_frame(warp, from, mask);
}

void Machine::State::split(CoreWarp& warp, std::uint32_t mask, std::int32_t pc) {
  Group& running = warp.groups[warp.current];
  running.mask &= ~mask;
  Group other;
  other.mask = mask;
  other.pc = pc;
  other.frame = running.frame;
  other.stamp = running.stamp;
  if (running.track.phase == SpinTrack::Phase::kWholeGroup) {
    other.track.phase = SpinTrack::Phase::kWholeGroup;
    other.track.follower = true;
  }
  warp.groups.push_back(std::move(other));
}

void Machine::State::drop_group(CoreWarp& warp, std::size_t index) {
  warp.groups.erase(warp.groups.begin() + static_cast<std::ptrdiff_t>(index));
  if (warp.current > index) --warp.current;
  if (warp.current >= warp.groups.size()) warp.current = 0;
}

bool Machine::State::pick(CoreWarp& warp) {
  if (warp.groups.size() <= 1) {
    warp.current = 0;
    warp.rotate = false;
    warp.free_run = false;
    return !warp.groups.empty() && warp.groups[0].state == GroupState::kRunnable;
  }
  const bool current_runs = warp.groups[warp.current].state == GroupState::kRunnable;
  if (current_runs) merge_here(warp);
  if (current_runs && warp.free_run && !warp.rotate) return true;
  std::size_t best = warp.groups.size();
  for (std::size_t i = 0; i < warp.groups.size(); ++i) {
    const Group& group = warp.groups[i];
    if (group.state != GroupState::kRunnable) continue;
    if (warp.rotate && i == warp.current) continue;
    if (best == warp.groups.size() ||
        (warp.rotate ? group.stamp < warp.groups[best].stamp : runs_before(group, warp.groups[best]))) {
      best = i;
    }
  }
  if (best == warp.groups.size()) {  // nobody else can run
    warp.rotate = false;
    warp.back_branches = 0;
    return current_runs;
  }
  warp.free_run = warp.rotate;
  warp.rotate = false;
  if (best != warp.current || warp.free_run) warp.back_branches = 0;
  warp.current = best;
  warp.groups[best].stamp = ++warp.stamp;
  merge_here(warp);
  return true;
}

bool Machine::State::converged(CoreWarp& warp, std::uint32_t mask, std::uint32_t needed) {
  if ((needed & ~mask) == 0) return true;
  Group& running = warp.groups[warp.current];
  const std::uint32_t passing = running.mask & ~mask;  // whose guard is false
  running.state = GroupState::kConverge;
  if (passing != 0) split(warp, passing, running.pc + 1);
  return false;
}

bool Machine::State::cross_lane(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  const auto execute_for = [&](std::uint32_t lanes) {
    (lanes == kAllLanes ? inst.alu_full : inst.alu)(warp.lanes, inst, lanes);
  };
  if (inst.membermask < 0) {
    if (!converged(warp, mask, warp.live)) return false;
    execute_for(mask);
    return true;
  }
  const auto* members = warp.lanes.read<std::uint32_t>(inst.operands[inst.membermask]);
  const std::uint32_t first = members[std::countr_zero(mask)];
  std::uint32_t same = 0;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    if (members[lane] == first) same |= 1U << static_cast<unsigned>(lane);
  }
  if (same == mask) {
    if (!converged(warp, mask, first & warp.live)) return false;
    execute_for(mask);
    return true;
  }
  // Several parties, each with a mask of its own (tiles of a warp).
  std::uint32_t done = 0;
  for (std::uint32_t open = mask; open != 0;) {
    const std::uint32_t party_mask = members[std::countr_zero(open)];
    std::uint32_t party = 0;
    for (std::uint32_t bits = open; bits != 0; bits &= bits - 1) {
      const int lane = std::countr_zero(bits);
      if (members[lane] == party_mask) party |= 1U << static_cast<unsigned>(lane);
    }
    open &= ~party;
    if ((party_mask & warp.live & ~party) != 0) continue;
    execute_for(party);
    done |= party;
  }
  if (done == mask) return true;
  Group& running = warp.groups[warp.current];
  const std::uint32_t passing = done | (running.mask & ~mask);
  const std::int32_t next = running.pc + 1;
  running.state = GroupState::kConverge;
  if (passing != 0) split(warp, passing, next);
  return false;
}

// bar.warp.sync: lanes meet by the value of their mask, wherever in the code each of them is (PTX
// ISA 9.7.13.3).
bool Machine::State::warp_sync(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  const auto* members = warp.lanes.read<std::uint32_t>(inst.operands[0]);
  const std::uint32_t first = members[std::countr_zero(mask)];
  if ((first & warp.live & ~mask) == 0) {
    bool same = true;
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1)
      same = same && members[std::countr_zero(bits)] == first;
    if (same) {
      memory->order().warp_sync(warp, first & warp.live);
      ++warp.groups[warp.current].pc;
      return true;
    }
  }
  Group& running = warp.groups[warp.current];
  const std::uint32_t passing = running.mask & ~mask;
  running.state = GroupState::kConverge;
  if (passing != 0) split(warp, passing, running.pc + 1);
  // Every lane that waits at such an instruction, with the mask that it names there.
  std::uint32_t waiting = 0;
  std::uint32_t named[kWarpSize] = {};
  const auto is_waiting = [](const Group& group) {
    const Inst& at = group.frame->image->code[static_cast<std::size_t>(group.pc)];
    return group.state == GroupState::kConverge && at.kind == InstKind::kControl &&
           at.control == static_cast<std::uint32_t>(Control::kWarpSync);
  };
  for (const Group& group : warp.groups) {
    if (!is_waiting(group)) continue;
    const Inst& at = group.frame->image->code[static_cast<std::size_t>(group.pc)];
    const Lanes lanes{group.frame->registers, warp.lanes.pool, nullptr};
    const auto* values = lanes.read<std::uint32_t>(at.operands[0]);
    for (std::uint32_t bits = group.mask; bits != 0; bits &= bits - 1) {
      const int lane = std::countr_zero(bits);
      named[lane] = values[lane];
    }
    waiting |= group.mask;
  }
  std::uint32_t released = 0;
  for (std::uint32_t bits = waiting; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    bool all_there = true;
    for (std::uint32_t need = named[lane] & warp.live; need != 0; need &= need - 1) {
      const int other = std::countr_zero(need);
      if ((waiting >> static_cast<unsigned>(other) & 1U) == 0 || named[other] != named[lane])
        all_there = false;
    }
    if (all_there) released |= 1U << static_cast<unsigned>(lane);
  }
  for (std::uint32_t open = released; open != 0;) {
    std::uint32_t party = 0;
    const std::uint32_t name = named[std::countr_zero(open)];
    for (std::uint32_t bits = open; bits != 0; bits &= bits - 1) {
      if (named[std::countr_zero(bits)] == name) party |= bits & (0U - bits);
    }
    memory->order().warp_sync(warp, party);
    open &= ~party;
  }
  const std::size_t n_groups = warp.groups.size();
  for (std::size_t i = 0; i < n_groups; ++i) {
    const std::uint32_t go = warp.groups[i].mask & released;
    if (go == 0 || !is_waiting(warp.groups[i])) continue;
    if (go == warp.groups[i].mask) {
      warp.groups[i].state = GroupState::kRunnable;
      ++warp.groups[i].pc;
      continue;
    }
    warp.groups[i].mask &= ~go;
    Group freed;
    freed.mask = go;
    freed.pc = warp.groups[i].pc + 1;
    freed.frame = warp.groups[i].frame;
    warp.groups.push_back(std::move(freed));
  }
  return false;
}

void Machine::State::exit_lanes(CoreWarp& warp, std::uint32_t mask) {
  Group& running = warp.groups[warp.current];
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
    for (Activation* frame = running.frame; frame != nullptr;) {
      Activation* caller = frame->caller[lane];
      leave_frame(warp, *frame, 1U << lane);
      frame = caller;
    }
  }
  running.mask &= ~mask;
  warp.live &= ~mask;
  warp.core_block->live_threads -= static_cast<std::uint32_t>(std::popcount(mask));
  if (running.mask == 0) drop_group(warp, warp.current);
  for (Group& group : warp.groups) {
    if (group.state == GroupState::kConverge) group.state = GroupState::kRunnable;
  }
  leave_cluster_barrier(warp, mask);
  if (warp.live == 0) --warp.core_block->live_warps;
  check_barriers(*warp.core_block);
  check_block_calls(*warp.core_block);
}

void Machine::State::settle(CoreWarp& warp) {
  bool all_wait_for_lanes = !warp.groups.empty();
  for (const Group& group : warp.groups)
    all_wait_for_lanes = all_wait_for_lanes && group.state == GroupState::kConverge;
  if (all_wait_for_lanes && !rendezvous(warp)) report_divergence(warp);
}

}  // namespace echolo::vgpu
