// The inner loop: runs the current group of a warp until it must give way.
#include <algorithm>
#include <bit>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {

// Backward branches that a group may take while sibling groups could run.
constexpr std::uint32_t kRotateAfter = 32;

template <bool kMetered>
std::uint64_t Machine::State::execute(CoreWarp& warp, std::uint64_t budget) {
  std::uint64_t left = budget;
  const std::uint64_t used_before = warp.turn_used;
  std::uint64_t lane_count = 0;
  Group* group = &warp.groups[warp.current];
  enter(warp, *group);
  if (group->held_until >= 0) [[unlikely]] {
    --left;
    if (!do_held_load(warp, *group)) return left;
  }
  const Inst* code = group->frame->image->code.data();
  std::int32_t pc = group->pc;
  std::uint32_t mask = group->mask;
  auto n_lanes = static_cast<std::uint32_t>(std::popcount(mask));
  std::int32_t stop = stop_pc(warp);

  for (;;) {
    if (left == 0) {
      group->pc = pc;
      break;
    }
    if (pc == stop) [[unlikely]] {
      group->pc = pc;
      merge_here(warp);
      group = &warp.groups[warp.current];
      mask = group->mask;
      n_lanes = static_cast<std::uint32_t>(std::popcount(mask));
      stop = stop_pc(warp);
    }
    const Inst& inst = code[pc];
    --left;
    if constexpr (kMetered) meter->instruction(warp, inst);
    std::uint32_t active = mask;
    if (inst.guard != 0) {
      const std::uint32_t predicate = *warp.lanes.read<std::uint32_t>(inst.guard_slot);
      active &= inst.guard == 1 ? predicate : ~predicate;
      if (active == 0) {
        ++pc;
        continue;
      }
      lane_count += static_cast<std::uint32_t>(std::popcount(active));
    } else {
      lane_count += n_lanes;
    }
    if (inst.kind == InstKind::kAlu) {
      (active == kAllLanes ? inst.alu_full : inst.alu)(warp.lanes, inst, active);
      ++pc;
      continue;
    }
    if (inst.kind == InstKind::kMemory) {
      if (inst.converge) [[unlikely]] {
        group->pc = pc;
        if (!converged(warp, active, warp.live)) break;
      }
      if (inst.target >= 0 && hold_share != 0) [[unlikely]] {
        group->pc = pc;
        if (const std::uint64_t ahead = hold_load(warp, *group, pc, active); ahead != 0) {
          left -= std::min(left, ahead);
          lane_count -= static_cast<std::uint32_t>(std::popcount(active));  // counted when it is done
          break;
        }
      }
      if (tracer != nullptr) [[unlikely]] {
        group->pc = pc;
        tracer->before_access(warp, inst, active, *memory);
      }
      if (warp.trace) [[unlikely]] {
        const std::uint64_t before = memory->changes();
        record_access(warp, inst, active);
        const MemOutcome outcome = inst.memory(warp, inst, active);
        if (memory->changes() != before) group->track.own_change = true;
        if (outcome == MemOutcome::kFault) {
          group->pc = pc;
          break;
        }
      } else if (inst.memory(warp, inst, active) == MemOutcome::kFault) {
        group->pc = pc;
        break;
      }
      if (tracer != nullptr) [[unlikely]]
        tracer->after_access(warp, inst, to_ns(now_cycles_of(warp)));
      ++pc;
      continue;
    }
    group->pc = pc;
    if (inst.kind == InstKind::kCrossLane) {
      if (!cross_lane(warp, inst, active)) break;
      ++pc;
      group->pc = pc;
      continue;
    }
    if (inst.control == static_cast<std::uint32_t>(Control::kBra)) {
      if (active != mask) {
        group->pc = pc + 1;
        split(warp, active, inst.target);
        break;
      }
      const std::int32_t from = pc;
      pc = inst.target;
      group->pc = pc;
      if (pc <= from) {
        const bool watched = ++group->track.visits >= group->track.next_visit;
        if (watched && visit_back_branch(warp, from, pc)) break;
        if (warp.groups.size() > 1 && ++warp.back_branches > kRotateAfter) warp.rotate = true;
      }
      if (warp.groups.size() > 1) break;
      continue;
    }
    warp.turn_used = used_before + (budget - left);
    if (!control(warp, inst, active)) break;
    // Calls and returns change the frame, and with it the code.
    const std::int32_t next = pc + 1;
    group = &warp.groups[warp.current];
    code = group->frame->image->code.data();
    pc = group->pc;
    if (warp.groups.size() > 1 && pc != next) break;
  }
  counters.lane_instructions += lane_count;
  warp.turn_used = used_before + (budget - left);
  return left;
}

template std::uint64_t Machine::State::execute<false>(CoreWarp& warp, std::uint64_t budget);
template std::uint64_t Machine::State::execute<true>(CoreWarp& warp, std::uint64_t budget);

}  // namespace echolo::vgpu
