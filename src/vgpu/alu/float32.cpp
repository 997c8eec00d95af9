// f32 arithmetic rounding to nearest even (PTX ISA 9.7.3): add sub mul fma mad div sqrt rcp neg abs min max
// copysign. .ftz flushes subnormal operands and results to zero of their sign (products and fused sums by
// what they are before rounding), .sat clamps to [0, 1] with NaN as 0.
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/float32.cpp"
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

enum Mode : unsigned { kPlain = 0, kFtz = 1, kSat = 2, kFtzSat = 3 };

template <unsigned kMode>
HWY_INLINE float in(float x) {
  return maybe_flush<(kMode & kFtz) != 0>(x);
}
template <unsigned kMode>
HWY_INLINE float out(float x) {
  if constexpr ((kMode & kFtz) != 0) x = flush(x);
  if constexpr ((kMode & kSat) != 0) {
    const float floor = x > 0.0F ? x : 0.0F;
    return floor < 1.0F ? floor : 1.0F;
  }
  return canonical(x);
}

// `result` is `exact` rounded, `lost` what `exact` lacks of the true value: zero where that is below the
// smallest normal number, though rounding reached it.
HWY_INLINE float flush_by(float result, double exact, double lost) {
  const double magnitude = __builtin_fabs(exact);
  const bool below = (lost < 0.0) != (exact < 0.0) && lost != 0.0;
  const bool tiny = (magnitude < 0x1p-126) | ((magnitude == 0x1p-126) & below);
  return as_float(pick(tiny, as_bits(result) & 0x80000000U, as_bits(result)));
}

struct Add {
  template <unsigned kMode>
  static HWY_INLINE float f(float a, float b) {
    return out<kMode>(in<kMode>(a) + in<kMode>(b));
  }
};
struct Sub {
  template <unsigned kMode>
  static HWY_INLINE float f(float a, float b) {
    return out<kMode>(in<kMode>(a) - in<kMode>(b));
  }
};
struct Mul {
  template <unsigned kMode>
  static HWY_INLINE float f(float a, float b) {
    const float x = in<kMode>(a), y = in<kMode>(b);
    if constexpr ((kMode & kFtz) != 0) return out<kMode>(flush_by(x * y, double{x} * double{y}, 0.0));
    return out<kMode>(x * y);
  }
};
struct Fma {
  template <unsigned kMode>
  static HWY_INLINE float f(float a, float b, float c) {
    const float x = in<kMode>(a), y = in<kMode>(b), z = in<kMode>(c);
    const float result = __builtin_fmaf(x, y, z);
    if constexpr ((kMode & kFtz) != 0) {
      const double product = double{x} * double{y}, sum = product + double{z};
      return out<kMode>(flush_by(result, sum, product - (sum - double{z})));
    }
    return out<kMode>(result);
  }
};
struct Div {
  template <unsigned kMode>
  static HWY_INLINE float f(float a, float b) {
    return out<kMode>(in<kMode>(a) / in<kMode>(b));
  }
};
struct Rcp {
  template <unsigned kMode>
  static HWY_INLINE float f(float a) {
    return out<kMode>(1.0F / in<kMode>(a));
  }
};
struct Sqrt {
  template <unsigned kMode>
  static HWY_INLINE float f(float a) {
    return out<kMode>(__builtin_sqrtf(in<kMode>(a)));
  }
};

template <bool kFlush>
HWY_INLINE float negate(float a) {
  return canonical(as_float(as_bits(maybe_flush<kFlush>(a)) ^ 0x80000000U));
}
template <bool kFlush>
HWY_INLINE float magnitude(float a) {
  return canonical(as_float(as_bits(maybe_flush<kFlush>(a)) & 0x7fffffffU));
}
HWY_INLINE std::uint32_t copy_sign(std::uint32_t a, std::uint32_t b) {
  return (a & 0x80000000U) | (b & 0x7fffffffU);
}

// Order of bits such that -0 < +0; NaN is dealt with apart.
HWY_INLINE bool less(float a, float b) {
  const auto key = [](float x) HWY_ATTR {
    const auto bits = static_cast<std::int32_t>(as_bits(x));
    return bits < 0 ? bits ^ 0x7fffffff : bits;
  };
  return key(a) < key(b);
}
// One NaN operand is ignored, or with .NaN decides (9.7.3.11, 9.7.3.12).
template <bool kMax, bool kFlush, bool kNan, bool kXorSign>
HWY_INLINE float min_max(float a, float b) {
  a = maybe_flush<kFlush>(a);
  b = maybe_flush<kFlush>(b);
  std::uint32_t sign = 0;
  if constexpr (kXorSign) {
    sign = (as_bits(a) ^ as_bits(b)) & 0x80000000U;
    a = as_float(as_bits(a) & 0x7fffffffU);
    b = as_float(as_bits(b) & 0x7fffffffU);
  }
  const float picked = pick(less(a, b) != kMax, a, b);
  const float other = pick(is_nan(a), b, pick(is_nan(b), a, picked));
  const float x = pick(kNan & (is_nan(a) | is_nan(b)), as_float(kNanF32), canonical(other));
  return pick(kXorSign & !is_nan(x), as_float(as_bits(x) | sign), x);
}

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

template <class Op>
Functions with_modes(const ptx::Instruction& inst) {
  if (inst.sat)
    return inst.ftz ? lanewise_rare<&Op::template f<kFtzSat>>() : lanewise_rare<&Op::template f<kSat>>();
  return inst.ftz ? lanewise<&Op::template f<kFtz>>() : lanewise<&Op::template f<kPlain>>();
}
template <class Op>
Functions with_ftz(const ptx::Instruction& inst) {
  return inst.ftz ? lanewise<&Op::template f<kFtz>>() : lanewise<&Op::template f<kPlain>>();
}
template <bool kMax, bool kFlush>
Functions min_or_max(const ptx::Instruction& inst) {
  if (inst.xorsign) {
    return inst.nan_propagate ? lanewise_rare<&min_max<kMax, kFlush, true, true>>()
                              : lanewise_rare<&min_max<kMax, kFlush, false, true>>();
  }
  return inst.nan_propagate ? lanewise_rare<&min_max<kMax, kFlush, true, false>>()
                            : lanewise<&min_max<kMax, kFlush, false, false>>();
}

}  // namespace

Functions select_float32(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  if (inst.type != Type::kF32 || inst.type2 != Type::kNone || inst.relu) return {};
  const bool nearest = inst.rounding == Rounding::kRn;
  const bool nearest_or_none = nearest || inst.rounding == Rounding::kDefault;
  switch (inst.op) {
    case Opcode::kAdd:
      return nearest_or_none ? with_modes<Add>(inst) : Functions{};
    case Opcode::kSub:
      return nearest_or_none ? with_modes<Sub>(inst) : Functions{};
    case Opcode::kMul:
      return nearest_or_none ? with_modes<Mul>(inst) : Functions{};
    case Opcode::kFma:
    case Opcode::kMad:
      return nearest ? with_modes<Fma>(inst) : Functions{};
    case Opcode::kDiv:
      return nearest ? with_ftz<Div>(inst) : Functions{};
    case Opcode::kRcp:
      return nearest ? with_ftz<Rcp>(inst) : Functions{};
    case Opcode::kSqrt:
      return nearest ? with_ftz<Sqrt>(inst) : Functions{};
    case Opcode::kNeg:
      return inst.ftz ? lanewise<&negate<true>>() : lanewise<&negate<false>>();
    case Opcode::kAbs:
      return inst.ftz ? lanewise<&magnitude<true>>() : lanewise<&magnitude<false>>();
    case Opcode::kCopysign:
      return lanewise<&copy_sign>();
    case Opcode::kMin:
      if (inst.operands.size() != 3) return {};
      return inst.ftz ? min_or_max<false, true>(inst) : min_or_max<false, false>(inst);
    case Opcode::kMax:
      if (inst.operands.size() != 3) return {};
      return inst.ftz ? min_or_max<true, true>(inst) : min_or_max<true, false>(inst);
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
HWY_EXPORT(select_float32);
}  // namespace
Functions find_float32(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_float32)(form); }
}  // namespace echolo::vgpu::alu
#endif
