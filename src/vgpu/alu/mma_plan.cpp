#include "vgpu/alu/mma.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using ptx::Type;

Type register_type(Type element) { return ptx::bits_of(element) == 64 ? Type::kB64 : Type::kB32; }
bool is_eight_bit_integer(Type type) { return type == Type::kU8 || type == Type::kS8; }
bool is_eight_bit_float(Type type) { return type == Type::kE4m3 || type == Type::kE5m2; }

// The combinations that sm_90a has (9.7.14.5), but for 4-bit and 1-bit integers and the m8n8k4 of f16.
bool exists(const MmaCode& code) {
  const bool m16n8 = code.m == 16 && code.n == 8;
  const bool m8n8 = code.m == 8 && code.n == 8;
  const bool f32_out = code.d == Type::kF32 && code.c == Type::kF32;
  const bool f16_out = code.d == Type::kF16 && code.c == Type::kF16;
  if (code.a == Type::kF16 && code.b == Type::kF16) {
    return m16n8 && (code.k == 8 || code.k == 16) && (f32_out || f16_out);
  }
  if (code.a == Type::kBf16 && code.b == Type::kBf16)
    return m16n8 && (code.k == 8 || code.k == 16) && f32_out;
  if (code.a == Type::kTf32 && code.b == Type::kTf32) return m16n8 && (code.k == 4 || code.k == 8) && f32_out;
  if (code.a == Type::kF64 && code.b == Type::kF64) {
    const bool shape = (m8n8 && code.k == 4) || (m16n8 && (code.k == 4 || code.k == 8 || code.k == 16));
    return shape && code.d == Type::kF64 && code.c == Type::kF64;
  }
  if (is_eight_bit_float(code.a) && is_eight_bit_float(code.b)) {
    return m16n8 && (code.k == 16 || code.k == 32) && (f32_out || f16_out);
  }
  if (is_eight_bit_integer(code.a) && is_eight_bit_integer(code.b)) {
    const bool shape = (m8n8 && code.k == 16) || (m16n8 && (code.k == 16 || code.k == 32));
    return shape && code.d == Type::kS32 && code.c == Type::kS32;
  }
  return false;
}

}  // namespace

MmaCode MmaCode::of(const ptx::Instruction& inst) {
  MmaCode code;
  code.m = static_cast<std::uint8_t>(inst.shape.m);
  code.n = static_cast<std::uint8_t>(inst.shape.n);
  code.k = static_cast<std::uint8_t>(inst.shape.k);
  code.d = inst.types[0];
  code.a = inst.types[1];
  code.b = inst.types[2];
  code.c = inst.types[3];
  code.saturate = inst.sat;
  return code;
}

std::uint64_t MmaCode::pack() const {
  const std::uint8_t bytes[] = {m,
                                n,
                                k,
                                static_cast<std::uint8_t>(d),
                                static_cast<std::uint8_t>(a),
                                static_cast<std::uint8_t>(b),
                                static_cast<std::uint8_t>(c),
                                saturate ? std::uint8_t{1} : std::uint8_t{0}};
  std::uint64_t code = 0;
  for (unsigned i = 0; i < 8; ++i) code |= std::uint64_t{bytes[i]} << (8 * i);
  return code;
}

MmaCode MmaCode::unpack(std::uint64_t code) {
  const auto byte = [code](unsigned i) { return static_cast<std::uint8_t>(code >> (8 * i)); };
  MmaCode out;
  out.m = byte(0);
  out.n = byte(1);
  out.k = byte(2);
  out.d = static_cast<Type>(byte(3));
  out.a = static_cast<Type>(byte(4));
  out.b = static_cast<Type>(byte(5));
  out.c = static_cast<Type>(byte(6));
  out.saturate = byte(7) != 0;
  return out;
}

MmaCode::Counts MmaCode::counts() const {
  if (!exists(*this)) return {};
  const auto registers = [](int elements, Type type) {
    const int bits = ptx::bits_of(type);
    return elements * bits / (kWarpSize * (bits == 64 ? 64 : 32));
  };
  // tf32 elements fill a 32-bit register each.
  return {registers(m * n, d), registers(m * k, a), registers(n * k, b), registers(m * n, c)};
}

Status plan_mma(PlanBuilder& to, const ptx::Instruction& inst) {
  to.plan.kind = InstKind::kCrossLane;
  const MmaCode code = MmaCode::of(inst);
  const MmaCode::Counts counts = code.counts();
  if (counts.d == 0 || !inst.shape.a_row || !inst.shape.b_col || inst.shape.sparse ||
      inst.operands.size() != 4) {
    return usage_error("the virtual node does not have this shape and these types");
  }
  const int wanted[] = {counts.d, counts.a, counts.b, counts.c};
  const Type types[] = {register_type(code.d), register_type(code.a), register_type(code.b),
                        register_type(code.c)};
  for (std::size_t i = 0; i < 4; ++i) {
    const ptx::Operand& operand = inst.operands[i];
    const bool vector = operand.kind == ptx::OperandKind::kVector;
    const int given = vector ? static_cast<int>(operand.elements.size()) : 1;
    if (given != wanted[i])
      return usage_error("a fragment of " + std::to_string(given) + " registers where it takes " +
                         std::to_string(wanted[i]));
    for (int r = 0; r < given; ++r) {
      const ptx::Operand& element = vector ? operand.elements[static_cast<std::size_t>(r)] : operand;
      if (Status status = i == 0 ? to.destination(element, types[i]) : to.source(element, types[i]);
          !status.ok())
        return status;
    }
  }
  to.plan.aux[0] = code.pack();
  return {};
}

}  // namespace echolo::vgpu::alu
