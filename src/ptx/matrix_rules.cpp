// How many registers the fragments of mma, wgmma, ldmatrix and stmatrix take (PTX ISA sections 9.7.14.5
// and 9.7.15.5).
#include "ptx/forms.hpp"

namespace echolo::ptx {
namespace {

constexpr int kLanes = 32;
constexpr int kWarpgroupLanes = 128;

std::size_t elements_of(const Operand& operand) {
  return operand.kind == OperandKind::kVector ? operand.elements.size() : 1;
}

// Registers a lane holds of a rows x columns matrix: of 32 bits, or of 64 where an element has 64.
std::size_t fragment(int rows, int columns, Type type, int lanes) {
  const int bits = bits_of(type);
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns) * static_cast<std::size_t>(bits) /
         static_cast<std::size_t>(lanes * (bits == 64 ? 64 : 32));
}

class Fragments {
 public:
  Fragments(std::span<const Register> registers, const Instruction& instruction)
      : registers_(registers), instruction_(instruction) {}

  std::optional<FormError> check() {
    switch (instruction_.op) {
      case Opcode::kMma:
        return check_mma();
      case Opcode::kWgmma:
        return instruction_.mode == "mma_async" ? check_wgmma() : std::nullopt;
      case Opcode::kLdmatrix:
        return check_operand(0, instruction_.shape.count, 32);
      case Opcode::kStmatrix:
        return check_operand(1, instruction_.shape.count, 32);
      default:
        return std::nullopt;
    }
  }

 private:
  std::optional<FormError> check_mma() {
    const MatrixShape& s = instruction_.shape;
    const Type* types = instruction_.types;
    if (s.m == 0 || s.n == 0 || s.k == 0) return FormError{"'mma' needs a shape, such as .m16n8k16", ""};
    // Volta's m8n8k4 on halves works in groups of eight lanes; it has fragments of its own.
    const bool quad_pairs = s.m == 8 && s.k == 4 && types[1] == Type::kF16;
    if (quad_pairs || types[3] == Type::kNone) return std::nullopt;
    const int a_columns = s.sparse ? s.k / 2 : s.k;
    const std::size_t counts[] = {fragment(s.m, s.n, types[0], kLanes),
                                  fragment(s.m, a_columns, types[1], kLanes),
                                  fragment(s.k, s.n, types[2], kLanes), fragment(s.m, s.n, types[3], kLanes)};
    for (std::size_t i = 0; i < 4; ++i) {
      if (auto error = check_operand(i, counts[i], bits_of(types[i]) == 64 ? 64 : 32)) return error;
    }
    return std::nullopt;
  }

  std::optional<FormError> check_wgmma() {
    const MatrixShape& s = instruction_.shape;
    if (s.m != 64 || s.n == 0 || s.k == 0)
      return FormError{"'wgmma.mma_async' needs a shape, such as .m64n128k16", ""};
    if (auto error = check_operand(0, fragment(s.m, s.n, instruction_.types[0], kWarpgroupLanes), 32))
      return error;
    // A comes from registers or, as B does, through a descriptor of 64 bits.
    if (instruction_.operands[1].kind == OperandKind::kVector) {
      if (auto error = check_operand(1, 4, 32)) return error;
    } else if (auto error = check_operand(1, 1, 64)) {
      return error;
    }
    return check_operand(2, 1, 64);
  }

  std::optional<FormError> check_operand(std::size_t index, std::size_t count, int bits) {
    const Operand& operand = instruction_.operands[index];
    const std::string place =
        "operand " + std::to_string(index + 1) + " of '" + std::string(mnemonic(instruction_.op)) + "' ";
    if (elements_of(operand) != count) {
      return FormError{place + "must name " + std::to_string(count) +
                           (count == 1 ? " register" : " registers") + " for this shape and type, here are " +
                           std::to_string(elements_of(operand)),
                       ""};
    }
    const std::span<const Operand> elements = operand.kind == OperandKind::kVector
                                                  ? std::span<const Operand>(operand.elements)
                                                  : std::span(&operand, 1);
    for (const Operand& element : elements) {
      if (element.kind != OperandKind::kRegister) continue;
      const Register& reg = registers_[static_cast<std::size_t>(element.reg)];
      if (bits_of(reg.type) != bits) {
        return FormError{place + "must be of " + std::to_string(bits) + "-bit registers; '" + reg.name +
                             "' has " + std::to_string(bits_of(reg.type)) + " bits",
                         ""};
      }
    }
    return std::nullopt;
  }

  std::span<const Register> registers_;
  const Instruction& instruction_;
};

}  // namespace

std::optional<FormError> check_fragments(std::span<const Register> registers,
                                         const Instruction& instruction) {
  return Fragments(registers, instruction).check();
}

}  // namespace echolo::ptx
