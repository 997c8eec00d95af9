// Integer arithmetic and bits against references on __int128 and single bits.
#include <gtest/gtest.h>

#include <bit>

#include "alu_check.hpp"

namespace echolo::vgpu::alu_test {
namespace {

__extension__ using Wide = __int128;
using Sources = const std::uint64_t*;

struct IntegerType {
  const char* name;
  const char* reg;   // prefix of registers
  const char* wide;  // of the type twice as wide
  int bits;
  bool is_signed;

  Wide value(std::uint64_t raw) const {
    const auto spare = static_cast<unsigned>(64 - bits);
    if (is_signed) return static_cast<std::int64_t>(raw << spare) >> spare;
    return static_cast<Wide>(raw << spare >> spare);
  }
  std::uint64_t cut(Wide x) const {
    return bits == 64 ? static_cast<std::uint64_t>(x)
                      : static_cast<std::uint64_t>(x) & ((1ULL << static_cast<unsigned>(bits)) - 1);
  }
  Wide least() const { return is_signed ? -(Wide{1} << static_cast<unsigned>(bits - 1)) : 0; }
  Wide most() const { return (Wide{1} << static_cast<unsigned>(is_signed ? bits - 1 : bits)) - 1; }
  Wide clamp(Wide x) const { return x < least() ? least() : (x > most() ? most() : x); }
};
constexpr IntegerType kTypes[] = {{"u16", "%rs", "%r", 16, false}, {"s16", "%rs", "%r", 16, true},
                                  {"u32", "%r", "%rd", 32, false}, {"s32", "%r", "%rd", 32, true},
                                  {"u64", "%rd", "", 64, false},   {"s64", "%rd", "", 64, true}};

std::string text(const std::string& op, const IntegerType& t, int sources) {
  std::string out = op + "." + t.name + " " + t.reg + "1";
  for (int i = 0; i < sources; ++i) out += std::string(", ") + t.reg + std::to_string(i + 2);
  return out;
}

TEST(AluInteger, ArithmeticOfAllTypes) {
  for (const IntegerType& t : kTypes) {
    const auto two = [&t](Wide (*f)(Wide, Wide)) {
      return [&t, f](Sources s) -> std::optional<std::uint64_t> {
        return t.cut(f(t.value(s[0]), t.value(s[1])));
      };
    };
    check(text("add", t, 2), two([](Wide a, Wide b) { return a + b; }));
    check(text("sub", t, 2), two([](Wide a, Wide b) { return a - b; }));
    check(text("mul.lo", t, 2),
          [&t](Sources s) -> std::optional<std::uint64_t> { return t.cut(static_cast<Wide>(s[0] * s[1])); });
    check(text("min", t, 2), two([](Wide a, Wide b) { return a < b ? a : b; }));
    check(text("max", t, 2), two([](Wide a, Wide b) { return a > b ? a : b; }));
    check(text("div", t, 2), two([](Wide a, Wide b) { return b == 0 ? Wide{-1} : a / b; }));
    check(text("rem", t, 2), two([](Wide a, Wide b) { return b == 0 ? Wide{-1} : a % b; }));
    check(text("mul.hi", t, 2), [&t](Sources s) -> std::optional<std::uint64_t> {
      __extension__ using UWide = unsigned __int128;
      if (t.bits < 64 || t.is_signed)
        return t.cut((t.value(s[0]) * t.value(s[1])) >> static_cast<unsigned>(t.bits));
      return static_cast<std::uint64_t>((UWide{s[0]} * s[1]) >> 64U);
    });
    check(text("mad.lo", t, 3), [&t](Sources s) -> std::optional<std::uint64_t> {
      return t.cut(static_cast<Wide>(s[0] * s[1] + s[2]));
    });
    check(text("sad", t, 3), [&t](Sources s) -> std::optional<std::uint64_t> {
      const Wide a = t.value(s[0]), b = t.value(s[1]);
      return t.cut(t.value(s[2]) + (a < b ? b - a : a - b));
    });
    if (t.is_signed) {
      check(text("abs", t, 1), [&t](Sources s) -> std::optional<std::uint64_t> {
        const Wide a = t.value(s[0]);
        return t.cut(a < 0 ? -a : a);
      });
      check(text("neg", t, 1),
            [&t](Sources s) -> std::optional<std::uint64_t> { return t.cut(-t.value(s[0])); });
    }
    if (t.bits == 64) continue;
    const std::string wide = t.wide, reg = t.reg, name = t.name;
    const int bits = 2 * t.bits;
    const auto cut = [bits](Wide x) {
      return static_cast<std::uint64_t>(x) & (bits == 64 ? ~0ULL : (1ULL << static_cast<unsigned>(bits)) - 1);
    };
    check("mul.wide." + name + " " + wide + "1, " + reg + "2, " + reg + "3",
          [&](Sources s) -> std::optional<std::uint64_t> { return cut(t.value(s[0]) * t.value(s[1])); });
    check("mad.wide." + name + " " + wide + "1, " + reg + "2, " + reg + "3, " + wide + "4",
          [&](Sources s) -> std::optional<std::uint64_t> {
            return cut(t.value(s[0]) * t.value(s[1]) + static_cast<Wide>(s[2]));
          });
  }
}

TEST(AluInteger, SaturationAndTwentyFourBits) {
  const IntegerType& s32 = kTypes[3];
  const auto v = [&](std::uint64_t x) { return s32.value(x); };
  check("add.sat.s32 %r1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> { return s32.cut(s32.clamp(v(s[0]) + v(s[1]))); });
  check("sub.sat.s32 %r1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> { return s32.cut(s32.clamp(v(s[0]) - v(s[1]))); });
  check("mad.hi.sat.s32 %r1, %r2, %r3, %r4", [&](Sources s) -> std::optional<std::uint64_t> {
    return s32.cut(s32.clamp(((v(s[0]) * v(s[1])) >> 32U) + v(s[2])));
  });
  const auto low24 = [](std::uint64_t x, bool is_signed) -> Wide {
    const auto cut = static_cast<std::int64_t>(x & 0xffffffU);
    return is_signed && cut >= 0x800000 ? cut - 0x1000000 : cut;
  };
  for (const bool is_signed : {false, true}) {
    const std::string name = is_signed ? "s32" : "u32";
    check("mul24.lo." + name + " %r1, %r2, %r3", [&](Sources s) -> std::optional<std::uint64_t> {
      return s32.cut(low24(s[0], is_signed) * low24(s[1], is_signed));
    });
    check("mul24.hi." + name + " %r1, %r2, %r3", [&](Sources s) -> std::optional<std::uint64_t> {
      return s32.cut((low24(s[0], is_signed) * low24(s[1], is_signed)) >> 16U);
    });
    check("mad24.lo." + name + " %r1, %r2, %r3, %r4", [&](Sources s) -> std::optional<std::uint64_t> {
      return s32.cut(low24(s[0], is_signed) * low24(s[1], is_signed) + static_cast<Wide>(s[2]));
    });
  }
}

TEST(AluInteger, PackedHalves) {
  const auto by_half = [](auto f) {
    return [f](Sources s) -> std::optional<std::uint64_t> {
      const auto half = [&](unsigned shift) {
        return static_cast<std::uint64_t>(static_cast<std::uint16_t>(
            f(static_cast<std::int16_t>(s[0] >> shift), static_cast<std::int16_t>(s[1] >> shift))));
      };
      return half(16) << 16U | half(0);
    };
  };
  check("add.u16x2 %r1, %r2, %r3", by_half([](int a, int b) { return a + b; }));
  check("min.s16x2 %r1, %r2, %r3", by_half([](int a, int b) { return a < b ? a : b; }));
  check("max.u16x2 %r1, %r2, %r3", by_half([](int a, int b) { return (a & 0xffff) > (b & 0xffff) ? a : b; }));
  check("max.relu.s16x2 %r1, %r2, %r3", by_half([](int a, int b) { return std::max({a, b, 0}); }));
  check("min.relu.s32 %r1, %r2, %r3", [](Sources s) -> std::optional<std::uint64_t> {
    return static_cast<std::uint32_t>(
        std::max(0, std::min(static_cast<std::int32_t>(s[0]), static_cast<std::int32_t>(s[1]))));
  });
}

// A 128-bit sum and difference by the carry flag, lane by lane; subc takes and gives a borrow.
TEST(AluInteger, CarryChains) {
  for (const std::string_view target : alu::simd_targets()) {
    ASSERT_TRUE(alu::set_simd_target(target).ok());
    Registers r;
    Values values(64, false, 5);
    const Prepared add("add.cc.u64 %rd1, %rd2, %rd3"), addc("addc.u64 %rd4, %rd5, %rd6"),
        sub("sub.cc.u64 %rd1, %rd2, %rd3"), subc("subc.u64 %rd4, %rd5, %rd6");
    const Prepared mad("mad.lo.cc.u32 %r1, %r2, %r3, %r4"), madc("madc.hi.u32 %r5, %r2, %r3, %r6");
    for (int round = 0; round < 50; ++round) {
      for (int lane = 0; lane < kWarpSize; ++lane) {
        for (const char* name : {"%rd2", "%rd3", "%rd5", "%rd6", "%r2", "%r3", "%r4", "%r6"})
          r.set(name, lane, values.next());
      }
      const auto wide = [&](int lane, const char* high, const char* low) {
        return (static_cast<Wide>(r.get(high, lane)) << 64U) + static_cast<Wide>(r.get(low, lane));
      };
      for (const bool subtract : {false, true}) {
        (subtract ? sub : add).run(r);
        (subtract ? subc : addc).run(r);
        for (int lane = 0; lane < kWarpSize; ++lane) {
          const Wide a = wide(lane, "%rd5", "%rd2"), b = wide(lane, "%rd6", "%rd3");
          __extension__ using UWide = unsigned __int128;
          const UWide want = subtract ? static_cast<UWide>(a) - static_cast<UWide>(b)
                                      : static_cast<UWide>(a) + static_cast<UWide>(b);
          ASSERT_TRUE(static_cast<UWide>(wide(lane, "%rd4", "%rd1")) == want);
        }
      }
      mad.run(r, 0xff00ff00U);
      madc.run(r, 0xff00ff00U);
      for (int lane = 8; lane < 16; ++lane) {
        const std::uint64_t want =
            r.get("%r2", lane) * r.get("%r3", lane) + (r.get("%r6", lane) << 32U | r.get("%r4", lane));
        ASSERT_EQ(r.get("%r5", lane) << 32U | r.get("%r1", lane), want);
      }
    }
  }
  ASSERT_TRUE(alu::set_simd_target("").ok());
}

// ---- Bits
// ---------------------------------------------------------------------------------------------------------

std::uint64_t bit(std::uint64_t x, int i) { return (x >> static_cast<unsigned>(i)) & 1U; }

TEST(AluBits, LogicAndShifts) {
  for (const auto& [bits, reg] : {std::pair{16, std::string("%rs")}, {32, "%r"}, {64, "%rd"}}) {
    const std::uint64_t all = bits == 64 ? ~0ULL : (1ULL << static_cast<unsigned>(bits)) - 1;
    const std::string b = ".b" + std::to_string(bits) + " " + reg + "1, " + reg + "2",
                      two = b + ", " + reg + "3";
    check(
        "and" + two, [](Sources s) -> std::optional<std::uint64_t> { return s[0] & s[1]; }, 4);
    check(
        "or" + two, [](Sources s) -> std::optional<std::uint64_t> { return s[0] | s[1]; }, 4);
    check(
        "xor" + two, [](Sources s) -> std::optional<std::uint64_t> { return s[0] ^ s[1]; }, 4);
    check(
        "not" + b, [all](Sources s) -> std::optional<std::uint64_t> { return ~s[0] & all; }, 4);
    check(
        "cnot" + b, [](Sources s) -> std::optional<std::uint64_t> { return s[0] == 0 ? 1 : 0; }, 8);
    const int width = bits;
    check("shl" + b + ", %r3", [all, width](Sources s) -> std::optional<std::uint64_t> {
      return s[1] >= static_cast<unsigned>(width) ? 0 : (s[0] << s[1]) & all;
    });
    check("shr.u" + b.substr(2) + ", %r3", [width](Sources s) -> std::optional<std::uint64_t> {
      return s[1] >= static_cast<unsigned>(width) ? 0 : s[0] >> s[1];
    });
    check("shr.s" + b.substr(2) + ", %r3", [all, width](Sources s) -> std::optional<std::uint64_t> {
      std::uint64_t out = 0;
      for (int i = 0; i < width; ++i)
        out |= bit(s[0], static_cast<int>(std::min<std::uint64_t>(static_cast<unsigned>(i) + s[1],
                                                                  static_cast<unsigned>(width - 1))))
               << static_cast<unsigned>(i);
      return out & all;
    });
  }
  for (const int table : {0x96, 0xe8, 0xca, 0x00, 0xff, 0x01, 0x80, 0x6a, 0x3c}) {
    check(
        "lop3.b32 %r1, %r2, %r3, %r4, " + std::to_string(table),
        [table](Sources s) -> std::optional<std::uint64_t> {
          std::uint64_t out = 0;
          for (int i = 0; i < 32; ++i)
            out |= bit(static_cast<std::uint64_t>(table),
                       static_cast<int>(bit(s[0], i) * 4 + bit(s[1], i) * 2 + bit(s[2], i)))
                   << static_cast<unsigned>(i);
          return out;
        },
        8);
  }
  for (const bool wrap : {true, false}) {
    const std::string mode = wrap ? "wrap" : "clamp";
    const auto amount = [wrap](std::uint64_t c) { return wrap ? c & 31U : std::min<std::uint64_t>(c, 32); };
    check("shf.l." + mode + ".b32 %r1, %r2, %r3, %r4", [=](Sources s) -> std::optional<std::uint64_t> {
      const std::uint64_t n = amount(s[2]);
      return n == 32 ? s[0] : ((s[1] << n) | (n == 0 ? 0 : s[0] >> (32 - n))) & 0xffffffffU;
    });
    check("shf.r." + mode + ".b32 %r1, %r2, %r3, %r4", [=](Sources s) -> std::optional<std::uint64_t> {
      const std::uint64_t n = amount(s[2]);
      return n == 32 ? s[1] : ((s[0] >> n) | (n == 0 ? 0 : s[1] << (32 - n))) & 0xffffffffU;
    });
    check("bmsk." + mode + ".b32 %r1, %r2, %r3", [=](Sources s) -> std::optional<std::uint64_t> {
      std::uint64_t out = 0;
      for (std::uint64_t i = 0; i < 32; ++i)
        out |= i >= amount(s[0]) && i < amount(s[0]) + amount(s[1]) ? 1ULL << i : 0;
      return out;
    });
    check("szext." + mode + ".s32 %r1, %r2, %r3", [=](Sources s) -> std::optional<std::uint64_t> {
      const std::uint64_t n = amount(s[1]);
      std::uint64_t out = 0;
      for (std::uint64_t i = 0; i < 32 && n > 0; ++i)
        out |= bit(s[0], static_cast<int>(std::min(i, n - 1))) << i;
      return out;
    });
  }
}

TEST(AluBits, CountingFindingAndFields) {
  for (const auto& [bits, reg] : {std::pair{32, std::string("%r")}, {64, "%rd"}}) {
    const int width = bits;
    const std::string b = ".b" + std::to_string(bits) + " ", from = "%r1, " + reg + "2",
                      same = reg + "1, " + reg + "2";
    check("popc" + b + from, [width](Sources s) -> std::optional<std::uint64_t> {
      std::uint64_t n = 0;
      for (int i = 0; i < width; ++i) n += bit(s[0], i);
      return n;
    });
    check("clz" + b + from, [width](Sources s) -> std::optional<std::uint64_t> {
      std::uint64_t n = 0;
      for (int i = width - 1; i >= 0 && bit(s[0], i) == 0; --i) ++n;
      return n;
    });
    check("brev" + b + same, [width](Sources s) -> std::optional<std::uint64_t> {
      std::uint64_t out = 0;
      for (int i = 0; i < width; ++i) out |= bit(s[0], i) << static_cast<unsigned>(width - 1 - i);
      return out;
    });
    check("bfi" + b + same + ", " + reg + "3, %r4, %r5", [width](Sources s) -> std::optional<std::uint64_t> {
      const std::uint64_t read = width == 64 ? 0xffffffffU : 0xffU;  // as an H200 does
      const auto position = static_cast<std::int64_t>(s[2] & read),
                 length = static_cast<std::int64_t>(s[3] & read);
      std::uint64_t out = s[1];
      for (int i = 0; i < length && position + i < width; ++i) {
        out = (out & ~(1ULL << static_cast<unsigned>(position + i))) |
              bit(s[0], i) << static_cast<unsigned>(position + i);
      }
      return out;
    });
    for (const bool is_signed : {false, true}) {
      const std::string type = (is_signed ? ".s" : ".u") + std::to_string(bits) + " ";
      check("bfe" + type + same + ", %r3, %r4", [=](Sources s) -> std::optional<std::uint64_t> {
        const std::uint64_t read = width == 64 ? 0xffffffffU : 0xffU;
        const auto position = static_cast<std::int64_t>(s[1] & read),
                   length = static_cast<std::int64_t>(s[2] & read);
        const std::uint64_t sign =
            !is_signed || length == 0
                ? 0
                : bit(s[0], static_cast<int>(std::min<std::int64_t>(position + length - 1, width - 1)));
        std::uint64_t out = 0;
        for (int i = 0; i < width; ++i)
          out |= (i < length && position + i < width ? bit(s[0], static_cast<int>(position + i)) : sign)
                 << static_cast<unsigned>(i);
        return out;
      });
      for (const bool shift : {false, true}) {
        check(std::string("bfind") + (shift ? ".shiftamt" : "") + type + from,
              [=](Sources s) -> std::optional<std::uint64_t> {
                const std::uint64_t sign = is_signed ? bit(s[0], width - 1) : 0;
                for (int i = width - 1; i >= 0; --i) {
                  if (bit(s[0], i) != sign) return static_cast<std::uint64_t>(shift ? width - 1 - i : i);
                }
                return 0xffffffffU;
              });
      }
    }
  }
  check("fns.b32 %r1, %r2, %r3, %r4", [](Sources s) -> std::optional<std::uint64_t> {  // the ISA's own loop
    const auto offset = static_cast<std::int32_t>(s[2]);
    if (s[1] > 31) return std::nullopt;
    if (s[2] == 0x80000000U) return 0;  // as an H200 has it
    auto at = static_cast<int>(s[1]);
    if (offset == 0) return bit(s[0], at) != 0 ? s[1] : 0xffffffffU;
    std::int64_t count = (offset < 0 ? -std::int64_t{offset} : offset) - 1;
    for (; at >= 0 && at<32; at += offset> 0 ? 1 : -1) {
      if (bit(s[0], at) == 0) continue;
      if (count-- == 0) return static_cast<std::uint64_t>(at);
    }
    return 0xffffffffU;
  });
}

TEST(AluBits, DotProductsAndPermutation) {
  const auto byte = [](std::uint64_t x, int i, bool is_signed) {
    const auto b = static_cast<std::uint8_t>(x >> static_cast<unsigned>(8 * i));
    return is_signed ? static_cast<std::int64_t>(static_cast<std::int8_t>(b)) : std::int64_t{b};
  };
  const auto half = [](std::uint64_t x, int i, bool is_signed) {
    const auto h = static_cast<std::uint16_t>(x >> static_cast<unsigned>(16 * i));
    return is_signed ? static_cast<std::int64_t>(static_cast<std::int16_t>(h)) : std::int64_t{h};
  };
  for (const bool a : {false, true}) {
    for (const bool b : {false, true}) {
      const std::string types =
          std::string(a ? ".s32" : ".u32") + (b ? ".s32" : ".u32") + " %r1, %r2, %r3, %r4";
      check("dp4a" + types, [=](Sources s) -> std::optional<std::uint64_t> {
        std::int64_t sum = static_cast<std::int64_t>(s[2]);
        for (int i = 0; i < 4; ++i) sum += byte(s[0], i, a) * byte(s[1], i, b);
        return static_cast<std::uint32_t>(sum);
      });
      for (const int high : {0, 2}) {
        check(std::string(high == 0 ? "dp2a.lo" : "dp2a.hi") + types,
              [=](Sources s) -> std::optional<std::uint64_t> {
                std::int64_t sum = static_cast<std::int64_t>(s[2]);
                for (int i = 0; i < 2; ++i) sum += half(s[0], i, a) * byte(s[1], i + high, b);
                return static_cast<std::uint32_t>(sum);
              });
      }
    }
  }
  const auto pick = [](Sources s, const int* bytes) {
    std::uint64_t out = 0;
    for (int i = 0; i < 4; ++i)
      out |= (((s[1] << 32U | s[0]) >> static_cast<unsigned>(8 * bytes[i])) & 0xffU)
             << static_cast<unsigned>(8 * i);
    return out;
  };
  check("prmt.b32 %r1, %r2, %r3, %r4", [](Sources s) -> std::optional<std::uint64_t> {
    std::uint64_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
      const std::uint64_t selector = s[2] >> (4 * i);
      std::uint64_t value = ((s[1] << 32U | s[0]) >> (8 * (selector & 7U))) & 0xffU;
      if ((selector & 8U) != 0) value = value >= 0x80 ? 0xff : 0;
      out |= value << (8 * i);
    }
    return out;
  });
  const auto mode = [&](const char* name, auto index) {
    check(
        std::string("prmt.b32.") + name + " %r1, %r2, %r3, %r4",
        [&, index](Sources s) -> std::optional<std::uint64_t> {
          int bytes[4];
          for (int i = 0; i < 4; ++i) bytes[i] = index(static_cast<int>(s[2] & 3U), i);
          return pick(s, bytes);
        },
        8);
  };
  mode("f4e", [](int c, int i) { return c + i; });
  mode("b4e", [](int c, int i) { return (c - i) & 7; });
  mode("rc8", [](int c, int) { return c; });
  mode("ecl", [](int c, int i) { return std::max(c, i); });
  mode("ecr", [](int c, int i) { return std::min(c, i); });
  mode("rc16", [](int c, int i) { return (c & 1) * 2 + (i & 1); });
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
