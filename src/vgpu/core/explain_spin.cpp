// From a spinning loop to the condition that it waits for: the predicate of the branch that leaves the loop,
// the comparison that set it, and the load that feeds the comparison.
#include <bit>
#include <cmath>
#include <cstring>

#include "vgpu/core/explain.hpp"

namespace echolo::vgpu {
namespace {

using ptx::Opcode;

// The destination of mbarrier.test_wait and try_wait is the condition itself.
bool waits_for_phase(const ptx::Instruction& instruction) {
  return instruction.op == Opcode::kMbarrier &&
         (instruction.sub_op == ptx::SubOp::kTestWait || instruction.sub_op == ptx::SubOp::kTryWait);
}

struct Loop {
  const ptx::Function* function;
  std::size_t first, last;  // instructions, both included
};

bool writes(const ptx::Instruction& instruction, std::int32_t reg) {
  if (instruction.operands.empty()) return false;
  const ptx::Operand& to = instruction.operands[0];
  if (instruction.op == Opcode::kSt || instruction.op == Opcode::kRed || instruction.op == Opcode::kBra)
    return false;
  if (to.kind == ptx::OperandKind::kRegister) return to.reg == reg;
  for (const ptx::Operand& element : to.elements) {
    if (element.reg == reg) return true;
  }
  return false;
}

// The instruction of the loop that last wrote `reg` before `at`, going round the loop once.
std::optional<std::size_t> definition(const Loop& loop, std::int32_t reg, std::size_t at) {
  const std::size_t length = loop.last - loop.first + 1;
  for (std::size_t step = 1; step <= length; ++step) {
    const std::size_t index = loop.first + (at - loop.first + length - step) % length;
    if (writes(loop.function->body[index], reg)) return index;
  }
  return std::nullopt;
}

bool is_load(const ptx::Instruction& instruction) {
  return instruction.op == Opcode::kLd || instruction.op == Opcode::kAtom || instruction.op == Opcode::kLdu ||
         waits_for_phase(instruction);
}

// Follows copies and conversions back to a load; `exact` turns false where something else was computed on the
// way.
std::optional<std::size_t> source_load(const Loop& loop, std::int32_t reg, std::size_t at, bool& exact,
                                       int depth = 0) {
  if (depth > 12) return std::nullopt;
  const auto found = definition(loop, reg, at);
  if (!found) return std::nullopt;
  const ptx::Instruction& instruction = loop.function->body[*found];
  if (is_load(instruction)) return found;
  if (instruction.op != Opcode::kMov && instruction.op != Opcode::kCvt) exact = false;
  for (std::size_t i = 1; i < instruction.operands.size(); ++i) {
    if (instruction.operands[i].kind != ptx::OperandKind::kRegister) continue;
    if (auto load = source_load(loop, instruction.operands[i].reg, *found, exact, depth + 1)) return load;
  }
  return std::nullopt;
}

std::string_view sign(ptx::Compare compare, bool negate, bool swap) {
  using ptx::Compare;
  int form = -1;  // == != < <= > >=
  switch (compare) {
    case Compare::kEq:
    case Compare::kEqu:
      form = 0;
      break;
    case Compare::kNe:
    case Compare::kNeu:
      form = 1;
      break;
    case Compare::kLt:
    case Compare::kLo:
    case Compare::kLtu:
      form = 2;
      break;
    case Compare::kLe:
    case Compare::kLs:
    case Compare::kLeu:
      form = 3;
      break;
    case Compare::kGt:
    case Compare::kHi:
    case Compare::kGtu:
      form = 4;
      break;
    case Compare::kGe:
    case Compare::kHs:
    case Compare::kGeu:
      form = 5;
      break;
    default:
      return "";
  }
  constexpr int kNegated[] = {1, 0, 5, 4, 3, 2};
  constexpr int kSwapped[] = {0, 1, 4, 5, 2, 3};
  constexpr std::string_view kSigns[] = {"==", "!=", "<", "<=", ">", ">="};
  if (negate) form = kNegated[form];
  if (swap) form = kSwapped[form];
  return kSigns[form];
}

}  // namespace

std::string print_value(ptx::Type type, std::uint64_t bits) {
  const int width = ptx::bits_of(type);
  if (type == ptx::Type::kF32) {
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return std::to_string(value);
  }
  if (type == ptx::Type::kF64) {
    double value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return std::to_string(value);
  }
  if (width < 64) bits &= (1ULL << static_cast<unsigned>(width)) - 1;
  // Untyped and unsigned words near the top of their range are negative numbers more often than not.
  const bool negative = (bits >> static_cast<unsigned>(width - 1) & 1U) != 0;
  if (ptx::is_signed(type) ||
      (negative && width >= 32 &&
       (~bits & ((width < 64 ? 1ULL << static_cast<unsigned>(width) : 0) - 1)) < 1000)) {
    const auto shift = static_cast<unsigned>(64 - width);
    return std::to_string(static_cast<std::int64_t>(bits << shift) >> shift);
  }
  return std::to_string(bits);
}

std::optional<SpinCondition> spin_condition(const Group& group) {
  const KernelImage& image = *group.frame->image;
  const SpinTrack& track = group.track;
  if (track.branch < 0 || static_cast<std::size_t>(track.branch) >= image.code.size()) return std::nullopt;
  const ptx::Function& function = *image.function;
  const auto index_of = [&](const Inst& inst) {
    return static_cast<std::size_t>(inst.source - function.body.data());
  };
  const Inst& branch = image.code[static_cast<std::size_t>(track.branch)];
  Loop loop{&function, 0, index_of(branch)};
  const std::int32_t target = branch.target >= 0 ? branch.target : group.pc;
  loop.first = index_of(image.code[static_cast<std::size_t>(target)]);
  if (loop.first > loop.last) return std::nullopt;

  SpinCondition best;
  const auto consider = [&](std::size_t at, bool leaves_when_true) {
    const ptx::Instruction& exit = function.body[at];
    if (exit.guard < 0) return false;
    if (exit.guard_negated) leaves_when_true = !leaves_when_true;
    const auto set = definition(loop, exit.guard, at);
    if (!set) return false;
    const ptx::Instruction& compare = function.body[*set];
    if (waits_for_phase(compare)) {
      best.load = &image.code[image.first_inst[*set + 1] - 1];
      return true;
    }
    for (std::size_t i = 1; i < compare.operands.size(); ++i) {
      if (compare.operands[i].kind != ptx::OperandKind::kRegister) continue;
      bool exact = compare.op == Opcode::kSetp && compare.bool_op == ptx::BoolOp::kNone &&
                   compare.operands.size() == 3;
      const auto load = source_load(loop, compare.operands[i].reg, *set, exact);
      if (!load) continue;
      const std::uint32_t pc = image.first_inst[*load + 1] - 1;
      best.load = &image.code[pc];
      best.type = function.body[*load].type;
      if (exact) {
        const ptx::Operand& other = compare.operands[i == 1 ? 2 : 1];
        const std::string_view text = sign(compare.compare, !leaves_when_true, i == 2);
        std::string value;
        // Signedness comes from the comparison: loads of volatile ints are written .u32.
        const ptx::Type type = compare.type;
        if (other.kind == ptx::OperandKind::kImmediate) {
          value = print_value(type, static_cast<std::uint64_t>(other.value));
        } else if (other.kind == ptx::OperandKind::kRegister && !definition(loop, other.reg, *set)) {
          value = print_value(type, register_value(*group.frame, other.reg, std::countr_zero(group.mask)));
        }
        if (!text.empty() && !value.empty()) best.comparison = std::string(text) + " " + value;
        if (ptx::bits_of(type) == ptx::bits_of(best.type)) best.type = type;
      }
      return true;
    }
    return false;
  };
  bool found = consider(loop.last, false);
  for (std::size_t at = loop.first; at < loop.last && !found; ++at) {
    const ptx::Instruction& instruction = function.body[at];
    if (instruction.op != Opcode::kBra || instruction.operands.empty()) continue;
    const auto label = static_cast<std::size_t>(instruction.operands[0].label);
    if (label < loop.first || label > loop.last) found = consider(at, true);
  }
  if (!found) {
    // Whatever the loop reads.
    if (track.watches.empty()) return std::nullopt;
    best.watch = &track.watches.front();
    best.load = &image.code[static_cast<std::size_t>(best.watch->pc)];
    best.type = best.load->source->type;
    return best;
  }
  for (const Watch& watch : track.watches) {
    if (&image.code[static_cast<std::size_t>(watch.pc)] != best.load) continue;
    if (best.watch == nullptr) best.watch = &watch;
  }
  // A word of shared memory through which the block passes on what one thread read elsewhere.
  if (best.watch != nullptr ? best.watch->address == 0 : best.load->source->space == ptx::Space::kShared) {
    for (const Watch& watch : track.watches) {
      if (watch.address == 0) continue;
      best.watch = &watch;
      best.load = &image.code[static_cast<std::size_t>(watch.pc)];
      best.type = best.load->source->type;
      best.comparison.clear();
      break;
    }
  }
  return best;
}

}  // namespace echolo::vgpu
