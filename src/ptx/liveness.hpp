// Live ranges of the registers of a function, and a storage assignment in which registers that are never live
// at once may share a slot. Everything is per lane: a slot is the storage of one register in each lane of a
// warp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "ptx/module.hpp"

namespace echolo::ptx {

namespace detail {
template <typename Visit>
void visit_registers(const Operand& operand, Visit& visit) {
  if (operand.reg >= 0) visit(operand.reg);
  for (const Operand& element : operand.elements) visit_registers(element, visit);
}
}  // namespace detail

// Calls visit(register) for every register that the instruction reads: guard, sources, bases of addresses,
// and destinations that are read too (wgmma's accumulators). A register may come more than once.
template <typename Visit>
void for_each_read(const Instruction& instruction, Visit visit) {
  if (instruction.guard >= 0) visit(instruction.guard);
  const std::size_t first = instruction.destination_is_read ? 0 : instruction.n_destinations;
  for (std::size_t i = first; i < instruction.operands.size(); ++i) {
    detail::visit_registers(instruction.operands[i], visit);
  }
  for (const Operand& argument : instruction.call_arguments) detail::visit_registers(argument, visit);
}

// Calls visit(register) for every register that the instruction writes.
template <typename Visit>
void for_each_written(const Instruction& instruction, Visit visit) {
  for (std::size_t i = 0; i < instruction.n_destinations && i < instruction.operands.size(); ++i) {
    detail::visit_registers(instruction.operands[i], visit);
  }
  for (const Operand& result : instruction.call_results) detail::visit_registers(result, visit);
}

struct Liveness {
  // Registers that die at an instruction: live before it or written by it, and not live after it. One that is
  // live on only some ways out of a branch dies on the other ways without appearing here.
  std::span<const std::int32_t> deaths_at(std::size_t instruction) const {
    return {deaths.data() + deaths_begin[instruction], deaths.data() + deaths_begin[instruction + 1]};
  }
  std::vector<std::uint32_t> deaths_begin;  // body.size() + 1
  std::vector<std::int32_t> deaths;

  // By register: the first and the last instruction between which it may be live, both included; first > last
  // where it is never used. Holes in between are not shown.
  struct Interval {
    std::int32_t first = 1;
    std::int32_t last = 0;
    bool empty() const { return first > last; }
  };
  std::vector<Interval> intervals;
  std::vector<std::int32_t>
      live_at_entry;  // registers read before they are surely written, and .reg parameters in use
};

// A guarded write does not end a range, as lanes whose guard is false keep the old value. .reg results live
// until ret.
Liveness compute_liveness(const Function& function);

enum class SlotClass : std::uint8_t { kPred, k16, k32, k64, k128 };
inline constexpr std::size_t kSlotClasses = 5;
SlotClass slot_class(Type type);  // 8-bit registers take a slot of 16 bits

inline constexpr std::uint32_t kNoSlot = 0xffffffff;

struct SlotAssignment {
  std::vector<std::uint32_t>
      slot_of_register;  // within the slots of the register's class; kNoSlot: never used
  std::array<std::uint32_t, kSlotClasses> n_slots_by_class{};  // by SlotClass
};

// No instruction writes a slot that it also reads for another register, and no two of its registers share
// one.
SlotAssignment assign_slots(const Function& function, const Liveness& liveness);

}  // namespace echolo::ptx
