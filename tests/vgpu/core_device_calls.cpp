// Functions that device code calls and somebody else implements: arguments and results, the three
// granularities, blocking and trying again, and what a wait graph says of them.
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class FakeCalls : public DeviceCallTable {
 public:
  explicit FakeCalls(int n_pes) : n_pes_(n_pes) {
    add("test_add", Granularity::kThread, &FakeCalls::add_up);
    add("test_wait", Granularity::kThread, &FakeCalls::wait);
    add("test_warp", Granularity::kWarp, &FakeCalls::warp);
    add("test_block_barrier", Granularity::kBlock, &FakeCalls::barrier);
    add("test_peek", Granularity::kThread, &FakeCalls::peek);
  }
  const DeviceCall* find(std::string_view name) const override {
    const auto at = calls_.find(std::string(name));
    return at == calls_.end() ? nullptr : &at->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, call] : calls_) all.push_back(name);
    return all;
  }
  void grid_finished(const Grid& grid) override { finished.push_back(grid.pe); }

  std::vector<int> finished;
  int n_warp_calls = 0;
  int n_peeks = 0;

 private:
  using Method = CallOutcome (*)(void*, DeviceCallContext&, std::uint64_t);
  void add(const std::string& name, Granularity granularity, Method method) {
    calls_[name] = {name, granularity, method, this, 0};
  }
  static int load(DeviceCallContext& c, std::uint64_t address) {
    int value = 0;
    Memory::Accessor who;
    who.warp = &c.warp;
    who.inst = &c.inst;
    who.lane = c.lane;
    who.pe = c.pe;
    who.what = "test";
    c.memory.read(address, &value, sizeof value, who);
    return value;
  }
  static CallOutcome add_up(void*, DeviceCallContext& c, std::uint64_t) {
    c.set_result(static_cast<int>(c.argument<int>(0) + c.argument<long long>(1) + c.argument<int>(2)));
    return CallOutcome::kDone;
  }
  static CallOutcome wait(void*, DeviceCallContext& c, std::uint64_t) {
    const auto address = c.argument<std::uint64_t>(0);
    const int value = load(c, address);
    if (value >= c.argument<int>(1)) return CallOutcome::kDone;
    c.wait.address = address;
    c.wait.bytes = 4;
    c.wait.comparison = ">= " + std::to_string(c.argument<int>(1));
    c.wait.holds = std::to_string(value);
    return CallOutcome::kBlocked;
  }
  static CallOutcome warp(void* self, DeviceCallContext& c, std::uint64_t) {
    ++static_cast<FakeCalls*>(self)->n_warp_calls;
    c.set_result(c.argument<int>(0) + 5);
    return CallOutcome::kDone;
  }
  // All PEs' blocks meet; yields the round.
  static CallOutcome barrier(void* self, DeviceCallContext& c, std::uint64_t) {
    auto& me = *static_cast<FakeCalls*>(self);
    if (c.token == 0) {
      c.token = 1 + me.round_;
      if (++me.arrived_ == me.n_pes_) {
        me.arrived_ = 0;
        ++me.round_;
      }
    }
    if (c.token - 1 < me.round_) {
      c.set_result(static_cast<long long>(c.token));
      return CallOutcome::kDone;
    }
    c.wait.collective = "test_block_barrier: " + std::to_string(me.arrived_) + " of " +
                        std::to_string(me.n_pes_) + " PEs are there";
    return CallOutcome::kBlocked;
  }
  static CallOutcome peek(void* self, DeviceCallContext& c, std::uint64_t) {
    ++static_cast<FakeCalls*>(self)->n_peeks;
    c.set_result(load(c, c.argument<std::uint64_t>(0)));
    return CallOutcome::kDone;
  }

  std::map<std::string, DeviceCall> calls_;
  int n_pes_, arrived_ = 0;
  std::uint64_t round_ = 0;
};

class CoreDeviceCalls : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("device_calls.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  std::string ptx_;
};

TEST_F(CoreDeviceCalls, ArgumentsAndResults) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  const std::uint64_t out = node.upload(std::vector<int>(40));
  node.launch("thread_calls", {1, 1, 1}, {40, 1, 1}, Params().add(out));
  EXPECT_EQ(node.finish(), Progress::kIdle);
  const std::vector<int> got = node.download<int>(out, 40);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i + 1007);
  EXPECT_EQ(calls.finished, std::vector<int>{0});
}

TEST_F(CoreDeviceCalls, OneCallAWarp) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  const std::uint64_t out = node.upload(std::vector<int>(128));
  node.launch("warp_calls", {1, 1, 1}, {64, 1, 1}, Params().add(out));
  EXPECT_EQ(node.finish(), Progress::kIdle);
  EXPECT_EQ(calls.n_warp_calls, 2);
  const std::vector<int> got = node.download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i / 32 * 32 + 5);
}

TEST_F(CoreDeviceCalls, LanesOfOneWarpWaitForEachOther) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  std::vector<int> words(33, 0);
  words[0] = 1;
  const std::uint64_t p = node.upload(words);
  node.launch("chain", {1, 1, 1}, {32, 1, 1}, Params().add(p));
  EXPECT_EQ(node.finish(), Progress::kIdle);
  EXPECT_EQ(node.download<int>(p, 33), std::vector<int>(33, 1));
}

TEST_F(CoreDeviceCalls, ABrokenChainIsADeadlock) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  const std::uint64_t p = node.upload(std::vector<int>(33), 0, "words");
  node.launch("chain", {1, 1, 1}, {32, 1, 1}, Params().add(p));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  node.machine->explain_stuck({}, false);
  const Finding& finding = node.machine->findings().all().at(0);
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.sites.at(0).waits_for, "words[0] on PE 0 >= 1");
  EXPECT_EQ(finding.sites.at(0).holds, "0");
  EXPECT_GT(finding.sites.at(0).where.line, 0);
}

TEST_F(CoreDeviceCalls, BlocksOfFourPesMeet) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    FakeCalls calls(4);
    Node node(ptx_, 4, seed == 1 ? Policy::kFair : Policy::kRandom, seed, &calls);
    std::vector<std::uint64_t> outs;
    for (int pe = 0; pe < 4; ++pe) {
      outs.push_back(node.upload(std::vector<int>(96), pe));
      node.launch("meet", {1, 1, 1}, {96, 1, 1}, Params().add(outs.back()).add(5), pe);
    }
    EXPECT_EQ(node.finish(), Progress::kIdle);
    for (int pe = 0; pe < 4; ++pe) {
      for (const int value : node.download<int>(outs[static_cast<std::size_t>(pe)], 96, pe))
        EXPECT_EQ(value, 15);
    }
  }
}

TEST_F(CoreDeviceCalls, OnePeDoesNotCome) {
  FakeCalls calls(4);
  Node node(ptx_, 4, Policy::kFair, 1, &calls);
  for (int pe = 0; pe < 4; ++pe) {
    const std::uint64_t out = node.upload(std::vector<int>(64), pe);
    node.launch("meet", {1, 1, 1}, {64, 1, 1}, Params().add(out).add(pe == 2 ? 1 : 3), pe);
  }
  ASSERT_EQ(node.finish(), Progress::kStuck);
  node.machine->explain_stuck({}, false);
  const Finding& finding = node.machine->findings().all().at(0);
  EXPECT_EQ(finding.kind, FindingKind::kDeadlock);
  EXPECT_EQ(finding.message, "PEs 0, 1 and 3 wait for ever");
  EXPECT_EQ(finding.sites.at(0).waits_for, "test_block_barrier: 3 of 4 PEs are there");
}

TEST_F(CoreDeviceCalls, PollingThroughACallIsADeadlock) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  const std::uint64_t word = node.upload(std::vector<int>{2}, 0, "word");
  node.launch("peeks", {1, 1, 1}, {1, 1, 1}, Params().add(word));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  EXPECT_LT(calls.n_peeks, 100);
  node.machine->explain_stuck({}, false);
  EXPECT_EQ(node.machine->findings().all().at(0).kind, FindingKind::kDeadlock);
}

TEST_F(CoreDeviceCalls, HalfABlockAtABlockCall) {
  FakeCalls calls(1);
  Node node(ptx_, 1, Policy::kFair, 1, &calls);
  const std::uint64_t out = node.upload(std::vector<int>(64));
  node.launch("half_a_block", {1, 1, 1}, {64, 1, 1}, Params().add(out));
  ASSERT_EQ(node.finish(), Progress::kStuck);
  node.machine->explain_stuck({}, false);
  const Finding& finding = node.machine->findings().all().at(0);
  EXPECT_EQ(finding.kind, FindingKind::kBarrierDivergence);
  EXPECT_EQ(finding.sites.size(), 2U);
}

TEST_F(CoreDeviceCalls, UnknownFunctionIsNamed) {
  class NoAdd : public FakeCalls {
   public:
    NoAdd() : FakeCalls(1) {}
    const DeviceCall* find(std::string_view name) const override {
      return name == "test_add" ? nullptr : FakeCalls::find(name);
    }
    std::vector<std::string> names() const override { return {"test_ad", "other"}; }
  };
  NoAdd calls;
  auto machine = Machine::create({}, &calls);
  ASSERT_TRUE(machine.ok());
  const auto module = (*machine)->load_module(0, ptx_, "test");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().message, "device function 'test_add' is called but defined nowhere");
  EXPECT_EQ(module.error().hint, "did you mean 'test_ad'?");
  EXPECT_EQ(module.error().line, 8);
}

}  // namespace
}  // namespace echolo::vgpu
