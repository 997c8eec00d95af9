#include "alu_check.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

namespace echolo::vgpu::alu_test {
namespace {

std::vector<std::string> registers_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    names.push_back(text.substr(at, end - at));
  }
  return names;
}

// What a register holds, by its name and the instruction's types.
class Source {
 public:
  Source(const std::string& name, const std::string& text, std::uint64_t seed)
      : predicate_(name[1] == 'p'),
        pairs_(name.starts_with("%r") && !name.starts_with("%rs") && !name.starts_with("%rd") &&
               text.find("x2") != std::string::npos),
        values_(bits(name, pairs_), floating(name, text), seed) {}
  std::uint64_t next() {
    if (predicate_) return values_.random() & 1U;
    const std::uint64_t low = values_.next();
    return pairs_ ? values_.next() << 16U | low : low;
  }

 private:
  static int bits(const std::string& name, bool pairs) {
    if (pairs || name.starts_with("%rs")) return 16;
    return name.starts_with("%rd") || name.starts_with("%fd") ? 64 : 32;
  }
  static bool floating(const std::string& name, const std::string& text) {
    return name[1] == 'f' || ((name.starts_with("%rs") || text.find("x2") != std::string::npos) &&
                              text.find("f16") != std::string::npos);
  }
  bool predicate_, pairs_;
  Values values_;
};

struct Target {
  explicit Target(std::string_view name) { EXPECT_TRUE(alu::set_simd_target(name).ok()); }
  ~Target() { static_cast<void>(alu::set_simd_target("")); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;
};

void check_on(std::string_view target, const std::string& text,
              const std::function<std::optional<bool>(const std::uint64_t*, std::uint64_t)>& judge,
              const Reference& expected, int rounds, std::uint64_t* digest) {
  const Target held(target);
  const Prepared instruction(text);
  ASSERT_TRUE(instruction.ok()) << text << ": " << instruction.error();
  const std::vector<std::string> names = registers_of(text);
  std::vector<Source> sources;
  for (std::size_t i = 1; i < names.size(); ++i) sources.emplace_back(names[i], text, 1000 * i + 7);
  Values masks(32, false, 99);
  Registers registers;
  for (int round = 0; round < rounds; ++round) {
    std::array<std::array<std::uint64_t, 4>, kWarpSize> values{};
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (std::size_t i = 0; i < sources.size(); ++i) {
        const std::uint64_t value = sources[i].next();
        values[static_cast<std::size_t>(lane)][i] = value;
        registers.set(names[i + 1], lane, value);
      }
      registers.set(names[0], lane, static_cast<std::uint64_t>(lane % 3));
    }
    const auto mask = round % 2 == 0 ? kAllLanes : static_cast<std::uint32_t>(masks.random()) | 2U;
    std::array<std::uint64_t, kWarpSize> before{};
    for (int lane = 0; lane < kWarpSize; ++lane)
      before[static_cast<std::size_t>(lane)] = registers.get(names[0], lane);
    instruction.run(registers, mask);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const auto at = static_cast<std::size_t>(lane);
      const std::uint64_t got = registers.get(names[0], lane);
      if (((mask >> at) & 1U) == 0) {
        ASSERT_EQ(got, before[at]) << text << " wrote the inactive lane " << lane << " on " << target;
        continue;
      }
      *digest = (*digest ^ got) * 0x100000001b3ULL + 1;
      const std::optional<bool> right = judge(values[at].data(), got);
      if (right && !*right) {
        const std::optional<std::uint64_t> want = expected ? expected(values[at].data()) : std::nullopt;
        FAIL() << text << " on " << target << std::hex << ": a=" << values[at][0] << " b=" << values[at][1]
               << " c=" << values[at][2] << " d=" << values[at][3] << " gives " << got << ", not "
               << want.value_or(0);
      }
    }
  }
}

// 2^exponent, straight into the bits of the 15-bit exponent field.
Quad power_of_two(int exponent) {
  const std::uint64_t words[2] = {0, static_cast<std::uint64_t>(exponent + 16383) << 48U};
  Quad value = 0;
  std::memcpy(&value, words, sizeof(value));
  return value;
}
int exponent_of(Quad value) {
  std::uint64_t words[2];
  std::memcpy(words, &value, sizeof(value));
  return static_cast<int>((words[1] >> 48U) & 0x7fffU) - 16383;
}

}  // namespace

void check(const std::string& text, const Reference& reference, int rounds) {
  for (const std::string_view target : alu::simd_targets()) {
    std::uint64_t digest = 0;
    check_on(
        target, text,
        [&](const std::uint64_t* sources, std::uint64_t got) -> std::optional<bool> {
          const std::optional<std::uint64_t> want = reference(sources);
          if (!want) return std::nullopt;
          return *want == got;
        },
        reference, rounds, &digest);
  }
}

void check_by(const std::string& text, const std::function<bool(const std::uint64_t*, std::uint64_t)>& judge,
              int rounds) {
  std::optional<std::uint64_t> first;
  for (const std::string_view target : alu::simd_targets()) {
    std::uint64_t digest = 0;
    check_on(
        target, text,
        [&](const std::uint64_t* sources, std::uint64_t got) -> std::optional<bool> {
          return judge(sources, got);
        },
        nullptr, rounds, &digest);
    if (!first) first = digest;
    EXPECT_EQ(*first, digest) << text << " has other bits on " << target << " than on the narrowest target";
  }
}

std::uint64_t round_to_format(Quad value, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto f = static_cast<unsigned>(fraction_bits);
  const std::uint64_t infinity = ((1ULL << static_cast<unsigned>(exponent_bits)) - 1) << f;
  if (value != value) return (1ULL << static_cast<unsigned>(exponent_bits + fraction_bits)) - 1;
  const bool negative = __builtin_signbit(value) != 0;
  const std::uint64_t sign = negative ? 1ULL << static_cast<unsigned>(exponent_bits + fraction_bits) : 0;
  const Quad magnitude = negative ? -value : value;
  const int exponent = std::max(exponent_of(magnitude), 1 - bias);
  if (exponent > bias) return sign | infinity;
  const Quad scaled = magnitude / power_of_two(exponent - fraction_bits);
  auto whole = static_cast<std::uint64_t>(scaled);
  const Quad rest = scaled - static_cast<Quad>(whole);
  if (rest > 0.5 || (rest == 0.5 && (whole & 1U) != 0)) ++whole;
  return sign | std::min((static_cast<std::uint64_t>(exponent - 1 + bias) << f) + whole, infinity);
}

Quad from_format(std::uint64_t bits, int exponent_bits, int fraction_bits) {
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const auto f = static_cast<unsigned>(fraction_bits);
  const std::uint64_t fraction = bits & ((1ULL << f) - 1);
  const auto exponent = static_cast<int>((bits >> f) & ((1ULL << static_cast<unsigned>(exponent_bits)) - 1));
  const bool negative = ((bits >> static_cast<unsigned>(exponent_bits + fraction_bits)) & 1U) != 0;
  Quad value = 0;
  if (exponent == (1 << exponent_bits) - 1) {
    value = fraction == 0 ? static_cast<Quad>(__builtin_inf()) : static_cast<Quad>(__builtin_nan(""));
  } else {
    value = static_cast<Quad>(exponent == 0 ? fraction : fraction | 1ULL << f) *
            power_of_two((exponent == 0 ? 1 : exponent) - bias - fraction_bits);
  }
  return negative ? -value : value;
}

bool is_nan_f32(std::uint64_t bits) { return (bits & 0x7fffffffU) > 0x7f800000U; }

}  // namespace echolo::vgpu::alu_test
