// Checks the operands of an instruction against its form.
#include <algorithm>
#include <bit>

#include "base/text.hpp"
#include "ptx/forms.hpp"

namespace echolo::ptx {
namespace {

std::string opcode_text(const Instruction& instruction) {
  std::string text(mnemonic(instruction.op));
  for (const std::string_view word : instruction.modifiers) text.append(".").append(word);
  return text;
}

bool is_predicate(const Operand& operand, std::span<const Register> registers) {
  return operand.kind == OperandKind::kRegister && operand.reg >= 0 &&
         registers[static_cast<std::size_t>(operand.reg)].type == Type::kPred;
}

// May predicates stand among the "s" operands?
bool takes_predicates(const Instruction& instruction) {
  switch (instruction.op) {
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kMov:
    case Opcode::kSelp:
    case Opcode::kCp:
    case Opcode::kWgmma:
    case Opcode::kMatch:
    case Opcode::kTex:
      return true;
    default:
      return instruction.type == Type::kPred;
  }
}

// What is expected instead, or nullptr where the operand fits.
const char* mismatch(const OperandRule& rule, const Operand& operand, std::span<const Register> registers,
                     const Instruction& instruction) {
  const OperandKind kind = operand.kind;
  switch (rule.kind) {
    case 'd':
    case 'D':
      if (kind == OperandKind::kRegister && !operand.negated) return nullptr;
      if (kind == OperandKind::kNone || kind == OperandKind::kVector) return nullptr;
      if (rule.kind == 'D' && kind == OperandKind::kPredicatePair) return nullptr;
      return rule.kind == 'D' ? "a register, a pair p|q or _" : "a register, a vector of registers or _";
    case 'a':
      return kind == OperandKind::kAddress ? nullptr : "an address in brackets";
    case 'l':
      return kind == OperandKind::kLabel ? nullptr : "a label";
    case 'p':
      if (is_predicate(operand, registers) || kind == OperandKind::kImmediate) return nullptr;
      return "a predicate register";
    case 'x':
      return kind != OperandKind::kAddress && kind != OperandKind::kLabel &&
                     kind != OperandKind::kPredicatePair
                 ? nullptr
                 : "a register or an immediate";
    default:
      if (operand.negated && instruction.op != Opcode::kVmad) return "a value without '!'";
      if (is_predicate(operand, registers) && !takes_predicates(instruction))
        return "a register that is no predicate";
      switch (kind) {
        case OperandKind::kRegister:
        case OperandKind::kImmediate:
        case OperandKind::kSpecial:
        case OperandKind::kVariable:
        case OperandKind::kFunction:
        case OperandKind::kVector:
          return nullptr;
        default:
          return "a register, an immediate or a vector";
      }
  }
}

std::string count_message(const Form& form, const Instruction& instruction) {
  std::string takes = std::to_string(form.min_operands);
  if (form.more) {
    takes += " or more";
  } else if (form.max_operands > form.min_operands) {
    takes += " to " + std::to_string(form.max_operands);
  }
  return "'" + opcode_text(instruction) + "' takes " + takes + (takes == "1" ? " operand" : " operands") +
         ", here are " + std::to_string(instruction.operands.size());
}

// A decimal or 0d literal in a single-precision place means the single-precision number.
void narrow_literals(Instruction& instruction) {
  const bool second = instruction.op == Opcode::kCvt || instruction.op == Opcode::kSet;
  if ((second ? instruction.type2 : instruction.type) != Type::kF32) return;
  const auto narrow = [](Operand& operand) {
    if (operand.kind != OperandKind::kImmediate || !operand.is_float || operand.float_bits != 64) return;
    const auto value = static_cast<float>(std::bit_cast<double>(operand.value));
    operand.value = static_cast<std::int64_t>(std::bit_cast<std::uint32_t>(value));
    operand.float_bits = 32;
  };
  for (Operand& operand : instruction.operands) {
    narrow(operand);
    for (Operand& element : operand.elements) narrow(element);
  }
}

// ld.v4 and st.v4 name as many registers as they move.
const char* vector_mismatch(const Operand& operand, unsigned n_elements) {
  if (operand.kind == OperandKind::kNone) return nullptr;
  if (operand.kind != OperandKind::kVector) return "a vector in braces";
  return operand.elements.size() == n_elements ? nullptr : "a vector of as many elements as '.v' says";
}

}  // namespace

std::optional<FormError> check_operands(const Form& form, std::span<const Register> registers,
                                        Instruction& instruction) {
  constexpr std::size_t kMostFurtherOperands = 8;
  const std::size_t n = instruction.operands.size();
  if (n < form.min_operands || n > form.max_operands + (form.more ? kMostFurtherOperands : 0)) {
    return FormError{count_message(form, instruction), ""};
  }
  // Optional operands before a required one (cp.async.bulk's and fence.proxy's tails, barrier.red) are
  // matched greedily: they only differ in kind where that decides nothing.
  for (std::size_t i = 0; i < std::min(n, form.operands.size()); ++i) {
    const char* expected = mismatch(form.operands[i], instruction.operands[i], registers, instruction);
    if (expected != nullptr) {
      return FormError{
          "operand " + std::to_string(i + 1) + " of '" + opcode_text(instruction) + "' must be " + expected,
          ""};
    }
  }
  const Opcode op = instruction.op;
  if (instruction.vector > 1 && (op == Opcode::kLd || op == Opcode::kLdu || op == Opcode::kSt) &&
      !instruction.async) {
    const std::size_t data = op == Opcode::kSt ? 1 : 0;
    const char* expected = vector_mismatch(instruction.operands[data], instruction.vector);
    if (expected != nullptr) {
      return FormError{"operand " + std::to_string(data + 1) + " of '" + opcode_text(instruction) +
                           "' must be " + expected,
                       ""};
    }
  }
  std::size_t n_destinations = 0;
  while (n_destinations < form.operands.size() &&
         (form.operands[n_destinations].kind == 'd' || form.operands[n_destinations].kind == 'D')) {
    ++n_destinations;
  }
  instruction.n_destinations = static_cast<std::uint8_t>(n_destinations);
  narrow_literals(instruction);
  if (std::optional<FormError> error = check_widths(registers, instruction)) return error;
  return check_fragments(registers, instruction);
}

}  // namespace echolo::ptx
