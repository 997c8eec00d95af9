// The toolkit's headers at work: cooperative groups, libcu++, CUB, and the device's heap.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class CoreHeaders : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("headers.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  static std::vector<int> values(std::size_t n) {
    std::vector<int> out(n);
    for (std::size_t i = 0; i < n; ++i) out[i] = static_cast<int>((i * 37 + 11) % 101);
    return out;
  }
  static void expect_clean(Node& node) {
    const Progress progress = node.finish();
    EXPECT_EQ(progress, Progress::kIdle) << node.explain(progress);
    for (const Finding& finding : node.machine->findings().all()) ADD_FAILURE() << render(finding, {});
  }
  // Runs a kernel (in, out) of one block.
  std::vector<int> run(const std::string& kernel, std::uint32_t threads, const std::vector<int>& in,
                       std::size_t n_out, Params further = {}, std::uint32_t shared = 0) {
    Node node(ptx_, 1, Policy::kRandom, 3);
    const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(n_out, -1));
    Params params;
    params.add(from).add(to);
    if (!further.bytes().empty()) {
      int last = 0;
      std::memcpy(&last, further.bytes().data(), sizeof last);
      params.add(last);
    }
    node.launch(kernel, {1, 1, 1}, {threads, 1, 1}, params, 0, shared);
    expect_clean(node);
    return node.download<int>(to, n_out);
  }
  std::string ptx_;
};

TEST_F(CoreHeaders, TilesReduceAndScan) {
  const std::vector<int> in = values(128), out = run("tiles", 128, in, 256);
  for (std::size_t i = 0; i < 128; ++i) {
    const auto begin = in.begin() + static_cast<std::ptrdiff_t>(i / 16 * 16);
    EXPECT_EQ(out[i], std::accumulate(begin, begin + 16, 0)) << i;
    EXPECT_EQ(out[128 + i], std::accumulate(begin, begin + static_cast<std::ptrdiff_t>(i % 16) + 1, 0)) << i;
  }
}

TEST_F(CoreHeaders, GroupCopies) {
  const std::vector<int> in = values(300), out = run("group_copy", 64, in, 300, Params().add(300), 1200);
  EXPECT_EQ(out, std::vector<int>(in.rbegin(), in.rend()));
}

TEST_F(CoreHeaders, GridSync) {
  Node node(ptx_);
  const std::uint64_t data = node.upload(std::vector<int>(256)), total = node.upload(std::vector<int>(1));
  node.launch("grid_sum", {4, 1, 1}, {64, 1, 1}, Params().add(data).add(total), 0, 0, true);
  expect_clean(node);
  EXPECT_EQ(node.download<int>(total, 1)[0], 255 * 256 / 2);
}

TEST_F(CoreHeaders, HistogramInDistributedSharedMemory) {
  Node node(ptx_, 1, Policy::kRandom, 5);
  const std::vector<int> in = values(500);
  const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(64));
  node.launch("cluster_histogram", {2, 1, 1}, {64, 1, 1}, Params().add(from).add(to).add(500));
  expect_clean(node);
  std::vector<int> expected(64);
  for (const int value : in) ++expected[static_cast<std::size_t>(value % 64)];
  EXPECT_EQ(node.download<int>(to, 64), expected);
}

TEST_F(CoreHeaders, AtomicReferences) {
  Node node(ptx_);
  const std::uint64_t count = node.upload(std::vector<int>(1));
  const std::uint64_t most = node.upload(std::vector<std::uint64_t>(1));
  const std::uint64_t sum = node.upload(std::vector<float>(1));
  node.launch("references", {3, 1, 1}, {64, 1, 1}, Params().add(count).add(most).add(sum));
  expect_clean(node);
  EXPECT_EQ(node.download<int>(count, 1)[0], 384);
  EXPECT_EQ(node.download<std::uint64_t>(most, 1)[0], 83U);
  EXPECT_EQ(node.download<float>(sum, 1)[0], 96.0F);
}

TEST_F(CoreHeaders, BarriersOfTheLibrary) {
  const std::vector<int> in = values(128), out = run("barriers", 128, in, 384);
  for (std::size_t i = 0; i < 384; ++i) EXPECT_EQ(out[i], in[127 - i % 128] + static_cast<int>(i / 128));
  const std::vector<int> bulk = run("bulk_barrier", 128, in, 128);
  for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(bulk[i], 3 * in[i]);
}

TEST_F(CoreHeaders, Pipelines) {
  const std::vector<int> in = values(128 * 5), out = run("pipelined", 128, in, 128 * 5, Params().add(5));
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], in[i / 128 * 128 + 127 - i % 128]) << i;
}

TEST_F(CoreHeaders, BlockPrimitives) {
  const std::vector<int> in = values(256), out = run("block_primitives", 128, in, 389);
  EXPECT_EQ(out[0], std::accumulate(in.begin(), in.begin() + 128, 0));
  for (std::ptrdiff_t i = 0; i < 128; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(1 + i)], std::accumulate(in.begin(), in.begin() + i, 0)) << i;
  std::vector<int> sorted = in;
  std::sort(sorted.begin(), sorted.end());
  EXPECT_TRUE(std::equal(sorted.begin(), sorted.end(), out.begin() + 129));
  for (std::ptrdiff_t w = 0; w < 4; ++w) {
    EXPECT_EQ(out[static_cast<std::size_t>(385 + w)],
              std::accumulate(in.begin() + 32 * w, in.begin() + 32 * (w + 1), 0));
  }
}

TEST_F(CoreHeaders, TheDevicesHeap) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(64));
  const std::size_t before = node.machine->memory().live_allocations(-1).size();
  node.launch("heap", {1, 1, 1}, {64, 1, 1}, Params().add(out).add(0));
  expect_clean(node);
  EXPECT_EQ(node.machine->memory().live_allocations(-1).size(), before);
  const std::vector<int> got = node.download<int>(out, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 6 + 4 * i);
  node.launch("heap", {1, 1, 1}, {2, 1, 1}, Params().add(out).add(1));
  expect_clean(node);
  report_leaks(node.machine->memory(), node.machine->findings());
  std::string leaks;
  for (const Finding& finding : node.machine->findings().all()) leaks += render(finding, {});
  EXPECT_NE(leaks.find("malloc() of a kernel"), std::string::npos) << leaks;
}

TEST_F(CoreHeaders, PastTheEndOfTheHeapsMemory) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(1));
  node.launch("heap_overrun", {1, 1, 1}, {1, 1, 1}, Params().add(out));
  EXPECT_EQ(node.finish(), Progress::kFaulted);
  EXPECT_EQ(node.machine->findings().all()[0].kind, FindingKind::kOutOfBounds);
}

}  // namespace
}  // namespace echolo::vgpu
