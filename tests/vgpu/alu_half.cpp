// f16 and bf16 against arithmetic in 113 bits, rounded once.
#include <gtest/gtest.h>

#include <cmath>

#include "alu_check.hpp"

namespace echolo::vgpu::alu_test {
namespace {

using Sources = const std::uint64_t*;

struct HalfFormat {
  const char* name;
  int exponent_bits, fraction_bits;
  Quad value(std::uint64_t bits) const { return from_format(bits & 0xffffU, exponent_bits, fraction_bits); }
  std::uint64_t round(Quad x) const { return round_to_format(x, exponent_bits, fraction_bits); }
  std::uint64_t infinity() const {
    return ((1ULL << static_cast<unsigned>(exponent_bits)) - 1) << static_cast<unsigned>(fraction_bits);
  }
  std::uint64_t flush(std::uint64_t bits) const { return (bits & infinity()) == 0 ? bits & 0x8000U : bits; }
  bool is_nan(std::uint64_t bits) const { return (bits & 0x7fffU) > infinity(); }
};
constexpr HalfFormat kFormats[] = {{"f16", 5, 10}, {"bf16", 8, 7}};

// a + b, moved a little to the side where what 113 bits lose lies, so that no half-way case is made by losing
// it.
Quad sum_with_rest(Quad a, Quad b) {
  const Quad sum = a + b, back = sum - a;
  const Quad lost = (a - (sum - back)) + (b - back);
  const Quad little = (sum < 0 ? -sum : sum) * static_cast<Quad>(std::ldexp(1.0, -100));
  return lost > 0 ? sum + little : (lost < 0 ? sum - little : sum);
}

// The instruction on single halves and on pairs.
void check_both(const std::string& head, const HalfFormat& format, int sources,
                const std::function<std::uint64_t(Sources)>& one, int rounds = 40) {
  for (const bool pair : {false, true}) {
    const std::string reg = pair ? "%r" : "%rs";
    std::string text = head + "." + format.name + (pair ? "x2 " : " ") + reg + "1";
    for (int i = 0; i < sources; ++i) text += ", " + reg + std::to_string(i + 2);
    check(
        text,
        [&](Sources s) -> std::optional<std::uint64_t> {
          if (!pair) return one(s);
          const std::uint64_t low[3] = {s[0] & 0xffffU, s[1] & 0xffffU, s[2] & 0xffffU},
                              high[3] = {s[0] >> 16U, s[1] >> 16U, s[2] >> 16U};
          return one(high) << 16U | one(low);
        },
        rounds);
  }
}

TEST(AluHalf, ArithmeticIsCorrectlyRounded) {
  for (const HalfFormat& f : kFormats) {
    const bool f16 = f.exponent_bits == 5;
    for (const std::string mode : {"", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"}) {
      const bool ftz = mode.find("ftz") != std::string::npos, sat = mode.find("sat") != std::string::npos,
                 relu = mode.find("relu") != std::string::npos;
      if (!f16 && (ftz || sat)) continue;
      const auto in = [&](std::uint64_t bits) { return f.value(ftz ? f.flush(bits) : bits); };
      const auto out = [&](Quad x) {
        std::uint64_t bits = f.round(x);
        if (ftz) bits = f.flush(bits);
        const std::uint64_t one = f.round(1);
        if (sat) bits = (bits & 0x8000U) != 0 || f.is_nan(bits) ? 0 : std::min(bits, one);
        if (relu && (bits & 0x8000U) != 0) bits = 0;
        return bits;
      };
      check_both("fma.rn" + mode, f, 3,
                 [&](Sources s) { return out(sum_with_rest(in(s[0]) * in(s[1]), in(s[2]))); });
      if (relu) continue;
      check_both("add" + mode, f, 2, [&](Sources s) { return out(in(s[0]) + in(s[1])); });
      check_both("sub.rn" + mode, f, 2, [&](Sources s) { return out(in(s[0]) - in(s[1])); });
      check_both("mul" + mode, f, 2, [&](Sources s) { return out(in(s[0]) * in(s[1])); });
    }
  }
}

TEST(AluHalf, SignsMinimaAndMaxima) {
  for (const HalfFormat& f : kFormats) {
    check_both(
        "neg", f, 1, [&f](Sources s) { return f.is_nan(s[0]) ? 0x7fffU : s[0] ^ 0x8000U; }, 6);
    check_both(
        "abs", f, 1, [&f](Sources s) { return f.is_nan(s[0]) ? 0x7fffU : s[0] & 0x7fffU; }, 6);
    for (const bool max : {false, true}) {
      for (const std::string mode : {"", ".NaN", ".xorsign.abs", ".NaN.xorsign.abs"}) {
        const bool nan = mode.starts_with(".NaN"), xorsign = mode.ends_with("abs");
        check_both((max ? "max" : "min") + mode, f, 2,
                   [&](Sources s) {
                     std::uint64_t a = s[0], b = s[1];
                     const std::uint64_t sign = xorsign ? (a ^ b) & 0x8000U : 0;
                     if (xorsign) a &= 0x7fffU, b &= 0x7fffU;
                     if ((f.is_nan(a) && f.is_nan(b)) || (nan && (f.is_nan(a) || f.is_nan(b))))
                       return std::uint64_t{0x7fffU};
                     if (f.is_nan(a)) return b | sign;
                     if (f.is_nan(b)) return a | sign;
                     const Quad x = f.value(a), y = f.value(b);
                     if (x == y) return (max ? a & b : a | b) | sign;
                     return ((x < y) == max ? b : a) | sign;
                   },
                   24);
      }
    }
  }
}

TEST(AluHalf, Approximations) {
  for (const HalfFormat& f : kFormats) {
    const std::string name = f.name, ftz = f.exponent_bits == 8 ? ".ftz" : "";
    for (const bool tanh : {false, true}) {
      check_by((tanh ? "tanh.approx." : "ex2.approx" + ftz + ".") + name + " %rs1, %rs2",
               [&](Sources s, std::uint64_t got) {
                 const auto x = static_cast<double>(f.value(s[0]));
                 const double want = tanh ? std::tanh(x) : std::exp2(x);
                 if (std::isnan(want)) return got == 0x7fffU;
                 const double limit = std::ldexp(1.0, f.exponent_bits == 5 ? -9 : -7) * want;
                 const auto value = static_cast<double>(f.value(got));
                 if (std::isinf(value)) return want > static_cast<double>(f.value(f.infinity() - 1));
                 return std::fabs(value - want) <=
                        std::fabs(limit) + static_cast<double>(f.value(f.exponent_bits == 8 ? 0x80 : 1));
               });
    }
  }
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
