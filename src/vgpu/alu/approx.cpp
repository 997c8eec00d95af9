// The approximate functions (PTX ISA 9.7.3: rcp rsqrt sqrt div ex2 lg2 sin cos tanh; 9.7.4: ex2 and tanh of
// f16, bf16). Hardware's own tables are not public; these are at least as exact as the ISA demands and the
// same on every machine: polynomials in f64 of IEEE operations only, rounded once to the result. Errors of
// the f32 results:
//   rcp, rsqrt, sqrt, div.full   0.5 ulp, rsqrt below 0.51      (ISA: 1, 2, 1 and 2 ulp or more)
//   div.approx                   0.5 ulp; |b| above 2^126 gives 0 or NaN as the ISA says
//   ex2, lg2, tanh               below 0.51 ulp                 (ISA: 2 ulp, 2^-22, 2^-11)
//   sin, cos                     below 2^-24 absolute, for |x| < 2^31; beyond, the angle is reduced in f64
//   and loses digits
// f64 .approx.ftz forms look at the upper 32 bits of their operand and return the upper 32 of the result.
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/approx.cpp"
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

// Adding and taking away 1.5 * 2^52 rounds to an integer, which then also stands in the low bits of the sum.
constexpr double kRounder = 6755399441055744.0;

// 2^x for x of ordinary size, relative error below 2^-32 (Taylor in f * ln 2, |f| <= 1/2).
HWY_INLINE double exp2_f64(double x) {
  const double shifted = x + kRounder;
  const double f = x - (shifted - kRounder);
  double p = 1.0178086009239696e-07 * f + 1.3215486790144305e-06;
  p = p * f + 1.5252733804059841e-05;
  p = p * f + 1.5403530393381608e-04;
  p = p * f + 1.3333558146428443e-03;
  p = p * f + 9.6181291076284769e-03;
  p = p * f + 5.5504108664821576e-02;
  p = p * f + 2.4022650695910072e-01;
  p = p * f + 6.9314718055994531e-01;
  p = p * f + 1.0;
  const std::uint64_t scale = (as_bits(shifted) << 52U) + (1023ULL << 52U);
  return p * as_double(scale);
}

HWY_INLINE float ex2(float x) {
  const float low =
      pick(x < -200.0F, -200.0F, x);  // far below the smallest subnormal, far above the largest number
  const float clamped = pick(low > 200.0F, 200.0F, low);
  return static_cast<float>(exp2_f64(static_cast<double>(clamped)));
}

HWY_INLINE float lg2(float x) {
  const double wide = x;  // no subnormals in f64
  const std::uint64_t bits = as_bits(wide);
  // mantissa in [sqrt 1/2, sqrt 2): the exponent goes up by one where the fraction is above that of sqrt 2
  const std::uint64_t above = bits + (0x3ff0000000000000ULL - 0x3fe6a09e667f3bcdULL);
  const std::uint64_t biased = above >> 52U;
  const double exponent = as_double(0x4330000000000000ULL | biased) - (4503599627370496.0 + 1023.0);
  const double m = as_double((above & 0x000fffffffffffffULL) + 0x3fe6a09e667f3bcdULL);
  const double s = (m - 1.0) / (m + 1.0);
  const double z = s * s;
  double p = 1.0 / 15.0;
  p = p * z + 1.0 / 13.0;
  p = p * z + 1.0 / 11.0;
  p = p * z + 1.0 / 9.0;
  p = p * z + 1.0 / 7.0;
  p = p * z + 1.0 / 5.0;
  p = p * z + 1.0 / 3.0;
  p = p * z + 1.0;
  const double result = exponent + s * p * 2.8853900817779268;  // 2 / ln 2
  const float special =
      pick(x == 0.0F, -std::numeric_limits<float>::infinity(), pick(x > 0.0F, x, as_float(kNanF32)));
  const bool ordinary = (x > 0.0F) & (x < std::numeric_limits<float>::infinity());
  return pick(ordinary, static_cast<float>(result), special);
}

// sin(x + quarter * pi / 2).
HWY_INLINE float circular(float x, std::uint64_t quarter) {
  const double wide = x;
  const double magnitude = __builtin_fabs(wide);
  // Past 2^31 only the fraction of a turn that f64 still knows counts.
  const double finite = pick(magnitude < 3.5e38, wide, 0.0);
  const double turns = finite * 0.15915494309189535;
  const double fraction = turns - __builtin_floor(turns);
  const double angle = pick(magnitude < 2147483648.0, wide, fraction * 6.283185307179586);
  const double safe = pick(magnitude < 3.5e38, angle, 0.0);
  const double shifted = safe * 0.6366197723675814 + kRounder;
  const double n = shifted - kRounder;
  double r = __builtin_fma(-n, 1.5707963267948966, safe);
  r = __builtin_fma(-n, 6.123233995736766e-17, r);
  const std::uint64_t quadrant = as_bits(shifted) + quarter;
  const double z = r * r;
  double s = 1.6059043836821613e-10;
  s = s * z - 2.5052108385441720e-08;
  s = s * z + 2.7557319223985893e-06;
  s = s * z - 1.9841269841269841e-04;
  s = s * z + 8.3333333333333332e-03;
  s = s * z - 1.6666666666666666e-01;
  s = r + r * z * s;
  double c = -1.1470745597729725e-11;
  c = c * z + 2.0876756987868099e-09;
  c = c * z - 2.7557319223985888e-07;
  c = c * z + 2.4801587301587302e-05;
  c = c * z - 1.3888888888888889e-03;
  c = c * z + 4.1666666666666664e-02;
  c = 1.0 - 0.5 * z + z * z * c;
  const double value = pick((quadrant & 1U) != 0, c, s);
  const double turned = as_double(as_bits(value) ^ ((quadrant & 2U) << 62U));
  const float result = static_cast<float>(turned);
  // sin keeps the sign of zero.
  const float with_zero = pick((quarter == 0) & (x == 0.0F), x, result);
  return pick(magnitude < 3.5e38, with_zero, as_float(kNanF32));
}

HWY_INLINE float tanh_f32(float x) {
  const double wide = x;
  const double low = pick(wide < -20.0, -20.0, wide);
  const double clamped = pick(low > 20.0, 20.0, low);
  const double e = exp2_f64(clamped * 2.8853900817779268);
  const double large = (e - 1.0) / (e + 1.0);
  const double z = wide * wide;
  // Near zero the difference above loses digits; the series does not.
  const double small =
      wide + wide * z * (-1.0 / 3.0 + z * (2.0 / 15.0 + z * (-17.0 / 315.0 + z * (62.0 / 2835.0))));
  const float result = static_cast<float>(pick(__builtin_fabs(wide) < 0.0625, small, large));
  const float signed_zero = pick(x == 0.0F, x, result);
  return pick(is_nan(x), as_float(kNanF32), signed_zero);
}

struct Ex2 {
  static HWY_INLINE float f(float x) { return ex2(x); }
};
struct Lg2 {
  static HWY_INLINE float f(float x) { return lg2(x); }
};
struct Sin {
  static HWY_INLINE float f(float x) { return circular(x, 0); }
};
struct Cos {
  static HWY_INLINE float f(float x) { return circular(x, 1); }
};
struct Tanh {
  static HWY_INLINE float f(float x) { return tanh_f32(x); }
};
struct Rcp {
  static HWY_INLINE float f(float x) { return 1.0F / x; }
};
struct Sqrt {
  static HWY_INLINE float f(float x) { return __builtin_sqrtf(x); }
};
struct Rsqrt {
  static HWY_INLINE float f(float x) {
    return static_cast<float>(1.0 / __builtin_sqrt(static_cast<double>(x)));
  }
};

template <class Op, bool kFtz>
HWY_INLINE float single(float x) {
  return canonical(maybe_flush<kFtz>(Op::f(maybe_flush<kFtz>(x))));
}

template <bool kFtz>
HWY_INLINE float div_full(float a, float b) {
  return canonical(maybe_flush<kFtz>(maybe_flush<kFtz>(a) / maybe_flush<kFtz>(b)));
}
template <bool kFtz>
HWY_INLINE float div_approx(float a, float b) {
  a = maybe_flush<kFtz>(a);
  b = maybe_flush<kFtz>(b);
  const float quotient = a / b;
  const std::uint32_t size = as_bits(b) & 0x7fffffffU;
  const bool huge = (size > 0x7e800000U) & (size < 0x7f800000U);  // 2^126 < |b| < 2^128
  const bool infinite = (as_bits(a) & 0x7fffffffU) == 0x7f800000U;
  const float zero = as_float((as_bits(a) ^ as_bits(b)) & 0x80000000U);
  const float limited = pick(is_nan(a) | infinite, as_float(kNanF32), zero);
  return canonical(maybe_flush<kFtz>(pick(huge, limited, quotient)));
}

template <class H, class Op, bool kFlush>
HWY_INLINE std::uint16_t half(std::uint16_t h) {
  const std::uint16_t result = H::from_f32(Op::f(H::to_f32(kFlush ? flush_half<H>(h) : h)));
  return kFlush ? flush_half<H>(result) : result;
}
template <class H, class Op, bool kFlush>
HWY_INLINE std::uint32_t half_pair(std::uint32_t x) {
  return std::uint32_t{half<H, Op, kFlush>(static_cast<std::uint16_t>(x >> 16U))} << 16U |
         half<H, Op, kFlush>(static_cast<std::uint16_t>(x));
}

constexpr std::uint64_t kUpper = 0xffffffff00000000ULL;
HWY_INLINE double flush_f64(double x) {
  const std::uint64_t bits = as_bits(x);
  return as_double((bits & 0x7ff0000000000000ULL) == 0 ? bits & (1ULL << 63U) : bits);
}
HWY_INLINE double upper(double x) { return as_double(as_bits(x) & kUpper); }
HWY_INLINE double settle(double x) { return is_nan(x) ? as_double(0xfff8000000000000ULL) : x; }
HWY_INLINE double gross(double x) { return pick(is_nan(x), as_double(0x7fffffff00000000ULL), upper(x)); }
HWY_INLINE double rcp_gross(double x) { return gross(flush_f64(1.0 / upper(flush_f64(x)))); }
HWY_INLINE double rsqrt_gross(double x) { return gross(1.0 / __builtin_sqrt(upper(flush_f64(x)))); }
HWY_INLINE double rsqrt_f64(double x) { return settle(1.0 / __builtin_sqrt(x)); }

template <class Op>
Functions with_ftz(const ptx::Instruction& inst) {
  return inst.ftz ? lanewise_rare<&single<Op, true>>() : lanewise_rare<&single<Op, false>>();
}
template <class Op>
Functions halves(Type type, bool ftz) {
  switch (type) {
    case Type::kF16:
      return ftz ? lanewise_rare<&half<F16, Op, true>>() : lanewise_rare<&half<F16, Op, false>>();
    case Type::kF16x2:
      return ftz ? lanewise_rare<&half_pair<F16, Op, true>>() : lanewise_rare<&half_pair<F16, Op, false>>();
    case Type::kBf16:
      return ftz ? lanewise_rare<&half<Bf16, Op, true>>() : lanewise_rare<&half<Bf16, Op, false>>();
    case Type::kBf16x2:
      return ftz ? lanewise_rare<&half_pair<Bf16, Op, true>>() : lanewise_rare<&half_pair<Bf16, Op, false>>();
    default:
      return {};
  }
}

}  // namespace

Functions select_approx(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  if ((!inst.approx && !inst.full) || inst.rounding != Rounding::kDefault) return {};
  if (inst.type == Type::kF64) {
    if (inst.op == Opcode::kRcp && inst.ftz) return lanewise_rare<&rcp_gross>();
    if (inst.op == Opcode::kRsqrt)
      return inst.ftz ? lanewise_rare<&rsqrt_gross>() : lanewise_rare<&rsqrt_f64>();
    return {};
  }
  if (inst.type != Type::kF32) {
    if (inst.op == Opcode::kEx2) return halves<Ex2>(inst.type, inst.ftz);
    if (inst.op == Opcode::kTanh && !inst.ftz) return halves<Tanh>(inst.type, false);
    return {};
  }
  switch (inst.op) {
    case Opcode::kEx2:
      return with_ftz<Ex2>(inst);
    case Opcode::kLg2:
      return with_ftz<Lg2>(inst);
    case Opcode::kSin:
      return with_ftz<Sin>(inst);
    case Opcode::kCos:
      return with_ftz<Cos>(inst);
    case Opcode::kTanh:
      return inst.ftz ? Functions{} : with_ftz<Tanh>(inst);
    case Opcode::kRcp:
      return with_ftz<Rcp>(inst);
    case Opcode::kSqrt:
      return with_ftz<Sqrt>(inst);
    case Opcode::kRsqrt:
      return with_ftz<Rsqrt>(inst);
    case Opcode::kDiv:
      if (inst.full) return inst.ftz ? lanewise_rare<&div_full<true>>() : lanewise_rare<&div_full<false>>();
      return inst.ftz ? lanewise_rare<&div_approx<true>>() : lanewise_rare<&div_approx<false>>();
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
HWY_EXPORT(select_approx);
}  // namespace
Functions find_approx(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_approx)(form); }
}  // namespace echolo::vgpu::alu
#endif
