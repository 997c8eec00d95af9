// cvt between all pairs of types against arithmetic in 113 bits; mov, comparison and selection.
#include <gtest/gtest.h>

#include <cmath>

#include "alu_check.hpp"

namespace echolo::vgpu::alu_test {
namespace {

using Sources = const std::uint64_t*;
__extension__ using Wide = __int128;

struct IntegerType {
  std::string name;
  int bits;
  bool is_signed;
  std::string reg() const { return bits <= 16 ? "%rs" : (bits == 32 ? "%r" : "%rd"); }
  Wide value(std::uint64_t raw) const {
    const auto spare = static_cast<unsigned>(64 - bits);
    if (is_signed) return static_cast<std::int64_t>(raw << spare) >> spare;
    return static_cast<Wide>(raw << spare >> spare);
  }
  Wide least() const { return is_signed ? -(Wide{1} << static_cast<unsigned>(bits - 1)) : 0; }
  Wide most() const { return (Wide{1} << static_cast<unsigned>(is_signed ? bits - 1 : bits)) - 1; }
};
const std::vector<IntegerType>& integers() {
  static const std::vector<IntegerType> all = {{"u8", 8, false},   {"s8", 8, true},    {"u16", 16, false},
                                               {"s16", 16, true},  {"u32", 32, false}, {"s32", 32, true},
                                               {"u64", 64, false}, {"s64", 64, true}};
  return all;
}
struct FloatType {
  std::string name;
  int bits, exponent_bits, fraction_bits;
  std::string reg() const { return bits == 16 ? "%rs" : (bits == 32 ? "%f" : "%fd"); }
  Quad value(std::uint64_t raw) const { return from_format(raw, exponent_bits, fraction_bits); }
  std::uint64_t infinity() const {
    return ((1ULL << static_cast<unsigned>(exponent_bits)) - 1) << static_cast<unsigned>(fraction_bits);
  }
  std::uint64_t nan() const {
    return bits == 64 ? 0xfff8000000000000ULL : (1ULL << static_cast<unsigned>(bits - 1)) - 1;
  }
};
const std::vector<FloatType>& floats() {
  static const std::vector<FloatType> all = {
      {"f16", 16, 5, 10}, {"bf16", 16, 8, 7}, {"f32", 32, 8, 23}, {"f64", 64, 11, 52}};
  return all;
}

std::uint64_t extended(Wide x, int bits) {
  return static_cast<std::uint64_t>(x) & (bits == 64 ? ~0ULL : (1ULL << static_cast<unsigned>(bits)) - 1);
}

TEST(AluConvert, IntegersToIntegers) {
  for (const IntegerType& to : integers()) {
    for (const IntegerType& from : integers()) {
      for (const bool sat : {false, true}) {
        // Registers as wide as the types, and a 64-bit destination, which holds the value extended.
        for (const std::string& reg : {to.reg(), std::string("%rd")}) {
          const int storage = reg == "%rs" ? 16 : (reg == "%r" ? 32 : 64);
          check(
              "cvt" + std::string(sat ? ".sat." : ".") + to.name + "." + from.name + " " + reg + "1, " +
                  from.reg() + "2",
              [&](Sources s) -> std::optional<std::uint64_t> {
                Wide x = from.value(s[0]);
                if (sat) x = x < to.least() ? to.least() : (x > to.most() ? to.most() : x);
                return extended(to.value(static_cast<std::uint64_t>(x)), storage);
              },
              6);
        }
      }
    }
  }
  check(
      "cvt.u32.u8 %r1, %r2", [](Sources s) -> std::optional<std::uint64_t> { return s[0] & 0xffU; }, 6);
  check(
      "cvt.s32.s8 %r1, %r2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return static_cast<std::uint32_t>(static_cast<std::int8_t>(s[0]));
      },
      6);
}

// Directed rounding of the exact value: takes the nearest and steps once if it lies on the wrong side.
std::uint64_t round_directed(const FloatType& to, Quad x, char rounding) {
  const std::uint64_t nearest = round_to_format(x, to.exponent_bits, to.fraction_bits);
  if (rounding == 'n' || x != x) return nearest;
  const std::uint64_t sign = nearest & (1ULL << static_cast<unsigned>(to.bits - 1)), size = nearest ^ sign;
  const bool negative = sign != 0;
  const bool outward = rounding == 'z' ? false : (rounding == 'p' ? !negative : negative);
  const Quad magnitude = negative ? -x : x;
  if (magnitude > static_cast<Quad>(1e300) * static_cast<Quad>(1e300)) return nearest;  // an infinity
  const bool above = size == to.infinity() || to.value(size) > magnitude,
             below = size != to.infinity() && to.value(size) < magnitude;
  if (above && !outward) return sign | (size - 1);
  if (below && outward) return sign | (size + 1);
  return nearest;
}

TEST(AluConvert, IntegersToFloats) {
  for (const FloatType& to : floats()) {
    for (const IntegerType& from : integers()) {
      for (const char rounding : {'n', 'z', 'm', 'p'}) {
        check(
            std::string("cvt.r") + rounding + "." + to.name + "." + from.name + " " + to.reg() + "1, " +
                (from.bits == 8 ? "%r" : from.reg()) + "2",
            [&](Sources s) -> std::optional<std::uint64_t> {
              return round_directed(to, static_cast<Quad>(from.value(s[0])), rounding);
            },
            8);
      }
    }
  }
}

TEST(AluConvert, FloatsToIntegers) {
  for (const FloatType& from : floats()) {
    for (const IntegerType& to : integers()) {
      for (const char rounding : {'n', 'z', 'm', 'p'}) {
        check(
            std::string("cvt.r") + rounding + "i." + to.name + "." + from.name + " " + to.reg() + "1, " +
                from.reg() + "2",
            [&](Sources s) -> std::optional<std::uint64_t> {
              const Quad x = from.value(s[0]);
              const int storage = to.bits < 16 ? 16 : to.bits;
              if (x != x)
                return from.bits == 64 || to.bits == 64
                           ? extended(to.value(1ULL << static_cast<unsigned>(to.bits - 1)), storage)
                           : 0;
              const Quad limit = static_cast<Quad>(1e30);
              const Quad bounded = x > limit ? limit : (x < -limit ? -limit : x);
              auto whole = static_cast<Wide>(bounded);  // toward zero
              const Quad rest = bounded - static_cast<Quad>(whole);
              if (rounding == 'p' && rest > 0) ++whole;
              if (rounding == 'm' && rest < 0) --whole;
              if (rounding == 'n' && (rest > 0.5 || (rest == 0.5 && (whole & 1) != 0))) ++whole;
              if (rounding == 'n' && (rest < -0.5 || (rest == -0.5 && (whole & 1) != 0))) --whole;
              return extended(whole < to.least() ? to.least() : (whole > to.most() ? to.most() : whole),
                              storage);
            },
            16);
      }
    }
  }
}

TEST(AluConvert, FloatsToFloats) {
  for (const FloatType& to : floats()) {
    for (const FloatType& from : floats()) {
      if (to.name == from.name) continue;
      const bool narrowing = to.bits < from.bits || to.bits == 16;
      for (const char rounding : {'n', 'z', 'm', 'p'}) {
        if (!narrowing && rounding != 'n') continue;
        for (const bool sat : {false, true}) {
          check(
              "cvt" + (narrowing ? std::string(".r") + rounding : "") + (sat ? ".sat." : ".") + to.name +
                  "." + from.name + " " + to.reg() + "1, " + from.reg() + "2",
              [&](Sources s) -> std::optional<std::uint64_t> {
                const Quad x = from.value(s[0]);
                if (sat && !(x > 0)) return 0;
                if (sat && x > 1) return round_directed(to, 1, 'n');
                if (x != x && !sat &&
                    (from.bits == 64 || to.bits == 64 || (from.name == "bf16" && to.bits == 32))) {
                  // Quiet, with the sign and what payload there is room for.
                  const std::uint64_t sign = (s[0] >> static_cast<unsigned>(from.bits - 1))
                                             << static_cast<unsigned>(to.bits - 1);
                  const int narrower = from.fraction_bits - to.fraction_bits;
                  const std::uint64_t fraction =
                      s[0] & ((1ULL << static_cast<unsigned>(from.fraction_bits)) - 1);
                  const std::uint64_t moved = narrower > 0 ? fraction >> static_cast<unsigned>(narrower)
                                                           : fraction << static_cast<unsigned>(-narrower);
                  return sign | to.infinity() | 1ULL << static_cast<unsigned>(to.fraction_bits - 1) | moved;
                }
                return x != x ? to.nan() : round_directed(to, x, rounding);
              },
              24);
        }
      }
    }
  }
  for (const FloatType& type : floats()) {
    for (const char rounding : {'n', 'z', 'm', 'p'}) {
      check(
          std::string("cvt.r") + rounding + "i." + type.name + "." + type.name + " " + type.reg() + "1, " +
              type.reg() + "2",
          [&](Sources s) -> std::optional<std::uint64_t> {
            const auto x = static_cast<double>(type.value(s[0]));
            if (std::isnan(x)) return type.bits == 64 ? s[0] | 1ULL << 51U : type.nan();
            const double whole =
                rounding == 'n'
                    ? std::nearbyint(x)
                    : (rounding == 'z' ? std::trunc(x) : (rounding == 'm' ? std::floor(x) : std::ceil(x)));
            return round_to_format(static_cast<Quad>(whole), type.exponent_bits, type.fraction_bits);
          },
          16);
    }
  }
  check("cvt.ftz.f64.f32 %fd1, %f2", [](Sources s) -> std::optional<std::uint64_t> {
    if (is_nan_f32(s[0])) return 0x7fffffffe0000000ULL;
    return bits_of((s[0] & 0x7f800000U) == 0 ? std::copysign(0.0, as_f32(s[0]))
                                             : static_cast<double>(as_f32(s[0])));
  });
  check("cvt.rna.tf32.f32 %r1, %f2", [](Sources s) -> std::optional<std::uint64_t> {
    if ((s[0] & 0x7f800000U) == 0x7f800000U) return s[0] & 0xffffe000U;
    const std::uint64_t sign = s[0] & 0x80000000U, size = s[0] ^ sign;
    return sign | ((size + 0x1000U) / 0x2000U * 0x2000U);  // half an ulp up, then down: ties away from zero
  });
}

TEST(AluConvert, PairsOfNarrowFloats) {
  const auto rounded = [](std::uint64_t bits, int e, int f, bool relu) {
    const Quad x = from_format(bits, 8, 23);
    if (x != x) return std::uint64_t{0x7fffU};
    const std::uint64_t half = round_to_format(x, e, f);
    return relu && (half & 0x8000U) != 0 ? 0 : half;
  };
  for (const bool bf16 : {false, true}) {
    for (const bool relu : {false, true}) {
      check(
          std::string("cvt.rn") + (relu ? ".relu" : "") + (bf16 ? ".bf16x2" : ".f16x2") +
              ".f32 %r1, %f2, %f3",
          [=](Sources s) -> std::optional<std::uint64_t> {
            const int e = bf16 ? 8 : 5, f = bf16 ? 7 : 10;
            return rounded(s[0], e, f, relu) << 16U | rounded(s[1], e, f, relu);
          },
          200);
    }
  }
  // e4m3 has no infinity: 448 is the largest, what lies beyond is clamped to it.
  const auto eight = [](std::uint64_t bits, bool e4m3) -> std::uint64_t {
    const Quad x = from_format(bits, 8, 23);
    if (x != x) return 0x7f;
    const std::uint64_t sign = (bits >> 24U) & 0x80U;
    if (!e4m3) return sign | std::min<std::uint64_t>(round_to_format(x, 5, 2) & 0x7fU, 0x7b);
    const Quad magnitude = x < 0 ? -x : x;
    if (magnitude < static_cast<Quad>(0.015625)) {  // subnormal: multiples of 2^-9
      return sign | static_cast<std::uint64_t>(std::nearbyint(static_cast<double>(magnitude * 512)));
    }
    // One exponent bit more, so that the bias differs by 8, and nothing overflows near 448.
    return sign | std::min<std::uint64_t>(round_to_format(magnitude, 5, 3) - (8ULL << 3U), 0x7e);
  };
  for (const bool e4m3 : {false, true}) {
    check(
        std::string("cvt.rn.satfinite.") + (e4m3 ? "e4m3x2" : "e5m2x2") + ".f32 %rs1, %f2, %f3",
        [=](Sources s) -> std::optional<std::uint64_t> {
          return eight(s[0], e4m3) << 8U | eight(s[1], e4m3);
        },
        200);
  }
  check("cvt.rn.f16x2.e5m2x2 %r1, %rs2", [](Sources s) -> std::optional<std::uint64_t> {
    const auto one = [](std::uint64_t b) { return (b & 0x7fU) > 0x7cU ? std::uint64_t{0x7fffU} : b << 8U; };
    return one(s[0] >> 8U) << 16U | one(s[0] & 0xffU);
  });
}

TEST(AluMove, PacksAndUnpacks) {
  check(
      "mov.b64 %rd1, {%r2, %r3}",
      [](Sources s) -> std::optional<std::uint64_t> { return s[1] << 32U | s[0]; }, 4);
  check(
      "mov.b32 %r1, {%rs2, %rs3}",
      [](Sources s) -> std::optional<std::uint64_t> { return s[1] << 16U | s[0]; }, 4);
  check(
      "mov.b64 %rd1, {%rs2, %rs3, %rs4, %rs5}",
      [](Sources s) -> std::optional<std::uint64_t> {
        return s[3] << 48U | s[2] << 32U | s[1] << 16U | s[0];
      },
      4);
  check(
      "mov.b64 {%r1, _}, %rd2", [](Sources s) -> std::optional<std::uint64_t> { return s[0] & 0xffffffffU; },
      4);
  check(
      "mov.b64 {_, %r1}, %rd2", [](Sources s) -> std::optional<std::uint64_t> { return s[0] >> 32U; }, 4);
  check(
      "mov.b32 {_, %rs1}, %r2", [](Sources s) -> std::optional<std::uint64_t> { return s[0] >> 16U; }, 4);
  check(
      "mov.b64 {_, _, %rs1, _}, %rd2",
      [](Sources s) -> std::optional<std::uint64_t> { return (s[0] >> 32U) & 0xffffU; }, 4);
  Registers r;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    r.set("%rd1", lane, 0x1111111122222222ULL + static_cast<unsigned>(lane));
    r.set("%rd2", lane, 0x3333333344444444ULL);
  }
  Prepared("mov.b128 %q1, {%rd1, %rd2}").run(r);
  Prepared("mov.b128 %q2, %q1").run(r, 0x0fU);
  Prepared("mov.b128 {%rd3, %rd4}, %q2").run(r);
  EXPECT_EQ(r.get("%rd3", 3), 0x1111111122222225ULL);
  EXPECT_EQ(r.get("%rd4", 3), 0x3333333344444444ULL);
  EXPECT_EQ(r.get("%rd4", 4), 0U);
}

TEST(AluMove, ImmediatesAreReadInTheTypeOfTheOperation) {
  Registers r;
  const auto gives = [&r](const std::string& text, const std::string& reg) {
    const Prepared instruction(text);
    EXPECT_TRUE(instruction.ok()) << text << ": " << instruction.error();
    if (instruction.ok()) instruction.run(r);
    return r.get(reg, 17);
  };
  EXPECT_EQ(gives("mov.f32 %f1, 0f3FC00000", "%f1"), 0x3fc00000U);
  EXPECT_EQ(gives("mov.f64 %fd1, 0d3FF8000000000000", "%fd1"), 0x3ff8000000000000U);
  EXPECT_EQ(gives("mov.f32 %f1, 1.5", "%f1"), 0x3fc00000U);
  EXPECT_EQ(gives("mov.f64 %fd1, 1.5", "%fd1"), 0x3ff8000000000000U);
  EXPECT_EQ(gives("mov.b32 %r1, -2", "%r1"), 0xfffffffeU);
  EXPECT_EQ(gives("mov.u16 %rs1, -1", "%rs1"), 0xffffU);
  EXPECT_EQ(gives("mov.b64 %rd1, -1", "%rd1"), ~0ULL);
  EXPECT_EQ(gives("mov.b16 %rs1, 0x3C00", "%rs1"), 0x3c00U);
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
