// atom and red: every operation, with the values at the edges.
#include <bit>
#include <cmath>

#include "memory_harness.hpp"
#include "vgpu/memory/half.hpp"

namespace echolo::vgpu {
namespace {

// Runs one atomic by lane 0 on a word that holds `start`; gives what is there then, and checks the returned
// value.
template <typename T>
T after(const std::string& operation, T start, T b, T c = 0, bool shared = false) {
  MemoryHarness h(1);
  const std::string r = sizeof(T) == 2 ? "%h" : sizeof(T) == 4 ? "%r" : "%rd";
  const std::string space = shared ? "shared" : "global";
  const bool cas = operation.rfind("cas", 0) == 0;
  h.assemble("st." + space + ".b" + std::to_string(sizeof(T) * 8) + " [%rd1], " + r + "10;\n" + "atom." +
             space + "." + operation + " " + r + "11, [%rd1], " + r + "12" + (cas ? ", " + r + "13" : "") +
             ";\nld." + space + ".b" + std::to_string(sizeof(T) * 8) + " " + r + "14, [%rd1];");
  h.set<std::uint64_t>("%rd1", shared ? 64 : h.device(64));
  h.set<T>(r + "10", start);
  h.set<T>(r + "12", b);
  h.set<T>(r + "13", c);
  EXPECT_EQ(h.execute(1), MemOutcome::kDone);
  EXPECT_TRUE(h.log.empty());
  EXPECT_EQ(h.reg<T>(r + "11")[0], start);
  return h.reg<T>(r + "14")[0];
}

using U32 = std::uint32_t;
using U64 = std::uint64_t;
using U16 = std::uint16_t;

TEST(MemoryAtomics, Integers) {
  EXPECT_EQ(after<U32>("add.u32", 0xffffffffU, 2), 1U);
  EXPECT_EQ(after<U32>("add.s32", 0x7fffffffU, 1), 0x80000000U);
  EXPECT_EQ(after<U64>("add.u64", ~U64{0}, 3), 2U);
  EXPECT_EQ(after<U32>("min.u32", 5, 0xffffffffU), 5U);
  EXPECT_EQ(after<U32>("min.s32", 5, 0xffffffffU), 0xffffffffU);
  EXPECT_EQ(after<U32>("max.u32", 5, 0xffffffffU), 0xffffffffU);
  EXPECT_EQ(after<U32>("max.s32", 5, 0xffffffffU), 5U);
  EXPECT_EQ(after<U64>("max.s64", 5, ~U64{0}), 5U);
  EXPECT_EQ(after<U64>("min.u64", 5, ~U64{0}), 5U);
  EXPECT_EQ(after<U32>("and.b32", 0xf0f0f0f0U, 0xff00ff00U), 0xf000f000U);
  EXPECT_EQ(after<U64>("or.b64", 1, U64{1} << 63U), (U64{1} << 63U) + 1);
  EXPECT_EQ(after<U32>("xor.b32", 0xffU, 0xfU), 0xf0U);
  EXPECT_EQ(after<U64>("exch.b64", 1, 2), 2U);
  EXPECT_EQ(after<U32>("cas.b32", 7, 7, 9), 9U);
  EXPECT_EQ(after<U32>("cas.b32", 7, 8, 9), 7U);
  EXPECT_EQ(after<U16>("cas.b16", 7, 7, 9), 9U);
  EXPECT_EQ(after<U32>("inc.u32", 3, 5), 4U);
  EXPECT_EQ(after<U32>("inc.u32", 5, 5), 0U);
  EXPECT_EQ(after<U32>("inc.u32", 6, 5), 0U);
  EXPECT_EQ(after<U32>("dec.u32", 3, 5), 2U);
  EXPECT_EQ(after<U32>("dec.u32", 0, 5), 5U);
  EXPECT_EQ(after<U32>("dec.u32", 6, 5), 5U);
}

U32 bits(float value) { return std::bit_cast<U32>(value); }

TEST(MemoryAtomics, SinglePrecisionFlushesOnGlobalMemoryOnly) {
  EXPECT_EQ(after<U32>("add.f32", bits(1.5F), bits(2.25F)), bits(3.75F));
  EXPECT_EQ(after<U32>("add.f32", bits(INFINITY), bits(-INFINITY)), 0x7fffffffU);
  EXPECT_EQ(after<U32>("add.f32", 1, 1), 0U);
  EXPECT_EQ(after<U32>("add.f32", 0x80000001U, 0x80000001U), 0x80000000U);
  EXPECT_EQ(after<U32>("add.f32", 1, 1, 0, true), 2U);
  EXPECT_EQ(after<U32>("add.f32", 0x00800001U, 0x80800000U), 0U);
  EXPECT_EQ(after<U32>("add.f32", 0x00800001U, 0x80800000U, 0, true), 1U);
}

TEST(MemoryAtomics, DoubleAndHalf) {
  EXPECT_EQ(after<U64>("add.f64", std::bit_cast<U64>(0.5), std::bit_cast<U64>(0.25)),
            std::bit_cast<U64>(0.75));
  EXPECT_EQ(after<U64>("add.f64", 0x7ff0000000000000ULL, 0xfff0000000000000ULL), 0xfff8000000000000ULL);
  EXPECT_EQ(after<U64>("add.f64", 1, 0x7ff0000000000001ULL), 0x7ff8000000000001ULL);
  EXPECT_EQ(after<U16>("add.noftz.f16", 0x3c00, 0x3c00), 0x4000);
  EXPECT_EQ(after<U16>("add.noftz.f16", 0x7bff, 0x7bff), 0x7c00);
  EXPECT_EQ(after<U16>("add.noftz.f16", 0x0001, 0x0001), 0x0002);
  EXPECT_EQ(after<U16>("add.noftz.bf16", 0x3f80, 0x3f80), 0x4000);
  EXPECT_EQ(after<U16>("add.noftz.bf16", 0x3f80, 0x3b80), 0x3f80);  // 1 + 2^-8: a tie, to even
  EXPECT_EQ(after<U16>("add.noftz.bf16", 0x3f81, 0x3b80), 0x3f82);
  EXPECT_EQ(after<U32>("add.noftz.f16x2", 0x3c004000U, 0x3c003c00U), 0x40004200U);
  EXPECT_EQ(after<U32>("add.noftz.bf16x2", 0x3f803f80U, 0x3f807f80U), 0x40007f80U);
}

TEST(MemoryAtomics, HalfConversionsAreExactAndRoundToEven) {
  for (U32 i = 0; i < 0x10000; ++i) {
    const auto half = static_cast<U16>(i);
    const float wide = f16_to_float(half);
    if (wide != wide) continue;
    ASSERT_EQ(float_to_f16(wide), half);
  }
  EXPECT_EQ(float_to_f16(65519.99F), 0x7bff);
  EXPECT_EQ(float_to_f16(65520.0F), 0x7c00);
  EXPECT_EQ(float_to_f16(0x1p-25F), 0x0000);
  EXPECT_EQ(float_to_f16(0x1.000002p-25F), 0x0001);
  EXPECT_EQ(float_to_f16(0x1.8p-24F), 0x0002);
  EXPECT_EQ(float_to_f16(0x1.ffep-15F), 0x0400);
  EXPECT_EQ(float_to_bf16(INFINITY), 0x7f80);
}

TEST(MemoryAtomics, LanesActInOrder) {
  MemoryHarness h(1);
  const U64 word = h.device(64);
  const U32 start = 100;
  h.fill(word, &start, 4);
  h.assemble("atom.global.add.u32 %r1, [%rd1], %r2;\nred.release.gpu.global.add.u32 [%rd1], 1;");
  h.set<U64>("%rd1", word);
  h.set<U32>("%r2", 1, 1);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  U32 expected = 100;
  for (U32 i = 0; i < 32; ++i) {
    EXPECT_EQ(h.reg<U32>("%r1")[i], expected);
    expected += i + 1;
  }
  U32 value = 0;
  ASSERT_TRUE(h.memory->read(word, &value, 4, {}));
  EXPECT_EQ(value, expected + 32);
  ASSERT_TRUE(h.memory->last_writer(word));
  EXPECT_EQ(h.memory->last_writer(word)->value, expected + 32);
  EXPECT_EQ(h.memory->last_writer(word)->site.role, "atomic");
}

TEST(MemoryAtomics, VectorsAnd128Bits) {
  MemoryHarness h(1);
  const U64 at = h.device(64);
  const std::vector<std::uint8_t> zeros(64, 0);
  h.fill(at, zeros.data(), 64);
  h.assemble(
      "atom.global.v4.f32.add {%r1,%r2,%r3,%r4}, [%rd1], {%r5,%r6,%r5,%r6};\nred.global.v2.f32.add [%rd1], "
      "{%r5,%r6};\n"
      "atom.global.b128.exch %q1, [%rd1+16], %q2;\natom.global.b128.cas %q3, [%rd1+16], %q2, %q4;");
  h.set<U64>("%rd1", at);
  h.set<U32>("%r5", bits(1));
  h.set<U32>("%r6", bits(2));
  for (int half = 0; half < 2; ++half) h.reg<U64>("%q2")[32 * half] = 5 + static_cast<U64>(half);
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);
  float values[4];
  ASSERT_TRUE(h.memory->read(at, values, 16, {}));
  EXPECT_EQ(values[0], 2);
  EXPECT_EQ(values[1], 4);
  EXPECT_EQ(values[2], 1);
  EXPECT_EQ(values[3], 2);
  EXPECT_EQ(h.reg<U64>("%q3")[32], 6U);
  U64 wide[2];
  ASSERT_TRUE(h.memory->read(at + 16, wide, 16, {}));
  EXPECT_EQ(wide[0] + wide[1], 0U);
}

TEST(MemoryAtomics, FailingCompareAndSwapChangesNothing) {
  MemoryHarness h(1);
  const U64 word = h.device(64);
  const U32 start = 3;
  h.fill(word, &start, 4);
  h.assemble("atom.acquire.sys.global.cas.b32 %r1, [%rd1], 0, 1;");
  h.set<U64>("%rd1", word);
  const U64 before = h.memory->changes();
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_EQ(h.memory->changes(), before);
  EXPECT_EQ(h.reg<U32>("%r1")[5], 3U);
}

TEST(MemoryAtomics, RefusalsNameTheForm) {
  MemoryHarness h(1);
  EXPECT_EQ(h.refusal("tld4.r.2d.v4.f32.f32 {%r1,%r2,%r3,%r4}, [%rd1, {%r5,%r6}];"),
            "tld4.r.2d.v4.f32.f32: the virtual node does not execute this instruction");
  EXPECT_EQ(
      h.refusal(
          "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%r1], [%rd1, "
          "{%r2, %r3, %r4}], [%r5], {%h1};"),
      "cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes: only tile mode is "
      "executed by the virtual node");
}

}  // namespace
}  // namespace echolo::vgpu
