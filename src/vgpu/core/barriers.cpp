// Barriers of a block: bar and barrier (PTX ISA 9.7.13.1). Threads are counted; a warp all of whose live
// lanes have arrived counts as 32, so that counts given in whole warps fit blocks that end in part of one.
// Threads that have exited are not waited for.
#include <bit>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {

bool Machine::State::complete(const CoreBlock& block, const BarrierState& state) const {
  if (!state.open) return false;
  return state.expected == 0 ? state.waiting_threads >= block.live_threads : state.arrived >= state.expected;
}

bool Machine::State::barrier(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  const BarrierForm form = BarrierForm::unpack(inst.aux[0]);
  // A warp that the scheduler let diverge comes together again before an aligned barrier; lanes that never
  // come are reported when nothing else can happen.
  if (form.aligned && !converged(warp, mask, warp.live)) return false;
  const bool reduces =
      form.action != BarrierForm::Action::kSync && form.action != BarrierForm::Action::kArrive;
  const std::size_t at = reduces ? 1 : 0;
  const int lane = std::countr_zero(mask);
  const std::uint32_t number = warp.lanes.read<std::uint32_t>(inst.operands[at])[lane];
  const std::uint32_t count =
      form.has_count ? warp.lanes.read<std::uint32_t>(inst.operands[at + 1])[lane] : 0;
  if (number > 15) {
    trap(warp, inst, mask,
         "barrier " + std::to_string(number) + " does not exist; a block has barriers 0 to 15");
    return false;
  }
  if (form.has_count && (count == 0 || count % kWarpSize != 0)) {
    trap(warp, inst, mask,
         "a barrier's thread count must be a positive multiple of 32, and this one is " +
             std::to_string(count));
    return false;
  }
  CoreBlock& block = *warp.core_block;
  BarrierState& state = block.barriers[number];
  if (!state.open) {
    state = BarrierState{};
    state.open = true;
    state.expected = count;
    state.at.assign(block.warps.size(), 0);
    state.padded.assign(block.warps.size(), 0);
  } else if (state.expected != count) {
    Finding finding;
    finding.kind = FindingKind::kBarrierDivergence;
    finding.fatal = true;
    const auto name = [](std::uint32_t n) {
      return n == 0 ? std::string("all threads") : std::to_string(n) + " threads";
    };
    finding.message = "barrier " + std::to_string(number) + " is waited for by " + name(state.expected) +
                      " at one place and " + name(count) + " at another, at the same time";
    finding.advice =
        "give every use of one barrier the same thread count, or use barriers of different numbers";
    finding.sites.push_back(make_site(warp, lane, inst, "barrier"));
    for (CoreWarp* other : block.warps) {
      for (const Group& group : other->groups) {
        if (group.state != GroupState::kBarrier || group.barrier != static_cast<std::int16_t>(number))
          continue;
        if (finding.sites.size() > 1) continue;
        const Inst& place = group.frame->image->code[static_cast<std::size_t>(group.pc)];
        finding.sites.push_back(make_site(*other, std::countr_zero(group.mask), place, "barrier"));
      }
    }
    findings.add(std::move(finding));
    return false;
  }
  ++warp.barriers;
  if (tracer != nullptr) note_event(warp, inst, mask, "barrier " + std::to_string(number) + ": arrives");
  if (reduces) {
    std::uint32_t given = *warp.lanes.read<std::uint32_t>(inst.operands[3]);
    if (form.negated) given = ~given;
    state.popc += static_cast<std::uint32_t>(std::popcount(given & mask));
    state.any = state.any || (given & mask) != 0;
    state.all = state.all && (given & mask) == mask;
  }
  state.arrived += static_cast<std::uint32_t>(std::popcount(mask));
  // A barrier of all threads is one step; others gather what each of their threads knows.
  if (form.has_count) memory->order().arrive(warp, mask, static_cast<int>(number));
  if (form.action == BarrierForm::Action::kArrive) {
    // The lanes go on and may arrive again in the same phase, so a full warp is padded at once.
    if (mask == warp.live) state.arrived += static_cast<std::uint32_t>(kWarpSize - std::popcount(mask));
    ++warp.groups[warp.current].pc;
    check_barriers(block);
    return true;
  }
  state.waiting_threads += static_cast<std::uint32_t>(std::popcount(mask));
  state.at[warp.index_in_block] |= mask;
  Group& group = warp.groups[warp.current];
  const std::uint32_t passing = group.mask & ~mask;
  group.state = GroupState::kBarrier;
  group.barrier = static_cast<std::int16_t>(number);
  if (passing != 0) split(warp, passing, group.pc + 1);
  check_barriers(block);
  return warp.groups[warp.current].state == GroupState::kRunnable && warp.groups.size() == 1;
}

void Machine::State::check_barriers(CoreBlock& block) {
  for (int number = 0; number < 16; ++number) {
    BarrierState& state = block.barriers[static_cast<std::size_t>(number)];
    if (!state.open) continue;
    for (std::size_t i = 0; i < block.warps.size(); ++i) {
      const std::uint32_t live = block.warps[i]->live;
      if (state.padded[i] != 0 || state.at[i] == 0 || (live & ~state.at[i]) != 0) continue;
      state.padded[i] = 1;
      state.arrived += static_cast<std::uint32_t>(kWarpSize - std::popcount(state.at[i]));
    }
    if (complete(block, state)) release(block, number);
  }
}

void Machine::State::release(CoreBlock& block, int number) {
  BarrierState& state = block.barriers[static_cast<std::size_t>(number)];
  Order& order = memory->order();
  const bool partial = state.expected != 0;
  if (!partial) order.block_barrier(block);
  for (CoreWarp* warp : block.warps) {
    bool freed = false;
    for (Group& group : warp->groups) {
      if (group.state != GroupState::kBarrier || group.barrier != number) continue;
      const Inst& inst = group.frame->image->code[static_cast<std::size_t>(group.pc)];
      const BarrierForm form = BarrierForm::unpack(inst.aux[0]);
      const Lanes lanes{group.frame->registers, warp->lanes.pool, nullptr};
      if (form.action == BarrierForm::Action::kRedPopc) {
        auto* to = lanes.write<std::uint32_t>(inst.operands[0]);
        for (std::uint32_t bits = group.mask; bits != 0; bits &= bits - 1)
          to[std::countr_zero(bits)] = state.popc;
      } else if (form.action != BarrierForm::Action::kSync) {
        const bool value = form.action == BarrierForm::Action::kRedAnd ? state.all : state.any;
        auto* to = lanes.write<std::uint32_t>(inst.operands[0]);
        *to = value ? *to | group.mask : *to & ~group.mask;
      }
      if (partial) order.leave(*warp, group.mask, number);
      if (tracer != nullptr)
        note_event(*warp, inst, group.mask, "barrier " + std::to_string(number) + ": goes on");
      group.state = GroupState::kRunnable;
      group.barrier = -1;
      ++group.pc;
      freed = true;
    }
    if (freed) make_ready(*warp);
  }
  if (partial) order.close(block, number);
  state = BarrierState{};
}

}  // namespace echolo::vgpu
