#include "vgpu/alu/tensor.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/tensor.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/mma_elements-inl.hpp"
#include "vgpu/alu/tensor-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::Type;

constexpr int kRows = 16, kStride = 32;

// One result of 8-bit floats: see tensor.hpp.
float narrow_sum(const float* a, const float* b, float c, bool half) {
  constexpr int kBits = 13;
  std::int32_t most = exponent_of(c, -126);
  bool finite = is_finite(c);
  for (int k = 0; k < kStride; ++k) {
    finite = finite && is_finite(a[k]) && is_finite(b[8 * k]);
    most = std::max(most, exponent_of(a[k], -14) + exponent_of(b[8 * k], -14));
  }
  if (!finite) return tensor_sum(a, b, 8, kStride, c, -14, false);
  if (most < 2 * kNoExponent / 3) return 0.0F;
  std::int64_t sum = 0;
  const double scale = std::ldexp(1.0, kBits - most);
  for (int k = 0; k < kStride; ++k)
    sum += static_cast<std::int64_t>(static_cast<double>(a[k]) * static_cast<double>(b[8 * k]) * scale);
  sum += static_cast<std::int64_t>(static_cast<double>(c) * scale);
  const double exact = static_cast<double>(sum) * std::ldexp(1.0, most - kBits);
  if (half) return cut_off(exact, true);
  return as_float(as_bits(cut_off(exact, false)) & ~((1U << (23 - kBits)) - 1U));
}

template <int kDepth>
void multiply(std::int32_t least, bool half, const float* a, const float* b, float* c, int blocks) {
  alignas(64) std::int32_t ea[kRows * kStride], eb[kDepth * 8];
  const bool a_ordinary = tensor_exponents(a, kRows * kStride, least, ea);
  for (int block = 0; block < blocks; ++block, b += kDepth * 8, c += kRows * 8) {
    bool ordinary = a_ordinary && tensor_exponents(b, kDepth * 8, least, eb);
    for (int i = 0; i < kRows * 8; ++i) ordinary = ordinary && is_finite(c[i]);
    if (ordinary && (half ? tensor_tile<kDepth, true>(a, ea, kStride, b, eb, c, kRows)
                          : tensor_tile<kDepth, false>(a, ea, kStride, b, eb, c, kRows)))
      continue;
    for (int row = 0; row < kRows; ++row) {
      for (int column = 0; column < 8; ++column) {
        float& sum = c[row * 8 + column];
        sum = tensor_sum(a + row * kStride, b + column, 8, kDepth, sum, least, half);
      }
    }
  }
}

}  // namespace

void multiply_on(Type type, bool half, const float* a, const float* b, float* c, int blocks) {
  switch (type) {
    case Type::kF16:
      return multiply<16>(-14, half, a, b, c, blocks);
    case Type::kBf16:
      return multiply<16>(-126, half, a, b, c, blocks);
    case Type::kTf32:
      return multiply<8>(-126, half, a, b, c, blocks);
    default:
      for (int block = 0; block < blocks; ++block, b += kStride * 8) {
        for (int i = 0; i < kRows * 8; ++i, ++c) *c = narrow_sum(a + i / 8 * kStride, b + i % 8, *c, half);
      }
  }
}

void widen_on(Type type, const std::uint32_t* words, int n, float* out) {
  const int per = per_register(type);
  for (int i = 0; i < n; ++i) {
    for (int e = 0; e < per; ++e) *out++ = float_element(type, words[i], e);
  }
}
void round_on(const float* x, int n, std::uint16_t* out) {
  for (int i = 0; i < n; ++i) out[i] = f32_to_f16(x[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(multiply_on);
HWY_EXPORT(widen_on);
HWY_EXPORT(round_on);
}  // namespace
void multiply_rows(ptx::Type type, bool half, const float* a, const float* b, float* c, int blocks) {
  HWY_DYNAMIC_DISPATCH(multiply_on)(type, half, a, b, c, blocks);
}
void widen_words(ptx::Type type, const std::uint32_t* words, int n, float* out) {
  HWY_DYNAMIC_DISPATCH(widen_on)(type, words, n, out);
}
void round_to_f16(const float* x, int n, std::uint16_t* out) { HWY_DYNAMIC_DISPATCH(round_on)(x, n, out); }
}  // namespace echolo::vgpu::alu
#endif
