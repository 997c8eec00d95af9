// f32 and f64 arithmetic against the host's own IEEE operations (with its rounding mode for the directed
// forms), and the approximate functions against f64 ones within the errors that the ISA states.
#include <gtest/gtest.h>

#include <cfenv>
#include <cmath>
#include <limits>

#include "alu_check.hpp"

namespace echolo::vgpu::alu_test {
namespace {

using Sources = const std::uint64_t*;

std::uint64_t flushed(std::uint64_t bits) { return (bits & 0x7f800000U) == 0 ? bits & 0x80000000U : bits; }
std::uint64_t canonical(float x) { return std::isnan(x) ? 0x7fffffffU : bits_of(x); }
std::uint64_t saturated(float x) { return !(x > 0.0F) ? 0 : bits_of(std::min(x, 1.0F)); }

// One operation in the host's current rounding mode; volatile keeps the compiler from computing it in
// another.
float host(int op, float a, float b, float c) {
  volatile float x = a, y = b, z = c, r = 0;
  switch (op) {
    case 0:
      r = x + y;
      break;
    case 1:
      r = x - y;
      break;
    case 2:
      r = x * y;
      break;
    case 3:
      r = std::fma(x, y, z);
      break;
    case 4:
      r = x / y;
      break;
    case 5:
      r = 1.0F / x;
      break;
    default:
      r = std::sqrt(x);
      break;
  }
  return r;
}
double host(int op, double a, double b, double c) {
  volatile double x = a, y = b, z = c, r = 0;
  switch (op) {
    case 0:
      r = x + y;
      break;
    case 1:
      r = x - y;
      break;
    case 2:
      r = x * y;
      break;
    case 3:
      r = std::fma(x, y, z);
      break;
    case 4:
      r = x / y;
      break;
    case 5:
      r = 1.0 / x;
      break;
    default:
      r = std::sqrt(x);
      break;
  }
  return r;
}

struct Operation {
  const char* name;
  int sources;
};
constexpr Operation kOperations[] = {{"add", 2}, {"sub", 2}, {"mul", 2}, {"fma", 3},
                                     {"div", 2}, {"rcp", 1}, {"sqrt", 1}};
struct RoundingMode {
  const char* name;
  int mode;
};
constexpr RoundingMode kRoundings[] = {
    {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

std::string operands(const std::string& reg, int sources) {
  std::string out = " " + reg + "1";
  for (int i = 0; i < sources; ++i) out += ", " + reg + std::to_string(i + 2);
  return out;
}

TEST(AluFloat32, AllRoundingsFlushingAndSaturation) {
  for (int op = 0; op < 7; ++op) {
    for (const RoundingMode& rounding : kRoundings) {
      for (const bool ftz : {false, true}) {
        for (const bool sat : {false, true}) {
          if (sat && op > 3) continue;
          const std::string text = std::string(kOperations[op].name) + "." + rounding.name +
                                   (ftz ? ".ftz" : "") + (sat ? ".sat" : "") + ".f32" +
                                   operands("%f", kOperations[op].sources);
          check(
              text,
              [&](Sources s) -> std::optional<std::uint64_t> {
                float x[3];
                for (int i = 0; i < 3; ++i) x[i] = as_f32(ftz ? flushed(s[i]) : s[i]);
                std::fesetround(rounding.mode);
                const float exact = host(op, x[0], x[1], x[2]);
                std::fesetround(FE_TONEAREST);
                float result = ftz && !std::isnan(exact) ? as_f32(flushed(bits_of(exact))) : exact;
                // Products and fused sums are flushed by what they are before rounding.
                const Quad unrounded = Quad{x[0]} * Quad{x[1]} + (op == 3 ? Quad{x[2]} : Quad{0});
                const bool tiny = unrounded < Quad{0x1p-126} && unrounded > Quad{-0x1p-126};
                if (ftz && (op == 2 || op == 3) && tiny) result = std::copysign(0.0F, exact);
                return sat ? saturated(result) : canonical(result);
              },
              40);
        }
      }
    }
  }
}

TEST(AluFloat64, AllRoundingsAndNanPayloads) {
  for (int op = 0; op < 7; ++op) {
    for (const RoundingMode& rounding : kRoundings) {
      const int n = kOperations[op].sources;
      check(
          std::string(kOperations[op].name) + "." + rounding.name + ".f64" + operands("%fd", n),
          [&, n](Sources s) -> std::optional<std::uint64_t> {
            // Of several NaN operands: of a fused sum b, c, a, of a quotient the first, else the last.
            const std::vector<int> order = op == 3
                                               ? std::vector<int>{1, 2, 0}
                                               : (op == 4 ? std::vector<int>{0, 1} : std::vector<int>{1, 0});
            for (const int i : order) {
              if (i < n && std::isnan(as_f64(s[i]))) return s[i] | 1ULL << 51U;
            }
            std::fesetround(rounding.mode);
            const double result = host(op, as_f64(s[0]), as_f64(s[1]), as_f64(s[2]));
            std::fesetround(FE_TONEAREST);
            return std::isnan(result) ? 0xfff8000000000000ULL : bits_of(result);
          },
          64);
    }
  }
}

TEST(AluFloat, SignsMinimaAndMaxima) {
  const auto key = [](std::uint64_t x) {
    const auto bits = static_cast<std::int32_t>(x);
    return bits < 0 ? -static_cast<std::int64_t>(bits & 0x7fffffff) - 1 : std::int64_t{bits};
  };
  for (const bool max : {false, true}) {
    for (const bool ftz : {false, true}) {
      for (const bool nan : {false, true}) {
        for (const bool xorsign : {false, true}) {
          const std::string text = std::string(max ? "max" : "min") + (ftz ? ".ftz" : "") +
                                   (nan ? ".NaN" : "") + (xorsign ? ".xorsign.abs" : "") +
                                   ".f32 %f1, %f2, %f3";
          check(
              text,
              [=](Sources s) -> std::optional<std::uint64_t> {
                std::uint64_t a = ftz ? flushed(s[0]) : s[0], b = ftz ? flushed(s[1]) : s[1];
                const std::uint64_t sign = xorsign ? (a ^ b) & 0x80000000U : 0;
                if (xorsign) a &= 0x7fffffffU, b &= 0x7fffffffU;
                const bool nan_a = is_nan_f32(a), nan_b = is_nan_f32(b);
                if ((nan_a && nan_b) || (nan && (nan_a || nan_b))) return 0x7fffffffU;
                const std::uint64_t picked = nan_a ? b : (nan_b ? a : ((key(a) < key(b)) == max ? b : a));
                return picked | sign;
              },
              32);
        }
      }
    }
    check(std::string(max ? "max" : "min") + ".f64 %fd1, %fd2, %fd3",
          [=](Sources s) -> std::optional<std::uint64_t> {
            const double a = as_f64(s[0]), b = as_f64(s[1]);
            if (std::isnan(a) && std::isnan(b)) return s[1] | 1ULL << 51U;
            if (std::isnan(a)) return s[1];
            if (std::isnan(b)) return s[0];
            if (a == b) return max ? s[0] & s[1] : s[0] | s[1];  // they differ at most in the sign of zero
            return (a < b) == max ? s[1] : s[0];
          });
  }
  check(
      "neg.ftz.f32 %f1, %f2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return is_nan_f32(s[0]) ? 0x7fffffffU : flushed(s[0]) ^ 0x80000000U;
      },
      8);
  check(
      "abs.f32 %f1, %f2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return is_nan_f32(s[0]) ? 0x7fffffffU : s[0] & 0x7fffffffU;
      },
      8);
  check(
      "neg.f64 %fd1, %fd2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return std::isnan(as_f64(s[0])) ? s[0] | 1ULL << 51U : s[0] ^ 1ULL << 63U;
      },
      8);
  check(
      "abs.f64 %fd1, %fd2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return std::isnan(as_f64(s[0])) ? s[0] | 1ULL << 51U : s[0] & ~(1ULL << 63U);
      },
      8);
  check(
      "copysign.f32 %f1, %f2, %f3",
      [](Sources s) -> std::optional<std::uint64_t> { return (s[0] & 0x80000000U) | (s[1] & 0x7fffffffU); },
      8);
  check(
      "copysign.f64 %fd1, %fd2, %fd3",
      [](Sources s) -> std::optional<std::uint64_t> {
        return (s[0] & (1ULL << 63U)) | (s[1] & ~(1ULL << 63U));
      },
      8);
}

// ---- Approximations
// -----------------------------------------------------------------------------------------------

double ulps(double got, double exact) {
  const auto nearest = static_cast<float>(exact);
  if (std::isinf(nearest)) return std::isinf(got) ? 0.0 : 1e9;
  int exponent = 0;
  std::frexp(exact, &exponent);
  const double ulp = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(got - exact) / ulp;
}

// `judge` of finite results; NaN must meet NaN, infinity infinity, and the sign of zero must be right.
void check_function(const std::string& name, double (*exact)(double),
                    const std::function<bool(double got, double want, double x)>& judge) {
  for (const bool ftz : {false, true}) {
    if (ftz && name == "tanh") continue;
    check_by(
        name + ".approx" + (ftz ? ".ftz" : "") + ".f32 %f1, %f2",
        [&](Sources s, std::uint64_t result) {
          const double x = as_f32(ftz ? flushed(s[0]) : s[0]), got = as_f32(result), want = exact(x);
          if (std::isnan(want)) return result == 0x7fffffffU;
          if (ftz && std::fabs(want) < std::ldexp(1.0, -126))
            return got == 0.0 || std::fabs(got) == std::ldexp(1.0, -126);
          if (want == 0.0 || std::isinf(static_cast<float>(want)))
            return result == bits_of(static_cast<float>(want));
          return judge(got, want, x);
        },
        300);
  }
}

TEST(AluApproximations, StayWithinTheErrorsOfTheIsa) {
  const auto within = [](double limit) {
    return [limit](double got, double want, double) { return ulps(got, want) <= limit; };
  };
  check_function(
      "rcp", [](double x) { return 1.0 / x; }, within(0.5));
  check_function(
      "sqrt", [](double x) { return std::sqrt(x); }, within(0.5));
  check_function(
      "rsqrt", [](double x) { return 1.0 / std::sqrt(x); }, within(0.51));
  check_function(
      "ex2", [](double x) { return std::exp2(x); }, within(0.51));
  check_function(
      "lg2",
      [](double x) { return x < 0 ? std::numeric_limits<double>::quiet_NaN() : std::log2(std::fabs(x)); },
      within(0.51));
  check_function(
      "tanh", [](double x) { return std::tanh(x); }, within(0.51));
  const auto absolute = [](double got, double want, double x) {
    if (std::fabs(x) < 2147483648.0) return std::fabs(got - want) <= std::ldexp(1.0, -24);
    return std::fabs(got) <= 1.0;
  };
  check_function(
      "sin", [](double x) { return std::sin(x); }, absolute);
  check_function(
      "cos", [](double x) { return std::cos(x); }, absolute);
}

TEST(AluApproximations, Division) {
  for (const bool ftz : {false, true}) {
    const std::string suffix = std::string(ftz ? ".ftz" : "") + ".f32 %f1, %f2, %f3";
    check("div.full" + suffix, [ftz](Sources s) -> std::optional<std::uint64_t> {
      const float x = as_f32(ftz ? flushed(s[0]) : s[0]) / as_f32(ftz ? flushed(s[1]) : s[1]);
      return std::isnan(x) ? 0x7fffffffU : (ftz ? flushed(bits_of(x)) : bits_of(x));
    });
    check("div.approx" + suffix, [ftz](Sources s) -> std::optional<std::uint64_t> {
      const float a = as_f32(ftz ? flushed(s[0]) : s[0]), b = as_f32(ftz ? flushed(s[1]) : s[1]);
      float x = a / b;
      if (std::fabs(b) > 0x1p126F && !std::isinf(b))
        x = std::isinf(a) || std::isnan(a)
                ? NAN
                : std::copysign(0.0F, std::signbit(a) != std::signbit(b) ? -1.0F : 1.0F);
      return std::isnan(x) ? 0x7fffffffU : (ftz ? flushed(bits_of(x)) : bits_of(x));
    });
  }
}

TEST(AluApproximations, GrossReciprocalsOfF64) {
  check_by("rcp.approx.ftz.f64 %fd1, %fd2", [](Sources s, std::uint64_t got) {
    const double x = as_f64(s[0] & 0xffffffff00000000ULL);
    if ((got & 0xffffffffU) != 0) return false;
    if (std::isnan(x)) return got == 0x7fffffff00000000ULL;
    if (std::fabs(x) < 0x1p-1022)
      return got ==
             bits_of(std::copysign(INFINITY, static_cast<float>(x < 0 || std::signbit(x) ? -1 : 1)) * 1.0);
    if (std::isinf(x) || std::fabs(1.0 / x) < 0x1p-1021) return std::fabs(as_f64(got)) <= 0x1p-1021;
    return std::fabs(as_f64(got) * x - 1.0) < 0x1p-18;
  });
  check_by("rsqrt.approx.ftz.f64 %fd1, %fd2", [](Sources s, std::uint64_t got) {
    const double x = as_f64(s[0] & 0xffffffff00000000ULL);
    if (std::isnan(x) || x <= -0x1p-1022) return got == 0x7fffffff00000000ULL;
    if (std::fabs(x) < 0x1p-1022) return std::isinf(as_f64(got));
    if (std::isinf(x)) return got == 0;
    return std::fabs(as_f64(got) * std::sqrt(x) - 1.0) < 0x1p-18;
  });
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
