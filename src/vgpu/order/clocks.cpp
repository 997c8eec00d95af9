// Clocks as values: membership, union, and what was absorbed.
#include <algorithm>

#include "vgpu/order/order_state.hpp"

namespace echolo::vgpu {
namespace {

using Data = Clock::Data;

template <typename Entries, typename Key>
auto find_entry(const Entries& entries, std::uint32_t number, Key key) {
  const auto at = std::lower_bound(entries.begin(), entries.end(), number,
                                   [&](const auto& entry, std::uint32_t n) { return entry.*key < n; });
  return at != entries.end() && (*at).*key == number ? &*at : nullptr;
}

bool view_knows(const BlockView& view, std::uint32_t warp, std::uint32_t lanes, std::uint32_t clock) {
  if (clock < view.all[warp]) return true;
  if (view.lanes.empty()) return false;
  for (; lanes != 0; lanes &= lanes - 1) {
    const std::uint32_t thread = warp * kWarpSize + static_cast<std::uint32_t>(__builtin_ctz(lanes));
    const auto* found = find_entry(view.lanes, thread, &BlockView::Lane::thread);
    if (found == nullptr || clock >= found->bound) return false;
  }
  return true;
}

bool view_includes(const BlockView& a, const BlockView& b) {
  for (std::size_t i = 0; i < b.all.size(); ++i) {
    if (b.all[i] > a.all[i]) return false;
  }
  for (const BlockView::Lane& lane : b.lanes) {
    if (!view_knows(a, lane.thread / kWarpSize, 1U << (lane.thread % kWarpSize), lane.bound - 1))
      return false;
  }
  return true;
}

std::shared_ptr<const BlockView> view_merged(const BlockView& a, const BlockView& b) {
  auto out = std::make_shared<BlockView>();
  out->all.resize(a.all.size());
  for (std::size_t i = 0; i < a.all.size(); ++i) out->all[i] = std::max(a.all[i], b.all[i]);
  auto x = a.lanes.begin();
  auto y = b.lanes.begin();
  while (x != a.lanes.end() || y != b.lanes.end()) {
    BlockView::Lane lane;
    if (y == b.lanes.end() || (x != a.lanes.end() && x->thread < y->thread)) {
      lane = *x++;
    } else if (x == a.lanes.end() || y->thread < x->thread) {
      lane = *y++;
    } else {
      lane = *x++;
      lane.bound = std::max(lane.bound, (y++)->bound);
    }
    if (lane.bound > out->all[lane.thread / kWarpSize]) out->lanes.push_back(lane);
  }
  return out;
}

}  // namespace

bool Order::State::knows_agent(const Data* data, AgentId id, std::uint32_t clock) const {
  if (data == nullptr) return false;
  for (;;) {
    const auto* found = find_entry(data->agents, id.value, &Data::OfAgent::agent);
    if (found != nullptr && clock < found->bound) return true;
    const Agent& who = agent(id);
    if (who.absorbed_by.value == 0) return false;
    clock = who.absorbed_at;
    id = who.absorbed_by;
    if (is_thread(id)) return knows(data, id, clock);
  }
}

bool Order::State::knows_lanes(const Data* data, std::uint32_t warp, std::uint32_t lanes,
                               std::uint32_t clock) const {
  if (data == nullptr) return false;
  const std::uint32_t block = block_of_warp[warp];
  const BlockInfo& info = blocks[block];
  if (!data->blocks.empty()) {
    const auto* found = find_entry(data->blocks, block, &Data::OfBlock::block);
    if (found != nullptr && view_knows(*found->view, warp - info.first_warp, lanes, clock)) return true;
  }
  const GridInfo& grid = grids[info.grid];
  return grid.ended && knows_agent(data, grid.on, grid.absorbed_at);
}

bool Order::State::knows_mates(const Knowledge& known, std::uint32_t lanes, std::uint32_t clock) {
  if (clock < known.warp) return true;
  if (known.lanes == nullptr) return false;
  for (; lanes != 0; lanes &= lanes - 1) {
    if (clock >= (*known.lanes)[static_cast<std::size_t>(__builtin_ctz(lanes))]) return false;
  }
  return true;
}

bool Order::State::includes(const Data* a, const Data* b) const {
  if (a == b || b == nullptr) return true;
  if (a == nullptr) return false;
  if (b->reads != nullptr && a->reads != b->reads && !includes(a, b->reads.get()) &&
      !includes(a->reads.get(), b->reads.get()))
    return false;
  for (const Data::OfAgent& entry : b->agents) {
    if (!knows_agent(a, {entry.agent}, entry.bound - 1)) return false;
  }
  for (const Data::OfBlock& entry : b->blocks) {
    const auto* found = find_entry(a->blocks, entry.block, &Data::OfBlock::block);
    if (found != nullptr && (found->view == entry.view || view_includes(*found->view, *entry.view))) continue;
    const GridInfo& grid = grids[blocks[entry.block].grid];
    if (!grid.ended || !knows_agent(a, grid.on, grid.absorbed_at)) return false;
  }
  return true;
}

std::shared_ptr<const Data> Order::State::merged(const std::shared_ptr<const Data>& a,
                                                 const std::shared_ptr<const Data>& b) const {
  if (includes(a.get(), b.get())) return a;
  if (a == nullptr) return b;
  auto out = std::make_shared<Data>();
  out->agents.reserve(a->agents.size() + b->agents.size());
  {
    auto x = a->agents.begin();
    auto y = b->agents.begin();
    while (x != a->agents.end() || y != b->agents.end()) {
      if (y == b->agents.end() || (x != a->agents.end() && x->agent < y->agent)) {
        out->agents.push_back(*x++);
      } else if (x == a->agents.end() || y->agent < x->agent) {
        out->agents.push_back(*y++);
      } else {
        out->agents.push_back({x->agent, std::max(x->bound, y->bound)});
        ++x, ++y;
      }
    }
  }
  out->blocks.reserve(std::max(a->blocks.size(), b->blocks.size()));
  const auto add = [&](const Data::OfBlock& entry) {
    // Blocks of a grid that has ended, and of whose end is known, need no entry.
    const GridInfo& grid = grids[blocks[entry.block].grid];
    if (!grid.ended || !knows_agent(out.get(), grid.on, grid.absorbed_at)) out->blocks.push_back(entry);
  };
  auto x = a->blocks.begin();
  auto y = b->blocks.begin();
  while (x != a->blocks.end() || y != b->blocks.end()) {
    if (y == b->blocks.end() || (x != a->blocks.end() && x->block < y->block)) {
      add(*x++);
    } else if (x == a->blocks.end() || y->block < x->block) {
      add(*y++);
    } else {
      if (x->view == y->view || view_includes(*x->view, *y->view)) {
        add(*x);
      } else if (view_includes(*y->view, *x->view)) {
        add(*y);
      } else {
        add({x->block, view_merged(*x->view, *y->view)});
      }
      ++x, ++y;
    }
  }
  out->reads = a->reads == b->reads ? a->reads : merged(a->reads, b->reads);
  // Operations that somebody waited for, where that is known too.
  if (out->agents.size() > 8) {
    const Data whole = *out;
    std::erase_if(out->agents, [&](const Data::OfAgent& entry) {
      const Agent& who = agent({entry.agent});
      return who.absorbed_by.value != 0 && knows(&whole, who.absorbed_by, who.absorbed_at);
    });
  }
  return out;
}

void Order::State::absorb(AgentId parent, std::uint32_t parent_clock, const Data* data) {
  if (data == nullptr) return;
  for (const Data::OfAgent& entry : data->agents) {
    Agent& who = agent({entry.agent});
    if (!who.retired || who.parent != parent || who.absorbed_by.value != 0 || entry.bound < who.clock)
      continue;
    who.absorbed_by = parent;
    who.absorbed_at = parent_clock;
  }
}

}  // namespace echolo::vgpu
