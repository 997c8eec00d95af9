// ld and st: spaces, widths, vectors, patterns, masks.
#include "memory_harness.hpp"

namespace echolo::vgpu {
namespace {

TEST(MemoryLoadStore, CoalescedWordsMoveBothWays) {
  MemoryHarness h;
  const std::uint64_t in = h.device(256), out = h.device(128, "out");
  std::uint32_t values[64];
  for (unsigned i = 0; i < 64; ++i) values[i] = i * 3 + 1;
  h.fill(in, values, sizeof values);
  h.assemble("ld.global.u32 %r1, [%rd1+4];\nst.global.u32 [%rd2], %r1;");
  h.set<std::uint64_t>("%rd1", in, 4);
  h.set<std::uint64_t>("%rd2", out, 4);
  const std::uint64_t before = h.memory->changes();
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  for (unsigned i = 0; i < 32; ++i) EXPECT_EQ(h.reg<std::uint32_t>("%r1")[i], (i + 1) * 3 + 1);
  EXPECT_GT(h.memory->changes(), before);
  const std::uint64_t after = h.memory->changes();
  ASSERT_EQ(h.execute(), MemOutcome::kDone);  // stores the same bytes: nothing changes
  EXPECT_EQ(h.memory->changes(), after);
  EXPECT_TRUE(h.log.empty());
}

TEST(MemoryLoadStore, LanesOutsideTheMaskKeepTheirRegisters) {
  MemoryHarness h;
  const std::uint64_t in = h.device(256);
  std::uint32_t values[64];
  for (unsigned i = 0; i < 64; ++i) values[i] = i;
  h.fill(in, values, sizeof values);
  h.assemble("ld.global.u32 %r1, [%rd1];");
  h.set<std::uint64_t>("%rd1", in, 4);
  h.reg<std::uint64_t>("%rd1")[3] = 1;  // inactive: its wild address does not matter
  h.set<std::uint32_t>("%r1", 777);
  ASSERT_EQ(h.execute(0xfffffff6U), MemOutcome::kDone);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[0], 777U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[1], 1U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[3], 777U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[31], 31U);
}

TEST(MemoryLoadStore, NarrowLoadsWidenAsTheTypeSays) {
  MemoryHarness h;
  const std::uint64_t in = h.device(256);
  const std::uint8_t bytes[16] = {0x80, 0xff, 0x34, 0x92, 1, 2, 3, 0x84, 0xf0, 0, 0, 0, 0, 0, 0, 0x81};
  h.fill(in, bytes, sizeof bytes);
  h.assemble(
      "ld.global.u8 %h1, [%rd1];\nld.global.s8 %h2, [%rd1];\nld.global.s8 %r1, [%rd1];\nld.global.u16 %r2, "
      "[%rd1+2];\n"
      "ld.global.s16 %r3, [%rd1+2];\nld.global.s32 %rd2, [%rd1+4];\nld.global.b32 %rd3, "
      "[%rd1+4];\nld.global.b128 %q1, [%rd1];");
  h.set<std::uint64_t>("%rd1", in);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_EQ(h.reg<std::uint16_t>("%h1")[9], 0x80);
  EXPECT_EQ(h.reg<std::uint16_t>("%h2")[9], 0xff80);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[9], 0xffffff80U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r2")[9], 0x9234U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r3")[9], 0xffff9234U);
  EXPECT_EQ(h.reg<std::uint64_t>("%rd2")[9], 0xffffffff84030201ULL);
  EXPECT_EQ(h.reg<std::uint64_t>("%rd3")[9], 0x84030201ULL);
  EXPECT_EQ(h.reg<std::uint64_t>("%q1")[9], 0x840302019234ff80ULL);
  EXPECT_EQ(h.reg<std::uint64_t>("%q1")[32 + 9], 0x81000000000000f0ULL);
}

TEST(MemoryLoadStore, VectorsAndImmediatesAndSinks) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(1024);
  h.assemble(
      "st.global.v4.f32 [%rd1], {%r1, 0f3F800000, %r2, 7};\nld.global.v4.u32 {%r3, _, %r4, %r5}, [%rd1];\n"
      "ld.global.v2.b16 {%h1, %h2}, [%rd1+2];");
  h.set<std::uint64_t>("%rd1", buf, 16);
  h.set<std::uint32_t>("%r1", 100, 1);
  h.set<std::uint32_t>("%r2", 200, 1);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);  // the last load is at byte 2 of a 4-byte vector
  EXPECT_EQ(h.log.all().back().kind, FindingKind::kMisaligned);
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(h.reg<std::uint32_t>("%r3")[i], 100 + i);
    EXPECT_EQ(h.reg<std::uint32_t>("%r4")[i], 200 + i);
    EXPECT_EQ(h.reg<std::uint32_t>("%r5")[i], 7U);
  }
  std::uint32_t one = 0;
  ASSERT_TRUE(h.memory->read(buf + 4, &one, 4, {}));
  EXPECT_EQ(one, 0x3f800000U);
}

TEST(MemoryLoadStore, EverySpaceAndItsGenericWindow) {
  MemoryHarness h;
  const std::uint64_t global = h.device(256);
  h.grid.params = {0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc};
  h.assemble(
      "ld.param.u64 %rd9, [pa];\nld.param.u32 %r9, [pb];\n"
      "st.shared.u32 [%r1+8], %r2;\nst.local.u32 [%rd2], %r2;\nst.global.u32 [%rd3], %r2;\n"
      "cvta.shared.u64 %rd4, %rd1;\ncvta.local.u64 %rd5, %rd2;\ncvta.global.u64 %rd6, %rd3;\n"
      "ld.u32 %r3, [%rd4+8];\nld.u32 %r4, [%rd5];\nld.u32 %r5, [%rd6];\nld.u32 %r6, [%rd7];\n"
      "cvta.to.shared.u64 %rd8, %rd4;\nisspacep.shared %p1, %rd4;\nisspacep.shared %p2, "
      "%rd6;\nisspacep.global %p3, %rd6;");
  for (int i = 0; i < 32; ++i) {
    h.reg<std::uint32_t>("%r1")[i] = static_cast<std::uint32_t>(4 * i);
    h.reg<std::uint64_t>("%rd1")[i] = static_cast<std::uint64_t>(4 * i);
    h.reg<std::uint64_t>("%rd2")[i] = 16;
    h.reg<std::uint64_t>("%rd3")[i] = global + static_cast<std::uint64_t>(4 * i);
    h.reg<std::uint32_t>("%r2")[i] = static_cast<std::uint32_t>(1000 + i);
    // Lanes in different windows at once.
    h.reg<std::uint64_t>("%rd7")[i] = i % 3 == 0   ? kSharedWindow + 8 + static_cast<std::uint64_t>(4 * i)
                                      : i % 3 == 1 ? kLocalWindow + 16
                                                   : global + static_cast<std::uint64_t>(4 * i);
  }
  ASSERT_EQ(h.execute(), MemOutcome::kDone) << render(h.log.all().back(), {});
  for (unsigned i = 0; i < 32; ++i) {
    EXPECT_EQ(h.reg<std::uint64_t>("%rd9")[i], 0x8877665544332211ULL);
    EXPECT_EQ(h.reg<std::uint32_t>("%r9")[i], 0xccbbaa99U);
    for (const char* name : {"%r3", "%r4", "%r5", "%r6"})
      EXPECT_EQ(h.reg<std::uint32_t>(name)[i], 1000 + i) << name;
    EXPECT_EQ(h.reg<std::uint64_t>("%rd8")[i], 4 * i);
  }
  EXPECT_EQ(*h.reg<std::uint32_t>("%p1"), kAllLanes);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 0U);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p3"), kAllLanes);
  EXPECT_GT(h.warp.local_changes, 0U);
}

TEST(MemoryLoadStore, LastLaneWinsWhereAllStoreToOnePlace) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(256);
  h.assemble("st.volatile.global.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", buf + 4);
  h.set<std::uint32_t>("%r1", 1, 1);
  ASSERT_EQ(h.execute(0x00ffffffU), MemOutcome::kDone);
  std::uint32_t value = 0;
  ASSERT_TRUE(h.memory->read(buf + 4, &value, 4, {}));
  EXPECT_EQ(value, 24U);
  const auto writer = h.memory->last_writer(buf + 4);
  ASSERT_TRUE(writer);
  EXPECT_EQ(writer->value, 24U);
  EXPECT_EQ(writer->site.thread, (Dim3{23, 0, 0}));
  EXPECT_EQ(writer->site.role, "write");
  EXPECT_FALSE(h.memory->last_writer(buf + 8));
}

}  // namespace
}  // namespace echolo::vgpu
