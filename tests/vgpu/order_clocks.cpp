// The algebra of clocks: who knows of what after barriers, partial masks, releases, launches and operations.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "vgpu/order/order_state.hpp"

namespace echolo::vgpu {
namespace {

struct Stage {
  Order order;
  std::vector<std::unique_ptr<Grid>> grids;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<std::unique_ptr<Warp>> warps;

  Grid& grid(int pe = 0, AgentId on = {}) {
    grids.push_back(std::make_unique<Grid>());
    grids.back()->pe = pe;
    order.begin_grid(*grids.back(), on);
    return *grids.back();
  }
  Block& block(Grid& grid, std::uint32_t n_warps) {
    blocks.push_back(std::make_unique<Block>());
    Block& block = *blocks.back();
    block.grid = &grid;
    order.begin_block(block, n_warps);
    for (std::uint32_t i = 0; i < n_warps; ++i) {
      warps.push_back(std::make_unique<Warp>());
      warps.back()->block = &block;
      warps.back()->order = order.warp_of(block, i);
      warps.back()->live = kAllLanes;
      warps.back()->index_in_block = i;
    }
    return block;
  }
  Warp& warp(std::size_t i) { return *warps[i]; }
  AgentId thread(std::size_t warp, int lane) { return order.thread(*warps[warp], lane); }
  // What `agent` does now; ask later whether `other` comes after it.
  struct Event {
    AgentId agent;
    std::uint32_t at;
  };
  Event event(AgentId agent) const { return {agent, order.time_of(agent)}; }
  bool known(const Event& event, AgentId to) const {
    return order.happened_before(event.agent, event.at, to);
  }
};

TEST(OrderClocks, LockstepOrdersNothing) {
  Stage s;
  s.block(s.grid(), 1);
  const auto write = s.event(s.thread(0, 3));
  EXPECT_TRUE(s.known(write, s.thread(0, 3)));
  EXPECT_FALSE(s.known(write, s.thread(0, 4)));
  s.order.warp_sync(s.warp(0), kAllLanes);
  EXPECT_TRUE(s.known(write, s.thread(0, 4)));
  EXPECT_FALSE(s.known(s.event(s.thread(0, 3)), s.thread(0, 4)));
}

TEST(OrderClocks, PartialMasksOrderTheirLanesOnly) {
  Stage s;
  s.block(s.grid(), 1);
  const auto a = s.event(s.thread(0, 0));
  s.order.warp_sync(s.warp(0), 0x3);
  EXPECT_TRUE(s.known(a, s.thread(0, 1)));
  EXPECT_FALSE(s.known(a, s.thread(0, 2)));
  s.order.warp_sync(s.warp(0), 0x6);
  EXPECT_TRUE(s.known(a, s.thread(0, 2))) << "through lane 1";
  EXPECT_FALSE(s.known(a, s.thread(0, 3)));
  const auto b = s.event(s.thread(0, 2));
  s.order.warp_sync(s.warp(0), kAllLanes);
  EXPECT_TRUE(s.known(a, s.thread(0, 31)));
  EXPECT_TRUE(s.known(b, s.thread(0, 31)));
}

TEST(OrderClocks, ABarrierOrdersTheBlockAndNoOther) {
  Stage s;
  Grid& grid = s.grid();
  Block& first = s.block(grid, 4);
  s.block(grid, 2);
  const auto write = s.event(s.thread(1, 7));
  EXPECT_FALSE(s.known(write, s.thread(3, 0)));
  s.order.block_barrier(first);
  EXPECT_TRUE(s.known(write, s.thread(3, 0)));
  EXPECT_FALSE(s.known(s.event(s.thread(1, 7)), s.thread(3, 0)));
  EXPECT_FALSE(s.known(write, s.thread(4, 0)));
}

TEST(OrderClocks, NamedBarriersOrderThoseWhoTakePart) {
  Stage s;
  Block& block = s.block(s.grid(), 4);
  const auto produced = s.event(s.thread(0, 5));
  const auto other = s.event(s.thread(2, 5));
  s.order.arrive(s.warp(0), kAllLanes, 1);  // bar.arrive
  s.order.arrive(s.warp(1), kAllLanes, 1);
  s.order.leave(s.warp(1), kAllLanes, 1);
  s.order.close(block, 1);
  EXPECT_TRUE(s.known(produced, s.thread(1, 9)));
  EXPECT_FALSE(s.known(produced, s.thread(3, 9)));
  EXPECT_FALSE(s.known(other, s.thread(1, 9)));
  EXPECT_FALSE(s.known(s.event(s.thread(1, 0)), s.thread(0, 0))) << "who only arrives learns nothing";
  // Knowledge passes on from barrier to barrier.
  s.order.arrive(s.warp(1), kAllLanes, 2);
  s.order.arrive(s.warp(3), kAllLanes, 2);
  s.order.leave(s.warp(1), kAllLanes, 2);
  s.order.leave(s.warp(3), kAllLanes, 2);
  s.order.close(block, 2);
  EXPECT_TRUE(s.known(produced, s.thread(3, 9)));
}

TEST(OrderClocks, AReleaseCoversTheThreadAndWhatItKnows) {
  Stage s;
  Grid& grid = s.grid();
  Block& first = s.block(grid, 2);
  s.block(grid, 1);
  const auto before = s.event(s.thread(1, 17));
  s.order.block_barrier(first);
  const auto own = s.event(s.thread(0, 0));
  const auto mate = s.event(s.thread(0, 1));
  const Clock clock = s.order.release(s.thread(0, 0));
  const auto after = s.event(s.thread(0, 0));
  s.order.acquire(s.thread(2, 4), clock);
  EXPECT_TRUE(s.known(before, s.thread(2, 4)));
  EXPECT_TRUE(s.known(own, s.thread(2, 4)));
  EXPECT_FALSE(s.known(mate, s.thread(2, 4)));
  EXPECT_FALSE(s.known(after, s.thread(2, 4)));
  EXPECT_FALSE(s.known(own, s.thread(2, 5)));
  s.order.warp_sync(s.warp(2), kAllLanes);
  EXPECT_TRUE(s.known(own, s.thread(2, 5)));
  EXPECT_TRUE(s.order.covers(clock, s.thread(0, 0)) == false) << "it has gone on since";
}

TEST(OrderClocks, ChainsOfManyBlocksMerge) {
  Stage s;
  Grid& grid = s.grid();
  std::vector<Stage::Event> writes;
  Clock chain;
  for (std::size_t i = 0; i < 100; ++i) {
    s.block(grid, 1);
    writes.push_back(s.event(s.thread(i, 0)));
    s.order.acquire(s.thread(i, 0), chain);
    s.order.merge(chain, s.order.release(s.thread(i, 0)));
  }
  for (std::size_t i = 0; i < 100; ++i) {
    EXPECT_TRUE(s.known(writes[i], s.thread(99, 0)));
    if (i < 98) {
      EXPECT_FALSE(s.known(writes[i + 1], s.thread(i, 0)));
    }
  }
}

TEST(OrderClocks, AGridsEndBelongsToItsStream) {
  Stage s;
  const AgentId stream = s.order.stream(0, 7), other = s.order.stream(0, 8), host = s.order.host(0);
  const auto filled = s.event(stream);
  Grid& grid = s.grid(0, stream);
  Block& block = s.block(grid, 2);
  EXPECT_TRUE(s.known(filled, s.thread(0, 0)));
  const auto write = s.event(s.thread(1, 3));
  s.order.end_block(block);
  EXPECT_FALSE(s.known(write, host));
  s.order.end_grid(grid);
  EXPECT_TRUE(s.known(write, stream));
  EXPECT_FALSE(s.known(write, other));
  const Clock end = s.order.release(stream);
  s.order.acquire(other, end);
  EXPECT_TRUE(s.known(write, other));
  EXPECT_FALSE(s.known(write, host));
  s.order.acquire(host, end);
  EXPECT_TRUE(s.known(write, host));
  // The next grid of the other stream knows it all.
  s.block(s.grid(0, other), 1);
  EXPECT_TRUE(s.known(write, s.thread(2, 0)));
  s.block(s.grid(1, s.order.stream(1, 7)), 1);
  EXPECT_FALSE(s.known(write, s.thread(3, 0)));
}

TEST(OrderClocks, AnOperationIsKnownToWhoWaitedForIt) {
  Stage s;
  Block& block = s.block(s.grid(), 2);
  s.block(s.grid(1), 1);
  const auto source = s.event(s.thread(0, 0));
  const AgentId put = s.order.spawn(s.thread(0, 0), AgentKind::kPut, 0, "nvshmem_putmem_nbi");
  EXPECT_TRUE(s.known(source, put));
  const auto delivered = s.event(put);
  EXPECT_FALSE(s.known(s.event(s.thread(0, 0)), put)) << "what the thread does next is not in it";
  EXPECT_FALSE(s.known(delivered, s.thread(0, 0)));
  const Clock done = s.order.release(put);
  s.order.retire(put);
  EXPECT_FALSE(s.known(delivered, s.thread(0, 0)));
  s.order.acquire(s.thread(0, 0), done);  // quiet
  EXPECT_TRUE(s.known(delivered, s.thread(0, 0)));
  s.order.block_barrier(block);
  EXPECT_TRUE(s.known(delivered, s.thread(1, 3)));
  s.order.acquire(s.thread(2, 0), s.order.release(s.thread(1, 3)));
  EXPECT_TRUE(s.known(delivered, s.thread(2, 0)));
}

TEST(OrderClocks, ThousandsOfOperationsLeaveShortClocks) {
  Stage s;
  s.block(s.grid(), 1);
  s.block(s.grid(1), 1);
  const AgentId thread = s.thread(0, 0);
  std::vector<Stage::Event> all;
  for (int i = 0; i < 2000; ++i) {
    const AgentId put = s.order.spawn(thread, AgentKind::kPut, 0, "nvshmem_p");
    all.push_back(s.event(put));
    const Clock done = s.order.release(put);
    s.order.retire(put);
    s.order.acquire(thread, done);
  }
  Clock clock = s.order.release(thread);
  s.order.acquire(s.thread(1, 0), clock);
  for (const auto& event : all) EXPECT_TRUE(s.known(event, s.thread(1, 0)));
  EXPECT_LT(s.warp(0).order->of(0).foreign->agents.size(), 32U);
}

TEST(OrderClocks, AFenceIsRememberedAsOfItsTime) {
  Stage s;
  s.block(s.grid(), 1);
  const auto before = s.event(s.thread(0, 2));
  s.order.fence(s.warp(0), 0x4, ptx::Scope::kSys);
  const auto after = s.event(s.thread(0, 2));
  const WarpOrder& warp = *s.warp(0).order;
  ASSERT_EQ(warp.fences.size(), 1U);
  EXPECT_LT(before.at, warp.fences[0].bound);
  EXPECT_GE(after.at, warp.fences[0].bound);
  s.order.fence(s.warp(0), 0xc, ptx::Scope::kGpu);
  ASSERT_EQ(warp.fences.size(), 1U);
  EXPECT_EQ(warp.fences[0].mask, 0xcU);
}

}  // namespace
}  // namespace echolo::vgpu
