// Do the registers of an instruction have the size that its types ask for? (PTX ISA section 9.4.1 "Operand
// Size Exceeding Instruction-Type Size": ld, st and cvt take wider registers, nothing takes narrower ones.)
// What is checked here the executor may rely on; opcodes without a rule are checked by whoever executes them.
#include "ptx/forms.hpp"

namespace echolo::ptx {
namespace {

enum class Fit : std::uint8_t { kExact, kAtLeast };

class Widths {
 public:
  Widths(const Instruction& instruction, std::span<const Register> registers)
      : instruction_(instruction), registers_(registers) {}

  std::optional<FormError> check();

 private:
  int type_bits() const { return bits_of(instruction_.type); }
  bool fits(const Operand& operand, int bits, Fit fit);
  bool all(std::size_t from, std::size_t to, int bits, Fit fit = Fit::kExact);
  bool data(std::size_t index, Fit fit);
  bool address(std::size_t index);
  bool move();
  bool arithmetic();

  const Instruction& instruction_;
  std::span<const Register> registers_;
  std::string message_;
};

bool Widths::fits(const Operand& operand, int bits, Fit fit) {
  if (operand.kind == OperandKind::kPredicatePair)
    return operand.elements.empty() || fits(operand.elements[0], bits, fit);
  if (operand.kind != OperandKind::kRegister) return true;
  const Register& reg = registers_[static_cast<std::size_t>(operand.reg)];
  const int has = bits_of(reg.type);
  if (fit == Fit::kExact ? has == bits : has >= bits && (bits == 1) == (has == 1)) return true;
  message_ = "register '" + reg.name + "' has " + std::to_string(has) + " bits, where '" +
             std::string(mnemonic(instruction_.op)) + "' wants " + std::to_string(bits) +
             (fit == Fit::kAtLeast ? " or more" : "");
  return false;
}

bool Widths::all(std::size_t from, std::size_t to, int bits, Fit fit) {
  for (std::size_t i = from; i < to && i < instruction_.operands.size(); ++i) {
    if (!fits(instruction_.operands[i], bits, fit)) return false;
  }
  return true;
}

// The value of a load or a store, a scalar or a vector of elements.
bool Widths::data(std::size_t index, Fit fit) {
  const Operand& operand = instruction_.operands[index];
  if (operand.kind != OperandKind::kVector) return fits(operand, type_bits(), fit);
  for (const Operand& element : operand.elements) {
    if (!fits(element, type_bits(), fit)) return false;
  }
  return true;
}

// Only the windows of 4 GiB may be addressed with 32 bits.
bool Widths::address(std::size_t index) {
  const Operand& operand = instruction_.operands[index];
  if (operand.reg < 0) return true;
  const Register& reg = registers_[static_cast<std::size_t>(operand.reg)];
  const int has = bits_of(reg.type);
  const Space space = instruction_.space;
  const bool wide_only = space == Space::kGeneric || space == Space::kGlobal;
  if (has == 64 || (has == 32 && !wide_only)) return true;
  message_ = "the address register '" + reg.name + "' has " + std::to_string(has) + " bits, where '" +
             std::string(mnemonic(instruction_.op)) + "' wants 64";
  return false;
}

// mov packs and unpacks: the elements together are as wide as the type.
bool Widths::move() {
  for (const Operand& operand : instruction_.operands) {
    if (operand.kind != OperandKind::kVector) {
      if (!fits(operand, type_bits(), Fit::kExact)) return false;
      continue;
    }
    const int n = static_cast<int>(operand.elements.size());
    for (const Operand& element : operand.elements) {
      if (!fits(element, type_bits() / n, Fit::kExact)) return false;
    }
  }
  return true;
}

bool Widths::arithmetic() {
  const int bits = type_bits();
  const std::size_t n = instruction_.operands.size();
  switch (instruction_.op) {
    case Opcode::kMul:
    case Opcode::kMad:
      if (instruction_.mul_mode != MulMode::kWide) return all(0, n, bits);
      return all(0, 1, 2 * bits) && all(1, 3, bits) && all(3, 4, 2 * bits);
    case Opcode::kShl:
    case Opcode::kShr:
      return all(0, 2, bits) && all(2, 3, 32);
    case Opcode::kBfe:
      return all(0, 2, bits) && all(2, 4, 32);
    case Opcode::kBfi:
      return all(0, 3, bits) && all(3, 5, 32);
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBfind:
      return all(0, 1, 32) && all(1, 2, bits);
    case Opcode::kSetp:
      return all(0, 1, 1) && all(1, 3, bits);
    case Opcode::kTestp:
      return all(0, 1, 1) && all(1, 2, bits);
    case Opcode::kSet:
      return all(0, 1, bits) && all(1, 3, bits_of(instruction_.type2));
    case Opcode::kSelp:
      return all(0, 3, bits);
    case Opcode::kSlct:
      return all(0, 3, bits) && all(3, 4, bits_of(instruction_.type2));
    case Opcode::kLop3:
      return all(0, 4, bits);
    case Opcode::kDp4a:
    case Opcode::kDp2a:
      return all(0, n, 32);
    default:
      return all(0, n, bits);
  }
}

std::optional<FormError> Widths::check() {
  const std::size_t n = instruction_.operands.size();
  bool good = true;
  switch (instruction_.op) {
    case Opcode::kLd:
    case Opcode::kLdu:
      good = data(0, Fit::kAtLeast) && address(1);
      break;
    case Opcode::kSt:
      if (instruction_.bulk || instruction_.async || type_bits() == 0) break;
      good = address(0) && data(1, Fit::kAtLeast);
      break;
    case Opcode::kAtom:
      good = data(0, Fit::kExact) && address(1) && data(2, Fit::kExact);
      break;
    case Opcode::kRed:
      good = instruction_.async || (address(0) && data(1, Fit::kExact));
      break;
    case Opcode::kCvt:
      if (instruction_.mode == "pack") break;
      good = all(0, 1, type_bits(), Fit::kAtLeast) && all(1, 2, bits_of(instruction_.type2), Fit::kAtLeast);
      break;
    case Opcode::kMov:
      good = move();
      break;
    case Opcode::kShfl:
      good = all(0, n, 32);
      break;
    case Opcode::kAdd:
    case Opcode::kSub:
    case Opcode::kFma:
      // Mixed precision: the wider type is the result's.
      good = instruction_.type2 != Type::kNone || arithmetic();
      break;
    case Opcode::kAddc:
    case Opcode::kSubc:
    case Opcode::kMul:
    case Opcode::kMad:
    case Opcode::kMadc:
    case Opcode::kMul24:
    case Opcode::kMad24:
    case Opcode::kSad:
    case Opcode::kDiv:
    case Opcode::kRem:
    case Opcode::kAbs:
    case Opcode::kNeg:
    case Opcode::kMin:
    case Opcode::kMax:
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBfind:
    case Opcode::kFns:
    case Opcode::kBrev:
    case Opcode::kBfe:
    case Opcode::kBfi:
    case Opcode::kSzext:
    case Opcode::kBmsk:
    case Opcode::kDp4a:
    case Opcode::kDp2a:
    case Opcode::kTestp:
    case Opcode::kCopysign:
    case Opcode::kRcp:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kSin:
    case Opcode::kCos:
    case Opcode::kLg2:
    case Opcode::kEx2:
    case Opcode::kTanh:
    case Opcode::kSet:
    case Opcode::kSetp:
    case Opcode::kSelp:
    case Opcode::kSlct:
    case Opcode::kAnd:
    case Opcode::kOr:
    case Opcode::kXor:
    case Opcode::kNot:
    case Opcode::kCnot:
    case Opcode::kLop3:
    case Opcode::kShf:
    case Opcode::kShl:
    case Opcode::kShr:
    case Opcode::kPrmt:
    case Opcode::kCvta:
    case Opcode::kRedux:
      good = arithmetic();
      break;
    default:
      break;
  }
  if (good) return std::nullopt;
  return FormError{std::move(message_), ""};
}

}  // namespace

std::optional<FormError> check_widths(std::span<const Register> registers, const Instruction& instruction) {
  return Widths(instruction, registers).check();
}

}  // namespace echolo::ptx
