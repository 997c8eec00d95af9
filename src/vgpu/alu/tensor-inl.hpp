// Sums as Hopper's tensor cores form them (mma.hpp): for one result in integers, and for a tile of results in
// vectors where all numbers are finite and of ordinary size.
#if defined(ECHOLO_VGPU_ALU_TENSOR_INL_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHOLO_VGPU_ALU_TENSOR_INL_
#undef ECHOLO_VGPU_ALU_TENSOR_INL_
#else
#define ECHOLO_VGPU_ALU_TENSOR_INL_
#endif

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "hwy/highway.h"
#include "vgpu/alu/half-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)

// The exponent of a number that is zero: below every other, also in a sum of two.
constexpr std::int32_t kNoExponent = -1000;
constexpr int kKeptBits = 25;  // below the largest exponent
// Tiles in vectors: every factor's exponent between these, so that products stay normal.
constexpr std::int32_t kLeastExponent = -48, kMostExponent = 48;

// The exponent of a finite number whose format has `least` as its smallest: subnormal numbers have that one
// too.
HWY_INLINE std::int32_t exponent_of(float x, std::int32_t least) {
  const std::uint32_t bits = as_bits(x) & 0x7fffffffU;
  const auto exponent = static_cast<std::int32_t>(bits >> 23U) - 127;
  const std::int32_t kept = exponent < least ? least : exponent;
  return bits == 0 ? kNoExponent : kept;
}
HWY_INLINE bool is_finite(float x) { return (as_bits(x) & 0x7f800000U) != 0x7f800000U; }

// Cut off to f32; `odd` sets the last bit where digits were lost, so that one more rounding is right.
inline float cut_off(double x, bool odd) {
  const double magnitude = __builtin_fabs(x);
  if (magnitude < 0x1p-126) {
    const double steps = magnitude * 0x1p149;
    const auto whole = static_cast<std::uint32_t>(steps);
    const bool lost = static_cast<double>(whole) != steps;
    return as_float((x < 0 ? 0x80000000U : 0U) | whole | (odd && lost ? 1U : 0U));
  }
  std::uint64_t bits = as_bits(x);
  const bool lost = (bits & 0x1fffffffU) != 0;
  bits &= ~0x1fffffffULL;
  if (odd && lost) bits |= 0x20000000U;
  return static_cast<float>(as_double(bits));
}

// One result: c and the products a[i] * b[i * stride] for i below `depth`.
inline float tensor_sum(const float* a, const float* b, int stride, int depth, float c, std::int32_t least,
                        bool odd) {
  bool finite = is_finite(c);
  std::int32_t most = exponent_of(c, -126);
  for (int i = 0; i < depth; ++i) {
    const float y = b[i * stride];
    finite = finite && is_finite(a[i]) && is_finite(y);
    most = std::max(most, exponent_of(a[i], least) + exponent_of(y, least));
  }
  if (!finite) {
    // Infinities and NaN as in any sum; what is finite does not matter beside them.
    double sum = is_finite(c) ? 0.0 : static_cast<double>(c);
    for (int i = 0; i < depth; ++i) {
      const float y = b[i * stride];
      if (!is_finite(a[i]) || !is_finite(y)) sum += static_cast<double>(a[i]) * static_cast<double>(y);
    }
    return canonical(static_cast<float>(sum));
  }
  if (most < 2 * kNoExponent / 3) return 0.0F;
  std::int64_t sum = 0;
  const double scale = std::ldexp(1.0, kKeptBits - most);
  for (int i = 0; i < depth; ++i)
    sum += static_cast<std::int64_t>(static_cast<double>(a[i]) * static_cast<double>(b[i * stride]) * scale);
  sum += static_cast<std::int64_t>(static_cast<double>(c) * scale);
  return cut_off(static_cast<double>(sum) * std::ldexp(1.0, most - kKeptBits), odd);
}

// To integers, towards zero; all are below 2^31 in size, so that there is nothing to correct.
template <class V, class DI>
HWY_INLINE auto truncate_small(DI di, V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  static_cast<void>(di);
  return hwy::HWY_NAMESPACE::Vec256<std::int32_t>{_mm256_cvttps_epi32(v.raw)};
#else
  return hwy::HWY_NAMESPACE::ConvertTo(di, v);
#endif
}

// Eight columns of results for some rows (an even number). Row r of A is at a + r * a_stride, its exponents
// at ea likewise; b and eb are [depth][8]; c is [rows][8], in and out. All numbers finite, A and B within the
// exponents above. False, with nothing written, where the largest exponent of some result is too small for
// this.
template <int kDepth, bool kOdd>
HWY_INLINE bool tensor_tile(const float* HWY_RESTRICT a, const std::int32_t* HWY_RESTRICT ea, int a_stride,
                            const float* HWY_RESTRICT b, const std::int32_t* HWY_RESTRICT eb,
                            float* HWY_RESTRICT c, int rows) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RepartitionToWide<decltype(d)> dd;
  const hn::RebindToUnsigned<decltype(dd)> du;
  const hn::Half<decltype(di)> dih;
  const hn::Half<decltype(d)> dh;
  constexpr std::int32_t kFloor = -100;
  constexpr int kTogether = 2;  // rows that share what is loaded of B
  const auto no_exponent = hn::Set(di, kNoExponent), floor = hn::Set(di, kFloor);
  const auto kept = hn::Set(du, ~0x1fffffffULL);
  auto lowest = floor;
  alignas(64) float out[16 * 8];
  for (int row = 0; row < rows; row += kTogether) {
    for (std::size_t column = 0; column < 8; column += hn::Lanes(d)) {
      decltype(hn::Zero(di)) most[kTogether];
      decltype(hn::Zero(d)) scale[kTogether];
      for (int r = 0; r < kTogether; ++r) {
        const auto bits =
            hn::And(hn::BitCast(di, hn::LoadU(d, c + (row + r) * 8 + column)), hn::Set(di, 0x7fffffff));
        const auto exponent = hn::Max(hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127)), hn::Set(di, -126));
        most[r] = hn::IfThenElse(hn::Eq(bits, hn::Zero(di)), no_exponent, exponent);
      }
      for (int k = 0; k < kDepth; ++k) {
        const auto of_b = hn::LoadU(di, eb + 8 * k + column);
        for (int r = 0; r < kTogether; ++r)
          most[r] = hn::Max(most[r], hn::Add(hn::Set(di, ea[(row + r) * a_stride + k]), of_b));
      }
      decltype(hn::Zero(di)) products[kTogether];
      for (int r = 0; r < kTogether; ++r) {
        // Nothing but zeros: any scale will do.
        most[r] = hn::IfThenElse(hn::Lt(most[r], hn::Set(di, kNoExponent / 2)), floor, most[r]);
        lowest = hn::Min(lowest, most[r]);
        scale[r] = hn::BitCast(d, hn::ShiftLeft<23>(hn::Sub(hn::Set(di, 127 + kKeptBits), most[r])));
        products[r] = hn::Zero(di);
      }
      // 16 products of less than 2^27 fit; with the addend they may not.
      for (int k = 0; k < kDepth; ++k) {
        const auto of_b = hn::LoadU(d, b + 8 * k + column);
        for (int r = 0; r < kTogether; ++r) {
          const auto product = hn::Mul(hn::Set(d, a[(row + r) * a_stride + k]), of_b);
          products[r] = hn::Add(products[r], truncate_small(di, hn::Mul(product, scale[r])));
        }
      }
      for (int r = 0; r < kTogether; ++r) {
        const auto addend = truncate_small(di, hn::Mul(hn::LoadU(d, c + (row + r) * 8 + column), scale[r]));
        const auto unit = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(most[r], hn::Set(di, 127 - kKeptBits))));
        const auto finish = [&](auto whole, auto rest, auto by) HWY_ATTR {
          const auto exact =
              hn::Mul(hn::Add(hn::PromoteTo(dd, whole), hn::PromoteTo(dd, rest)), hn::PromoteTo(dd, by));
          const auto bits = hn::BitCast(du, exact);
          auto cut = hn::And(bits, kept);
          if constexpr (kOdd) {
            const auto lost = hn::Ne(hn::AndNot(kept, bits), hn::Zero(du));
            cut = hn::Or(cut, hn::IfThenElseZero(lost, hn::Set(du, 0x20000000U)));
          }
          return hn::DemoteTo(dh, hn::BitCast(dd, cut));
        };
        const auto low =
            finish(hn::LowerHalf(dih, products[r]), hn::LowerHalf(dih, addend), hn::LowerHalf(dh, unit));
        const auto high =
            finish(hn::UpperHalf(dih, products[r]), hn::UpperHalf(dih, addend), hn::UpperHalf(dh, unit));
        hn::StoreU(hn::Combine(d, high, low), d, out + (row + r) * 8 + column);
      }
    }
  }
  const bool good = hn::AllFalse(di, hn::Lt(lowest, floor));
  if (good) std::copy(out, out + rows * 8, c);
  return good;
}

// The exponents of n numbers (a multiple of 8); false where one is not finite or out of the range of
// tensor_tile.
HWY_INLINE bool tensor_exponents(const float* x, int n, std::int32_t least, std::int32_t* exponents) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::CappedTag<float, 8> d;
  const hn::RebindToSigned<decltype(d)> di;
  auto highest = hn::Set(di, kLeastExponent), lowest = hn::Set(di, kMostExponent);
  for (int i = 0; i < n; i += static_cast<int>(hn::Lanes(d))) {
    const auto bits = hn::And(hn::BitCast(di, hn::LoadU(d, x + i)), hn::Set(di, 0x7fffffff));
    const auto exponent = hn::Max(hn::Sub(hn::ShiftRight<23>(bits), hn::Set(di, 127)), hn::Set(di, least));
    const auto zero = hn::Eq(bits, hn::Zero(di));
    highest = hn::Max(highest, exponent);
    lowest = hn::Min(lowest, hn::IfThenElse(zero, hn::Zero(di), exponent));
    hn::StoreU(hn::IfThenElse(zero, hn::Set(di, kNoExponent), exponent), di, exponents + i);
  }
  return hn::AllFalse(di, hn::Gt(highest, hn::Set(di, kMostExponent))) &&
         hn::AllFalse(di, hn::Lt(lowest, hn::Set(di, kLeastExponent)));
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#endif
