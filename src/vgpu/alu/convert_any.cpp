// The conversions that are rare, in exact arithmetic (exact.hpp).
#include <algorithm>
#include <optional>

#include "vgpu/alu/convert.hpp"
#include "vgpu/alu/exact.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using exact::Format;
using exact::Number;
using ptx::Rounding;
using ptx::Type;

std::optional<Format> format_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return exact::kF16;
    case Type::kBf16:
    case Type::kBf16x2:
      return exact::kBf16;
    case Type::kF32:
      return exact::kF32;
    case Type::kF64:
      return exact::kF64;
    case Type::kTf32:
      return exact::kTf32;
    case Type::kE4m3:
    case Type::kE4m3x2:
      return exact::kE4m3;
    case Type::kE5m2:
    case Type::kE5m2x2:
      return exact::kE5m2;
    default:
      return std::nullopt;
  }
}
bool is_integer(Type type) { return type >= Type::kU8 && type <= Type::kS64; }
bool is_integral(Rounding r) {
  return r == Rounding::kRni || r == Rounding::kRzi || r == Rounding::kRmi || r == Rounding::kRpi;
}

std::uint64_t read(const Lanes& lanes, Slot slot, int bits, int lane) {
  if (bits == 16) return lanes.read<std::uint16_t>(slot)[lane];
  if (bits == 32) return lanes.read<std::uint32_t>(slot)[lane];
  return lanes.read<std::uint64_t>(slot)[lane];
}
void write(const Lanes& lanes, Slot slot, int bits, int lane, std::uint64_t value) {
  if (bits == 16) {
    lanes.write<std::uint16_t>(slot)[lane] = static_cast<std::uint16_t>(value);
  } else if (bits == 32) {
    lanes.write<std::uint32_t>(slot)[lane] = static_cast<std::uint32_t>(value);
  } else {
    lanes.write<std::uint64_t>(slot)[lane] = value;
  }
}

std::uint64_t low_bits(std::uint64_t x, int n) {
  return n >= 64 ? x : x & ((1ULL << static_cast<unsigned>(n)) - 1);
}
std::uint64_t sign_extended(std::uint64_t x, int n) {
  const auto spare = static_cast<unsigned>(64 - n);
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(x << spare) >> spare);
}

// To an integer type, saturating. NaN gives 0, or the sign bit alone where a 64-bit float or integer takes
// part.
std::uint64_t to_integer(const Number& number, const ConvertCode& code) {
  const int bits = ptx::bits_of(code.to);
  const bool is_signed = ptx::is_signed(code.to);
  if (number.kind == Number::Kind::kNan) {
    return code.from == Type::kF64 || bits == 64 ? 1ULL << static_cast<unsigned>(bits - 1) : 0;
  }
  const std::uint64_t most = low_bits(~0ULL, is_signed ? bits - 1 : bits);
  const std::uint64_t least_magnitude = is_signed ? most + 1 : 0;
  const std::uint64_t limit = number.negative ? least_magnitude : most;
  std::uint64_t magnitude = 0;
  if (number.kind == Number::Kind::kInfinity) {
    magnitude = limit;
  } else if (number.kind == Number::Kind::kFinite) {
    const Number whole =
        exact::to_integral(number, code.rounding == Rounding::kDefault ? Rounding::kRzi : code.rounding);
    if (whole.kind == Number::Kind::kFinite) {
      exact::UInt128 value = whole.mantissa;
      for (int i = 0; i < whole.exponent && value <= limit; ++i) value <<= 1U;
      magnitude = value > limit ? limit : static_cast<std::uint64_t>(value);
    }
  }
  return number.negative ? 0 - magnitude : magnitude;
}

std::uint64_t saturate_integer(bool negative, std::uint64_t magnitude, Type to) {
  const std::uint64_t most = low_bits(~0ULL, ptx::is_signed(to) ? ptx::bits_of(to) - 1 : ptx::bits_of(to));
  if (!negative) return magnitude > most ? most : magnitude;
  const std::uint64_t least_magnitude = ptx::is_signed(to) ? most + 1 : 0;
  return 0 - (magnitude > least_magnitude ? least_magnitude : magnitude);
}

// A finite or infinite number into the destination's float format, with .sat and .relu.
std::uint64_t to_float(Number number, Type to, const ConvertCode& code, const Format& format) {
  Rounding rounding = code.rounding == Rounding::kDefault ? Rounding::kRn : code.rounding;
  if (is_integral(rounding)) {
    number = exact::to_integral(number, rounding);
    rounding = Rounding::kRn;
  }
  if (code.relu && number.kind != Number::Kind::kNan && number.negative) number = Number{};
  if (code.sat) {  // to [+0, 1], NaN to +0
    if (number.kind == Number::Kind::kNan || number.negative) return 0;
    const std::uint64_t one = static_cast<std::uint64_t>(format.bias())
                              << static_cast<unsigned>(format.fraction_bits);
    const std::uint64_t bits = exact::pack(format, number, rounding, code.ftz && to == Type::kF32);
    return bits > one ? one : bits;
  }
  const std::uint64_t bits = exact::pack(format, number, rounding, code.ftz && to == Type::kF32);
  if (!code.finite || number.kind == Number::Kind::kNan) return bits;
  const std::uint64_t sign_bit = 1ULL << static_cast<unsigned>(format.total_bits() - 1);
  const std::uint64_t magnitude = bits & (sign_bit - 1);
  return magnitude > exact::largest(format) ? (bits & sign_bit) | exact::largest(format) : bits;
}

// A NaN made quiet, with its sign and as much of its payload as both formats have.
std::uint64_t nan_across(std::uint64_t bits, const Format& from, const Format& to) {
  const auto spare = static_cast<unsigned>(64 - from.fraction_bits),
             top = static_cast<unsigned>(to.fraction_bits);
  const std::uint64_t payload = bits << spare >> static_cast<unsigned>(64 - to.fraction_bits);
  const std::uint64_t sign = (bits >> static_cast<unsigned>(from.total_bits() - 1)) & 1U;
  const std::uint64_t exponent = (1ULL << static_cast<unsigned>(to.exponent_bits)) - 1;
  return sign << static_cast<unsigned>(to.total_bits() - 1) | exponent << top | 1ULL << (top - 1) | payload;
}

std::uint64_t convert(std::uint64_t raw, const ConvertCode& code) {
  const int from_bits = ptx::bits_of(code.from);
  const std::uint64_t source = low_bits(raw, from_bits);
  if (is_integer(code.from)) {
    const std::uint64_t extended = ptx::is_signed(code.from) ? sign_extended(source, from_bits) : source;
    const bool negative = ptx::is_signed(code.from) && (extended >> 63U) != 0;
    const std::uint64_t magnitude = negative ? 0 - extended : extended;
    if (is_integer(code.to)) return code.sat ? saturate_integer(negative, magnitude, code.to) : extended;
    return to_float(exact::from_integer(negative, magnitude), code.to, code, *format_of(code.to));
  }
  const Format from = *format_of(code.from);
  const Number number =
      exact::unpack(from, source, code.ftz && code.from == Type::kF32 && code.to != Type::kF16);
  const bool keeps_payload =
      (code.from == Type::kF64 || code.to == Type::kF64) && !is_integer(code.to) && !code.sat;
  if (number.kind == Number::Kind::kNan && keeps_payload)
    return nan_across(source, from, *format_of(code.to));
  if (is_integer(code.to)) return to_integer(number, code);
  const std::uint64_t bits = to_float(number, code.to, code, *format_of(code.to));
  // tf32 lies in the upper 19 bits of a 32-bit register.
  return code.to == Type::kTf32 ? bits << 13U : bits;
}

std::uint64_t halves(Type type) { return ptx::bits_of(type) == 16 ? 8U : 16U; }

}  // namespace

std::uint64_t convert_code(const ptx::Instruction& inst, int destination_bits, int source_bits) {
  const auto flag = [](bool set, unsigned bit) { return set ? 1ULL << bit : 0ULL; };
  const bool finite = std::ranges::find(inst.modifiers, "satfinite") != inst.modifiers.end();
  return static_cast<std::uint64_t>(inst.type) | static_cast<std::uint64_t>(inst.type2) << 8U |
         static_cast<std::uint64_t>(inst.rounding) << 16U | flag(inst.ftz, 24) |
         flag(inst.sat && !finite, 25) | flag(inst.relu, 26) | flag(finite, 27) |
         static_cast<std::uint64_t>(destination_bits) << 32U | static_cast<std::uint64_t>(source_bits) << 40U;
}

bool can_convert_any(const ConvertCode& code) {
  const auto scalar = [](Type type) {
    return is_integer(type) || type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 ||
           type == Type::kF64;
  };
  if (code.rounding == Rounding::kRs) return false;
  return (scalar(code.to) || (code.to == Type::kTf32 && code.from == Type::kF32)) && scalar(code.from);
}

bool can_convert_packed(const ConvertCode& code, std::size_t n_sources) {
  const bool to_eight = code.to == Type::kE4m3x2 || code.to == Type::kE5m2x2;
  const bool to_half = code.to == Type::kF16x2 || code.to == Type::kBf16x2;
  const bool from_eight = code.from == Type::kE4m3x2 || code.from == Type::kE5m2x2;
  if (code.rounding == Rounding::kRs) return false;
  if (n_sources == 2) return (to_eight || to_half) && code.from == Type::kF32;
  return n_sources == 1 &&
         ((to_eight && code.from == Type::kF16x2) || (code.to == Type::kF16x2 && from_eight));
}

void run_convert_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const ConvertCode code = ConvertCode::unpack(inst.aux[0]);
  for (int i = 0; i < kWarpSize; ++i) {
    if (((mask >> static_cast<unsigned>(i)) & 1U) == 0) continue;
    std::uint64_t value = convert(read(lanes, inst.operands[1], code.from_bits, i), code);
    // A register wider than the type holds the value extended by the type's sign.
    value = ptx::is_signed(code.to) ? sign_extended(value, ptx::bits_of(code.to))
                                    : low_bits(value, ptx::bits_of(code.to));
    write(lanes, inst.operands[0], code.to_bits, i, value);
  }
}

void run_convert_packed(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const ConvertCode code = ConvertCode::unpack(inst.aux[0]);
  const Format to = *format_of(code.to), from = *format_of(code.from);
  const std::uint64_t to_shift = halves(code.to), from_shift = halves(code.from);
  const bool two_sources = code.from == Type::kF32;
  for (int i = 0; i < kWarpSize; ++i) {
    if (((mask >> static_cast<unsigned>(i)) & 1U) == 0) continue;
    std::uint64_t high = 0, low = 0;
    if (two_sources) {  // the first source becomes the upper half
      high = read(lanes, inst.operands[1], 32, i);
      low = read(lanes, inst.operands[2], 32, i);
    } else {
      const std::uint64_t both = read(lanes, inst.operands[1], code.from_bits, i);
      high = low_bits(both >> from_shift, static_cast<int>(from_shift));
      low = low_bits(both, static_cast<int>(from_shift));
    }
    const auto one = [&](std::uint64_t bits) {
      return to_float(exact::unpack(from, bits, code.ftz && two_sources), code.to, code, to);
    };
    write(lanes, inst.operands[0], code.to_bits, i, one(high) << to_shift | one(low));
  }
}

// cvt.pack.sat.type.s32{.b32}: both sources clamped to the narrow type, A above B, and C above both
// (9.7.9.23).
void run_pack(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto bits = static_cast<unsigned>(inst.aux[0] & 0xffU);
  const bool is_signed = (inst.aux[0] >> 8U & 1U) != 0;
  const std::int64_t most = (std::int64_t{1} << (is_signed ? bits - 1 : bits)) - 1,
                     least = is_signed ? -most - 1 : 0;
  const auto clamped = [&](std::int32_t x) {
    return static_cast<std::uint32_t>(std::clamp(std::int64_t{x}, least, most)) & ((1U << bits) - 1);
  };
  for (int i = 0; i < kWarpSize; ++i) {
    if (((mask >> static_cast<unsigned>(i)) & 1U) == 0) continue;
    const std::uint32_t a = clamped(lanes.read<std::int32_t>(inst.operands[1])[i]);
    const std::uint32_t b = clamped(lanes.read<std::int32_t>(inst.operands[2])[i]);
    const std::uint32_t c =
        inst.n_operands > 3 ? lanes.read<std::uint32_t>(inst.operands[3])[i] << (2 * bits) : 0;
    lanes.write<std::uint32_t>(inst.operands[0])[i] = c | a << bits | b;
  }
}

Status plan_pack(PlanBuilder& to, const ptx::Instruction& inst) {
  static constexpr struct {
    std::string_view word;
    unsigned bits;
  } kTypes[] = {{"u2", 2}, {"s2", 2}, {"u4", 4}, {"s4", 4}, {"u8", 8}, {"s8", 8}, {"u16", 16}, {"s16", 16}};
  unsigned bits = 0;
  bool is_signed = false;
  for (const auto& type : kTypes) {
    if (std::ranges::find(inst.modifiers, type.word) == inst.modifiers.end()) continue;
    bits = type.bits;
    is_signed = type.word[0] == 's';
  }
  if (bits == 0 || !inst.sat) return usage_error("it needs .sat and a type of 2, 4, 8 or 16 bits");
  if (inst.operands.size() != (bits == 16 ? 3U : 4U))
    return usage_error("it takes a third source where the type has less than 16 bits, and only there");
  if (Status status = to.destination(inst.operands[0], Type::kB32); !status.ok()) return status;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (Status status = to.source(inst.operands[i], Type::kB32); !status.ok()) return status;
  }
  to.plan.aux[0] = bits | (is_signed ? 0x100U : 0U);
  return {};
}

}  // namespace echolo::vgpu::alu
