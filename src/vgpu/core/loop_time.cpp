// Loops that read the time only to decide how long to sleep (cuda::atomic's wait and its like): whether such
// a loop ends depends on memory alone, so it can be known to repeat although its clock moves on.
#include <algorithm>
#include <set>

#include "ptx/liveness.hpp"
#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

using ptx::Opcode;

bool is_time(const ptx::Operand& operand) {
  using ptx::SpecialReg;
  if (operand.kind != ptx::OperandKind::kSpecial) return false;
  switch (operand.special) {
    case SpecialReg::kClock:
    case SpecialReg::kClockHi:
    case SpecialReg::kClock64:
    case SpecialReg::kGlobaltimer:
    case SpecialReg::kGlobaltimerLo:
    case SpecialReg::kGlobaltimerHi:
      return true;
    default:
      return false;
  }
}

// Registers whose value may come from the clock, anywhere in the function.
std::set<std::int32_t> timed_registers(const ptx::Function& function) {
  std::set<std::int32_t> timed;
  for (bool grown = true; grown;) {
    grown = false;
    for (const ptx::Instruction& instruction : function.body) {
      bool from_time = std::any_of(instruction.operands.begin(), instruction.operands.end(), is_time);
      ptx::for_each_read(instruction,
                         [&](std::int32_t reg) { from_time = from_time || timed.contains(reg); });
      if (!from_time) continue;
      ptx::for_each_written(instruction,
                            [&](std::int32_t reg) { grown = timed.insert(reg).second || grown; });
    }
  }
  return timed;
}

// What only computes, or reads memory.
bool is_passive(const ptx::Instruction& instruction) {
  switch (instruction.op) {
    case Opcode::kSt:
    case Opcode::kAtom:
    case Opcode::kRed:
    case Opcode::kCall:
    case Opcode::kBar:
    case Opcode::kBarrier:
    case Opcode::kCp:
    case Opcode::kRet:
    case Opcode::kExit:
    case Opcode::kTrap:
    case Opcode::kBrx:
      return false;
    default:
      return true;
  }
}

}  // namespace

const Machine::State::LoopTime& Machine::State::loop_time(const KernelImage& image, std::int32_t branch_pc,
                                                          std::int32_t target) {
  const auto [at, fresh] = loop_times.try_emplace({&image, branch_pc});
  LoopTime& facts = at->second;
  if (!fresh) return facts;
  const ptx::Function& function = *image.function;
  const std::set<std::int32_t> timed = timed_registers(function);
  const auto index_of = [&](std::int32_t pc) {
    return static_cast<std::size_t>(image.code[static_cast<std::size_t>(pc)].source - function.body.data());
  };
  const std::size_t first = index_of(target);
  const std::size_t last = index_of(branch_pc);
  if (timed.empty() || first > last) return facts;
  // A register that lives across the turns of the loop shares no slot with one that is alive somewhere in it,
  // so leaving these slots out of a comparison leaves out no state but times.
  const ptx::Liveness liveness = ptx::compute_liveness(function);
  std::set<std::uint32_t> skip;
  for (const std::int32_t reg : timed) {
    const ptx::Liveness::Interval& range = liveness.intervals[static_cast<std::size_t>(reg)];
    if (range.empty() || range.last < static_cast<std::int32_t>(first) ||
        range.first > static_cast<std::int32_t>(last))
      continue;
    skip.insert(image.register_slots[static_cast<std::size_t>(reg)].bits);
  }
  bool harmless = true;
  for (std::size_t i = first; i <= last && harmless; ++i) {
    const ptx::Instruction& instruction = function.body[i];
    harmless = is_passive(instruction);
    if (instruction.op == Opcode::kLd) {
      for (const ptx::Operand& operand : instruction.operands) {
        if (operand.kind == ptx::OperandKind::kAddress && timed.contains(operand.reg)) harmless = false;
      }
    }
    if (instruction.op != Opcode::kBra) continue;
    const auto label = static_cast<std::size_t>(instruction.operands[0].label);
    const bool leaves = label < first || label > last || i == last;
    if (leaves && instruction.guard >= 0 && timed.contains(instruction.guard)) harmless = false;
  }
  facts.harmless = harmless;
  if (harmless) facts.skip.assign(skip.begin(), skip.end());
  return facts;
}

}  // namespace echolo::vgpu
