// Kernels that nvcc compiled, run end to end: values, calls, divergence, barriers, printf.
#include <gtest/gtest.h>

#include <numeric>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class CoreMachine : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("basics.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  Node node(Policy policy = Policy::kFair, std::uint64_t seed = 1, int n_pes = 1) {
    return Node(ptx_, n_pes, policy, seed);
  }
  // Runs one kernel of one block with one output array of ints.
  std::vector<int> ints(const std::string& kernel, std::uint32_t threads, std::size_t n) {
    Node one = node();
    const std::uint64_t out = one.upload(std::vector<int>(n, -1));
    one.launch(kernel, {1, 1, 1}, {threads, 1, 1}, Params().add(out));
    EXPECT_EQ(one.finish(), Progress::kIdle) << one.explain(Progress::kStuck);
    return one.download<int>(out, n);
  }
  std::string ptx_;
};

TEST_F(CoreMachine, VectorAdd) {
  Node one = node();
  const int n = 1000;
  std::vector<float> a(n);
  std::vector<float> b(n);
  for (int i = 0; i < n; ++i) {
    a[static_cast<std::size_t>(i)] = static_cast<float>(i) * 0.5F;
    b[static_cast<std::size_t>(i)] = static_cast<float>(n - i);
  }
  const std::uint64_t pa = one.upload(a);
  const std::uint64_t pb = one.upload(b);
  const std::uint64_t pc = one.upload(std::vector<float>(n));
  const LaunchId id =
      one.launch("vector_add", {4, 1, 1}, {256, 1, 1}, Params().add(pa).add(pb).add(pc).add(n));
  EXPECT_FALSE(one.machine->finished(id));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  EXPECT_TRUE(one.machine->finished(id));
  EXPECT_GT(one.machine->finished_at_ns(id), 0U);
  const std::vector<float> c = one.download<float>(pc, n);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]) << i;
  EXPECT_TRUE(one.machine->findings().empty());
  EXPECT_EQ(one.machine->counters().blocks, 4U);
}

TEST_F(CoreMachine, BlockReverse) {
  Node one = node();
  std::vector<int> data(1024);
  std::iota(data.begin(), data.end(), 0);
  const std::uint64_t p = one.upload(data);
  one.launch("block_reverse", {4, 1, 1}, {256, 1, 1}, Params().add(p));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  const std::vector<int> got = one.download<int>(p, data.size());
  for (int i = 0; i < 1024; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i / 256 * 256 + 255 - i % 256);
}

TEST_F(CoreMachine, Recursion) {
  const std::vector<int> out = ints("recursion", 64, 64);
  const int fib[12] = {0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89};
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], fib[i % 12]);
}

TEST_F(CoreMachine, FunctionPointers) {
  const std::vector<int> out = ints("pointers", 32, 32);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(i)], i % 3 == 0 ? 2 * i : i % 3 == 1 ? i * i : -i);
}

TEST_F(CoreMachine, Switch) {
  Node one = node();
  std::vector<int> in(64);
  for (int i = 0; i < 64; ++i) in[static_cast<std::size_t>(i)] = i * 7 % 11;
  const std::uint64_t pin = one.upload(in);
  const std::uint64_t pout = one.upload(std::vector<int>(64));
  one.launch("switches", {1, 1, 1}, {64, 1, 1}, Params().add(pin).add(pout));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  const std::vector<int> out = one.download<int>(pout, 64);
  for (int i = 0; i < 64; ++i) {
    const int x = in[static_cast<std::size_t>(i)];
    const int want[8] = {100, x * 7 + 1, -5, x + i, 44, 55, 66, x << i % 8};
    EXPECT_EQ(out[static_cast<std::size_t>(i)], x < 8 ? want[x] : 1) << i;
  }
}

TEST_F(CoreMachine, DivergedLanesMakeProgress) {
  Node one = node();
  const std::uint64_t flag = one.upload(std::vector<int>{0});
  const std::uint64_t out = one.upload(std::vector<int>{0});
  one.launch("lanes_handshake", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(out));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  EXPECT_EQ(one.download<int>(out, 1)[0], 1);
}

TEST_F(CoreMachine, WarpPrimitives) {
  const std::vector<int> out = ints("warp_primitives", 32, 160);
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(out[at], 496);
    EXPECT_EQ(static_cast<std::uint32_t>(out[32 + at]), 0x49249249U);
    EXPECT_EQ(out[64 + at], i < 16 ? 15 - i : 376);
    EXPECT_EQ(out[96 + at], i / 8 * 8 + 3);
    EXPECT_EQ(out[128 + at], i / 8 == 1 ? 1 : 0);
  }
}

TEST_F(CoreMachine, HalvesOfAWarpMeetAtDifferentSyncwarps) {
  const std::vector<int> out = ints("two_syncwarps", 32, 32);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(i)], i < 16 ? (i + 16) * 5 : (i - 16) * 3);
}

TEST_F(CoreMachine, NamedBarriers) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Node one = node(seed == 1 ? Policy::kFair : Policy::kRandom, seed);
    const std::uint64_t out = one.upload(std::vector<int>(64));
    one.launch("producer_consumer", {1, 1, 1}, {128, 1, 1}, Params().add(out).add(5));
    const Progress end = one.finish();
    EXPECT_EQ(end, Progress::kIdle) << one.explain(end);
    const std::vector<int> got = one.download<int>(out, 64);
    for (int t = 0; t < 64; ++t) EXPECT_EQ(got[static_cast<std::size_t>(t)], 10000 + 5 * t);
  }
}

TEST_F(CoreMachine, BarrierReductions) {
  const std::vector<int> out = ints("barrier_votes", 96, 96);
  for (const int value : out) EXPECT_EQ(value, 20 * 100 + 10 + 1);
}

TEST_F(CoreMachine, ExitedThreadsAreNotWaitedFor) {
  Node one = node();
  const std::uint64_t out = one.upload(std::vector<int>(64, -1));
  one.launch("early_exit", {1, 1, 1}, {64, 1, 1}, Params().add(out).add(20));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  EXPECT_TRUE(one.machine->findings().empty()) << one.explain(Progress::kFaulted);
  const std::vector<int> got = one.download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i < 20 ? i : -1);
}

TEST_F(CoreMachine, GridSync) {
  for (const std::uint64_t seed : {1U, 7U}) {
    Node one = node(seed == 1 ? Policy::kFair : Policy::kRandom, seed);
    const int n = 8 * 64;
    const std::uint64_t data = one.upload(std::vector<int>(n));
    const std::uint64_t out = one.upload(std::vector<int>(n));
    one.launch("grid_sync", {8, 1, 1}, {64, 1, 1}, Params().add(data).add(out), 0, 0, true);
    const Progress end = one.finish();
    EXPECT_EQ(end, Progress::kIdle) << one.explain(end);
    const std::vector<int> got = one.download<int>(data, n);
    for (int i = 0; i < n; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i + 1 + n - (i + 1) % n);
  }
}

TEST_F(CoreMachine, Printf) {
  Node one = node();
  const std::uint64_t values = one.upload(std::vector<int>{-42});
  one.launch("prints", {1, 1, 1}, {1, 1, 1}, Params().add(values));
  EXPECT_EQ(one.finish(), Progress::kIdle) << one.explain(Progress::kFaulted);
  EXPECT_EQ(one.output,
            "int -42 unsigned 7 hex 0xff long 1234567890123 char x\n"
            " 3.14|ab      |-002.500|1.234568e+04|0.0001|%|text\n"
            "    42 1.23 0x10\n");
}

TEST_F(CoreMachine, AssertStopsTheMachine) {
  Node one = node();
  const std::uint64_t p = one.upload(std::vector<int>{4});
  one.launch("asserts", {1, 1, 1}, {1, 1, 1}, Params().add(p));
  EXPECT_EQ(one.finish(), Progress::kFaulted);
  ASSERT_EQ(one.machine->findings().all().size(), 1U);
  const Finding& finding = one.machine->findings().all()[0];
  EXPECT_EQ(finding.kind, FindingKind::kDeviceTrap);
  EXPECT_EQ(finding.message, "assertion `p[0] == 3` failed in void asserts(int *)");
  EXPECT_NE(one.output.find("block: [0,0,0], thread: [0,0,0] Assertion `p[0] == 3` failed."),
            std::string::npos);
}

TEST_F(CoreMachine, TrapStopsTheMachine) {
  Node one = node();
  one.launch("traps", {1, 1, 1}, {32, 1, 1}, Params());
  EXPECT_EQ(one.finish(), Progress::kFaulted);
  EXPECT_EQ(one.machine->findings().all().at(0).kind, FindingKind::kDeviceTrap);
  EXPECT_GT(one.machine->findings().all().at(0).sites.at(0).where.line, 0);
}

TEST_F(CoreMachine, LocalArrays) {
  Node one = node();
  std::vector<int> in(16);
  for (int i = 0; i < 16; ++i) in[static_cast<std::size_t>(i)] = i * i - 3;
  const std::uint64_t pin = one.upload(in);
  const std::uint64_t pout = one.upload(std::vector<int>(40));
  one.launch("local_array", {1, 1, 1}, {40, 1, 1}, Params().add(pin).add(pout));
  EXPECT_EQ(one.finish(), Progress::kIdle) << one.explain(Progress::kFaulted);
  const std::vector<int> out = one.download<int>(pout, 40);
  for (int t = 0; t < 40; ++t) {
    int sum = 0;
    for (const int x : in) sum += in[static_cast<std::size_t>((x + t) & 15)] * (t + 1);
    EXPECT_EQ(out[static_cast<std::size_t>(t)], sum);
  }
}

TEST_F(CoreMachine, StructsPassedByValue) {
  Node one = node();
  const std::uint64_t out = one.upload(std::vector<double>(32));
  one.launch("structs", {1, 1, 1}, {32, 1, 1}, Params().add(out));
  EXPECT_EQ(one.finish(), Progress::kIdle) << one.explain(Progress::kFaulted);
  const std::vector<double> got = one.download<double>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], i + 3 + 1.5 * i);
}

TEST_F(CoreMachine, ModuleVariablesAndDynamicShared) {
  Node one = node();
  const std::uint64_t out = one.upload(std::vector<int>(32));
  one.launch("variables", {1, 1, 1}, {32, 1, 1}, Params().add(out), 0, 128);
  EXPECT_EQ(one.finish(), Progress::kIdle) << one.explain(Progress::kFaulted);
  const std::vector<int> got = one.download<int>(out, 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 10 * (i % 4 + 1) + 5 + 31 - i);
}

TEST_F(CoreMachine, IndicesInThreeDimensions) {
  Node one = node();
  const std::size_t n = 3 * 2 * 2 * 5 * 4 * 3;
  const std::uint64_t out = one.upload(std::vector<int>(n, -1));
  one.launch("indices", {3, 2, 2}, {5, 4, 3}, Params().add(out));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  const std::vector<int> got = one.download<int>(out, n);
  for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(got[i], static_cast<int>(i / 60 * 1000 + i % 60));
}

TEST_F(CoreMachine, SleepTakesVirtualTime) {
  Node one = node();
  const std::uint64_t out = one.upload(std::vector<long long>(32));
  one.launch("clocks", {1, 1, 1}, {32, 1, 1}, Params().add(out));
  EXPECT_EQ(one.finish(), Progress::kIdle);
  for (const long long cycles : one.download<long long>(out, 32)) {
    EXPECT_GE(cycles, 1980);
    EXPECT_LE(cycles, 2200);
  }
}

TEST_F(CoreMachine, SameSeedSameRun) {
  const auto run = [&](std::uint64_t seed) {
    Node one = node(Policy::kRandom, seed);
    const std::uint64_t flag = one.upload(std::vector<int>{0});
    const std::uint64_t out = one.upload(std::vector<int>{0});
    one.launch("lanes_handshake", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(out));
    const std::uint64_t data = one.upload(std::vector<int>(512));
    const std::uint64_t sums = one.upload(std::vector<int>(512));
    one.launch("grid_sync", {8, 1, 1}, {64, 1, 1}, Params().add(data).add(sums), 0, 0, true);
    one.finish();
    return std::pair(one.machine->counters().warp_instructions, one.machine->now_ns());
  };
  EXPECT_EQ(run(5), run(5));
  EXPECT_NE(run(5), run(6));
}

TEST_F(CoreMachine, ResidencyFollowsTheModel) {
  Node one = node();
  const auto per_sm = [&](std::uint32_t threads, std::uint32_t shared) {
    return one.machine->blocks_per_sm(one.modules[0], "variables", threads, shared).value();
  };
  one.machine->set_register_count(one.modules[0], "variables", 32);
  EXPECT_EQ(per_sm(1024, 0), 2);
  EXPECT_EQ(per_sm(32, 0), 32);
  EXPECT_EQ(per_sm(128, 100 * 1024), 2);
  EXPECT_EQ(per_sm(128, 227 * 1024), 1);
  EXPECT_EQ(per_sm(128, 228 * 1024), 0);
  one.machine->set_register_count(one.modules[0], "variables", 128);
  EXPECT_EQ(per_sm(256, 0), 2);
  one.machine->set_register_count(one.modules[0], "variables", 168);
  EXPECT_EQ(per_sm(384, 0), 1);
}

TEST_F(CoreMachine, LaunchesThatCudaRefuses) {
  Node one = node();
  const auto error = [&](Dim3 grid, Dim3 block, std::uint32_t shared, bool cooperative) {
    LaunchRequest request;
    request.module = one.modules[0];
    request.kernel = "variables";
    request.grid = grid;
    request.block = block;
    request.dynamic_shared = shared;
    request.params.resize(8);
    request.cooperative = cooperative;
    const Result<LaunchId> id = one.machine->launch(request);
    return id.ok() ? std::string() : id.error().message.substr(0, id.error().message.find(':'));
  };
  EXPECT_EQ(error({1, 1, 1}, {1025, 1, 1}, 0, false), "cudaErrorInvalidConfiguration");
  EXPECT_EQ(error({0, 1, 1}, {32, 1, 1}, 0, false), "cudaErrorInvalidConfiguration");
  EXPECT_EQ(error({1, 70000, 1}, {32, 1, 1}, 0, false), "cudaErrorInvalidConfiguration");
  EXPECT_EQ(error({1, 1, 1}, {32, 1, 1}, 240 * 1024, false), "cudaErrorInvalidValue");
  EXPECT_EQ(error({132 * 32 + 1, 1, 1}, {32, 1, 1}, 0, true), "cudaErrorCooperativeLaunchTooLarge");
  EXPECT_EQ(error({132 * 32, 1, 1}, {32, 1, 1}, 0, true), "");
}

}  // namespace
}  // namespace echolo::vgpu
