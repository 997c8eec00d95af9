// Private to vgpu/memory: what atomics and reductions do to one element.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "ptx/types.hpp"
#include "vgpu/memory/half.hpp"

namespace echolo::vgpu {

// Applies an operation to one element in memory: *to = op(*to, *from). nullptr: there is no such operation on
// this type.
using ReduceFn = void (*)(std::uint8_t* to, const std::uint8_t* from);
ReduceFn reduce_function(ptx::SubOp op, ptx::Type type);

namespace updates {

template <typename T>
using Update = T (*)(T old, T b, T c, bool flushes);

inline float flush(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

// ---- updates of one element ----
template <typename T>
T add(T old, T b, T, bool) {
  return static_cast<T>(old + b);
}
template <typename T>
T bit_and(T old, T b, T, bool) {
  return old & b;
}
template <typename T>
T bit_or(T old, T b, T, bool) {
  return old | b;
}
template <typename T>
T bit_xor(T old, T b, T, bool) {
  return old ^ b;
}
template <typename T>
T exchange(T, T b, T, bool) {
  return b;
}
template <typename T>
T compare_swap(T old, T b, T c, bool) {
  return old == b ? c : old;
}
template <typename T>
T minimum(T old, T b, T, bool) {
  return std::min(old, b);
}
template <typename T>
T maximum(T old, T b, T, bool) {
  return std::max(old, b);
}
template <typename T>
T minimum_signed(T old, T b, T, bool) {
  using S = std::make_signed_t<T>;
  return static_cast<T>(std::min(static_cast<S>(old), static_cast<S>(b)));
}
template <typename T>
T maximum_signed(T old, T b, T, bool) {
  using S = std::make_signed_t<T>;
  return static_cast<T>(std::max(static_cast<S>(old), static_cast<S>(b)));
}
inline std::uint32_t increment(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  return old >= b ? 0 : old + 1;
}
inline std::uint32_t decrement(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  return old == 0 || old > b ? b : old - 1;
}

inline std::uint32_t add_f32(std::uint32_t old, std::uint32_t b, std::uint32_t, bool flushes) {
  float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
  if (flushes) {
    x = flush(x);
    y = flush(y);
  }
  float sum = x + y;
  if (sum != sum) return 0x7fffffff;
  if (flushes) sum = flush(sum);
  return std::bit_cast<std::uint32_t>(sum);
}
// NaNs as in vgpu/alu: the first NaN operand made quiet; what is invalid gives the default NaN.
inline std::uint64_t add_f64(std::uint64_t old, std::uint64_t b, std::uint64_t, bool) {
  constexpr std::uint64_t kQuiet = 0x0008'0000'0000'0000ULL;
  const double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
  if (x != x) return old | kQuiet;
  if (y != y) return b | kQuiet;
  const double sum = x + y;
  return sum != sum ? 0xfff8'0000'0000'0000ULL : std::bit_cast<std::uint64_t>(sum);
}

struct F16Format {
  static float widen(std::uint16_t bits) { return f16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_f16(value); }
};
struct Bf16Format {
  static float widen(std::uint16_t bits) { return bf16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_bf16(value); }
};

// A float has more than twice the digits of either format and two to spare, so rounding the float sum once
// more gives the correctly rounded sum.
template <typename Format>
inline std::uint16_t add_half(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
  return Format::narrow(Format::widen(old) + Format::widen(b));
}
// The number where one side is NaN; -0 is below +0.
template <typename Format, bool kMax>
inline std::uint16_t pick_half(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
  const float x = Format::widen(old), y = Format::widen(b);
  if (x != x && y != y) return 0x7fff;
  if (x != x) return b;
  if (y != y) return old;
  if (x == y) return ((old & 0x8000U) != 0) == kMax ? b : old;
  return (x > y) == kMax ? old : b;
}
template <Update<std::uint16_t> kOne>
inline std::uint32_t both_halves(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  const std::uint32_t low = kOne(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b), 0, false);
  const std::uint32_t high =
      kOne(static_cast<std::uint16_t>(old >> 16U), static_cast<std::uint16_t>(b >> 16U), 0, false);
  return low | high << 16U;
}

}  // namespace updates
}  // namespace echolo::vgpu
