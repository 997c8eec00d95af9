// cvt (PTX ISA 9.7.9.21): the conversions that kernels use much; the others are in convert_any.cpp.
#include "vgpu/alu/convert.hpp"

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/operands.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/convert.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::Rounding;
using ptx::Type;

template <typename D, typename S>
HWY_INLINE D integer(S a) {
  return static_cast<D>(a);
}
// 8-bit numbers lie in 16 bits.
template <typename D, typename Narrow>
HWY_INLINE D from_byte(std::uint16_t a) {
  return static_cast<D>(static_cast<Narrow>(a));
}
template <typename S, typename Narrow>
HWY_INLINE std::uint16_t to_byte(S a) {
  return static_cast<std::uint16_t>(static_cast<Narrow>(a));
}

template <Rounding kRounding, typename F>
HWY_INLINE F round_integral(F x) {
  constexpr bool kSingle = sizeof(F) == 4;
  switch (kRounding) {
    case Rounding::kRni:
      return kSingle ? static_cast<F>(__builtin_rintf(static_cast<float>(x)))
                     : static_cast<F>(__builtin_rint(x));
    case Rounding::kRmi:
      return kSingle ? static_cast<F>(__builtin_floorf(static_cast<float>(x)))
                     : static_cast<F>(__builtin_floor(x));
    case Rounding::kRpi:
      return kSingle ? static_cast<F>(__builtin_ceilf(static_cast<float>(x)))
                     : static_cast<F>(__builtin_ceil(x));
    default:
      return kSingle ? static_cast<F>(__builtin_truncf(static_cast<float>(x)))
                     : static_cast<F>(__builtin_trunc(x));
  }
}

// Saturating; NaN gives 0, or the sign bit alone where a 64-bit type takes part. Subnormals become 0 or +-1
// by rounding alone, so .ftz matters only to .rmi and .rpi.
template <typename I, typename F, Rounding kRounding, bool kFtz>
HWY_INLINE I float_to_integer(F a) {
  if constexpr (kFtz) a = flush(a);
  const F x = round_integral<kRounding>(a);
  constexpr bool kSigned = std::is_signed_v<I>;
  constexpr int kBits = sizeof(I) * 8;
  const F above = static_cast<F>(kSigned ? 2.0 * static_cast<double>(1ULL << (kBits - 2))
                                         : 4.0 * static_cast<double>(1ULL << (kBits - 2)));
  const F below = kSigned ? -above : F{0};
  constexpr I kNan =
      sizeof(I) == 8 || sizeof(F) == 8 ? static_cast<I>(std::make_unsigned_t<I>{1} << (kBits - 1)) : I{0};
  const bool fits = (x >= below) & (x < above);
  const F safe = fits ? x : F{0};
  I result = static_cast<I>(safe);
  result = x >= above ? std::numeric_limits<I>::max() : result;
  result = x < below ? std::numeric_limits<I>::min() : result;
  return x == x ? result : kNan;  // NOLINT(misc-redundant-expression): false for NaN
}

template <typename F, typename I>
HWY_INLINE F integer_to_float(I a) {
  return static_cast<F>(a);
}
template <class H, typename I>
HWY_INLINE std::uint16_t integer16_to_half(I a) {
  return H::from_f32(static_cast<float>(a));
}

HWY_INLINE double widen(float a) { return static_cast<double>(a); }
HWY_INLINE float flush_only(float a) { return canonical(flush(a)); }
HWY_INLINE double widen_ftz(float a) { return static_cast<double>(flush_only(a)); }
template <bool kFtz>
HWY_INLINE float narrow(double a) {
  const auto sign = static_cast<std::uint32_t>(as_bits(a) >> 32U) & 0x80000000U;
  const auto payload = static_cast<std::uint32_t>(as_bits(a) >> 29U) & 0x003fffffU;
  return pick(is_nan(a), as_float(sign | 0x7fc00000U | payload), maybe_flush<kFtz>(static_cast<float>(a)));
}
template <class H>
HWY_INLINE float half_to_f32(std::uint16_t a) {
  const float x = H::to_f32(a);
  if constexpr (std::is_same_v<H, Bf16>) return x;  // a shift, whatever it is
  return canonical(x);
}
template <class H, bool kFtz, bool kRelu>
HWY_INLINE std::uint16_t f32_to_half(float a) {
  const std::uint16_t h = H::from_f32(maybe_flush<kFtz>(a));
  // relu: negative numbers and -0 become +0; the NaN here is positive.
  return static_cast<std::uint16_t>(kRelu && (h & 0x8000U) != 0 ? 0 : h);
}
template <class H, bool kRelu>
HWY_INLINE std::uint32_t pack_half(float high, float low) {
  return std::uint32_t{f32_to_half<H, false, kRelu>(high)} << 16U | f32_to_half<H, false, kRelu>(low);
}
template <class H, typename I, Rounding kRounding>
HWY_INLINE I half_to_integer(std::uint16_t a) {
  return float_to_integer<I, float, kRounding, false>(H::to_f32(a));
}
template <Rounding kRounding, bool kFtz>
HWY_INLINE float integral_f32(float a) {
  return canonical(round_integral<kRounding>(maybe_flush<kFtz>(a)));
}
template <Rounding kRounding>
HWY_INLINE double integral_f64(double a) {
  return is_nan(a) ? as_double(as_bits(a) | 1ULL << 51U) : round_integral<kRounding>(a);
}
template <bool kFtz>
HWY_INLINE float saturate_f32(float a) {
  const float x = maybe_flush<kFtz>(a);
  const float floor = x > 0.0F ? x : 0.0F;  // NaN and -0 too
  return floor < 1.0F ? floor : 1.0F;
}
HWY_INLINE float keep(float a) { return canonical(a); }
// tf32: 10 bits of fraction, ties away from zero; a NaN is cut off there.
HWY_INLINE std::uint32_t to_tf32(float a) {
  const std::uint32_t bits = as_bits(a);
  const std::uint32_t rounded = (bits + 0x1000U) & 0xffffe000U;
  return pick((bits & 0x7f800000U) != 0x7f800000U, rounded, bits & 0xffffe000U);
}

// .satfinite: what rounds to infinity or beyond, NaN too, is one step less.
HWY_INLINE std::uint32_t to_tf32_finite(float a) {
  const std::uint32_t rounded = to_tf32(a);
  return pick((rounded & 0x7fffffffU) >= 0x7f800000U, rounded - 0x2000U, rounded);
}
HWY_INLINE float bf16_to_f32_ftz(std::uint16_t a) { return canonical(flush(bf16_to_f32(a))); }

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

template <typename S>
Functions integer_from(Type to) {
  using U = std::make_unsigned_t<S>;
  switch (to) {
    case Type::kU8:
      return lanewise<&to_byte<U, std::uint8_t>>();
    case Type::kS8:
      return lanewise<&to_byte<U, std::int8_t>>();
    case Type::kU16:
    case Type::kS16:
      return lanewise<&integer<std::uint16_t, U>>();
    case Type::kU32:
    case Type::kS32:
      return sizeof(S) < 4 ? lanewise<&integer<std::uint32_t, S>>() : lanewise<&integer<std::uint32_t, U>>();
    case Type::kU64:
    case Type::kS64:
      return lanewise<&integer<std::uint64_t, S>>();
    default:
      return {};
  }
}
template <typename Narrow>
Functions integer_from_byte(Type to) {
  switch (to) {
    case Type::kU16:
    case Type::kS16:
      return lanewise<&from_byte<std::uint16_t, Narrow>>();
    case Type::kU32:
    case Type::kS32:
      return lanewise<&from_byte<std::uint32_t, Narrow>>();
    case Type::kU64:
    case Type::kS64:
      return lanewise<&from_byte<std::uint64_t, Narrow>>();
    default:
      return {};
  }
}
Functions integer_to_integer(Type to, Type from) {
  switch (from) {
    case Type::kU8:
      return integer_from_byte<std::uint8_t>(to);
    case Type::kS8:
      return integer_from_byte<std::int8_t>(to);
    case Type::kU16:
      return integer_from<std::uint16_t>(to);
    case Type::kS16:
      return integer_from<std::int16_t>(to);
    case Type::kU32:
      return integer_from<std::uint32_t>(to);
    case Type::kS32:
      return integer_from<std::int32_t>(to);
    case Type::kU64:
      return integer_from<std::uint64_t>(to);
    case Type::kS64:
      return integer_from<std::int64_t>(to);
    default:
      return {};
  }
}

template <typename F>
Functions integer_to(Type from) {
  switch (from) {
    case Type::kU16:
      return lanewise<&integer_to_float<F, std::uint16_t>>();
    case Type::kS16:
      return lanewise<&integer_to_float<F, std::int16_t>>();
    case Type::kU32:
      return lanewise<&integer_to_float<F, std::uint32_t>>();
    case Type::kS32:
      return lanewise<&integer_to_float<F, std::int32_t>>();
    case Type::kU64:
      return lanewise_rare<&integer_to_float<F, std::uint64_t>>();
    case Type::kS64:
      return lanewise_rare<&integer_to_float<F, std::int64_t>>();
    default:
      return {};
  }
}
template <class H>
Functions integer_to_half(Type from) {
  if (from == Type::kU16) return lanewise_rare<&integer16_to_half<H, std::uint16_t>>();
  if (from == Type::kS16) return lanewise_rare<&integer16_to_half<H, std::int16_t>>();
  return {};
}

template <typename F, Rounding kRounding, bool kFtz>
Functions to_integer_rounded(Type to) {
  switch (to) {
    case Type::kU32:
      return lanewise_rare<&float_to_integer<std::uint32_t, F, kRounding, kFtz>>();
    case Type::kS32:
      return lanewise_rare<&float_to_integer<std::int32_t, F, kRounding, kFtz>>();
    case Type::kU64:
      return lanewise_rare<&float_to_integer<std::uint64_t, F, kRounding, kFtz>>();
    case Type::kS64:
      return lanewise_rare<&float_to_integer<std::int64_t, F, kRounding, kFtz>>();
    default:
      return {};
  }
}
template <typename F, bool kFtz>
Functions to_integer(Type to, Rounding rounding) {
  switch (rounding) {
    case Rounding::kRni:
      return to_integer_rounded<F, Rounding::kRni, kFtz>(to);
    case Rounding::kRzi:
      return to_integer_rounded<F, Rounding::kRzi, kFtz>(to);
    case Rounding::kRmi:
      return to_integer_rounded<F, Rounding::kRmi, kFtz>(to);
    case Rounding::kRpi:
      return to_integer_rounded<F, Rounding::kRpi, kFtz>(to);
    default:
      return {};
  }
}
template <class H>
Functions from_half(const ConvertCode& code) {
  if (code.to == Type::kF32) return lanewise<&half_to_f32<H>>();
  if (code.to == Type::kS32 && code.rounding == Rounding::kRzi)
    return lanewise_rare<&half_to_integer<H, std::int32_t, Rounding::kRzi>>();
  if (code.to == Type::kS32 && code.rounding == Rounding::kRni)
    return lanewise_rare<&half_to_integer<H, std::int32_t, Rounding::kRni>>();
  return {};
}

template <bool kFtz>
Functions f32_to_f32(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRni:
      return lanewise_rare<&integral_f32<Rounding::kRni, kFtz>>();
    case Rounding::kRzi:
      return lanewise_rare<&integral_f32<Rounding::kRzi, kFtz>>();
    case Rounding::kRmi:
      return lanewise_rare<&integral_f32<Rounding::kRmi, kFtz>>();
    case Rounding::kRpi:
      return lanewise_rare<&integral_f32<Rounding::kRpi, kFtz>>();
    case Rounding::kDefault:
      return kFtz ? lanewise_rare<&flush_only>() : lanewise_rare<&keep>();
    default:
      return {};
  }
}
Functions f64_to_f64(Rounding rounding) {
  switch (rounding) {
    case Rounding::kRni:
      return lanewise_rare<&integral_f64<Rounding::kRni>>();
    case Rounding::kRzi:
      return lanewise_rare<&integral_f64<Rounding::kRzi>>();
    case Rounding::kRmi:
      return lanewise_rare<&integral_f64<Rounding::kRmi>>();
    case Rounding::kRpi:
      return lanewise_rare<&integral_f64<Rounding::kRpi>>();
    default:
      return {};
  }
}

template <class H>
Functions f32_to(const ConvertCode& code) {
  if (code.ftz)
    return code.relu ? lanewise_rare<&f32_to_half<H, true, true>>()
                     : lanewise_rare<&f32_to_half<H, true, false>>();
  return code.relu ? lanewise_rare<&f32_to_half<H, false, true>>()
                   : lanewise<&f32_to_half<H, false, false>>();
}

Functions from_f32(const ConvertCode& code) {
  const bool nearest = code.rounding == Rounding::kRn;
  switch (code.to) {
    case Type::kF32:
      if (code.sat && code.rounding == Rounding::kDefault) {
        return code.ftz ? lanewise_rare<&saturate_f32<true>>() : lanewise_rare<&saturate_f32<false>>();
      }
      if (code.sat) return {};
      return code.ftz ? f32_to_f32<true>(code.rounding) : f32_to_f32<false>(code.rounding);
    case Type::kF64:
      if (code.sat) return {};
      return code.ftz ? lanewise_rare<&widen_ftz>() : lanewise<&widen>();
    case Type::kF16:
      return nearest && !code.sat ? f32_to<F16>(code) : Functions{};
    case Type::kBf16:
      return nearest && !code.sat ? f32_to<Bf16>(code) : Functions{};
    case Type::kTf32:
      return code.rounding == Rounding::kRna && !code.sat && !code.relu ? lanewise<&to_tf32>() : Functions{};
    default:
      return code.ftz ? to_integer<float, true>(code.to, code.rounding)
                      : to_integer<float, false>(code.to, code.rounding);
  }
}

Functions from_f64(const ConvertCode& code) {
  switch (code.to) {
    case Type::kF32:
      if (code.rounding != Rounding::kRn || code.sat) return {};
      return code.ftz ? lanewise_rare<&narrow<true>>() : lanewise<&narrow<false>>();
    case Type::kF64:
      return code.sat ? Functions{} : f64_to_f64(code.rounding);
    case Type::kF16:
    case Type::kBf16:
      return {};
    default:
      return to_integer<double, false>(code.to, code.rounding);
  }
}

Functions fast(const ConvertCode& code) {
  if (code.finite || code.to_bits != storage_bits(code.to) || code.from_bits != storage_bits(code.from))
    return {};
  const bool from_integer = code.from >= Type::kU8 && code.from <= Type::kS64;
  const bool to_integer_type = code.to >= Type::kU8 && code.to <= Type::kS64;
  if (from_integer) {
    if (code.sat || code.relu) return {};
    if (to_integer_type) return integer_to_integer(code.to, code.from);
    if (code.rounding != Rounding::kRn) return {};
    if (code.to == Type::kF32) return integer_to<float>(code.from);
    if (code.to == Type::kF64) return integer_to<double>(code.from);
    if (code.to == Type::kF16) return integer_to_half<F16>(code.from);
    if (code.to == Type::kBf16) return integer_to_half<Bf16>(code.from);
    return {};
  }
  switch (code.from) {
    case Type::kF32:
      return from_f32(code);
    case Type::kF64:
      return from_f64(code);
    case Type::kF16:
      return code.sat || code.relu ? Functions{} : from_half<F16>(code);
    case Type::kBf16:
      return code.sat || code.relu ? Functions{} : from_half<Bf16>(code);
    default:
      return {};
  }
}

}  // namespace

Functions select_convert(const Form& form) {
  if (form.inst.mode == "pack") return same(run_pack);
  const ConvertCode code =
      ConvertCode::unpack(convert_code(form.inst, form.destination_bits, form.source_bits));
  const std::size_t n_sources = form.inst.operands.size() - 1;
  const bool packed = code.to == Type::kF16x2 || code.to == Type::kBf16x2;
  if (packed && n_sources == 2 && code.rounding == Rounding::kRn && !code.sat && !code.finite) {
    if (code.to == Type::kF16x2)
      return code.relu ? lanewise_rare<&pack_half<F16, true>>() : lanewise<&pack_half<F16, false>>();
    return code.relu ? lanewise_rare<&pack_half<Bf16, true>>() : lanewise<&pack_half<Bf16, false>>();
  }
  if (code.to == Type::kTf32 && code.finite && code.rounding == Rounding::kRna)
    return lanewise_rare<&to_tf32_finite>();
  if (code.to == Type::kF32 && code.from == Type::kBf16 && code.ftz && code.from_bits == 16)
    return lanewise_rare<&bf16_to_f32_ftz>();
  if (code.to == Type::kTf32 && code.finite) return {};  // with other roundings: later architectures
  if (can_convert_packed(code, n_sources)) return same(run_convert_packed);
  if (n_sources != 1) return {};
  if (const Functions found = fast(code)) return found;
  return can_convert_any(code) ? same(run_convert_any) : Functions{};
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_convert);
}  // namespace
Functions find_convert(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_convert)(form); }
}  // namespace echolo::vgpu::alu
#endif
