// Comparison, selection, and what crosses lanes: shfl, vote, match, redux, movmatrix, mma.
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "alu_check.hpp"

namespace echolo::vgpu::alu_test {
namespace {

using Sources = const std::uint64_t*;

struct Comparison {
  const char* name;
  bool less, equal, greater, unordered;
};
constexpr Comparison kOrdered[] = {{"eq", false, true, false, false}, {"ne", true, false, true, false},
                                   {"lt", true, false, false, false}, {"le", true, true, false, false},
                                   {"gt", false, false, true, false}, {"ge", false, true, true, false}};
constexpr Comparison kFloatOnly[] = {{"equ", false, true, false, true}, {"neu", true, false, true, true},
                                     {"ltu", true, false, false, true}, {"leu", true, true, false, true},
                                     {"gtu", false, false, true, true}, {"geu", false, true, true, true},
                                     {"num", true, true, true, false},  {"nan", false, false, false, true}};
template <typename T>
bool holds(const Comparison& c, T a, T b) {
  return a < b ? c.less : (a > b ? c.greater : (a == b ? c.equal : c.unordered));
}

TEST(AluCompare, AllComparisonsOfAllTypes) {
  for (const Comparison& c : kOrdered) {
    const std::string op = std::string("setp.") + c.name;
    check(
        op + ".u16 %p1, %rs2, %rs3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, s[0], s[1]); }, 8);
    check(
        op + ".s16 %p1, %rs2, %rs3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, static_cast<std::int16_t>(s[0]), static_cast<std::int16_t>(s[1]));
        },
        8);
    check(
        op + ".u32 %p1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, s[0], s[1]); }, 8);
    check(
        op + ".s32 %p1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, static_cast<std::int32_t>(s[0]), static_cast<std::int32_t>(s[1]));
        },
        8);
    check(
        op + ".u64 %p1, %rd2, %rd3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, s[0], s[1]); }, 8);
    check(
        op + ".s64 %p1, %rd2, %rd3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, static_cast<std::int64_t>(s[0]), static_cast<std::int64_t>(s[1]));
        },
        8);
  }
  const auto flushed = [](std::uint64_t bits) { return (bits & 0x7f800000U) == 0 ? 0.0F : as_f32(bits); };
  const auto floats = [&](const Comparison& c) {
    const std::string op = std::string("setp.") + c.name;
    check(
        op + ".f32 %p1, %f2, %f3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, as_f32(s[0]), as_f32(s[1])); }, 24);
    check(
        op + ".ftz.f32 %p1, %f2, %f3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, flushed(s[0]), flushed(s[1])); },
        24);
    check(
        op + ".f64 %p1, %fd2, %fd3",
        [&](Sources s) -> std::optional<std::uint64_t> { return holds(c, as_f64(s[0]), as_f64(s[1])); }, 24);
    check(
        op + ".f16 %p1, %rs2, %rs3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, from_format(s[0], 5, 10), from_format(s[1], 5, 10));
        },
        24);
    check(
        op + ".bf16 %p1, %rs2, %rs3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, from_format(s[0], 8, 7), from_format(s[1], 8, 7));
        },
        24);
    check(
        std::string("set.") + c.name + ".u32.f32 %r1, %f2, %f3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, as_f32(s[0]), as_f32(s[1])) ? 0xffffffffU : 0;
        },
        8);
    check(
        std::string("set.") + c.name + ".f32.f32 %f1, %f2, %f3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          return holds(c, as_f32(s[0]), as_f32(s[1])) ? 0x3f800000U : 0;
        },
        8);
    check(
        std::string("set.") + c.name + ".f16x2.f16x2 %r1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          std::uint64_t out = 0;
          for (unsigned half = 0; half < 32; half += 16) {
            if (holds(c, from_format((s[0] >> half) & 0xffffU, 5, 10),
                      from_format((s[1] >> half) & 0xffffU, 5, 10)))
              out |= 0x3c00ULL << half;
          }
          return out;
        },
        8);
    check(
        std::string("set.") + c.name + ".u32.bf16x2 %r1, %r2, %r3",
        [&](Sources s) -> std::optional<std::uint64_t> {
          std::uint64_t out = 0;
          for (unsigned half = 0; half < 32; half += 16) {
            if (holds(c, from_format((s[0] >> half) & 0xffffU, 8, 7),
                      from_format((s[1] >> half) & 0xffffU, 8, 7)))
              out |= 0xffffULL << half;
          }
          return out;
        },
        8);
  };
  for (const Comparison& c : kOrdered) floats(c);
  for (const Comparison& c : kFloatOnly) floats(c);
}

TEST(AluCompare, PairsOfPredicatesAndBooleanOperations) {
  for (const auto& [name, f] :
       {std::pair<const char*, bool (*)(bool, bool)>{"and", [](bool a, bool b) { return a && b; }},
        {"or", [](bool a, bool b) { return a || b; }},
        {"xor", [](bool a, bool b) { return a != b; }}}) {
    const auto op = f;
    check(
        std::string("setp.lt.") + name + ".s32 %p1, %r2, %r3, %p4",
        [op](Sources s) -> std::optional<std::uint64_t> {
          return op(static_cast<std::int32_t>(s[0]) < static_cast<std::int32_t>(s[1]), s[2] != 0);
        },
        8);
    check(
        std::string("setp.lt.") + name + ".s32 _|%p1, %r2, %r3, !%p4",
        [op](Sources s) -> std::optional<std::uint64_t> {
          return op(static_cast<std::int32_t>(s[0]) >= static_cast<std::int32_t>(s[1]), s[2] == 0);
        },
        8);
    check(
        std::string("set.ge.") + name + ".s32.u32 %r1, %r2, %r3, !%p4",
        [op](Sources s) -> std::optional<std::uint64_t> {
          return op(s[0] >= s[1], s[2] == 0) ? 0xffffffffU : 0;
        },
        8);
  }
  check(
      "setp.eq.f16x2 %p1|_, %r2, %r3",
      [](Sources s) -> std::optional<std::uint64_t> {
        return from_format(s[0] & 0xffffU, 5, 10) == from_format(s[1] & 0xffffU, 5, 10);
      },
      8);
  check(
      "setp.lt.f16x2 _|%p1, %r2, %r3",
      [](Sources s) -> std::optional<std::uint64_t> {
        return from_format(s[0] >> 16U, 5, 10) < from_format(s[1] >> 16U, 5, 10);
      },
      8);
  check(
      "selp.b16 %rs1, %rs2, %rs3, %p4",
      [](Sources s) -> std::optional<std::uint64_t> { return s[2] != 0 ? s[0] : s[1]; }, 4);
  check(
      "selp.f32 %f1, %f2, %f3, %p4",
      [](Sources s) -> std::optional<std::uint64_t> { return s[2] != 0 ? s[0] : s[1]; }, 4);
  check(
      "selp.b64 %rd1, %rd2, %rd3, %p4",
      [](Sources s) -> std::optional<std::uint64_t> { return s[2] != 0 ? s[0] : s[1]; }, 4);
  check(
      "slct.u32.s32 %r1, %r2, %r3, %r4",
      [](Sources s) -> std::optional<std::uint64_t> {
        return static_cast<std::int32_t>(s[2]) >= 0 ? s[0] : s[1];
      },
      4);
  check(
      "slct.b64.f32 %rd1, %rd2, %rd3, %f4",
      [](Sources s) -> std::optional<std::uint64_t> { return as_f32(s[2]) >= 0 ? s[0] : s[1]; }, 8);
  check(
      "and.pred %p1, %p2, %p3", [](Sources s) -> std::optional<std::uint64_t> { return s[0] & s[1]; }, 4);
  check(
      "xor.pred %p1, %p2, %p3", [](Sources s) -> std::optional<std::uint64_t> { return s[0] ^ s[1]; }, 4);
  check(
      "not.pred %p1, %p2", [](Sources s) -> std::optional<std::uint64_t> { return s[0] ^ 1U; }, 4);
  check(
      "lop3.or.b32 _|%p1, %r2, %r3, %r4, 0x80, %p5",
      [](Sources s) -> std::optional<std::uint64_t> { return (s[0] & s[1] & s[2]) != 0 || s[3] != 0; }, 8);
  check(
      "testp.subnormal.f32 %p1, %f2",
      [](Sources s) -> std::optional<std::uint64_t> { return std::fpclassify(as_f32(s[0])) == FP_SUBNORMAL; },
      8);
  check(
      "testp.number.f64 %p1, %fd2",
      [](Sources s) -> std::optional<std::uint64_t> { return !std::isnan(as_f64(s[0])); }, 8);
  check(
      "testp.normal.f32 %p1, %f2",
      [](Sources s) -> std::optional<std::uint64_t> {
        return std::isnormal(as_f32(s[0])) || as_f32(s[0]) == 0.0F;
      },
      8);
}

// ---- Across lanes
// -------------------------------------------------------------------------------------------------

TEST(AluShuffle, AllModesWithSegmentsAndClamps) {
  Registers r;
  Values random(32, false, 3);
  for (const std::string& mode :
       {std::string("up"), std::string("down"), std::string("bfly"), std::string("idx")}) {
    const Prepared shuffle("shfl.sync." + mode + ".b32 %r1|%p1, %r2, %r3, %r4, -1");
    ASSERT_TRUE(shuffle.ok()) << shuffle.error();
    EXPECT_EQ(shuffle.plan().kind, InstKind::kCrossLane);
    EXPECT_EQ(shuffle.plan().operands.at(static_cast<std::size_t>(shuffle.plan().membermask)).value[0],
              0xffffffffU);
    for (int round = 0; round < 40; ++round) {
      const std::uint64_t width = 1ULL << (random.random() % 6), clamp = mode == "up" ? 0 : 31;
      for (int lane = 0; lane < kWarpSize; ++lane) {
        r.set("%r2", lane, random.random());
        r.set("%r3", lane, random.random() % 32);
        r.set("%r4", lane, (32 - width) << 8U | clamp);
      }
      shuffle.run(r);
      for (int lane = 0; lane < kWarpSize; ++lane) {
        const int w = static_cast<int>(width), b = static_cast<int>(r.get("%r3", lane)), start = lane / w * w;
        int from = mode == "up" ? lane - b
                                : (mode == "down" ? lane + b : (mode == "bfly" ? lane ^ b : start + b % w));
        const bool inside = mode == "up" ? from >= start : from < start + w;
        if (!inside) from = lane;
        ASSERT_EQ(r.get("%p1", lane), inside ? 1U : 0U) << mode << " " << width << " lane " << lane;
        ASSERT_EQ(r.get("%r1", lane), r.get("%r2", from)) << mode << " " << width << " lane " << lane;
      }
    }
  }
}

TEST(AluShuffle, VotesMatchesAndReductions) {
  Registers r;
  Values random(32, false, 4);
  const Prepared ballot("vote.sync.ballot.b32 %r1, !%p1, %r9"), all("vote.sync.all.pred %p2, %p1, %r9"),
      any("vote.sync.any.pred %p3, %p1, %r9"), uni("vote.sync.uni.pred %p4, %p1, %r9");
  const Prepared match_any("match.any.sync.b32 %r3, %r2, %r9"),
      match_all("match.all.sync.b32 %r4|%p5, %r2, %r9");
  const Prepared add("redux.sync.add.s32 %r5, %r2, %r9"), least("redux.sync.min.s32 %r6, %r2, %r9"),
      most("redux.sync.max.u32 %r7, %r2, %r9"), exclusive("redux.sync.xor.b32 %r8, %r2, %r9");
  for (int round = 0; round < 60; ++round) {
    const auto mask = round % 3 == 0 ? kAllLanes : static_cast<std::uint32_t>(random.random()) | 1U;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      r.set("%p1", lane, round % 4 == 1 ? 1 : (round % 4 == 2 ? 0 : random.random() & 1U));
      r.set("%r2", lane, round % 5 == 0 ? 7 : random.random() % 4 * 0x7fffffff);
    }
    for (const Prepared* instruction :
         {&ballot, &all, &any, &uni, &match_any, &match_all, &add, &least, &most, &exclusive}) {
      ASSERT_TRUE(instruction->ok()) << instruction->error();
      instruction->run(r, mask);
    }
    std::uint32_t yes = 0, sum = 0, differ = 0, largest = 0;
    std::int32_t smallest = 0x7fffffff;
    bool equal = true;
    int first = -1;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (((mask >> static_cast<unsigned>(lane)) & 1U) == 0) continue;
      if (first < 0) first = lane;
      const auto value = static_cast<std::uint32_t>(r.get("%r2", lane));
      if (r.get("%p1", lane) != 0) yes |= 1U << static_cast<unsigned>(lane);
      sum += value;
      differ ^= value;
      largest = std::max(largest, value);
      smallest = std::min(smallest, static_cast<std::int32_t>(value));
      equal = equal && value == r.get("%r2", first);
    }
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if (((mask >> static_cast<unsigned>(lane)) & 1U) == 0) continue;
      ASSERT_EQ(r.get("%r1", lane), mask & ~yes);
      ASSERT_EQ(r.get("%p2", lane), yes == mask ? 1U : 0U);
      ASSERT_EQ(r.get("%p3", lane), yes != 0 ? 1U : 0U);
      ASSERT_EQ(r.get("%p4", lane), yes == 0 || yes == mask ? 1U : 0U);
      std::uint32_t same = 0;
      for (int other = 0; other < kWarpSize; ++other) {
        if (((mask >> static_cast<unsigned>(other)) & 1U) != 0 && r.get("%r2", other) == r.get("%r2", lane))
          same |= 1U << static_cast<unsigned>(other);
      }
      ASSERT_EQ(r.get("%r3", lane), same);
      ASSERT_EQ(r.get("%r4", lane), equal ? mask : 0U);
      ASSERT_EQ(r.get("%p5", lane), equal ? 1U : 0U);
      ASSERT_EQ(r.get("%r5", lane), sum);
      ASSERT_EQ(static_cast<std::int32_t>(r.get("%r6", lane)), smallest);
      ASSERT_EQ(r.get("%r7", lane), largest);
      ASSERT_EQ(r.get("%r8", lane), differ);
    }
  }
}

// ---- Matrices
// -----------------------------------------------------------------------------------------------------

// Where the ISA's tables (9.7.14.5) put element (row, column) of each matrix: which lane, register and part
// of it.
struct Spot {
  int lane, reg, part;
};
Spot a_spot(int m, int bits, int row, int k) {
  const int e = bits >= 32 ? 1 : 32 / bits;
  const int high = k / (4 * e);
  return {row % 8 * 4 + k % (4 * e) / e, m == 16 ? 2 * high + row / 8 : high, k % e};
}
Spot b_spot(int bits, int k, int column) {
  const int e = bits >= 32 ? 1 : 32 / bits;
  return {column * 4 + k % (4 * e) / e, k / (4 * e), k % e};
}
Spot c_spot(int bits, int row, int column) {
  const int lane = row % 8 * 4 + column / 2;
  return bits == 16 ? Spot{lane, row / 8, column % 2} : Spot{lane, row / 8 * 2 + column % 2, 0};
}

struct MmaCase {
  const char* shape;
  int m, k;
  const char *d, *ab;
  int ab_bits, d_bits;
  int n_a, n_b, n_c;
};
constexpr MmaCase kMma[] = {
    {"m16n8k8", 16, 8, "f32", "bf16", 16, 32, 2, 1, 4},  {"m16n8k16", 16, 16, "f32", "bf16", 16, 32, 4, 2, 4},
    {"m16n8k8", 16, 8, "f32", "f16", 16, 32, 2, 1, 4},   {"m16n8k16", 16, 16, "f32", "f16", 16, 32, 4, 2, 4},
    {"m16n8k8", 16, 8, "f16", "f16", 16, 16, 2, 1, 2},   {"m16n8k16", 16, 16, "f16", "f16", 16, 16, 4, 2, 2},
    {"m16n8k4", 16, 4, "f32", "tf32", 32, 32, 2, 1, 4},  {"m16n8k8", 16, 8, "f32", "tf32", 32, 32, 4, 2, 4},
    {"m8n8k4", 8, 4, "f64", "f64", 64, 64, 1, 1, 2},     {"m16n8k4", 16, 4, "f64", "f64", 64, 64, 2, 1, 4},
    {"m16n8k8", 16, 8, "f64", "f64", 64, 64, 4, 2, 4},   {"m16n8k16", 16, 16, "f64", "f64", 64, 64, 8, 4, 4},
    {"m16n8k32", 16, 32, "s32", "s8", 8, 32, 4, 2, 4},   {"m16n8k16", 16, 16, "s32", "u8", 8, 32, 2, 1, 4},
    {"m8n8k16", 8, 16, "s32", "s8", 8, 32, 1, 1, 2},     {"m16n8k32", 16, 32, "f32", "e5m2", 8, 32, 4, 2, 4},
    {"m16n8k32", 16, 32, "f32", "e4m3", 8, 32, 4, 2, 4},
};

std::string fragment(const std::string& reg, int first, int n) {
  std::string out = "{";
  for (int i = 0; i < n; ++i) out += (i == 0 ? "" : ", ") + reg + std::to_string(first + i);
  return out + "}";
}

class Matrix {
 public:
  Matrix(Registers& registers, std::string reg, int first, int bits)
      : registers_(registers), reg_(std::move(reg)), first_(first), bits_(bits) {}
  std::uint64_t get(Spot spot) const {
    const std::uint64_t word = registers_.get(name(spot), spot.lane);
    return bits_ >= 32 ? word
                       : (word >> static_cast<unsigned>(bits_ * spot.part)) &
                             ((1ULL << static_cast<unsigned>(bits_)) - 1);
  }

 private:
  std::string name(Spot spot) const { return reg_ + std::to_string(first_ + spot.reg); }
  Registers& registers_;
  std::string reg_;
  int first_, bits_;
};

double number(const std::string& type, std::uint64_t bits) {
  if (type == "f16") return static_cast<double>(from_format(bits, 5, 10));
  if (type == "bf16") return static_cast<double>(from_format(bits, 8, 7));
  if (type == "tf32") return as_f32(bits & 0xffffe000U);
  if (type == "f32") return as_f32(bits);
  if (type == "f64") return as_f64(bits);
  if (type == "e5m2") return static_cast<double>(from_format(bits, 5, 2));
  if (type == "e4m3")
    return (bits & 0x7fU) == 0x7fU
               ? NAN
               : static_cast<double>(from_format((bits & 0x80U) << 1U | (bits & 0x7fU), 5, 3)) * 256;
  if (type == "s8") return static_cast<std::int8_t>(bits);
  return static_cast<std::uint8_t>(bits);
}

void check_mma(const MmaCase& c, std::string_view target) {
  // %r0 ... hold D, A, B and C one after the other; %rd for f64, which has up to 20 registers.
  const bool f64 = c.d_bits == 64, integer = std::string(c.d) == "s32";
  const std::string type = c.d, ab = c.ab, reg = "%r";
  const int a = c.n_c, b = a + c.n_a, acc = b + c.n_b;
  const std::string r = f64 ? "%rd" : reg;
  const std::string text = std::string("mma.sync.aligned.") + c.shape + ".row.col." + type + "." + ab + "." +
                           ab + "." + type + " " + fragment(r, 0, c.n_c) + ", " + fragment(r, a, c.n_a) +
                           ", " + fragment(r, b, c.n_b) + ", " + fragment(r, acc, c.n_c);
  const Prepared mma(text);
  ASSERT_TRUE(mma.ok()) << text << ": " << mma.error();
  EXPECT_EQ(mma.plan().kind, InstKind::kCrossLane);
  Registers registers;
  Values random(32, false, 77);
  for (int round = 0; round < 12; ++round) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int i = 0; i < acc + c.n_c; ++i) {
        std::uint64_t bits = random.random();
        const bool is_c = i >= acc;
        const auto moderate = [&] {
          return static_cast<double>(static_cast<std::int64_t>(random.random() >> 40U) - (1 << 23)) * 0x1p-22;
        };
        // The last rounds have any bits at all: infinities, NaN, subnormals.
        if (round < 9 && !integer) {
          if (f64)
            bits = bits_of(moderate());
          else if ((is_c ? type : ab) == "f32" || ab == "tf32")
            bits = bits_of(static_cast<float>(moderate()));
          else if ((is_c ? type : ab) == "f16")
            bits = round_to_format(static_cast<Quad>(moderate()), 5, 10) << 16U |
                   round_to_format(static_cast<Quad>(moderate()), 5, 10);
          else if (ab == "bf16")
            bits = round_to_format(static_cast<Quad>(moderate()), 8, 7) << 16U |
                   round_to_format(static_cast<Quad>(moderate()), 8, 7);
        }
        registers.set(r + std::to_string(i), lane, bits);
      }
    }
    const Registers before = registers;
    const std::uint32_t mask = round % 4 == 3 ? 0x7ffffff3U : kAllLanes;
    mma.run(registers, mask);
    Registers was = before;
    const Matrix am(was, r, a, c.ab_bits), bm(was, r, b, c.ab_bits), cm(was, r, acc, c.d_bits),
        dm(registers, r, 0, c.d_bits), old(was, r, 0, c.d_bits);
    for (int row = 0; row < c.m; ++row) {
      for (int column = 0; column < 8; ++column) {
        const Spot spot = c_spot(c.d_bits, row, column);
        const std::uint64_t got = dm.get(spot);
        if (((mask >> static_cast<unsigned>(spot.lane)) & 1U) == 0) {
          ASSERT_EQ(got, old.get(spot));
          continue;
        }
        std::uint64_t want = 0;
        if (integer) {
          auto sum = static_cast<std::int64_t>(static_cast<std::int32_t>(cm.get(spot)));
          for (int k = 0; k < c.k; ++k)
            sum += static_cast<std::int64_t>(number(ab, am.get(a_spot(c.m, c.ab_bits, row, k))) *
                                             number(ab, bm.get(b_spot(c.ab_bits, k, column))));
          want = static_cast<std::uint32_t>(sum);
        } else if (f64) {
          double sum = as_f64(cm.get(spot));
          for (int k = 0; k < c.k; ++k)
            sum =
                std::fma(as_f64(am.get(a_spot(c.m, 64, row, k))), as_f64(bm.get(b_spot(64, k, column))), sum);
          want =
              std::isnan(sum) && std::isnan(as_f64(got)) ? got : bits_of(sum);  // which NaN: golden vectors
        } else {
          // Cut off 25 bits below the largest term: within so much of the exact sum. The bits themselves are
          // among the golden vectors.
          double sum = number(type, cm.get(spot)), size = std::fabs(sum);
          for (int k = 0; k < c.k; ++k) {
            const double product = number(ab, am.get(a_spot(c.m, c.ab_bits, row, k))) *
                                   number(ab, bm.get(b_spot(c.ab_bits, k, column)));
            sum += product;
            size += std::fabs(product);
          }
          const double value = number(type, got);
          if (!std::isfinite(sum)) {
            EXPECT_EQ(std::isnan(sum), std::isnan(value)) << text << " on " << target;
            EXPECT_EQ(std::isinf(sum), std::isinf(value)) << text << " on " << target;
          } else if (size < (c.d_bits == 16 ? 60000.0 : 1e38)) {
            const double error =
                size * 0x1p-19 + (c.d_bits == 16 ? std::fabs(sum) * 0x1p-10 + 0x1p-24 : 0x1p-126);
            EXPECT_LE(std::fabs(value - sum), error) << text << " on " << target << ", row " << row
                                                     << ", column " << column << ", round " << round;
          }
          continue;
        }
        ASSERT_EQ(got, want) << text << " on " << target << ", row " << row << ", column " << column
                             << ", round " << round;
      }
    }
  }
}

TEST(AluMma, AgreesWithTheLayoutsOfTheIsa) {
  for (const std::string_view target : alu::simd_targets()) {
    ASSERT_TRUE(alu::set_simd_target(target).ok());
    for (const MmaCase& c : kMma) check_mma(c, target);
  }
  ASSERT_TRUE(alu::set_simd_target("").ok());
}

TEST(AluMma, AccumulatesInPlaceAndInAnyOrderOfRegisters) {
  const std::string head = "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 ",
                    ab = ", {%r0, %r1, %r2, %r3}, {%r4, %r5}, ";
  const Prepared apart(head + "{%r10, %r11, %r12, %r13}" + ab + "{%r6, %r7, %r8, %r9}");
  const Prepared in_place(head + "{%r6, %r7, %r8, %r9}" + ab + "{%r6, %r7, %r8, %r9}");
  const Prepared crossed(head + "{%r8, %r9, %r6, %r7}" + ab + "{%r6, %r7, %r8, %r9}");
  Registers start;
  Values random(32, true, 8);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < 10; ++i) start.set("%r" + std::to_string(i), lane, random.next());
  }
  Registers one = start, two = start, three = start;
  apart.run(one);
  in_place.run(two);
  crossed.run(three);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < 4; ++i) {
      const std::uint64_t want = one.get("%r" + std::to_string(10 + i), lane);
      EXPECT_EQ(two.get("%r" + std::to_string(6 + i), lane), want);
      EXPECT_EQ(three.get("%r" + std::to_string(6 + (i + 2) % 4), lane), want);
    }
  }
}

TEST(AluMma, RefusesWhatItDoesNotHave) {
  const Prepared mixed(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32 {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%r8, "
      "%r9}, {%r0, %r1, %r2, %r3}");
  EXPECT_NE(mixed.error().find("mma.sync.aligned.m16n8k16.row.col.f32.f16.bf16.f32"), std::string::npos)
      << mixed.error();
}

TEST(AluMma, MovmatrixTransposes) {
  Registers r;
  for (int lane = 0; lane < kWarpSize; ++lane)
    r.set("%r2", lane, static_cast<std::uint64_t>((lane * 2 + 1) << 16 | lane * 2));
  Prepared("movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2").run(r);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int row = lane / 4, column = lane % 4 * 2;
    EXPECT_EQ(r.get("%r1", lane),
              static_cast<std::uint64_t>(((column + 1) * 8 + row) << 16 | (column * 8 + row)));
  }
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
