// f64 arithmetic rounding to nearest even (PTX ISA 9.7.3). A NaN operand is handed on, made quiet; of
// several the second one, in a fused sum b before c before a, in a quotient the dividend. An invalid
// operation gives 0xfff8000000000000.
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/float64.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::Opcode;
using ptx::Rounding;
using ptx::Type;

constexpr std::uint64_t kSign = 1ULL << 63U, kQuiet = 1ULL << 51U, kInvalid = 0xfff8000000000000ULL;

HWY_INLINE double quiet(double x) { return as_double(as_bits(x) | kQuiet); }
// Never leaves a NaN's bits to the host's choice.
HWY_INLINE double settle(double result, double a) {
  return pick(is_nan(a), quiet(a), pick(is_nan(result), as_double(kInvalid), result));
}
HWY_INLINE double settle(double result, double a, double b) {
  return pick(is_nan(a), quiet(a), settle(result, b));
}
HWY_INLINE double add(double a, double b) { return settle(a + b, b, a); }
HWY_INLINE double sub(double a, double b) { return settle(a - b, b, a); }
HWY_INLINE double mul(double a, double b) { return settle(a * b, b, a); }
HWY_INLINE double divide(double a, double b) { return settle(a / b, a, b); }
HWY_INLINE double fused(double a, double b, double c) {
  return pick(is_nan(b), quiet(b), settle(__builtin_fma(a, b, c), c, a));
}
HWY_INLINE double reciprocal(double a) { return settle(1.0 / a, a); }
HWY_INLINE double root(double a) { return settle(__builtin_sqrt(a), a); }
HWY_INLINE double negate(double a) { return pick(is_nan(a), quiet(a), as_double(as_bits(a) ^ kSign)); }
HWY_INLINE double magnitude(double a) { return pick(is_nan(a), quiet(a), as_double(as_bits(a) & ~kSign)); }
HWY_INLINE std::uint64_t copy_sign(std::uint64_t a, std::uint64_t b) { return (a & kSign) | (b & ~kSign); }

template <bool kMax>
HWY_INLINE double min_max(double a, double b) {
  const auto key = [](double x) HWY_ATTR {
    const auto bits = static_cast<std::int64_t>(as_bits(x));
    return bits < 0 ? bits ^ 0x7fffffffffffffffLL : bits;
  };
  const double picked = pick((key(a) < key(b)) != kMax, a, b);
  const double result = pick(is_nan(a), b, pick(is_nan(b), a, picked));
  return pick(is_nan(result), quiet(b), result);
}

}  // namespace

Functions select_float64(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  if (inst.type != Type::kF64 || inst.type2 != Type::kNone || inst.sat || inst.ftz || inst.relu) return {};
  const bool nearest = inst.rounding == Rounding::kRn;
  const bool nearest_or_none = nearest || inst.rounding == Rounding::kDefault;
  switch (inst.op) {
    case Opcode::kAdd:
      return nearest_or_none ? lanewise<&add>() : Functions{};
    case Opcode::kSub:
      return nearest_or_none ? lanewise<&sub>() : Functions{};
    case Opcode::kMul:
      return nearest_or_none ? lanewise<&mul>() : Functions{};
    case Opcode::kFma:
    case Opcode::kMad:
      return nearest ? lanewise<&fused>() : Functions{};
    case Opcode::kDiv:
      return nearest ? lanewise<&divide>() : Functions{};
    case Opcode::kRcp:
      return nearest ? lanewise<&reciprocal>() : Functions{};
    case Opcode::kSqrt:
      return nearest ? lanewise<&root>() : Functions{};
    case Opcode::kNeg:
      return lanewise<&negate>();
    case Opcode::kAbs:
      return lanewise<&magnitude>();
    case Opcode::kCopysign:
      return lanewise<&copy_sign>();
    case Opcode::kMin:
      return inst.operands.size() == 3 ? lanewise<&min_max<false>>() : Functions{};
    case Opcode::kMax:
      return inst.operands.size() == 3 ? lanewise<&min_max<true>>() : Functions{};
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_float64);
}  // namespace
Functions find_float64(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_float64)(form); }
}  // namespace echolo::vgpu::alu
#endif
