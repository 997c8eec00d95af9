#include "vgpu/alu/operands.hpp"

#include <bit>
#include <string>

namespace echolo::vgpu::alu {

using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

int storage_bits(Type type) {
  const int bits = ptx::bits_of(type);
  return bits > 1 && bits < 16 ? 16 : bits;
}

Result<std::uint64_t> immediate_bits(const Operand& literal, Type type) {
  const auto bits = static_cast<std::uint64_t>(literal.value);
  const bool is_f32 = literal.float_bits == 32;
  if (literal.is_float) {
    if (type == Type::kF64) {
      return is_f32 ? std::bit_cast<std::uint64_t>(
                          double{std::bit_cast<float>(static_cast<std::uint32_t>(bits))})
                    : bits;
    }
    if (type == Type::kF32 || type == Type::kTf32 || (type == Type::kB32 && !is_f32)) {
      return is_f32 ? bits
                    : std::uint64_t{
                          std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)))};
    }
    if (type == Type::kB32 || (type == Type::kB64 && !is_f32)) return bits;
    return usage_error("a floating-point literal where ." + std::string(ptx::name_of(type)) + " is read");
  }
  if (type == Type::kF32 || type == Type::kF64) {
    return usage_error("an integer literal where ." + std::string(ptx::name_of(type)) + " is read");
  }
  const int width = ptx::bits_of(type);
  if (width == 1) return bits != 0 ? std::uint64_t{kAllLanes} : std::uint64_t{0};
  if (width >= 64) return bits;
  const std::uint64_t kept = bits & ((1ULL << static_cast<unsigned>(width)) - 1);
  // 8-bit values lie extended in 16 bits.
  if (type == Type::kS8 && (kept & 0x80U) != 0) return kept | 0xff00U;
  return kept;
}

Status PlanBuilder::destination(const Operand& operand, Type type) {
  if (operand.negated) return usage_error("a negated destination");
  return add(operand, type, true);
}
Status PlanBuilder::source(const Operand& operand, Type type, bool negatable) {
  if (operand.negated && !negatable) return usage_error("an operand that cannot be negated");
  return add(operand, type, false);
}

Status PlanBuilder::add(const Operand& operand, Type type, bool is_destination) {
  PlanOperand to;
  to.destination = is_destination;
  const int wanted = storage_bits(type);
  to.width = static_cast<std::uint8_t>(wanted);
  switch (operand.kind) {
    case OperandKind::kNone:
      break;
    case OperandKind::kRegister: {
      const ptx::Register& reg = function.registers[static_cast<std::size_t>(operand.reg)];
      const int width = storage_bits(reg.type);
      const bool fits = width == wanted || (any_width && wanted > 1 && width > wanted && width <= 64);
      if (!fits) {
        return usage_error("register " + reg.name + " has " + std::to_string(width) + " bits where ." +
                           std::string(ptx::name_of(type)) + " needs " + std::to_string(wanted));
      }
      to.kind = PlanOperand::Kind::kRegister;
      to.index = operand.reg;
      to.width = static_cast<std::uint8_t>(width);
      break;
    }
    case OperandKind::kImmediate: {
      Result<std::uint64_t> bits = immediate_bits(operand, type);
      if (!bits.ok()) return bits.error();
      to.kind = PlanOperand::Kind::kImmediate;
      to.value[0] = bits.value();
      if (type == Type::kB128 && !operand.is_float && operand.value < 0) to.value[1] = ~0ULL;
      break;
    }
    case OperandKind::kSpecial:
      to.kind = PlanOperand::Kind::kSpecial;
      to.index = static_cast<std::int32_t>(operand.special);
      break;
    case OperandKind::kVariable:
      to.kind = PlanOperand::Kind::kVariable;
      to.index = operand.variable;
      to.value[0] = static_cast<std::uint64_t>(operand.value);
      break;
    case OperandKind::kFunction:
      to.kind = PlanOperand::Kind::kFunction;
      to.index = operand.function;
      break;
    default:
      return usage_error("an operand of a kind it does not take");
  }
  if (is_destination && to.kind != PlanOperand::Kind::kRegister && to.kind != PlanOperand::Kind::kUnused) {
    return usage_error("a destination that is no register");
  }
  plan.operands.push_back(to);
  return {};
}

std::uint64_t half_code(const ptx::Instruction& inst) {
  return (inst.ftz ? 1U : 0U) | (inst.sat ? 2U : 0U) | (inst.relu ? 4U : 0U) |
         (inst.nan_propagate ? 8U : 0U) | (inst.xorsign ? 16U : 0U);
}

}  // namespace echolo::vgpu::alu
