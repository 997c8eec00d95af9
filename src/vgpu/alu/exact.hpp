// Floating-point numbers taken apart, for what must be exact and is rare: directed roundings, odd
// conversions. Values are sign * mantissa * 2^exponent; what a result lost below its mantissa's last bit is
// remembered in a sticky last bit, so one rounding at the end (pack) is the correct one.
#pragma once

#include <cstdint>

#include "ptx/types.hpp"

namespace echolo::vgpu::alu::exact {

__extension__ using UInt128 = unsigned __int128;

struct Format {
  int exponent_bits = 8, fraction_bits = 23;
  bool has_infinity = true;  // e4m3 has none: its largest exponent holds numbers, and one NaN
  int total_bits() const { return 1 + exponent_bits + fraction_bits; }
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr Format kF16{5, 10, true};
inline constexpr Format kBf16{8, 7, true};
inline constexpr Format kF32{8, 23, true};
inline constexpr Format kF64{11, 52, true};
inline constexpr Format kTf32{8, 10, true};  // in the upper bits of a word of f32: see pack_tf32
inline constexpr Format kE4m3{4, 3, false};
inline constexpr Format kE5m2{5, 2, true};

struct Number {
  enum class Kind : std::uint8_t { kZero, kFinite, kInfinity, kNan };
  Kind kind = Kind::kZero;
  bool negative = false;
  int exponent = 0;
  UInt128 mantissa = 0;        // kFinite: not 0, below 2^126
  std::uint64_t nan_bits = 0;  // kNan: the operand it came from, where there was one
};

Number unpack(const Format& format, std::uint64_t bits, bool flush_subnormals = false);
Number from_integer(bool negative, std::uint64_t magnitude);

// Rounds to the format. kRn: to nearest even, kRz, kRm, kRp; kRna: to nearest, ties away from zero. Overflow
// gives infinity or the largest finite number as the rounding demands; NaN gives nan().
std::uint64_t pack(const Format& format, const Number& number, ptx::Rounding rounding,
                   bool flush_subnormals = false);
std::uint64_t nan(const Format& format);      // the canonical NaN (alu.hpp)
std::uint64_t largest(const Format& format);  // the largest finite number

// Rounds to an integral value (kRni, kRzi, kRmi, kRpi).
Number to_integral(const Number& number, ptx::Rounding rounding);

// `rounding` decides the sign of an exact zero sum.
Number add(const Number& a, const Number& b, ptx::Rounding rounding);
Number multiply(const Number& a, const Number& b);
Number divide(const Number& a, const Number& b);
Number square_root(const Number& a);

}  // namespace echolo::vgpu::alu::exact
