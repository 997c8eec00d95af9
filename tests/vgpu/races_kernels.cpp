// The race detector on kernels: each rule that orders two accesses keeps it silent, and without the rule it
// says what is missing; each way to be strong but not morally strong is named.
#include <gtest/gtest.h>

#include <numeric>
#include <optional>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class Races : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("races.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  // Runs under a few schedules; all must end with this kind of finding and no other, or with none.
  void expect(std::optional<FindingKind> kind, const std::string& kernel, Dim3 grid, Dim3 block,
              const std::function<Params(Node&)>& params, bool cooperative = false,
              const std::string& words = "") {
    for (const auto& [policy, seed] : {std::pair{Policy::kFair, 1U},
                                       {Policy::kRandom, 2U},
                                       {Policy::kRandom, 3U},
                                       {Policy::kRandom, 4U}}) {
      Node node(ptx_, 1, policy, seed);
      const Params given = params(node);
      node.launch(kernel, grid, block, given, 0, 0, cooperative);
      const Progress progress = node.finish();
      EXPECT_EQ(progress, Progress::kIdle) << kernel << "\n" << node.explain(progress);
      check(node, kind, kernel, words);
    }
  }
  static void check(Node& node, std::optional<FindingKind> kind, const std::string& what,
                    const std::string& words = "") {
    std::string text;
    for (const Finding& finding : node.machine->findings().all()) text += render(finding, {});
    bool found = false;
    for (const Finding& finding : node.machine->findings().all()) {
      // Who reads too early may read what nobody has written yet: that is found as well.
      if (kind && finding.kind == FindingKind::kUninitialisedRead) continue;
      EXPECT_EQ(name_of(finding.kind), name_of(kind.value_or(FindingKind::kLeak))) << what << "\n" << text;
      found = true;
    }
    EXPECT_EQ(found, kind.has_value()) << what << "\n" << text;
    EXPECT_TRUE(words.empty() || text.find(words) != std::string::npos) << what << "\n" << text;
  }
  // Kernels (out, without): silent, and a data race where the edge is left out.
  void edge(const std::string& kernel, Dim3 grid, Dim3 block, const std::string& words = "",
            bool cooperative = false) {
    for (const int without : {0, 1}) {
      expect(
          without != 0 ? std::optional(FindingKind::kDataRace) : std::nullopt, kernel, grid, block,
          [&](Node& node) { return Params().add(node.upload(std::vector<int>(256))).add(without); },
          cooperative, without != 0 ? words : "");
    }
  }
  void pass(std::optional<FindingKind> kind, const std::string& kernel, const std::string& words = "",
            unsigned blocks = 2) {
    expect(
        kind, kernel, {blocks, 1, 1}, {1, 1, 1},
        [](Node& node) {
          Params params;
          for (int i = 0; i < 3; ++i) params.add(node.upload(std::vector<int>(8)));
          return params;
        },
        false, words);
  }
  std::string ptx_;
};

TEST_F(Races, BarriersOfABlock) {
  edge("bar_sync", {1, 1, 1}, {128, 1, 1}, "__syncthreads() between the two");
  edge("bar_sync_before_overwriting", {1, 1, 1}, {128, 1, 1}, "__syncthreads() between the two");
  edge("named_barrier", {1, 1, 1}, {128, 1, 1});
}
TEST_F(Races, BarriersOfAWarp) {
  edge("warp_barrier", {1, 1, 1}, {128, 1, 1}, "__syncwarp() between the two");
}
TEST_F(Races, BarrierObjects) {
  edge("arrive_and_wait", {1, 1, 1}, {128, 1, 1});
  edge("barrier_is_made", {1, 1, 1}, {128, 1, 1});
}
TEST_F(Races, ClustersMeet) {
  edge("cluster_barrier", {2, 1, 1}, {32, 1, 1});
  edge("cluster_fence_then_relaxed", {2, 1, 1}, {32, 1, 1});
}
TEST_F(Races, GridsMeet) {
  for (const int without : {0, 1}) {
    expect(
        without != 0 ? std::optional(FindingKind::kDataRace) : std::nullopt, "grid_barrier", {4, 1, 1},
        {64, 1, 1},
        [&](Node& node) {
          return Params()
              .add(node.upload(std::vector<int>(256)))
              .add(node.upload(std::vector<int>(256)))
              .add(without);
        },
        true);
  }
}
TEST_F(Races, AsynchronousCopies) {
  for (const char* kernel : {"bulk_load", "bulk_load_over_readers"}) {
    for (const int without : {0, 1}) {
      expect(
          without != 0 ? std::optional(FindingKind::kDataRace) : std::nullopt, kernel, {1, 1, 1}, {64, 1, 1},
          [&](Node& node) {
            return Params()
                .add(node.upload(std::vector<int>(64, 3)))
                .add(node.upload(std::vector<int>(64)))
                .add(without);
          },
          false, without != 0 ? "cp.async.bulk" : "");
    }
  }
  edge("bulk_store", {1, 1, 1}, {64, 1, 1}, "wait_group.read");
  edge("proxy_fence", {1, 1, 1}, {64, 1, 1}, "fence.proxy.async");
}
TEST_F(Races, FlagsOfEnoughScopeOrder) {
  for (const char* kernel :
       {"release_acquire_gpu", "release_acquire_sys", "fences", "fence_and_volatile", "atomics"})
    pass(std::nullopt, kernel);
  pass(std::nullopt, "chain", "", 3);
}
TEST_F(Races, WeakFlagsDoNot) {
  pass(FindingKind::kDataRace, "relaxed_write");
  pass(FindingKind::kWrongWait, "relaxed_read", "acquire");
  pass(FindingKind::kWrongWait, "volatile_read", "acquire");
  pass(FindingKind::kWrongWait, "plain_read", "plain");
}
TEST_F(Races, ScopesMustIncludeEachOther) {
  pass(FindingKind::kScopeTooNarrow, "release_of_a_block", "gpu scope at line");
  pass(FindingKind::kScopeTooNarrow, "acquire_of_a_block", "gpu scope at line");
  pass(FindingKind::kScopeTooNarrow, "fence_of_a_block", "gpu scope");
  for (const int across : {0, 1}) {
    expect(across != 0 ? std::optional(FindingKind::kScopeTooNarrow) : std::nullopt, "cluster_scope",
           {4, 1, 1}, {32, 1, 1}, [&](Node& node) {
             Params params;
             for (int i = 0; i < 3; ++i) params.add(node.upload(std::vector<int>(8)));
             return params.add(across);
           });
  }
}
TEST_F(Races, PartsAndWidths) {
  pass(FindingKind::kDataRace, "part_of_a_word");
  const auto words = [](Node& node) { return Params().add(node.upload(std::vector<int>(8))); };
  expect(FindingKind::kDataRace, "counters_of_two_widths", {4, 1, 1}, {1, 1, 1}, words, false,
         "bytes overlap");
  expect(FindingKind::kScopeTooNarrow, "counters_of_blocks", {4, 1, 1}, {1, 1, 1}, words);
  expect(std::nullopt, "counters_of_blocks", {1, 1, 1}, {128, 1, 1}, words);
  expect(std::nullopt, "counters", {40, 1, 1}, {128, 1, 1}, words);
  expect(FindingKind::kDataRace, "counter_and_plain_write", {2, 1, 1}, {1, 1, 1}, words);
}
TEST_F(Races, OneThreadReleasesForItsBlockAfterABarrier) {
  for (const int without : {0, 1}) {
    expect(
        without != 0 ? std::optional(FindingKind::kDataRace) : std::nullopt, "release_of_all", {2, 1, 1},
        {64, 1, 1},
        [&](Node& node) {
          Params params;
          for (int i = 0; i < 3; ++i) params.add(node.upload(std::vector<int>(64)));
          return params.add(without);
        },
        false, without != 0 ? "__syncthreads()" : "");
  }
}
TEST_F(Races, ManyAtomicsAndThenAReader) {
  // The histogram alone is silent; a second launch in another stream reads it too early.
  for (const bool same_stream : {true, false}) {
    Node node(ptx_);
    std::vector<int> values(64 * 128);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 2654435761U % 96);
    const std::uint64_t bins = node.upload(std::vector<int>(128)), from = node.upload(values);
    const std::uint64_t out = node.upload(std::vector<int>(128));
    node.launch("histogram", {64, 1, 1}, {128, 1, 1}, Params().add(bins).add(from));
    if (same_stream) {
      EXPECT_EQ(node.finish(), Progress::kIdle);
    }
    LaunchRequest request;
    request.module = node.modules[0];
    request.kernel = "sum_up";
    request.grid = {1, 1, 1};
    request.block = {128, 1, 1};
    request.params = Params().add(bins).add(out).bytes();
    if (!same_stream) request.on = node.machine->memory().order().stream(0, 7);
    ASSERT_TRUE(node.machine->launch(request).ok());
    EXPECT_EQ(node.finish(), Progress::kIdle);
    check(node, same_stream ? std::nullopt : std::optional(FindingKind::kWrongWait), "histogram");
    int total = 0;
    for (const int n : node.download<int>(bins, 128)) total += n;
    EXPECT_EQ(total, 64 * 128);
  }
}
TEST_F(Races, NeighbouringBytesAreNoRace) {
  expect(std::nullopt, "neighbours", {8, 1, 1}, {96, 1, 1},
         [](Node& node) { return Params().add(node.upload(std::vector<int>(256))); });
}

// Kernels and others in the order of streams and hosts.
TEST_F(Races, StreamsEventsAndHosts) {
  for (const bool waits : {true, false}) {
    Node node(ptx_);
    Order& order = node.machine->memory().order();
    const AgentId first = order.stream(0, 1), second = order.stream(0, 2), host = order.host(0);
    const std::uint64_t data = node.upload(std::vector<int>(128)), out = node.upload(std::vector<int>(128));
    const auto launch = [&](const char* kernel, const Params& params, AgentId on) {
      LaunchRequest request;
      request.module = node.modules[0];
      request.kernel = kernel;
      request.grid = {1, 1, 1};
      request.block = {128, 1, 1};
      request.params = params.bytes();
      request.on = on;
      ASSERT_TRUE(node.machine->launch(request).ok());
      ASSERT_EQ(node.finish(), Progress::kIdle);
    };
    launch("fill", Params().add(data).add(5), first);
    launch("sum_up", Params().add(data).add(out), first);  // the same stream
    check(node, std::nullopt, "one stream");
    if (waits) order.acquire(second, order.release(first));  // an event
    launch("fill", Params().add(data).add(6), second);
    if (waits) order.acquire(host, order.release(second));
    const Site site = make_host_site(0, "read");
    Memory::Accessor who;
    who.site = &site;
    who.pe = 0;
    who.what = "cudaMemcpy";
    who.agent = host;
    std::vector<int> got(128);
    ASSERT_TRUE(node.machine->memory().read(data, got.data(), 512, who));
    check(node, waits ? std::nullopt : std::optional(FindingKind::kDataRace), "two streams and a host");
    EXPECT_EQ(node.machine->findings().all().size(), waits ? 0U : 3U);
  }
}

// A freed object's place is as good as new.
TEST_F(Races, FreedMemoryForgets) {
  Node node(ptx_);
  Order& order = node.machine->memory().order();
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t data = node.upload(std::vector<int>(128));
    LaunchRequest request;
    request.module = node.modules[0];
    request.kernel = "fill";
    request.grid = {1, 1, 1};
    request.block = {128, 1, 1};
    request.params = Params().add(data).add(i).bytes();
    request.on = order.stream(0, static_cast<std::uint64_t>(i) + 1);
    ASSERT_TRUE(node.machine->launch(request).ok());
    ASSERT_EQ(node.finish(), Progress::kIdle);
    ASSERT_TRUE(node.machine->memory().release(data).ok());
  }
  check(node, std::nullopt, "freed");
}

}  // namespace
}  // namespace echolo::vgpu
