// Video instructions: values worked out by hand from PTX ISA 9.7.18; the whole family is in the golden
// vectors.
#include <gtest/gtest.h>

#include "alu_harness.hpp"

namespace echolo::vgpu::alu_test {
namespace {

std::uint64_t run(const std::string& form, std::uint32_t a, std::uint32_t b, std::uint32_t c = 0) {
  const Prepared instruction(form);
  EXPECT_TRUE(instruction.ok()) << form << ": " << instruction.error();
  if (!instruction.ok()) return 0;
  Registers registers;
  registers.set("%r0", 5, 0xdeadbeef);
  registers.set("%r1", 5, a);
  registers.set("%r2", 5, b);
  registers.set("%r3", 5, c);
  instruction.run(registers, 1U << 5U);
  EXPECT_EQ(registers.get("%r0", 4), 0U);  // inactive lanes keep what they hold
  return registers.get("%r0", 5);
}

TEST(AluVideo, Scalar) {
  EXPECT_EQ(run("vadd.s32.s32.s32 %r0, %r1.b0, %r2.h1", 0x12345680, 0x8001ffff),
            0xffff7f81U);  // -128 + -32767
  EXPECT_EQ(run("vadd.u32.u32.u32.sat %r0, %r1, %r2", 0xffffffff, 2), 0xffffffffU);
  EXPECT_EQ(run("vsub.s32.u32.u32.sat %r0, %r1, %r2", 0, 0xffffffff), 0x80000000U);
  EXPECT_EQ(run("vabsdiff.u32.u32.u32.add %r0, %r1, %r2, %r3", 3, 10, 100), 107U);
  EXPECT_EQ(run("vmin.s32.s32.s32.max %r0, %r1, %r2, %r3", 0xfffffffe, 4, 7), 7U);
  EXPECT_EQ(run("vmax.u32.s32.u32.sat %r0.b2, %r1, %r2.b1, %r3", 0x00000200, 0x0000ff00, 0x11223344),
            0x11ff3344U);
  EXPECT_EQ(run("vshl.u32.u32.u32.clamp %r0, %r1, %r2", 1, 40), 0U);
  EXPECT_EQ(run("vshl.u32.u32.u32.wrap %r0, %r1, %r2", 1, 40), 0x100U);
  EXPECT_EQ(run("vshr.s32.s32.u32.clamp %r0, %r1, %r2", 0x80000000, 31), 0xffffffffU);
  EXPECT_EQ(run("vset.u32.s32.lt %r0, %r1, %r2", 5, 0xffffffff), 0U);
}

TEST(AluVideo, MultiplyAdd) {
  EXPECT_EQ(run("vmad.s32.s32.s32 %r0, %r1.b0, %r2.b1, -%r3", 0xff, 0x0300, 10), 0xfffffff3U);  // -1 * 3 - 10
  EXPECT_EQ(run("vmad.u32.u32.u32.po.shr7 %r0, %r1, %r2, %r3", 100, 50, 119), 40U);  // (5000+119+1) >> 7
  EXPECT_EQ(run("vmad.u32.u32.u32.sat %r0, %r1, %r2, %r3", 0x10000, 0x10000, 1), 0xffffffffU);
}

TEST(AluVideo, SeveralLanes) {
  EXPECT_EQ(run("vadd2.u32.u32.u32.sat %r0, %r1, %r2, %r3", 0xffff0001, 0x00020003, 0), 0xffff0004U);
  EXPECT_EQ(run("vadd2.s32.s32.s32.add %r0, %r1, %r2, %r3", 0xffff0001, 0x00020003, 10), 15U);
  EXPECT_EQ(run("vsub2.s32.s32.s32 %r0.h1, %r1.h01, %r2.h33, %r3", 0x00050009, 0x00020003, 0xaaaabbbb),
            0x0007bbbbU);
  EXPECT_EQ(run("vavrg4.u32.u32.u32 %r0, %r1, %r2, %r3", 0x01020304, 0x03030303, 0), 0x02030304U);
  EXPECT_EQ(run("vset4.u32.u32.ge %r0, %r1, %r2, %r3", 0x01020304, 0x03030303, 0), 0x00000101U);
}

TEST(AluVideo, BadSelectorsAreRefused) {
  for (const char* form :
       {"vadd.u32.u32.u32 %r0, %r1.b4, %r2", "vadd.u32.u32.u32 %r0.b1, %r1, %r2",
        "vadd2.u32.u32.u32 %r0, %r1.h4, %r2, %r3", "vadd4.u32.u32.u32 %r0, %r1.b8000, %r2, %r3"}) {
    EXPECT_FALSE(Prepared(form).ok()) << form;
  }
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
