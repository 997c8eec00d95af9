// Private to vgpu/order and to the race detector: how clocks are compressed.
//
// Every warp that ever ran has a number of its own, and a clock that advances whenever one of its lanes
// releases something. An event of a thread is (warp, lane, clock); it is known to whoever knows a bound of
// that lane above the event's clock. What a thread knows is kept by structure:
//   its own lane       everything (program order)
//   its warp           a bound for all lanes, from the last __syncwarp or barrier; a table only after partial
//                      masks
//   its block          a bound for each warp, from the last barrier, shared by the block
//   everything else    an immutable Clock::Data, shared by all that know the same
// What was absorbed needs no entry: the events of a grid that has ended belong to the stream that ran it, and
// those of a finished operation to the thread that waited for it.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "vgpu/order/entry.hpp"
#include "vgpu/order/order.hpp"

namespace echolo::vgpu {

// What is known of the warps of one block.
struct BlockView {
  struct Lane {
    std::uint32_t thread = 0;  // warp in the block * 32 + lane
    std::uint32_t bound = 0;
  };
  std::vector<std::uint32_t> all;  // by warp: a bound for all its lanes
  std::vector<Lane> lanes;         // lanes of which more is known; by thread
};

struct Clock::Data {
  struct OfBlock {
    std::uint32_t block = 0;
    std::shared_ptr<const BlockView> view;
  };
  struct OfAgent {
    std::uint32_t agent = 0;
    std::uint32_t bound = 0;
  };
  std::vector<OfBlock> blocks;  // by number
  std::vector<OfAgent> agents;  // by number
  // Known as far as reads go: whoever was told so by an operation that waits for its issuer's reads, but not
  // for its stores. Null: nothing beyond the above.
  std::shared_ptr<const Data> reads;
  std::uint64_t serial = next_serial();  // names its content
  static std::uint64_t next_serial() {
    static std::uint64_t last = 0;
    return ++last;
  }
};

using LaneBounds = std::array<std::uint32_t, kWarpSize>;

// What a thread knows, or all lanes of a warp alike; its own lane aside.
struct Knowledge {
  std::shared_ptr<const Clock::Data> foreign;
  std::shared_ptr<const std::vector<std::uint32_t>> barrier;  // by warp of its block; null: no barrier yet
  std::uint32_t warp = 0;                                     // a bound for all lanes of its own warp
  std::shared_ptr<const LaneBounds> lanes;                    // of its own warp, beyond that; null: nothing
};

// What a fence of these lanes lets a later strong write release.
struct FenceMark {
  std::uint32_t mask = 0;
  Knowledge known;
  std::uint32_t bound = 0;  // of the own lane
  ptx::Scope scope{};
};

// What relaxed reads of these lanes saw, which a fence after them acquires.
struct PendingAcquire {
  std::uint32_t mask = 0;
  Clock clock;
  ptx::Scope first_scope{};
  std::uint32_t writer = 0;
};

struct BlockOrder;

struct WarpOrder {
  BlockOrder* block = nullptr;
  std::uint32_t number = 0;  // among all warps that ever ran
  std::uint32_t in_block = 0;
  std::uint32_t clock = 1;
  std::uint32_t proxied = 0;  // accesses below this clock came before a proxy fence
  Knowledge common;           // of all lanes, where `each` is null
  std::unique_ptr<std::array<Knowledge, kWarpSize>> each;
  std::vector<FenceMark> fences;  // disjoint masks
  std::vector<PendingAcquire> pending;

  const Knowledge& of(int lane) const { return each ? (*each)[static_cast<std::size_t>(lane)] : common; }
};

struct BlockOrder {
  std::uint32_t number = 0;
  std::uint32_t grid = 0;
  std::uint32_t first_warp = 0;
  std::vector<WarpOrder> warps;
  // What arrived at a barrier that not everybody has reached, by its number: see Order::arrive.
  struct Gathering {
    bool open = false;
    std::vector<std::uint32_t> bounds;  // by warp: for all lanes
    std::vector<BlockView::Lane> lanes;
    std::shared_ptr<const Clock::Data> foreign;
  };
  std::array<Gathering, 16> gathering;
  // The shadow of its shared memory. `since` says, for each line, in which epoch its cell was touched last:
  // what lies before the block's begin is of the block that had this place before. An epoch ends when all
  // threads of the block were at a barrier. While nobody else reaches the block's shared memory (`closed`:
  // no cluster, no asynchronous copies), all that was touched in an earlier epoch is known to everybody who
  // ever asks, and forgotten.
  std::vector<LineCell> cells;
  std::vector<std::uint32_t> since;
  std::uint32_t begun = 0, epoch = 0;
  bool closed = true;
};

class Races;

struct Order::State {
  Races* races = nullptr;  // whoever turns relaxed reads before a fence into acquires
  static const std::shared_ptr<const Clock::Data>& data_of(const Clock& clock) { return clock.data_; }
  static Clock clock_of(std::shared_ptr<const Clock::Data> data) {
    Clock out;
    out.data_ = std::move(data);
    return out;
  }

  static constexpr std::uint32_t kOther = 0x80000000U;  // agents that are no threads

  struct GridInfo {
    int pe = 0;
    int call = 0;
    std::uint64_t launch_id = 0;
    std::uint32_t ordinal = 0;  // among the launches of its PE
    Dim3 grid_dim, block_dim;
    std::shared_ptr<const Clock::Data> base;    // what its threads know when they begin
    std::shared_ptr<const Clock::Data> gained;  // what the threads of its blocks had learned when they ended
    AgentId on;
    bool ended = false;
    std::uint32_t absorbed_at = 0;  // clock of `on` when it ended
    const ptx::Module* module = nullptr;
    const ptx::Function* kernel = nullptr;
  };
  struct BlockInfo {
    std::uint32_t grid = 0;
    std::uint32_t linear = 0;
    std::uint32_t first_warp = 0;
    std::uint32_t cluster = 0;  // 1 + its number in the grid; 0: none
  };
  struct Agent {
    AgentKind kind{};
    int pe = -1;
    std::uint32_t clock = 1;
    std::shared_ptr<const Clock::Data> known;
    AgentId parent;
    bool retired = false;
    AgentId absorbed_by;
    std::uint32_t absorbed_at = 0;
    std::uint32_t issued = 0;  // index of `sites`; 0: none
    std::string what;
  };

  std::vector<GridInfo> grids{1};
  std::vector<BlockInfo> blocks{1};
  std::vector<std::uint32_t> block_of_warp{0};                   // by number
  std::vector<WarpOrder*> live_warps{nullptr};                   // by number; null: ended
  std::map<std::uint32_t, std::unique_ptr<BlockOrder>> running;  // by block
  std::vector<std::unique_ptr<BlockOrder>> pool;
  std::vector<Agent> agents{1};
  std::deque<Site> sites{1};
  std::map<int, std::uint32_t> launches;  // a PE
  std::map<int, AgentId> hosts;
  std::map<std::pair<int, std::uint64_t>, AgentId> streams;

  static bool is_thread(AgentId id) { return id.value != 0 && (id.value & kOther) == 0; }
  static std::uint32_t warp_of(AgentId id) { return id.value / kWarpSize; }
  static int lane_of(AgentId id) { return static_cast<int>(id.value % kWarpSize); }
  Agent& agent(AgentId id) { return agents[id.value & ~kOther]; }
  const Agent& agent(AgentId id) const { return agents[id.value & ~kOther]; }
  AgentId add_agent(AgentKind kind, int pe);

  // Does `data` know all events up to `clock` (included) of these lanes, or of this agent?
  bool knows_lanes(const Clock::Data* data, std::uint32_t warp, std::uint32_t lanes,
                   std::uint32_t clock) const;
  bool knows_agent(const Clock::Data* data, AgentId agent, std::uint32_t clock) const;
  bool knows(const Clock::Data* data, AgentId agent, std::uint32_t clock) const {
    return is_thread(agent)
               ? knows_lanes(data, warp_of(agent), 1U << static_cast<unsigned>(lane_of(agent)), clock)
               : knows_agent(data, agent, clock);
  }
  // The same asked of a lane that runs, own lane aside.
  bool lane_knows(const WarpOrder& warp, const Knowledge& known, std::uint32_t other_warp,
                  std::uint32_t lanes, std::uint32_t clock) const {
    const BlockOrder& block = *warp.block;
    const std::uint32_t at = other_warp - block.first_warp;
    if (at < block.warps.size()) {
      if (known.barrier != nullptr && clock < (*known.barrier)[at]) return true;
      if (other_warp == warp.number && knows_mates(known, lanes, clock)) return true;
    }
    return knows_lanes(known.foreign.get(), other_warp, lanes, clock);
  }
  static bool knows_mates(const Knowledge& known, std::uint32_t lanes, std::uint32_t clock);

  bool includes(const Clock::Data* data, const Clock::Data* other) const;
  std::shared_ptr<const Clock::Data> merged(const std::shared_ptr<const Clock::Data>& a,
                                            const std::shared_ptr<const Clock::Data>& b) const;
  // All that `lane` of a running warp did up to `bound` (excluded) and knows.
  std::shared_ptr<const Clock::Data> snapshot(const WarpOrder& warp, const Knowledge& known, int lane,
                                              std::uint32_t bound) const;
  void absorb(AgentId parent, std::uint32_t parent_clock, const Clock::Data* data);
  void learn(Knowledge& known, const std::shared_ptr<const Clock::Data>& data) const {
    known.foreign = merged(known.foreign, data);
  }
};

}  // namespace echolo::vgpu
