// f16, bf16 and their pairs (PTX ISA 9.7.4): add sub mul fma neg abs min max. A sum of two f16 or bf16
// computed in f32 and rounded again is correctly rounded (24 >= 2 * 11 + 2); products and fused sums go
// through f64 rounded to odd, so that the last rounding sees what was lost.
#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/operands.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/half.cpp"
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

enum Mode : unsigned {
  kPlain = 0,
  kFtz = 1,
  kSat = 2,
  kRelu = 4,
  kNan = 8,
  kXorSign = 16
};  // as half_code has them

// a * b + c in f64 rounded to odd: the product of two halves is exact, what the sum loses marks the last bit.
HWY_INLINE double fused_to_odd(float a, float b, float c) {
  const double product = static_cast<double>(a) * static_cast<double>(b);
  const double addend = c;
  const double sum = product + addend;
  const double back = sum - product;
  const double lost = (product - (sum - back)) + (addend - back);
  const std::uint64_t bits = as_bits(sum);
  const std::uint64_t inward = (as_bits(lost) ^ bits) >> 63U;
  const std::uint64_t inexact = ((lost > 0.0) | (lost < 0.0)) & ~bits & 1U;  // 0 where `lost` is NaN
  return as_double(bits + ((1U - 2 * inward) & (std::uint64_t{0} - inexact)));
}
// A double rounded to odd, rounded once more to the nearest half.
template <class H>
HWY_INLINE std::uint16_t narrow_odd(double x) {
  constexpr unsigned kShift = 52 - H::kFractionBits;
  constexpr int kBias = H::kBias;
  const std::uint64_t bits = as_bits(x);
  const std::uint64_t rest = bits & ~(1ULL << 63U);
  constexpr std::uint64_t kRebias = static_cast<std::uint64_t>(1023 - kBias) << 52U;
  const std::uint64_t normal =
      (rest - kRebias + ((1ULL << (kShift - 1)) - 1) + ((rest >> kShift) & 1U)) >> kShift;
  // A number whose last place is that of the half's subnormals: adding it makes the adder round there.
  constexpr double kAligned =
      std::bit_cast<double>(static_cast<std::uint64_t>(1023 + 53 - kBias - H::kFractionBits) << 52U);
  const std::uint64_t subnormal = as_bits(as_double(rest) + kAligned) - as_bits(kAligned);
  std::uint64_t result = pick(rest < kRebias + (1ULL << 52U), subnormal, normal);
  result =
      pick(rest >= (static_cast<std::uint64_t>(1024 + kBias) << 52U), std::uint64_t{H::kInfinity}, result);
  result |= (bits >> 63U) << 15U;
  return static_cast<std::uint16_t>(pick(rest > 0x7ff0000000000000ULL, std::uint64_t{kNanHalf}, result));
}

template <class H>
HWY_INLINE float in(std::uint16_t h, unsigned mode) {
  return H::to_f32((mode & kFtz) != 0 ? flush_half<H>(h) : h);
}
template <class H>
HWY_INLINE std::uint16_t finish(std::uint16_t h, unsigned mode) {
  if ((mode & kFtz) != 0) h = flush_half<H>(h);
  if ((mode & kSat) != 0) {
    // NaN, negative numbers and -0 become +0; positive ones compare as their bits do.
    const bool zero = (h & 0x8000U) != 0 || h > H::kInfinity;
    h = static_cast<std::uint16_t>(zero ? 0 : (h > H::kOne ? H::kOne : h));
  }
  if ((mode & kRelu) != 0) h = static_cast<std::uint16_t>((h & 0x8000U) != 0 ? 0 : h);
  return h;
}

// With .ftz a result is flushed by what it is before rounding.
template <class H>
constexpr float kLeastNormal = std::bit_cast<float>(static_cast<std::uint32_t>(127 + 1 - H::kBias) << 23U);
template <class H>
HWY_INLINE std::uint16_t flush_tiny(std::uint16_t h, double exact, unsigned mode) {
  const bool tiny = (mode & kFtz) != 0 && __builtin_fabs(exact) < static_cast<double>(kLeastNormal<H>);
  return static_cast<std::uint16_t>(tiny ? h & 0x8000U : h);
}
template <class H>
HWY_INLINE std::uint16_t out(float x, unsigned mode) {
  return finish<H>(flush_tiny<H>(H::from_f32(x), x, mode), mode);
}

struct Add {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, std::uint16_t b, unsigned mode) {
    return out<H>(in<H>(a, mode) + in<H>(b, mode), mode);
  }
};
struct Sub {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, std::uint16_t b, unsigned mode) {
    return out<H>(in<H>(a, mode) - in<H>(b, mode), mode);
  }
};
struct Mul {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, std::uint16_t b, unsigned mode) {
    // f16 products are exact in f32; adding -0 changes no value and no sign.
    if constexpr (std::is_same_v<H, F16>)
      return out<H>(in<H>(a, mode) * in<H>(b, mode), mode);
    else
      return finish<H>(narrow_odd<H>(fused_to_odd(in<H>(a, mode), in<H>(b, mode), -0.0F)), mode);
  }
};
struct Fma {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, std::uint16_t b, std::uint16_t c, unsigned mode) {
    const double exact = fused_to_odd(in<H>(a, mode), in<H>(b, mode), in<H>(c, mode));
    return finish<H>(flush_tiny<H>(narrow_odd<H>(exact), exact, mode), mode);
  }
};
template <class H>
HWY_INLINE std::uint16_t canonical_half(std::uint16_t h) {
  return pick((h & 0x7fffU) > H::kInfinity, kNanHalf, h);
}
struct Neg {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, unsigned mode) {
    const std::uint16_t x = (mode & kFtz) != 0 ? flush_half<H>(a) : a;
    return canonical_half<H>(static_cast<std::uint16_t>(x ^ 0x8000U));
  }
};
struct Abs {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, unsigned mode) {
    const std::uint16_t x = (mode & kFtz) != 0 ? flush_half<H>(a) : a;
    return canonical_half<H>(static_cast<std::uint16_t>(x & 0x7fffU));
  }
};
template <bool kMax>
struct MinMax {
  template <class H>
  static HWY_INLINE std::uint16_t f(std::uint16_t a, std::uint16_t b, unsigned mode) {
    if ((mode & kFtz) != 0) {
      a = flush_half<H>(a);
      b = flush_half<H>(b);
    }
    const auto nan = [](std::uint32_t h) HWY_ATTR { return (h & 0x7fffU) > H::kInfinity; };
    const std::uint32_t sign = (mode & kXorSign) != 0 ? (a ^ b) & 0x8000U : 0U;
    const std::uint32_t x = (mode & kXorSign) != 0 ? a & 0x7fffU : a,
                        y = (mode & kXorSign) != 0 ? b & 0x7fffU : b;
    // Bits as numbers, negative ones upside down, so that -0 < +0.
    const auto key = [](std::uint32_t h) HWY_ATTR {
      const auto wide = static_cast<std::int32_t>(h << 16U) >> 16;
      return wide ^ ((wide >> 31) & 0x7fff);
    };
    const std::uint32_t picked = pick((key(x) < key(y)) != kMax, x, y);
    const std::uint32_t number = pick(nan(x), y, pick(nan(y), x, picked));
    const bool is_nan = (mode & kNan) != 0 ? nan(x) | nan(y) : nan(x) & nan(y);
    return static_cast<std::uint16_t>(pick(is_nan, std::uint32_t{kNanHalf}, number | sign));
  }
};

// Plain forms. A pair of halves a lane is 64 halves in a row; the result is kept apart until all are read.
template <int kCount>
HWY_INLINE void store_halves(const Lanes& lanes, const Inst& inst, const std::uint16_t* result,
                             std::uint32_t mask) {
  if constexpr (kCount == 2 * kWarpSize) {
    auto* d = lanes.write<std::uint32_t>(inst.operands[0]);
    const auto* words = reinterpret_cast<const std::uint32_t*>(result);
    for (int i = 0; i < kWarpSize; ++i) d[i] = pick((mask & kLaneBit[i]) != 0, words[i], d[i]);
  } else {
    auto* d = lanes.write<std::uint16_t>(inst.operands[0]);
    for (int i = 0; i < kWarpSize; ++i) d[i] = pick((mask & kLaneBit[i]) != 0, result[i], d[i]);
  }
}
template <class Op, class H, int kSources, int kCount>
void run_plain(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto* a = lanes.read<std::uint16_t>(inst.operands[1]);
  const auto* b = kSources > 1 ? lanes.read<std::uint16_t>(inst.operands[2]) : nullptr;
  alignas(64) std::uint16_t result[kCount];
  if constexpr (kSources == 1) {
    for (int i = 0; i < kCount; ++i) result[i] = Op::template f<H>(a[i], kPlain);
  } else {
    for (int i = 0; i < kCount; ++i) result[i] = Op::template f<H>(a[i], b[i], kPlain);
  }
  store_halves<kCount>(lanes, inst, result, mask);
}
// Step by step over all halves, so that each loop has one width and vectorises.
template <class H, bool kAddend, int kCount>
void run_fused(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  alignas(64) float x[3][kCount];
  for (int s = 0; s < (kAddend ? 3 : 2); ++s) {
    const auto* halves = lanes.read<std::uint16_t>(inst.operands[s + 1]);
    for (int i = 0; i < kCount; ++i) x[s][i] = H::to_f32(halves[i]);
  }
  if constexpr (!kAddend) {
    for (int i = 0; i < kCount; ++i) x[2][i] = -0.0F;
  }
  alignas(64) double odd[kCount];
  for (int i = 0; i < kCount; ++i) odd[i] = fused_to_odd(x[0][i], x[1][i], x[2][i]);
  alignas(64) std::uint16_t result[kCount];
  for (int i = 0; i < kCount; ++i) result[i] = narrow_odd<H>(odd[i]);
  store_halves<kCount>(lanes, inst, result, mask);
}

// Forms with .ftz, .sat, .relu and the like, lane by lane. aux[0]: the mode.
template <class Op, class H, int kSources, bool kPacked>
void run_moded(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto mode = static_cast<unsigned>(inst.aux[0]);
  for (int i = 0; i < kWarpSize * (kPacked ? 2 : 1); ++i) {
    if ((mask & kLaneBit[kPacked ? i / 2 : i]) == 0) continue;
    const auto source = [&](int s) HWY_ATTR { return lanes.read<std::uint16_t>(inst.operands[s])[i]; };
    std::uint16_t* d = lanes.write<std::uint16_t>(inst.operands[0]) + i;
    if constexpr (kSources == 1)
      *d = Op::template f<H>(source(1), mode);
    else if constexpr (kSources == 2)
      *d = Op::template f<H>(source(1), source(2), mode);
    else
      *d = Op::template f<H>(source(1), source(2), source(3), mode);
  }
}

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

template <class Op, class H, int kSources>
Functions functions(unsigned mode, bool packed) {
  if (mode != kPlain)
    return same(packed ? run_moded<Op, H, kSources, true> : run_moded<Op, H, kSources, false>);
  constexpr bool kFused = std::is_same_v<Op, Fma> || (std::is_same_v<Op, Mul> && std::is_same_v<H, Bf16>);
  if constexpr (kFused) {
    return same(packed ? run_fused<H, kSources == 3, 2 * kWarpSize> : run_fused<H, kSources == 3, kWarpSize>);
  } else {
    return same(packed ? run_plain<Op, H, kSources, 2 * kWarpSize> : run_plain<Op, H, kSources, kWarpSize>);
  }
}

// `allowed`: the modes that the form may have; bf16 never has .ftz or .sat but for neg and abs.
template <class Op, int kSources>
Functions choose(const ptx::Instruction& inst, unsigned allowed, bool bf16, bool packed) {
  const auto mode = static_cast<unsigned>(half_code(inst));
  if ((mode & ~allowed) != 0) return {};
  if (bf16)
    return (mode & (kFtz | kSat)) != 0 && kSources != 1 ? Functions{}
                                                        : functions<Op, Bf16, kSources>(mode, packed);
  return functions<Op, F16, kSources>(mode, packed);
}

}  // namespace

Functions select_half(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  const bool packed = inst.type == Type::kF16x2 || inst.type == Type::kBf16x2;
  const bool bf16 = inst.type == Type::kBf16 || inst.type == Type::kBf16x2;
  if (!packed && !bf16 && inst.type != Type::kF16) return {};
  if (inst.type2 != Type::kNone || !inst.mode.empty()) return {};
  if (inst.rounding != Rounding::kDefault && inst.rounding != Rounding::kRn) return {};
  switch (inst.op) {
    case Opcode::kAdd:
      return choose<Add, 2>(inst, kFtz | kSat, bf16, packed);
    case Opcode::kSub:
      return choose<Sub, 2>(inst, kFtz | kSat, bf16, packed);
    case Opcode::kMul:
      return choose<Mul, 2>(inst, kFtz | kSat, bf16, packed);
    case Opcode::kFma:
      return inst.sat && inst.relu ? Functions{} : choose<Fma, 3>(inst, kFtz | kSat | kRelu, bf16, packed);
    case Opcode::kNeg:
      return choose<Neg, 1>(inst, kFtz, bf16, packed);
    case Opcode::kAbs:
      return choose<Abs, 1>(inst, kFtz, bf16, packed);
    case Opcode::kMin:
      return inst.operands.size() == 3 ? choose<MinMax<false>, 2>(inst, kFtz | kNan | kXorSign, bf16, packed)
                                       : Functions{};
    case Opcode::kMax:
      return inst.operands.size() == 3 ? choose<MinMax<true>, 2>(inst, kFtz | kNan | kXorSign, bf16, packed)
                                       : Functions{};
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
HWY_EXPORT(select_half);
}  // namespace
Functions find_half(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_half)(form); }
}  // namespace echolo::vgpu::alu
#endif
