#include "vgpu/alu/exact.hpp"

namespace echolo::vgpu::alu::exact {
namespace {

using Kind = Number::Kind;
using ptx::Rounding;

int width_of(UInt128 x) {
  const auto high = static_cast<std::uint64_t>(x >> 64U), low = static_cast<std::uint64_t>(x);
  return high != 0 ? 128 - __builtin_clzll(high) : (low != 0 ? 64 - __builtin_clzll(low) : 0);
}

// Shifts right, what falls out leaves a mark in the last bit.
UInt128 shift_right_sticky(UInt128 x, int n) {
  if (n <= 0) return x;
  if (n >= 128) return x != 0 ? 1 : 0;
  const UInt128 lost = x & ((UInt128{1} << static_cast<unsigned>(n)) - 1);
  return (x >> static_cast<unsigned>(n)) | (lost != 0 ? 1U : 0U);
}

// Moves the leading bit to bit 125: no information is lost, as mantissas are below 2^126.
Number normalised(Number x) {
  const int up = 126 - width_of(x.mantissa);
  x.mantissa <<= static_cast<unsigned>(up);
  x.exponent -= up;
  return x;
}

Number zero(bool negative) {
  Number x;
  x.negative = negative;
  return x;
}
Number infinity(bool negative) {
  Number x;
  x.kind = Kind::kInfinity;
  x.negative = negative;
  return x;
}
Number invalid() {
  Number x;
  x.kind = Kind::kNan;
  return x;
}

// Does dropping `lost` (of `half` = 2^(n-1) at the half-way point) from a number whose kept part ends in
// `odd` round up?
bool rounds_up(UInt128 lost, UInt128 half, bool odd, bool negative, Rounding rounding) {
  if (lost == 0) return false;
  switch (rounding) {
    case Rounding::kRz:
    case Rounding::kRzi:
      return false;
    case Rounding::kRm:
    case Rounding::kRmi:
      return negative;
    case Rounding::kRp:
    case Rounding::kRpi:
      return !negative;
    case Rounding::kRna:
      return lost >= half;
    default:
      return lost > half || (lost == half && odd);
  }
}

UInt128 round_at(UInt128 mantissa, int drop, bool negative, Rounding rounding) {
  if (drop <= 0) return mantissa << static_cast<unsigned>(-drop);
  if (drop > 126) {
    mantissa = mantissa != 0 ? 1 : 0;
    drop = 2;
  }
  const UInt128 lost = mantissa & ((UInt128{1} << static_cast<unsigned>(drop)) - 1);
  const UInt128 kept = mantissa >> static_cast<unsigned>(drop);
  const UInt128 half = UInt128{1} << static_cast<unsigned>(drop - 1);
  return kept + (rounds_up(lost, half, (kept & 1U) != 0, negative, rounding) ? 1U : 0U);
}

}  // namespace

std::uint64_t nan(const Format& format) {
  if (format.total_bits() == 64) return 0xfff8000000000000ULL;
  return (1ULL << static_cast<unsigned>(format.total_bits() - 1)) - 1;
}

std::uint64_t largest(const Format& format) {
  const std::uint64_t all = (1ULL << static_cast<unsigned>(format.total_bits() - 1)) - 1;
  // One below infinity, or below the only NaN.
  return format.has_infinity ? all - (1ULL << static_cast<unsigned>(format.fraction_bits)) : all - 1;
}

Number unpack(const Format& format, std::uint64_t bits, bool flush_subnormals) {
  const std::uint64_t fraction = bits & ((1ULL << static_cast<unsigned>(format.fraction_bits)) - 1);
  const int top = (1 << format.exponent_bits) - 1;
  const int biased = static_cast<int>(bits >> static_cast<unsigned>(format.fraction_bits)) & top;
  Number x;
  x.negative = ((bits >> static_cast<unsigned>(format.total_bits() - 1)) & 1U) != 0;
  const std::uint64_t all_fraction = (1ULL << static_cast<unsigned>(format.fraction_bits)) - 1;
  if (biased == top && (format.has_infinity || fraction == all_fraction)) {
    x.kind = format.has_infinity && fraction == 0 ? Kind::kInfinity : Kind::kNan;
    x.nan_bits = bits;
    return x;
  }
  if (biased == 0 && (fraction == 0 || flush_subnormals)) return x;
  x.kind = Kind::kFinite;
  x.mantissa = biased == 0 ? fraction : fraction | 1ULL << static_cast<unsigned>(format.fraction_bits);
  x.exponent = (biased == 0 ? 1 : biased) - format.bias() - format.fraction_bits;
  return x;
}

Number from_integer(bool negative, std::uint64_t magnitude) {
  Number x;
  if (magnitude == 0) return x;
  x.kind = Kind::kFinite;
  x.negative = negative;
  x.mantissa = magnitude;
  return x;
}

std::uint64_t pack(const Format& format, const Number& number, Rounding rounding, bool flush_subnormals) {
  const auto fraction_bits = static_cast<unsigned>(format.fraction_bits);
  const std::uint64_t sign = number.negative ? 1ULL << static_cast<unsigned>(format.total_bits() - 1) : 0;
  const std::uint64_t beyond = largest(format) + 1;  // infinity, or the NaN of a format without
  switch (number.kind) {
    case Kind::kNan:
      return nan(format);
    case Kind::kZero:
      return sign;
    case Kind::kInfinity:
      return sign | beyond;
    case Kind::kFinite:
      break;
  }
  const int leading = number.exponent + width_of(number.mantissa) - 1;  // the exponent of the value
  const int lowest = 1 - format.bias();
  const int last_place = (leading < lowest ? lowest : leading) - format.fraction_bits;
  const UInt128 rounded = round_at(number.mantissa, last_place - number.exponent, number.negative, rounding);
  const auto kept = static_cast<std::uint64_t>(rounded);
  // Adding the mantissa with its leading bit to the exponent before makes carries come out right.
  const std::uint64_t biased_less_one =
      leading < lowest ? 0 : static_cast<std::uint64_t>(leading + format.bias() - 1) << fraction_bits;
  const std::uint64_t result = biased_less_one + kept;
  if (result > largest(format) || leading > format.bias() + 1) {
    const bool towards_infinity = rounding != Rounding::kRz &&
                                  (rounding != Rounding::kRm || number.negative) &&
                                  (rounding != Rounding::kRp || !number.negative);
    return sign | (towards_infinity ? beyond : largest(format));
  }
  if (flush_subnormals && leading < lowest) return sign;  // by the value before rounding
  return sign | result;
}

Number to_integral(const Number& number, Rounding rounding) {
  if (number.kind != Kind::kFinite || number.exponent >= 0) return number;
  Number x = number;
  x.mantissa = round_at(number.mantissa, -number.exponent, number.negative, rounding);
  x.exponent = 0;
  return x.mantissa == 0 ? zero(number.negative) : x;
}

Number add(const Number& a, const Number& b, Rounding rounding) {
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  if (a.kind == Kind::kInfinity) {
    return b.kind == Kind::kInfinity && a.negative != b.negative ? invalid() : a;
  }
  if (b.kind == Kind::kInfinity) return b;
  const bool cancelled_sign = rounding == Rounding::kRm;
  if (a.kind == Kind::kZero && b.kind == Kind::kZero) {
    return zero(a.negative == b.negative ? a.negative : cancelled_sign);
  }
  if (a.kind == Kind::kZero) return b;
  if (b.kind == Kind::kZero) return a;
  Number x = normalised(a), y = normalised(b);
  if (x.exponent < y.exponent || (x.exponent == y.exponent && x.mantissa < y.mantissa)) {
    const Number swap = x;
    x = y;
    y = swap;
  }
  const UInt128 small = shift_right_sticky(y.mantissa, x.exponent - y.exponent);
  if (x.negative == y.negative) {
    x.mantissa = shift_right_sticky(x.mantissa + small, 1);  // the sum may have 127 bits
    ++x.exponent;
  } else {
    x.mantissa -= small;
    if (x.mantissa == 0) return zero(cancelled_sign);
  }
  return x;
}

Number multiply(const Number& a, const Number& b) {
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::kInfinity || b.kind == Kind::kInfinity) {
    return a.kind == Kind::kZero || b.kind == Kind::kZero ? invalid() : infinity(negative);
  }
  if (a.kind == Kind::kZero || b.kind == Kind::kZero) return zero(negative);
  Number x;  // operands come from unpack: at most 53 bits each
  x.kind = Kind::kFinite;
  x.negative = negative;
  x.mantissa = a.mantissa * b.mantissa;
  x.exponent = a.exponent + b.exponent;
  return x;
}

Number divide(const Number& a, const Number& b) {
  if (a.kind == Kind::kNan) return a;
  if (b.kind == Kind::kNan) return b;
  const bool negative = a.negative != b.negative;
  if (a.kind == Kind::kInfinity) return b.kind == Kind::kInfinity ? invalid() : infinity(negative);
  if (b.kind == Kind::kInfinity) return zero(negative);
  if (b.kind == Kind::kZero) return a.kind == Kind::kZero ? invalid() : infinity(negative);
  if (a.kind == Kind::kZero) return zero(negative);
  const Number top = normalised(a);
  Number x;
  x.kind = Kind::kFinite;
  x.negative = negative;
  x.mantissa = top.mantissa / b.mantissa;  // at least 126 - 53 bits
  if (top.mantissa % b.mantissa != 0)
    x.mantissa = x.mantissa << 1U | 1U;
  else
    x.mantissa <<= 1U;
  x.exponent = top.exponent - b.exponent - 1;
  if (width_of(x.mantissa) > 126) {
    x.mantissa = shift_right_sticky(x.mantissa, 1);
    ++x.exponent;
  }
  return x;
}

Number square_root(const Number& a) {
  if (a.kind == Kind::kNan || a.kind == Kind::kZero) return a;
  if (a.negative) return invalid();
  if (a.kind == Kind::kInfinity) return a;
  Number top = normalised(a);
  if (top.exponent % 2 != 0) {          // the exponent must be even to be halved
    top.mantissa = top.mantissa >> 1U;  // normalised numbers of 53 bits end in zeros
    ++top.exponent;
  }
  UInt128 root = 0;
  for (int bit = 62; bit >= 0; --bit) {
    const UInt128 next = root | UInt128{1} << static_cast<unsigned>(bit);
    if (next * next <= top.mantissa) root = next;
  }
  Number x;
  x.kind = Kind::kFinite;
  x.mantissa = root << 1U | (root * root != top.mantissa ? 1U : 0U);
  x.exponent = top.exponent / 2 - 1;
  return x;
}

}  // namespace echolo::vgpu::alu::exact
