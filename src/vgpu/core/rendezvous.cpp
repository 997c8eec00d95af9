// Lanes of a warp that execute a shfl, vote, match or redux with one member mask at different places in the
// code: the instruction is one for all of them (PTX ISA 9.7.9.6: "the same qualifiers and the same membermask
// value").
#include <bit>
#include <cstring>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::uint32_t kOperandBytes = 512;

const Inst& at(const Group& group) { return group.frame->image->code[static_cast<std::size_t>(group.pc)]; }

Lanes lanes_of(const CoreWarp& warp, const Group& group) {
  return {group.frame->registers, warp.lanes.pool, nullptr};
}

void copy_lanes(std::uint8_t* to, const std::uint8_t* from, unsigned width, std::uint32_t mask) {
  if (width == 1) {
    std::uint32_t old = 0;
    std::uint32_t bits = 0;
    std::memcpy(&old, to, sizeof old);
    std::memcpy(&bits, from, sizeof bits);
    bits = (old & ~mask) | (bits & mask);
    std::memcpy(to, &bits, sizeof bits);
    return;
  }
  const std::size_t step = std::min(width / 8U, 8U);
  for (std::size_t half = 0; half < (width == 128 ? 2U : 1U); ++half) {
    for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
      const std::size_t offset =
          half * 8 * kWarpSize + static_cast<std::size_t>(std::countr_zero(bits)) * step;
      std::memcpy(to + offset, from + offset, step);
    }
  }
}

bool same_instruction(const Inst& a, const Inst& b) {
  return b.kind == InstKind::kCrossLane && a.alu == b.alu && a.aux[0] == b.aux[0] && a.aux[1] == b.aux[1] &&
         a.n_operands == b.n_operands && a.membermask == b.membermask;
}

}  // namespace

bool Machine::State::rendezvous(CoreWarp& warp) {
  for (const Group& first : warp.groups) {
    const Inst& inst = at(first);
    if (inst.kind != InstKind::kCrossLane || inst.membermask < 0) continue;
    const auto member_mask = [&](const Group& group) {
      const Inst& own = at(group);
      return lanes_of(warp, group)
          .read<std::uint32_t>(own.operands[own.membermask])[std::countr_zero(group.mask)];
    };
    const std::uint32_t named = member_mask(first);
    std::vector<Group*> party;
    std::uint32_t present = 0;
    for (Group& group : warp.groups) {
      if (group.state != GroupState::kConverge || !same_instruction(inst, at(group)) ||
          member_mask(group) != named)
        continue;
      party.push_back(&group);
      present |= group.mask;
    }
    if ((named & warp.live & ~present) != 0) continue;
    // The operands of all, side by side in a frame of their own.
    std::vector<std::uint8_t> storage(std::size_t{inst.n_operands} * kOperandBytes + 64);
    const auto base = reinterpret_cast<std::uintptr_t>(storage.data());
    std::uint8_t* registers = storage.data() + ((64 - base % 64) % 64);
    std::vector<Slot> slots;
    for (std::uint32_t i = 0; i < inst.n_operands; ++i) slots.push_back({i * kOperandBytes});
    const auto width_of = [&](const Group& group, std::size_t operand) {
      const KernelImage& image = *group.frame->image;
      const auto index = static_cast<std::size_t>(at(group).operands - image.operand_slots.data());
      return image.operand_widths[index + operand];
    };
    for (const Group* group : party) {
      for (std::size_t i = inst.n_destinations; i < inst.n_operands; ++i) {
        copy_lanes(registers + slots[i].bits,
                   lanes_of(warp, *group).read<std::uint8_t>(at(*group).operands[i]), width_of(*group, i),
                   group->mask);
      }
    }
    Inst joint = inst;
    joint.operands = slots.data();
    const Lanes lanes{registers, warp.lanes.pool, &warp.carry};
    (present == kAllLanes ? joint.alu_full : joint.alu)(lanes, joint, present);
    for (Group* group : party) {
      for (std::size_t i = 0; i < inst.n_destinations; ++i) {
        copy_lanes(lanes_of(warp, *group).write<std::uint8_t>(at(*group).operands[i]),
                   registers + slots[i].bits, width_of(*group, i), group->mask);
      }
      group->state = GroupState::kRunnable;
      ++group->pc;
    }
    return true;
  }
  return false;
}

}  // namespace echolo::vgpu
