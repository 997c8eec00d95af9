// Programs that can't go on: each must be known at once, as the right kind, at the right line.
#include <gtest/gtest.h>

#include <chrono>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class CoreWaits : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("basics.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  // The 1-based line of core_kernels/basics.cu that holds `text`, at or after the line that holds `after`.
  static int line_of(const std::string& after, const std::string& text) {
    const Result<std::string> source =
        read_file(std::string(ECHOLO_SOURCE_DIR) + "/tests/vgpu/core_kernels/basics.cu");
    const std::vector<std::string> lines = split(*source, '\n');
    bool inside = false;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      inside = inside || lines[i].find(after) != std::string::npos;
      if (inside && lines[i].find(text) != std::string::npos) return static_cast<int>(i) + 1;
    }
    return -1;
  }
  static const Finding& only(Node& node) {
    EXPECT_EQ(node.machine->findings().all().size(), 1U);
    return node.machine->findings().all().at(0);
  }
  std::string ptx_;
};

TEST_F(CoreWaits, FlagThatNobodyWrites) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{0, 0, 7, 0}, 0, "flag");
  node.launch("wait_for_flag", {4, 1, 1}, {128, 1, 1}, Params().add(flag).add(3));
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(node.finish(), Progress::kStuck);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(1));
  EXPECT_LT(node.machine->counters().warp_instructions, 100'000U);
  SCOPED_TRACE(node.explain(Progress::kStuck));
  const Finding& finding = only(node);
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.message, "no thread of PE 0 can go on");
  const Site& site = finding.sites.at(0);
  EXPECT_EQ(site.waits_for, "flag[2] on PE 0 == 3");
  EXPECT_EQ(site.holds, "7");
  EXPECT_EQ(site.note, "4 blocks; only host code of PE 0 has written it");
  EXPECT_EQ(site.where.line, line_of("wait_for_flag", "while (flag[2]"));
  EXPECT_EQ(finding.sites.at(1).waits_for, "the block's other threads; 96 of 128 threads have arrived");
}

TEST_F(CoreWaits, ManyWaitersOfOneWriterAreWoken) {
  Node node(ptx_, 2);
  const std::uint64_t flag = node.upload(std::vector<int>{0, 0, 0, 0}, 0, "flag");
  node.launch("wait_for_flag", {16, 1, 1}, {128, 1, 1}, Params().add(flag).add(1));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  const int one = 1;
  const Site site = make_host_site(0, "copy");
  Memory::Accessor who;
  who.site = &site;
  who.pe = 0;
  who.what = "cudaMemcpy";
  ASSERT_TRUE(node.machine->memory().write(flag + 8, &one, sizeof one, who));
  EXPECT_EQ(node.finish(), Progress::kIdle);
}

TEST_F(CoreWaits, SleepingSpinIsADeadlockToo) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{2}, 0, "flag");
  node.launch("wait_with_sleep", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(5));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  SCOPED_TRACE(node.explain(Progress::kStuck));
  EXPECT_EQ(only(node).kind, FindingKind::kDeadlock);
  EXPECT_EQ(only(node).sites.at(0).waits_for, "flag on PE 0 >= 5");
  EXPECT_EQ(only(node).sites.at(0).holds, "2");
}

TEST_F(CoreWaits, BarrierInADivergentBranch) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(96));
  node.launch("divergent_barrier", {1, 1, 1}, {64, 1, 1}, Params().add(out));
  ASSERT_EQ(node.finish(), Progress::kFaulted);
  SCOPED_TRACE(node.explain(Progress::kFaulted));
  EXPECT_EQ(only(node).kind, FindingKind::kBarrierDivergence);
  EXPECT_EQ(only(node).sites.at(0).where.line, line_of("divergent_barrier", "__syncthreads"));
  EXPECT_EQ(only(node).message, "16 threads of a warp wait at a barrier that 16 threads of it passed by");
}

TEST_F(CoreWaits, TwoBarriersOfOneWarp) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(64));
  node.launch("two_barriers", {1, 1, 1}, {64, 1, 1}, Params().add(out).add(1));
  ASSERT_EQ(node.finish(), Progress::kFaulted);
  SCOPED_TRACE(node.explain(Progress::kFaulted));
  EXPECT_EQ(only(node).kind, FindingKind::kBarrierDivergence);
  EXPECT_EQ(only(node).sites.size(), 2U);
}

TEST_F(CoreWaits, BarrierCountsDisagree) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(64));
  node.launch("wrong_count", {1, 1, 1}, {64, 1, 1}, Params().add(out));
  ASSERT_EQ(node.finish(), Progress::kFaulted);
  SCOPED_TRACE(node.explain(Progress::kFaulted));
  EXPECT_EQ(only(node).kind, FindingKind::kBarrierDivergence);
}

TEST_F(CoreWaits, BarrierThatNotEnoughThreadsReach) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(96));
  node.launch("missing_thread", {1, 1, 1}, {96, 1, 1}, Params().add(out));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  SCOPED_TRACE(node.explain(Progress::kStuck));
  EXPECT_EQ(only(node).kind, FindingKind::kBarrierDivergence);
}

TEST_F(CoreWaits, BlockThatCannotBeResident) {
  Node node(ptx_);
  const std::uint32_t n = 132 * 16 + 1;
  const std::uint64_t flags = node.upload(std::vector<int>(n), 0, "flags");
  node.machine->set_register_count(node.modules[0], "each_block_waits_for_last", 32);
  node.launch("each_block_waits_for_last", {n, 1, 1}, {128, 1, 1}, Params().add(flags));
  const auto before = std::chrono::steady_clock::now();
  ASSERT_EQ(node.finish(), Progress::kStuck);
  EXPECT_LT(std::chrono::steady_clock::now() - before, std::chrono::seconds(2));
  SCOPED_TRACE(node.explain(Progress::kStuck));
  EXPECT_EQ(only(node).kind, FindingKind::kResidency);
  EXPECT_EQ(only(node).sites.at(0).waits_for, "flags[2112] on PE 0 != 0");
}

TEST_F(CoreWaits, AllResidentBlocksMeet) {
  Node node(ptx_);
  const std::uint32_t n = 132 * 16;
  const std::uint64_t flags = node.upload(std::vector<int>(n), 0, "flags");
  node.machine->set_register_count(node.modules[0], "each_block_waits_for_last", 32);
  node.launch("each_block_waits_for_last", {n, 1, 1}, {128, 1, 1}, Params().add(flags));
  EXPECT_EQ(node.finish(), Progress::kIdle);
}

TEST_F(CoreWaits, LoopThatCountsIsALivelock) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{0}, 0, "flag");
  const std::uint64_t out = node.upload(std::vector<int>{0});
  node.launch("counts_forever", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(out));
  ASSERT_EQ(node.finish(), Progress::kLivelock);
  SCOPED_TRACE(node.explain(Progress::kLivelock));
  EXPECT_EQ(only(node).kind, FindingKind::kLivelock);
  EXPECT_EQ(only(node).sites.at(0).where.line, line_of("counts_forever", "while (*flag"));
  EXPECT_EQ(only(node).sites.at(0).waits_for, "flag on PE 0 != 0");
}

TEST_F(CoreWaits, BlockThatPollsWithBarriersInTheLoop) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{0, 0}, 0, "flag");
  node.launch("block_polls", {4, 1, 1}, {96, 1, 1}, Params().add(flag));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  EXPECT_LT(node.machine->counters().warp_instructions, 100'000U);
  SCOPED_TRACE(node.explain(Progress::kStuck));
  EXPECT_EQ(only(node).kind, FindingKind::kDeadlock);
  EXPECT_EQ(only(node).sites.at(0).waits_for, "a change of flag[1] on PE 0");
  EXPECT_EQ(only(node).sites.at(0).where.line, line_of("block_polls", "seen = flag[1]"));
}

TEST_F(CoreWaits, CountingRoundsOfABarrierIsNoDeadlock) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(64));
  node.launch("counts_rounds", {1, 1, 1}, {64, 1, 1}, Params().add(out));
  EXPECT_EQ(node.finish(), Progress::kIdle) << node.explain(Progress::kStuck);
}

TEST_F(CoreWaits, SleepingByTheClockIsADeadlockToo) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{3}, 0, "flag");
  node.launch("atomic_wait", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(3));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  SCOPED_TRACE(node.explain(Progress::kStuck));
  EXPECT_EQ(only(node).kind, FindingKind::kDeadlock);
  EXPECT_EQ(only(node).sites.at(0).waits_for, "flag on PE 0 != 3");
  EXPECT_EQ(only(node).sites.at(0).where.line, line_of("atomic_wait", "word.wait"));
}

TEST_F(CoreWaits, TimeoutEndsALoop) {
  Node node(ptx_);
  const std::uint64_t flag = node.upload(std::vector<int>{0}, 0, "flag");
  const std::uint64_t out = node.upload(std::vector<int>(32));
  node.launch("times_out", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(out));
  EXPECT_EQ(node.finish(), Progress::kIdle) << node.explain(Progress::kStuck);
  EXPECT_EQ(node.download<int>(out, 32), std::vector<int>(32, 1));
}

TEST_F(CoreWaits, HostsAreInTheGraph) {
  Node node(ptx_, 2);
  const std::uint64_t flag = node.upload(std::vector<int>{0, 0, 0}, 1, "flag");
  node.launch("wait_for_flag", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(1), 1);
  ASSERT_EQ(node.finish(), Progress::kStuck);
  Machine::HostWait host;
  host.pe = 0;
  host.in = "nvshmem_barrier_all";
  host.waits_for = "PE 1 to arrive";
  node.machine->explain_stuck({host}, false);
  EXPECT_EQ(only(node).kind, FindingKind::kDeadlock);
  EXPECT_EQ(only(node).message, "no PE can go on");
  EXPECT_EQ(only(node).sites.back().waits_for, "PE 1 to arrive");
  EXPECT_FALSE(only(node).sites.back().on_device);
}

}  // namespace
}  // namespace echolo::vgpu
