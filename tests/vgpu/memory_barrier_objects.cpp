// mbarrier objects.
#include "memory_harness.hpp"
#include "vgpu/memory/async.hpp"

namespace echolo::vgpu {
namespace {

TEST(MemoryBarrierObjects, APhaseEndsWithItsLastArrival) {
  MemoryHarness h;
  h.assemble("mbarrier.init.shared::cta.b64 [%r1], 33;");
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);
  h.assemble(
      "mbarrier.arrive.shared::cta.b64 %rd1, [%r1];\nmbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd1;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\nmbarrier.pending_count.b64 %r2, %rd1;");
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p1"), 0U);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 0U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r2")[0], 33U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r2")[31], 2U);
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);  // the last arrival of the first phase
  EXPECT_EQ(*h.reg<std::uint32_t>("%p1"), 1U);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 1U);
  h.assemble("mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 1;");
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 0U);
  EXPECT_TRUE(h.log.empty());
}

TEST(MemoryBarrierObjects, BytesAreWaitedForToo) {
  MemoryHarness h;
  h.assemble(
      "mbarrier.init.shared::cta.b64 [%r1], 1;\nmbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 4096;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;\nmbarrier.complete_tx.shared::cta.b64 [%r1], "
      "4096;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;");
  ASSERT_EQ(h.execute(1), MemOutcome::kDone) << render(h.log.all()[0], {});
  EXPECT_EQ(*h.reg<std::uint32_t>("%p1"), 0U);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 1U);
}

TEST(MemoryBarrierObjects, WrongUse) {
  MemoryHarness h;
  h.assemble("mbarrier.init.shared::cta.b64 [%r1], 2;\nmbarrier.arrive.shared::cta.b64 _, [%r1], 3;");
  ASSERT_EQ(h.execute(1), MemOutcome::kFault);
  EXPECT_EQ(render(h.log.all()[0], {}),
            "test.cu:21:5: device-trap: more threads arrive at an mbarrier than it expects\n"
            "   test.cu:21: barrier reached by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   why: its phase has 2 arrivals left of 2, and this adds 3\n"
            "   mend: initialise it (mbarrier.init) with the number of arrivals of one phase\n");
  h.log = FindingLog();
  h.assemble("mbarrier.arrive.shared::cta.b64 _, [%r1+64];");  // never initialised
  h.execute(1);
  EXPECT_EQ(h.log.all()[0].kind, FindingKind::kUninitialisedRead);
}

TEST(MemoryBarrierObjects, DroppedArrivalsLowerTheNextPhase) {
  MemoryHarness h;
  h.assemble(
      "mbarrier.init.shared::cta.b64 [%r1], 2;\nmbarrier.arrive_drop.shared::cta.b64 _, [%r1];\n"
      "mbarrier.arrive.shared::cta.b64 _, [%r1];\nmbarrier.arrive.shared::cta.b64 %rd1, [%r1];\n"
      "mbarrier.test_wait.shared::cta.b64 %p1, [%r1], %rd1;\ncp.async.mbarrier.arrive.noinc.shared::cta.b64 "
      "[%r1];\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;");
  ASSERT_EQ(h.execute(1), MemOutcome::kDone) << render(h.log.all()[0], {});
  EXPECT_EQ(*h.reg<std::uint32_t>("%p1"), 1U);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 0U);  // the copies have yet to arrive
  ASSERT_FALSE(h.memory->async().empty());
  ASSERT_TRUE(h.memory->async().deliver_next());
  h.assemble(
      "mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r1], 0;\nmbarrier.inval.shared::cta.b64 [%r1];");
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);
  EXPECT_EQ(*h.reg<std::uint32_t>("%p2"), 1U);
}

}  // namespace
}  // namespace echolo::vgpu
