// f32 and f64 arithmetic with .rz, .rm or .rp (PTX ISA 9.7.3), in exact arithmetic rounded once: the host's
// rounding mode stays what it is. These forms are rare enough to be done lane by lane.
#include <span>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/exact.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using exact::Format;
using exact::Number;
using ptx::Opcode;
using ptx::Rounding;
using ptx::Type;

constexpr std::uint64_t kFtzBit = 1U << 8U, kSatBit = 1U << 9U;

enum class Operation : std::uint8_t { kAdd, kSub, kMul, kFma, kDiv, kRcp, kSqrt };

template <typename U>
constexpr Format kFormat = sizeof(U) == 4 ? exact::kF32 : exact::kF64;

// Which NaN operand is handed on (of f64): float64.cpp.
const Number* nan_among(Operation operation, const Number* x) {
  static constexpr int kSum[] = {1, 0}, kFused[] = {1, 2, 0}, kQuotient[] = {0, 1}, kOne[] = {0};
  std::span<const int> order = kSum;
  if (operation == Operation::kFma) order = kFused;
  if (operation == Operation::kDiv) order = kQuotient;
  if (operation == Operation::kRcp || operation == Operation::kSqrt) order = kOne;
  for (const int i : order) {
    if (x[i].kind == Number::Kind::kNan) return &x[i];
  }
  return nullptr;
}

Number compute(Operation operation, const Number* x, Rounding rounding) {
  if (const Number* nan = nan_among(operation, x); nan != nullptr) return *nan;
  switch (operation) {
    case Operation::kAdd:
      return exact::add(x[0], x[1], rounding);
    case Operation::kSub: {
      Number negated = x[1];
      negated.negative = !negated.negative;
      return exact::add(x[0], negated, rounding);
    }
    case Operation::kMul:
      return exact::multiply(x[0], x[1]);
    case Operation::kFma: {
      const Number product = exact::multiply(x[0], x[1]);
      return exact::add(product, x[2], rounding);
    }
    case Operation::kDiv:
      return exact::divide(x[0], x[1]);
    case Operation::kRcp:
      return exact::divide(exact::from_integer(false, 1), x[0]);
    default:
      return exact::square_root(x[0]);
  }
}

template <typename U, Operation kOperation, int kSources>
void run_directed(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto rounding = static_cast<Rounding>(inst.aux[0] & 0xffU);
  const bool ftz = (inst.aux[0] & kFtzBit) != 0, sat = (inst.aux[0] & kSatBit) != 0;
  U* d = lanes.write<U>(inst.operands[0]);
  for (int i = 0; i < kWarpSize; ++i) {
    if (((mask >> static_cast<unsigned>(i)) & 1U) == 0) continue;
    Number sources[3];
    for (int s = 0; s < kSources; ++s)
      sources[s] = exact::unpack(kFormat<U>, lanes.read<U>(inst.operands[s + 1])[i], ftz);
    const Number result = compute(kOperation, sources, rounding);
    // Quotients and roots, which are sequences of instructions, are flushed after rounding.
    constexpr bool kLate = kOperation == Operation::kDiv || kOperation == Operation::kRcp;
    std::uint64_t bits = exact::pack(kFormat<U>, result, rounding, ftz && !kLate);
    if (kLate && ftz && (bits & 0x7f800000U) == 0) bits &= 0x80000000U;
    if (sizeof(U) == 8 && result.kind == Number::Kind::kNan && result.nan_bits != 0)
      bits = result.nan_bits | 1ULL << 51U;
    if (sat) {
      constexpr std::uint64_t kOne = 0x3f800000U;
      if (result.kind == Number::Kind::kNan || (bits >> 31U) != 0)
        bits = 0;
      else if (bits > kOne)
        bits = kOne;
    }
    d[i] = static_cast<U>(bits);
  }
}

template <Operation kOperation, int kSources>
Functions by_type(Type type) {
  const AluFn function = type == Type::kF32 ? run_directed<std::uint32_t, kOperation, kSources>
                                            : run_directed<std::uint64_t, kOperation, kSources>;
  return {function, function};
}

}  // namespace

std::uint64_t directed_code(const ptx::Instruction& inst) {
  return static_cast<std::uint64_t>(inst.rounding) | (inst.ftz ? kFtzBit : 0U) | (inst.sat ? kSatBit : 0U);
}

Functions find_directed(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  const bool directed =
      inst.rounding == Rounding::kRz || inst.rounding == Rounding::kRm || inst.rounding == Rounding::kRp;
  if (!directed || (inst.type != Type::kF32 && inst.type != Type::kF64) || inst.type2 != Type::kNone ||
      inst.relu)
    return {};
  if (inst.type == Type::kF64 && (inst.ftz || inst.sat)) return {};
  switch (inst.op) {
    case Opcode::kAdd:
      return by_type<Operation::kAdd, 2>(inst.type);
    case Opcode::kSub:
      return by_type<Operation::kSub, 2>(inst.type);
    case Opcode::kMul:
      return by_type<Operation::kMul, 2>(inst.type);
    case Opcode::kFma:
    case Opcode::kMad:
      return by_type<Operation::kFma, 3>(inst.type);
    case Opcode::kDiv:
      return by_type<Operation::kDiv, 2>(inst.type);
    case Opcode::kRcp:
      return by_type<Operation::kRcp, 1>(inst.type);
    case Opcode::kSqrt:
      return by_type<Operation::kSqrt, 1>(inst.type);
    default:
      return {};
  }
}

}  // namespace echolo::vgpu::alu
