// Asynchronous copies, mbarriers, clusters, multicast and TMA, end to end.
#include <gtest/gtest.h>

#include <numeric>

#include "core_harness.hpp"
#include "vgpu/memory/tensor_map.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

class CoreAsync : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEEDS_NVCC();
    ptx_ = compile_kernels("async.cu");
    ASSERT_FALSE(ptx_.empty());
  }
  static std::vector<int> counting(std::size_t n) {
    std::vector<int> values(n);
    std::iota(values.begin(), values.end(), 1);
    return values;
  }
  static void expect_clean(Node& node, Progress progress) {
    EXPECT_EQ(progress, Progress::kIdle) << node.explain(progress);
    for (const Finding& finding : node.machine->findings().all()) ADD_FAILURE() << render(finding, {});
  }
  std::string ptx_;
};

TEST_F(CoreAsync, CopiesMoveWhenTheirGroupIsWaitedFor) {
  Node node(ptx_);
  const std::vector<int> in = counting(96);
  const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(64));
  node.launch("copy_groups", {1, 1, 1}, {32, 1, 1}, Params().add(from).add(to));
  expect_clean(node, node.finish());
  const std::vector<int> out = node.download<int>(to, 64);
  for (int i = 0; i < 32; ++i) {
    const auto at = static_cast<std::size_t>(i);
    EXPECT_EQ(out[at], in[at] + 1000 * in[at + 32]);
    EXPECT_EQ(out[at + 32], in[at + 64]);
  }
}

TEST_F(CoreAsync, ACopyIsNotSeenBeforeItIsWaitedFor) {
  Node node(ptx_);
  const std::uint64_t from = node.upload(counting(32)), to = node.upload(std::vector<int>(32));
  node.launch("copy_not_waited", {1, 1, 1}, {32, 1, 1}, Params().add(from).add(to));
  EXPECT_EQ(node.finish(), Progress::kIdle);
  EXPECT_EQ(node.download<int>(to, 32), std::vector<int>(32, -7));
}

TEST_F(CoreAsync, CopiesArriveAtABarrier) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Node node(ptx_, 1, Policy::kRandom, seed);
    const std::vector<int> in = counting(64);
    const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(64));
    node.launch("copy_then_barrier", {1, 1, 1}, {64, 1, 1}, Params().add(from).add(to));
    expect_clean(node, node.finish());
    std::vector<int> expected(in.rbegin(), in.rend());
    EXPECT_EQ(node.download<int>(to, 64), expected);
  }
}

TEST_F(CoreAsync, BulkCopiesThroughARing) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Node node(ptx_, 1, seed == 1 ? Policy::kFair : Policy::kRandom, seed);
    const std::vector<int> in = counting(256 * 7);
    const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(256 * 7));
    node.launch("bulk_ring", {1, 1, 1}, {256, 1, 1}, Params().add(from).add(to).add(7));
    expect_clean(node, node.finish());
    const std::vector<int> out = node.download<int>(to, 256 * 7);
    for (std::size_t i = 0; i < out.size(); ++i)
      ASSERT_EQ(out[i], 2 * in[i / 256 * 256 + 255 - i % 256]) << i;
  }
}

TEST_F(CoreAsync, BulkReductionsAddUp) {
  Node node(ptx_);
  const std::uint64_t from = node.upload(counting(64)), to = node.upload(std::vector<int>(64, 1000));
  node.launch("bulk_reduce", {5, 1, 1}, {64, 1, 1}, Params().add(from).add(to));
  expect_clean(node, node.finish());
  const std::vector<int> out = node.download<int>(to, 64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], 1000 + 5 * (i + 1));
}

TEST_F(CoreAsync, ABlockThatEndsBeforeItsCopyIsAFinding) {
  Node node(ptx_);
  const std::uint64_t from = node.upload(counting(64));
  node.launch("bulk_never_waited", {1, 1, 1}, {1, 1, 1}, Params().add(from));
  EXPECT_EQ(node.finish(), Progress::kIdle);
  ASSERT_EQ(node.machine->findings().all().size(), 1U);
  EXPECT_EQ(node.machine->findings().all()[0].kind, FindingKind::kEarlyExit);
}

TEST_F(CoreAsync, BytesThatNeverComeAreADeadlock) {
  Node node(ptx_);
  const std::uint64_t from = node.upload(counting(64)), to = node.upload(std::vector<int>(64));
  node.launch("wait_for_ever", {1, 1, 1}, {64, 1, 1}, Params().add(from).add(to));
  EXPECT_EQ(node.finish(), Progress::kStuck);
  const std::string text = node.explain(Progress::kStuck);
  EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
  EXPECT_NE(text.find("a phase of the mbarrier bar in shared memory to end; 0 of 1 arrival and 256 bytes are "
                      "missing"),
            std::string::npos)
      << text;
}

TEST_F(CoreAsync, ClustersReachEachOthersSharedMemory) {
  for (const std::uint64_t seed : {1U, 2U}) {
    Node node(ptx_, 1, seed == 1 ? Policy::kFair : Policy::kRandom, seed);
    const std::uint64_t out = node.upload(std::vector<int>(32 * 8));
    node.launch("cluster_ring", {8, 1, 1}, {32, 1, 1}, Params().add(out));
    expect_clean(node, node.finish());
    const std::vector<int> got = node.download<int>(out, 32 * 8);
    for (int i = 0; i < 256; ++i) {
      const int block = i / 32, next = block / 4 * 4 + (block + 1) % 4;
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 1000000 + 100 * next + i % 32) << i;
    }
  }
}

TEST_F(CoreAsync, NumbersOfAClusterInTwoDimensions) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<std::uint32_t>(8 * 24));
  LaunchRequest request;
  request.module = node.modules[0];
  request.kernel = "cluster_numbers";
  request.grid = {6, 4, 1};
  request.block = {1, 1, 1};
  request.cluster = {2, 2, 1};
  request.params = Params().add(out).bytes();
  ASSERT_TRUE(node.machine->launch(request).ok());
  expect_clean(node, node.finish());
  const auto got = node.download<std::uint32_t>(out, 8 * 24);
  for (std::uint32_t y = 0; y < 4; ++y) {
    for (std::uint32_t x = 0; x < 6; ++x) {
      const std::uint32_t* v = &got[8 * std::size_t{y * 6 + x}];
      const std::uint32_t expected[8] = {x % 2 + 2 * (y % 2), 4, x / 2, y / 2, x % 2, y % 2, 3, 2};
      for (int i = 0; i < 8; ++i) EXPECT_EQ(v[i], expected[i]) << x << ' ' << y << ' ' << i;
    }
  }
  request.grid = {5, 4, 1};
  const auto refused = node.machine->launch(request);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("cudaErrorInvalidClusterSize"), std::string::npos);
}

TEST_F(CoreAsync, SharedMemoryOfABlockThatHasEnded) {
  Node node(ptx_);
  const std::uint64_t out = node.upload(std::vector<int>(1));
  node.launch("cluster_leaves", {2, 1, 1}, {1, 1, 1}, Params().add(out));
  EXPECT_EQ(node.finish(), Progress::kFaulted);
  EXPECT_EQ(node.machine->findings().all()[0].kind, FindingKind::kEarlyExit);
}

TEST_F(CoreAsync, MulticastAndRemoteBarriers) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    Node node(ptx_, 1, seed == 1 ? Policy::kFair : Policy::kRandom, seed);
    const std::vector<int> in = counting(64);
    const std::uint64_t from = node.upload(in), out = node.upload(std::vector<int>(130));
    node.launch("multicast", {2, 1, 1}, {64, 1, 1}, Params().add(from).add(out));
    expect_clean(node, node.finish());
    const std::vector<int> got = node.download<int>(out, 130);
    for (std::size_t i = 0; i < 128; ++i) EXPECT_EQ(got[i], in[i % 64] + static_cast<int>(i / 64)) << i;
    EXPECT_EQ(got[128], 640);
    EXPECT_EQ(got[129], 641);
  }
}

// A tensor of 20 rows of 36 columns, tiles of 16 rows of 32.
TEST_F(CoreAsync, TensorTilesSwizzledAndClipped) {
  constexpr int kColumns = 36, kRows = 20;
  for (const TensorSwizzle swizzle : {TensorSwizzle::kNone, TensorSwizzle::k128}) {
    for (const auto& [x, y] : {std::pair{0, 0}, std::pair{8, 10}, std::pair{-4, -2}}) {
      Node node(ptx_);
      const std::vector<int> in = counting(kRows * kColumns);
      const std::uint64_t from = node.upload(in), to = node.upload(std::vector<int>(kRows * kColumns, -1));
      const std::uint64_t sum = node.upload(std::vector<int>(kRows * kColumns, 5000));
      const std::uint64_t raw = node.upload(std::vector<int>(512));
      TensorMap map;
      map.rank = 2;
      map.element = 4;
      map.type = 3;
      map.swizzle = swizzle;
      map.last[0] = kColumns - 1;
      map.last[1] = kRows - 1;
      map.strides[0] = kColumns * 4;
      map.box[0] = 32;
      map.box[1] = 16;
      TensorMap maps[3] = {map, map, map};
      maps[0].address = from;
      maps[1].address = to;
      maps[2].address = sum;
      Params params;
      std::vector<std::uint8_t> bytes(sizeof maps + 16);
      std::memcpy(bytes.data(), maps, sizeof maps);
      std::memcpy(bytes.data() + sizeof maps, &x, 4);
      std::memcpy(bytes.data() + sizeof maps + 4, &y, 4);
      std::memcpy(bytes.data() + sizeof maps + 8, &raw, 8);
      LaunchRequest request;
      request.module = node.modules[0];
      request.kernel = "tensor_tile";
      request.block = {64, 1, 1};
      request.params = bytes;
      const auto id = node.machine->launch(request);
      ASSERT_TRUE(id.ok()) << id.error().render();
      expect_clean(node, node.finish());
      const std::vector<int> tile = node.download<int>(raw, 512);
      for (int r = 0; r < 16; ++r) {
        for (int c = 0; c < 32; ++c) {
          const int row = y + r, column = x + c;
          const bool inside = row >= 0 && row < kRows && column >= 0 && column < kColumns;
          const int expected = inside ? in[static_cast<std::size_t>(row * kColumns + column)] : 0;
          const int chunk = swizzle == TensorSwizzle::kNone ? c / 4 : (c / 4) ^ (r % 8);
          ASSERT_EQ(tile[static_cast<std::size_t>(r * 32 + chunk * 4 + c % 4)], expected) << r << ' ' << c;
        }
      }
      const std::vector<int> stored = node.download<int>(to, kRows * kColumns);
      const std::vector<int> summed = node.download<int>(sum, kRows * kColumns);
      for (int row = 0; row < kRows; ++row) {
        for (int column = 0; column < kColumns; ++column) {
          const auto at = static_cast<std::size_t>(row * kColumns + column);
          const bool hit = row >= y && row < y + 16 && column >= x && column < x + 32;
          ASSERT_EQ(stored[at], hit ? in[at] + 1 : -1) << row << ' ' << column;
          ASSERT_EQ(summed[at], hit ? 5000 + in[at] + 1 : 5000) << row << ' ' << column;
        }
      }
    }
  }
}

// Rows shorter than the swizzle's span are that far apart nevertheless; a tile begins at a multiple of 16
// bytes. Both as an H200 does.
TEST_F(CoreAsync, TensorTilesWithShortRows) {
  TensorMap map;
  map.rank = 2;
  map.element = 4;
  map.type = 3;
  map.last[0] = map.last[1] = 63;
  map.strides[0] = 256;
  map.box[0] = 16;
  map.box[1] = 16;
  map.swizzle = TensorSwizzle::k128;
  for (const int x : {4, 2}) {
    Node node(ptx_);
    const std::vector<int> in = counting(64 * 64);
    const std::uint64_t raw = node.upload(std::vector<int>(512));
    map.address = node.upload(in);
    std::vector<std::uint8_t> bytes(sizeof map + 16);
    std::memcpy(bytes.data(), &map, sizeof map);
    std::memcpy(bytes.data() + sizeof map, &x, 4);
    std::memcpy(bytes.data() + sizeof map + 8, &raw, 8);
    LaunchRequest request;
    request.module = node.modules[0];
    request.kernel = "narrow_tile";
    request.params = bytes;
    ASSERT_TRUE(node.machine->launch(request).ok());
    if (x == 2) {
      EXPECT_EQ(node.finish(), Progress::kFaulted);
      EXPECT_EQ(node.machine->findings().all()[0].kind, FindingKind::kMisaligned);
      continue;
    }
    expect_clean(node, node.finish());
    const std::vector<int> tile = node.download<int>(raw, 512);
    for (int r = 0; r < 16; ++r) {
      for (int c = 0; c < 32; ++c) {
        const int at = 32 * r + 4 * ((c / 4) ^ (r % 8)) + c % 4;
        ASSERT_EQ(tile[static_cast<std::size_t>(at)], c < 16 ? 64 * r + x + c + 1 : -5) << r << ' ' << c;
      }
    }
  }
}

}  // namespace
}  // namespace echolo::vgpu
