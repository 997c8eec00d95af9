// Loads that are bound late. A relaxed load may take its value after later accesses of its thread to other
// places are done, as long as nothing between them needs the value or orders the two (PTX ISA, "Memory
// Consistency Model": "Causality Order", "Coherence"; load buffering, LB). So some of the time such a load is
// held: the instructions behind it, up to a store that others can see, are executed first, then others have
// their turn, then the load is done. Older values than the newest are vgpu/order/versions.cpp's affair.
#include <algorithm>
#include <bit>
#include <set>

#include "vgpu/core/decode_function.hpp"
#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kMostAhead = 32;  // instructions that may be executed before a held load

bool is_plain(const Inst& inst, ptx::Opcode op) {
  if (inst.kind != InstKind::kMemory || inst.converge || inst.source == nullptr || inst.source->op != op)
    return false;
  return inst.source->order == ptx::Order::kWeak || inst.source->order == ptx::Order::kRelaxed;
}

bool seen_by_others(const ptx::Instruction& source) {
  return source.space == ptx::Space::kGlobal || source.space == ptx::Space::kGeneric;
}

// Where an instruction's registers lie, as [begin, end) in the frame.
struct Range {
  std::uint32_t begin = 0, end = 0;
};

struct Registers {
  std::vector<Range> reads, writes;
};

Registers registers_of(const KernelImage& image, const Inst& inst) {
  Registers out;
  const std::size_t first = static_cast<std::size_t>(inst.operands - image.operand_slots.data());
  const auto range = [](Slot slot, unsigned bits) {
    return Range{slot.bits, slot.bits + (bits == 1 ? 4U : bits / 8U * kWarpSize)};
  };
  for (std::size_t i = 0; i < inst.n_operands; ++i) {
    const Slot slot = inst.operands[i];
    if ((slot.bits & Slot::kPool) != 0) continue;
    const unsigned bits = std::max<unsigned>(image.operand_widths[first + i], 1);
    (i < inst.n_destinations ? out.writes : out.reads).push_back(range(slot, bits));
  }
  if (inst.guard != 0) out.reads.push_back(range(inst.guard_slot, 1));
  return out;
}

bool meet(const std::vector<Range>& a, const std::vector<Range>& b) {
  return std::any_of(a.begin(), a.end(), [&](const Range& x) {
    return std::any_of(b.begin(), b.end(),
                       [&](const Range& y) { return x.begin < y.end && y.begin < x.end; });
  });
}

std::set<std::int32_t> branch_targets(const KernelImage& image) {
  std::set<std::int32_t> targets;
  for (const Inst& inst : image.code) {
    if (inst.kind == InstKind::kControl && inst.control == static_cast<std::uint32_t>(Control::kBra))
      targets.insert(inst.target);
  }
  for (const std::vector<std::int32_t>& table : image.branch_tables)
    targets.insert(table.begin(), table.end());
  return targets;
}

}  // namespace

void find_held_loads(KernelImage& image) {
  std::set<std::int32_t> targets;
  for (std::size_t at = 0; at < image.code.size(); ++at) {
    Inst& load = image.code[at];
    if (!is_plain(load, ptx::Opcode::kLd) || load.source->order != ptx::Order::kRelaxed ||
        !seen_by_others(*load.source))
      continue;
    if (targets.empty()) targets = branch_targets(image);
    const Registers own = registers_of(image, load);
    const std::size_t end = std::min(image.code.size(), at + 1 + kMostAhead);
    for (std::size_t i = at + 1; i < end && !targets.contains(static_cast<std::int32_t>(i)); ++i) {
      const Inst& inst = image.code[i];
      const bool store = is_plain(inst, ptx::Opcode::kSt);
      if (inst.kind != InstKind::kAlu && !store && !is_plain(inst, ptx::Opcode::kLd)) break;
      const Registers other = registers_of(image, inst);
      if (meet(other.reads, own.writes) || meet(other.writes, own.writes) || meet(other.writes, own.reads))
        break;
      if (store && seen_by_others(*inst.source)) load.target = static_cast<std::int32_t>(i) + 1;
    }
  }
}

std::uint64_t Machine::State::hold_load(CoreWarp& warp, Group& group, std::int32_t pc, std::uint32_t active) {
  if (hold_rng.below(256) >= hold_share || warp.groups.size() != 1 || warp.trace) return 0;
  const Inst* code = group.frame->image->code.data();
  const Inst& load = code[pc];
  Operand64 at[kWarpSize];
  for (std::uint32_t lanes = active; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    at[lane] = memory_operand(warp, *group.frame, *load.source, lane, *memory);
    if (!at[lane].known || at[lane].shared) return 0;
  }
  // A thread's accesses to one place stay in order, so before one that meets the load's the load is done.
  const auto meets_load = [&](const Inst& inst, std::uint32_t mask) {
    for (std::uint32_t lanes = mask & active; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      const Operand64 other = memory_operand(warp, *group.frame, *inst.source, lane, *memory);
      if (other.known && other.host < at[lane].host + at[lane].bytes &&
          at[lane].host < other.host + other.bytes)
        return true;
    }
    return false;
  };
  std::int32_t next = pc + 1;
  bool stored = false;
  for (; next < load.target; ++next) {
    const Inst& inst = code[next];
    if (meter != nullptr) [[unlikely]]
      meter->instruction(warp, inst);
    std::uint32_t mask = group.mask;
    if (inst.guard != 0) {
      const std::uint32_t predicate = *warp.lanes.read<std::uint32_t>(inst.guard_slot);
      mask &= inst.guard == 1 ? predicate : ~predicate;
      if (mask == 0) continue;
    }
    if (inst.kind == InstKind::kAlu) {
      (mask == kAllLanes ? inst.alu_full : inst.alu)(warp.lanes, inst, mask);
    } else {
      if (meets_load(inst, mask)) break;
      group.pc = next;
      if (!access(warp, inst, mask)) return static_cast<std::uint64_t>(next - pc);
      stored = stored || inst.source->op == ptx::Opcode::kSt;
    }
    counters.lane_instructions += static_cast<std::uint32_t>(std::popcount(mask));
  }
  group.pc = pc;
  group.held_until = next;
  group.held_lanes = active;
  warp.give_way = stored;
  return static_cast<std::uint64_t>(next - pc);
}

bool Machine::State::access(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  if (tracer != nullptr) [[unlikely]]
    tracer->before_access(warp, inst, mask, *memory);
  if (inst.memory(warp, inst, mask) == MemOutcome::kFault) return false;
  if (tracer != nullptr) [[unlikely]]
    tracer->after_access(warp, inst, to_ns(now_cycles_of(warp)));
  return true;
}

bool Machine::State::do_held_load(CoreWarp& warp, Group& group) {
  const Inst& load = group.frame->image->code[static_cast<std::size_t>(group.pc)];
  const std::int32_t next = group.held_until;
  group.held_until = -1;
  if (!access(warp, load, group.held_lanes)) return false;
  group.pc = next;
  counters.lane_instructions += static_cast<std::uint32_t>(std::popcount(group.held_lanes));
  return true;
}

}  // namespace echolo::vgpu
