// f16 and bf16 as numbers: exact conversion to f32, and from f32 rounding to nearest even, in integer
// arithmetic that vectorises. The narrow types travel as std::uint16_t.
#if defined(ECHOLO_VGPU_ALU_HALF_INL_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHOLO_VGPU_ALU_HALF_INL_
#undef ECHOLO_VGPU_ALU_HALF_INL_
#else
#define ECHOLO_VGPU_ALU_HALF_INL_
#endif

#include <bit>
#include <cstdint>

#include "hwy/highway.h"
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)

constexpr std::uint32_t kNanF32 = 0x7fffffffU;  // the NaN that f32 operations return
constexpr std::uint16_t kNanHalf = 0x7fffU;     // and f16, bf16 ones

HWY_INLINE float as_float(std::uint32_t bits) { return std::bit_cast<float>(bits); }
HWY_INLINE std::uint32_t as_bits(float x) { return std::bit_cast<std::uint32_t>(x); }
HWY_INLINE double as_double(std::uint64_t bits) { return std::bit_cast<double>(bits); }
HWY_INLINE std::uint64_t as_bits(double x) { return std::bit_cast<std::uint64_t>(x); }
HWY_INLINE bool is_nan(float x) { return (as_bits(x) & 0x7fffffffU) > 0x7f800000U; }
HWY_INLINE bool is_nan(double x) { return (as_bits(x) & ~(1ULL << 63U)) > 0x7ff0000000000000ULL; }

// Subnormals to zero of the same sign, as .ftz asks.
HWY_INLINE float flush(float x) {
  const std::uint32_t bits = as_bits(x);
  return as_float(pick((bits & 0x7f800000U) == 0, bits & 0x80000000U, bits));
}
template <bool kFtz>
HWY_INLINE float maybe_flush(float x) {
  return kFtz ? flush(x) : x;
}
HWY_INLINE float canonical(float x) { return pick(is_nan(x), as_float(kNanF32), x); }

HWY_INLINE float f16_to_f32(std::uint16_t h) {
  const std::uint32_t sign = (std::uint32_t{h} & 0x8000U) << 16U;
  const std::uint32_t rest = std::uint32_t{h} & 0x7fffU;
  // Moving the exponent by a product is exact and also makes subnormals normal; infinity and NaN need theirs
  // put back.
  const float scaled = as_float(rest << 13U) * as_float((127U + 112U) << 23U);
  const std::uint32_t special = pick(rest >= 0x7c00U, (rest << 13U) | 0x7f800000U, as_bits(scaled));
  return as_float(special | sign);
}
HWY_INLINE std::uint16_t f32_to_f16(float x) {
  const std::uint32_t bits = as_bits(x);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t rest = bits & 0x7fffffffU;
  // Normal results: rebias, add half an ulp less one plus the last kept bit; a carry runs into the exponent
  // as it should.
  const std::uint32_t normal = (rest - (112U << 23U) + 0xfffU + ((rest >> 13U) & 1U)) >> 13U;
  // Subnormal results: adding 0.5 aligns the last place of f16 with that of the sum, which the adder rounds.
  const std::uint32_t subnormal = as_bits(as_float(rest) + 0.5F) - 0x3f000000U;
  std::uint32_t result = rest < (113U << 23U) ? subnormal : normal;
  result =
      rest >= (143U << 23U) ? 0x7c00U : result;  // 2^16 and more; what rounds up to it got there by the carry
  result |= sign;
  result = pick(rest > 0x7f800000U, std::uint32_t{kNanHalf}, result);
  return static_cast<std::uint16_t>(result);
}
HWY_INLINE float bf16_to_f32(std::uint16_t h) { return as_float(std::uint32_t{h} << 16U); }
HWY_INLINE std::uint16_t f32_to_bf16(float x) {
  const std::uint32_t bits = as_bits(x);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  return static_cast<std::uint16_t>(pick(is_nan(x), std::uint32_t{kNanHalf}, rounded));
}

// f16 and bf16 seen alike.
struct F16 {
  static HWY_INLINE float to_f32(std::uint16_t h) { return f16_to_f32(h); }
  static HWY_INLINE std::uint16_t from_f32(float x) { return f32_to_f16(x); }
  static constexpr int kFractionBits = 10, kBias = 15;
  static constexpr std::uint32_t kInfinity = 0x7c00U, kOne = 0x3c00U, kExponentMask = 0x7c00U;
};
struct Bf16 {
  static HWY_INLINE float to_f32(std::uint16_t h) { return bf16_to_f32(h); }
  static HWY_INLINE std::uint16_t from_f32(float x) { return f32_to_bf16(x); }
  static constexpr int kFractionBits = 7, kBias = 127;
  static constexpr std::uint32_t kInfinity = 0x7f80U, kOne = 0x3f80U, kExponentMask = 0x7f80U;
};
template <class H>
HWY_INLINE std::uint16_t flush_half(std::uint16_t h) {
  return pick((h & H::kExponentMask) == 0, static_cast<std::uint16_t>(h & 0x8000U), h);
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#endif
