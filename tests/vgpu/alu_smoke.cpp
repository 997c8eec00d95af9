#include <gtest/gtest.h>

#include "alu_harness.hpp"

namespace echolo::vgpu::alu_test {
namespace {

TEST(AluPlan, TakesTheOrdinaryInstructionsOfACompiler) {
  for (const char* text : {"mov.u32 %r1, %tid.x",
                           "mov.b32 %r1, 5",
                           "mov.f32 %f1, 0f3F800000",
                           "mov.f64 %fd1, 0d3FF0000000000000",
                           "mov.b64 {%r1, %r2}, %rd1",
                           "mov.b64 %rd1, {%r1, %r2}",
                           "mov.b32 %r1, {%rs1, %rs2}",
                           "mov.b128 {%rd1, %rd2}, %q1",
                           "mov.b64 {_, %r2}, %rd1",
                           "add.s32 %r1, %r2, -4",
                           "mul.wide.s32 %rd1, %r1, 4",
                           "mad.lo.s32 %r1, %ctaid.x, %ntid.x, %r3",
                           "add.f32 %f1, %f2, 0f3F800000",
                           "fma.rn.f32 %f1, %f2, %f3, %f4",
                           "setp.lt.s32 %p1, %r1, %r2",
                           "setp.eq.or.s32 %p1|%p2, %r1, 0, !%p3",
                           "selp.b32 %r1, %r2, 7, %p1",
                           "cvt.u64.u32 %rd1, %tid.x",
                           "cvt.rn.f32.s32 %f1, %r1",
                           "cvt.rzi.s32.f32 %r1, %f1",
                           "cvt.rn.bf16x2.f32 %r1, %f1, %f2",
                           "cvt.u16.u8 %rs1, %rs2",
                           "cvt.u32.u8 %r1, %r2",
                           "cvt.s8.s32 %r1, %r2",
                           "and.pred %p1, %p2, %p3",
                           "not.pred %p1, %p2",
                           "lop3.b32 %r1, %r2, %r3, %r4, 0x96",
                           "shf.l.wrap.b32 %r1, %r2, %r3, %r4",
                           "shl.b64 %rd1, %rd2, 3",
                           "prmt.b32 %r1, %r2, %r3, 0x5410",
                           "shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1",
                           "vote.sync.ballot.b32 %r1, %p1, -1",
                           "vote.sync.any.pred %p1, !%p2, %r1",
                           "match.any.sync.b32 %r1, %r2, %r3",
                           "match.all.sync.b64 %r1|%p1, %rd2, %r3",
                           "redux.sync.add.s32 %r1, %r2, %r3",
                           "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2",
                           "bfe.u32 %r1, %r2, 8, 8",
                           "bfind.shiftamt.u32 %r1, %r2",
                           "dp4a.s32.u32 %r1, %r2, %r3, %r4"}) {
    const Prepared instruction(text);
    EXPECT_TRUE(instruction.ok()) << text << ": " << instruction.error();
  }
}

TEST(AluPlan, RefusesWhatItDoesNotHaveWithTheFormsName) {
  EXPECT_NE(Prepared("fma.rn.f32x2 %rd1, %rd2, %rd3, %rd4").error().find("fma.rn.f32x2"), std::string::npos);
  EXPECT_NE(Prepared("max.f32 %f1, %f2, %f3, %f4").error().find("max.f32"), std::string::npos);
  EXPECT_NE(Prepared("mul.lo.s32 %r1, %r2, 0f3F800000").error().find("floating"), std::string::npos);
}

TEST(AluTargets, AreChosenByNameAndRefusedWithThoseThatExist) {
  EXPECT_FALSE(alu::simd_targets().empty());
  const Status wrong = alu::set_simd_target("mmx");
  ASSERT_FALSE(wrong.ok());
  EXPECT_NE(wrong.error().hint.find(alu::simd_targets().front()), std::string::npos);
  ASSERT_TRUE(alu::set_simd_target(alu::simd_targets().front()).ok());
  EXPECT_EQ(alu::simd_target(), alu::simd_targets().front());
  ASSERT_TRUE(alu::set_simd_target("").ok());
  EXPECT_EQ(alu::simd_target(), alu::simd_targets().back());
}

TEST(AluMasks, LeaveOtherLanesAlone) {
  const Prepared add("add.s32 %r1, %r2, 10");
  Registers registers;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    registers.set("%r1", lane, 1000);
    registers.set("%r2", lane, static_cast<std::uint64_t>(lane));
  }
  add.run(registers, 0x0000ff01U);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    EXPECT_EQ(registers.get("%r1", lane),
              lane == 0 || (lane >= 8 && lane < 16) ? static_cast<std::uint64_t>(lane + 10) : 1000U);
  }
}

}  // namespace
}  // namespace echolo::vgpu::alu_test
