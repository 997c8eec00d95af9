#include "vgpu/order/order.hpp"

#include <algorithm>
#include <bit>

#include "vgpu/order/order_state.hpp"
#include "vgpu/order/races.hpp"

namespace echolo::vgpu {

using Data = Clock::Data;
using DataPtr = std::shared_ptr<const Data>;

namespace {

template <typename Visit>
void for_lanes(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

void set_bound(std::vector<BlockView::Lane>& lanes, std::uint32_t thread, std::uint32_t bound) {
  const auto at = std::lower_bound(lanes.begin(), lanes.end(), thread,
                                   [](const auto& entry, std::uint32_t n) { return entry.thread < n; });
  if (at != lanes.end() && at->thread == thread) {
    at->bound = std::max(at->bound, bound);
  } else {
    lanes.insert(at, {thread, bound});
  }
}

// Lane by lane from now on.
std::array<Knowledge, kWarpSize>& expand(WarpOrder& warp) {
  if (!warp.each) {
    warp.each = std::make_unique<std::array<Knowledge, kWarpSize>>();
    warp.each->fill(warp.common);
  }
  return *warp.each;
}

}  // namespace

Order::Order() : state_(std::make_unique<State>()) {}
Order::~Order() = default;

// ---- agents ----

AgentId Order::thread(const Warp& warp, int lane) {
  if (warp.order == nullptr) return {};
  return {warp.order->number * kWarpSize + static_cast<std::uint32_t>(lane)};
}

AgentId Order::State::add_agent(AgentKind kind, int pe) {
  agents.emplace_back();
  agents.back().kind = kind;
  agents.back().pe = pe;
  return {static_cast<std::uint32_t>(agents.size() - 1) | kOther};
}

AgentId Order::host(int pe) {
  AgentId& id = state_->hosts[pe];
  if (id.value == 0) id = state_->add_agent(AgentKind::kHost, pe);
  return id;
}

AgentId Order::stream(int pe, std::uint64_t stream) {
  AgentId& id = state_->streams[{pe, stream}];
  if (id.value == 0) id = state_->add_agent(AgentKind::kStream, pe);
  return id;
}

AgentId Order::spawn(AgentId parent, AgentKind kind, const Site& issued, std::string_view what) {
  State& s = *state_;
  const Clock known = release(parent);
  const AgentId id = s.add_agent(kind, issued.pe);
  State::Agent& agent = s.agent(id);
  agent.known = known.data_;
  agent.parent = parent;
  agent.what = what;
  s.sites.push_back(issued);
  agent.issued = static_cast<std::uint32_t>(s.sites.size() - 1);
  return id;
}

AgentId Order::spawn(AgentId parent, AgentKind kind, int pe, std::string_view what) {
  State& s = *state_;
  const Clock known = release(parent);
  const AgentId id = s.add_agent(kind, pe);
  State::Agent& agent = s.agent(id);
  agent.known = known.data_;
  agent.parent = parent;
  agent.what = what;
  return id;
}

AgentId Order::spawn_carrying(AgentId parent, AgentKind kind, int pe, std::string_view what) {
  State& s = *state_;
  if (!State::is_thread(parent)) return spawn(parent, kind, pe, what);
  DataPtr known;
  if (const WarpOrder* warp = s.live_warps[State::warp_of(parent)]; warp != nullptr) {
    const int lane = State::lane_of(parent);
    known = warp->of(lane).foreign;
    for (const FenceMark& mark : warp->fences) {
      if ((mark.mask >> static_cast<unsigned>(lane) & 1U) == 0 || mark.scope != ptx::Scope::kSys) continue;
      known = s.merged(known, s.snapshot(*warp, mark.known, lane, mark.bound));
    }
    // What was read before it was issued has been read.
    Data carried = known == nullptr ? Data{} : *known;
    carried.serial = Data::next_serial();
    const DataPtr all = release(parent).data_;
    Data flat = *all;
    flat.serial = Data::next_serial();
    flat.reads.reset();
    carried.reads = s.merged(std::make_shared<const Data>(std::move(flat)), all->reads);
    known = std::make_shared<const Data>(std::move(carried));
  }
  const AgentId id = s.add_agent(kind, pe);
  State::Agent& agent = s.agent(id);
  agent.known = std::move(known);
  agent.parent = parent;
  agent.what = what;
  return id;
}

void Order::retire(AgentId agent) {
  if (agent.value != 0 && !State::is_thread(agent)) state_->agent(agent).retired = true;
}

// ---- clocks ----

DataPtr Order::State::snapshot(const WarpOrder& warp, const Knowledge& known, int lane,
                               std::uint32_t bound) const {
  const BlockOrder& block = *warp.block;
  auto view = std::make_shared<BlockView>();
  if (known.barrier != nullptr) {
    view->all = *known.barrier;
  } else {
    view->all.assign(block.warps.size(), 0);
  }
  std::uint32_t& own = view->all[warp.in_block];
  own = std::max(own, known.warp);
  const std::uint32_t first = warp.in_block * kWarpSize;
  if (known.lanes != nullptr) {
    for (std::uint32_t i = 0; i < kWarpSize; ++i) {
      if ((*known.lanes)[i] > own) view->lanes.push_back({first + i, (*known.lanes)[i]});
    }
  }
  set_bound(view->lanes, first + static_cast<std::uint32_t>(lane), bound);
  Data mine;
  mine.blocks.push_back({block.number, std::move(view)});
  return merged(known.foreign, std::make_shared<const Data>(std::move(mine)));
}

Clock Order::release(AgentId id) {
  Clock out;
  if (id.value == 0) return out;
  State& s = *state_;
  if (State::is_thread(id)) {
    WarpOrder* warp = s.live_warps[State::warp_of(id)];
    if (warp == nullptr) return out;  // its block has ended
    const int lane = State::lane_of(id);
    const std::uint32_t bound = ++warp->clock;
    out.data_ = s.snapshot(*warp, warp->of(lane), lane, bound);
    return out;
  }
  State::Agent& agent = s.agent(id);
  Data mine;
  mine.agents.push_back({id.value, ++agent.clock});
  agent.known = s.merged(agent.known, std::make_shared<const Data>(std::move(mine)));
  out.data_ = agent.known;
  return out;
}

Clock Order::fenced(AgentId id, ptx::Scope scope) const {
  Clock out;
  const State& s = *state_;
  const WarpOrder* const warp = State::is_thread(id) ? s.live_warps[State::warp_of(id)] : nullptr;
  if (warp == nullptr) return out;
  const int lane = State::lane_of(id);
  for (const FenceMark& mark : warp->fences) {
    if ((mark.mask >> static_cast<unsigned>(lane) & 1U) != 0 && mark.scope >= scope)
      out.data_ = s.snapshot(*warp, mark.known, lane, mark.bound);
  }
  return out;
}

Clock Order::own(AgentId id) {
  Clock out;
  if (id.value == 0 || State::is_thread(id)) return out;
  Data mine;
  mine.agents.push_back({id.value, ++state_->agent(id).clock});
  out.data_ = std::make_shared<const Data>(std::move(mine));
  return out;
}

void Order::acquire(AgentId id, const Clock& clock) {
  if (id.value == 0 || clock.empty()) return;
  State& s = *state_;
  if (State::is_thread(id)) {
    WarpOrder* warp = s.live_warps[State::warp_of(id)];
    if (warp == nullptr) return;
    const int lane = State::lane_of(id);
    if (s.includes(warp->of(lane).foreign.get(), clock.data_.get())) return;
    s.learn(expand(*warp)[static_cast<std::size_t>(lane)], clock.data_);
    s.absorb(id, warp->clock, clock.data_.get());
    return;
  }
  State::Agent& agent = s.agent(id);
  agent.known = s.merged(agent.known, clock.data_);
  s.absorb(id, agent.clock, clock.data_.get());
}

void Order::acquire(Warp& warp, std::uint32_t lanes, const Clock& clock) {
  if (warp.order == nullptr || clock.empty()) return;
  State& s = *state_;
  WarpOrder& order = *warp.order;
  if (!order.each && (warp.live & ~lanes) == 0) {
    s.learn(order.common, clock.data_);
    return;
  }
  for_lanes(lanes, [&](int lane) { acquire(thread(warp, lane), clock); });
}

void Order::merge(Clock& into, const Clock& from) const {
  into.data_ = state_->merged(into.data_, from.data_);
}

bool Order::covers(const Clock& clock, AgentId id) const {
  if (id.value == 0) return true;
  const State& s = *state_;
  if (!State::is_thread(id)) return s.knows_agent(clock.data_.get(), id, s.agent(id).clock);
  const WarpOrder* warp = s.live_warps[State::warp_of(id)];
  const std::uint32_t now = warp == nullptr ? 0 : warp->clock;
  return s.knows(clock.data_.get(), id, now);
}

bool Order::happened_before(AgentId earlier, std::uint32_t at, AgentId now) const {
  if (earlier.value == 0 || now.value == 0 || earlier == now) return true;
  const State& s = *state_;
  if (!State::is_thread(now)) return s.knows(s.agent(now).known.get(), earlier, at);
  const WarpOrder* warp = s.live_warps[State::warp_of(now)];
  if (warp == nullptr) return true;
  const Knowledge& known = warp->of(State::lane_of(now));
  if (!State::is_thread(earlier)) return s.knows_agent(known.foreign.get(), earlier, at);
  return s.lane_knows(*warp, known, State::warp_of(earlier),
                      1U << static_cast<unsigned>(State::lane_of(earlier)), at);
}

std::uint32_t Order::time_of(AgentId id) const {
  if (id.value == 0) return 0;
  const State& s = *state_;
  if (!State::is_thread(id)) return s.agent(id).clock;
  const WarpOrder* warp = s.live_warps[State::warp_of(id)];
  return warp == nullptr ? 0 : warp->clock;
}

// ---- kernels ----

void Order::begin_grid(Grid& grid, AgentId on) {
  State& s = *state_;
  State::GridInfo info;
  info.pe = grid.pe;
  info.call = grid.call;
  info.launch_id = grid.launch_id;
  info.ordinal = ++s.launches[grid.pe];
  info.grid_dim = grid.grid_dim;
  info.block_dim = grid.block_dim;
  info.on = on.value != 0 ? on : stream(grid.pe, 0);
  info.module = grid.module;
  info.kernel = grid.kernel;
  info.base = release(info.on).data_;
  s.grids.push_back(std::move(info));
  grid.order = static_cast<std::uint32_t>(s.grids.size() - 1);
}

void Order::end_grid(const Grid& grid) {
  if (grid.order == 0) return;
  State::GridInfo& info = state_->grids[grid.order];
  info.ended = true;
  info.absorbed_at = state_->agent(info.on).clock;
  // The stream itself now knows of them: an event at its present clock lies below its next release.
  Data mine;
  mine.agents.push_back({info.on.value, info.absorbed_at + 1});
  State::Agent& on = state_->agent(info.on);
  ++on.clock;
  on.known = state_->merged(on.known, std::make_shared<const Data>(std::move(mine)));
  on.known = state_->merged(on.known, info.gained);
  info.base.reset();
  info.gained.reset();
}

void Order::begin_block(Block& block, std::uint32_t n_warps, std::uint32_t cluster) {
  if (block.grid->order == 0) return;
  State& s = *state_;
  std::unique_ptr<BlockOrder> order;
  if (!s.pool.empty()) {
    order = std::move(s.pool.back());
    s.pool.pop_back();
  } else {
    order = std::make_unique<BlockOrder>();
  }
  order->grid = block.grid->order;
  order->number = static_cast<std::uint32_t>(s.blocks.size());
  order->first_warp = static_cast<std::uint32_t>(s.block_of_warp.size());
  s.blocks.push_back({order->grid, block.linear_index, order->first_warp, cluster});
  order->warps.clear();
  order->warps.resize(n_warps);
  const DataPtr& base = s.grids[order->grid].base;
  for (std::uint32_t i = 0; i < n_warps; ++i) {
    WarpOrder& warp = order->warps[i];
    warp.block = order.get();
    warp.number = order->first_warp + i;
    warp.in_block = i;
    warp.common.foreign = base;
    s.block_of_warp.push_back(order->number);
    s.live_warps.push_back(&warp);
  }
  for (BlockOrder::Gathering& gathering : order->gathering) gathering = {};
  order->begun = ++order->epoch;
  order->closed = cluster == 0;
  block.order = order.get();
  s.running[order->number] = std::move(order);
}

WarpOrder* Order::warp_of(const Block& block, std::uint32_t index) const {
  return block.order == nullptr ? nullptr : &block.order->warps[index];
}

void Order::end_block(Block& block) {
  if (block.order == nullptr) return;
  State& s = *state_;
  State::GridInfo& grid = s.grids[block.order->grid];
  const Data* last = grid.base.get();
  const auto gain = [&](const Knowledge& known) {
    if (known.foreign.get() == last || known.foreign == grid.base) return;
    last = known.foreign.get();
    grid.gained = s.merged(grid.gained, known.foreign);
  };
  for (const WarpOrder& warp : block.order->warps) {
    s.live_warps[warp.number] = nullptr;
    gain(warp.common);
    if (warp.each) {
      for (const Knowledge& known : *warp.each) gain(known);
    }
  }
  const auto at = s.running.find(block.order->number);
  block.order->warps.clear();
  s.pool.push_back(std::move(at->second));
  s.running.erase(at);
  block.order = nullptr;
}

void Order::proxy_fence(const Block& block) {
  if (block.order == nullptr) return;
  for (WarpOrder& warp : block.order->warps) warp.proxied = ++warp.clock;
}

void Order::open_shared(const Block& block) {
  if (block.order != nullptr) block.order->closed = false;
}

void Order::block_barrier(Block& block) {
  if (block.order == nullptr) return;
  State& s = *state_;
  BlockOrder& order = *block.order;
  ++order.epoch;
  auto bounds = std::make_shared<std::vector<std::uint32_t>>(order.warps.size());
  DataPtr foreign = order.warps.front().common.foreign;
  for (WarpOrder& warp : order.warps) {
    (*bounds)[warp.in_block] = ++warp.clock;
    if (!warp.each) {
      if (warp.common.foreign != foreign) foreign = s.merged(foreign, warp.common.foreign);
      continue;
    }
    for (const Knowledge& known : *warp.each) {
      if (known.foreign != foreign) foreign = s.merged(foreign, known.foreign);
    }
    warp.each.reset();
  }
  for (WarpOrder& warp : order.warps) {
    warp.common.foreign = foreign;
    warp.common.barrier = bounds;
    warp.common.warp = warp.clock;
    warp.common.lanes.reset();
  }
}

void Order::arrive(Warp& warp, std::uint32_t mask, int number) {
  if (warp.order == nullptr) return;
  State& s = *state_;
  WarpOrder& order = *warp.order;
  BlockOrder& block = *order.block;
  BlockOrder::Gathering& gathering = block.gathering[static_cast<std::size_t>(number)];
  if (!gathering.open) {
    gathering = {};
    gathering.open = true;
    gathering.bounds.assign(block.warps.size(), 0);
  }
  const std::uint32_t bound = ++order.clock;
  const bool whole = (warp.live & ~mask) == 0;
  if (whole) gathering.bounds[order.in_block] = std::max(gathering.bounds[order.in_block], bound);
  const std::uint32_t first = order.in_block * kWarpSize;
  const auto take = [&](const Knowledge& known) {
    if (known.foreign != gathering.foreign) gathering.foreign = s.merged(gathering.foreign, known.foreign);
    if (known.barrier != nullptr) {
      for (std::size_t i = 0; i < gathering.bounds.size(); ++i)
        gathering.bounds[i] = std::max(gathering.bounds[i], (*known.barrier)[i]);
    }
    gathering.bounds[order.in_block] = std::max(gathering.bounds[order.in_block], known.warp);
    if (known.lanes == nullptr || whole) return;
    for (std::uint32_t i = 0; i < kWarpSize; ++i) set_bound(gathering.lanes, first + i, (*known.lanes)[i]);
  };
  if (!order.each) {
    take(order.common);
  } else {
    for_lanes(mask, [&](int lane) { take((*order.each)[static_cast<std::size_t>(lane)]); });
  }
  if (!whole) {
    for_lanes(mask,
              [&](int lane) { set_bound(gathering.lanes, first + static_cast<std::uint32_t>(lane), bound); });
  }
}

void Order::leave(Warp& warp, std::uint32_t mask, int number) {
  if (warp.order == nullptr) return;
  State& s = *state_;
  WarpOrder& order = *warp.order;
  BlockOrder& block = *order.block;
  const BlockOrder::Gathering& gathering = block.gathering[static_cast<std::size_t>(number)];
  if (!gathering.open) return;
  auto view = std::make_shared<BlockView>();
  view->all = gathering.bounds;
  view->lanes = gathering.lanes;
  std::erase_if(view->lanes, [&](const BlockView::Lane& lane) {
    return lane.bound <= view->all[lane.thread / kWarpSize];
  });
  const std::uint32_t own = view->all[order.in_block];
  Data mine;
  const bool simple = view->lanes.empty();
  auto bounds = std::make_shared<const std::vector<std::uint32_t>>(view->all);
  mine.blocks.push_back({block.number, std::move(view)});
  const auto data = std::make_shared<const Data>(std::move(mine));
  const auto give = [&](Knowledge& known) {
    s.learn(known, gathering.foreign);
    known.warp = std::max(known.warp, own);
    bool newer = simple;
    if (newer && known.barrier != nullptr) {
      for (std::size_t i = 0; i < bounds->size(); ++i) newer = newer && (*bounds)[i] >= (*known.barrier)[i];
    }
    if (newer) {
      known.barrier = bounds;
    } else {
      s.learn(known, data);
    }
  };
  if ((warp.live & ~mask) == 0 && !order.each) {
    give(order.common);
    return;
  }
  auto& each = expand(order);
  for_lanes(mask, [&](int lane) { give(each[static_cast<std::size_t>(lane)]); });
}

void Order::close(Block& block, int number) {
  if (block.order != nullptr) block.order->gathering[static_cast<std::size_t>(number)] = {};
}

void Order::warp_sync(Warp& warp, std::uint32_t lanes) {
  if (warp.order == nullptr) return;
  State& s = *state_;
  WarpOrder& order = *warp.order;
  const std::uint32_t bound = ++order.clock;
  const bool whole = (warp.live & ~lanes) == 0;
  if (!order.each) {
    if (whole) {
      order.common.warp = bound;
      order.common.lanes.reset();
      return;
    }
    if (std::popcount(lanes) < 2) return;
  }
  auto& each = expand(order);
  const int first = std::countr_zero(lanes);
  Knowledge joint = each[static_cast<std::size_t>(first)];
  auto table = std::make_shared<LaneBounds>();
  if (joint.lanes != nullptr) *table = *joint.lanes;
  for_lanes(lanes & (lanes - 1), [&](int lane) {
    const Knowledge& known = each[static_cast<std::size_t>(lane)];
    s.learn(joint, known.foreign);
    joint.warp = std::max(joint.warp, known.warp);
    if (known.lanes != nullptr) {
      for (std::size_t i = 0; i < kWarpSize; ++i) (*table)[i] = std::max((*table)[i], (*known.lanes)[i]);
    }
    if (known.barrier == joint.barrier || known.barrier == nullptr) return;
    if (joint.barrier == nullptr) {
      joint.barrier = known.barrier;
      return;
    }
    auto both = std::make_shared<std::vector<std::uint32_t>>(*joint.barrier);
    for (std::size_t i = 0; i < both->size(); ++i) (*both)[i] = std::max((*both)[i], (*known.barrier)[i]);
    joint.barrier = std::move(both);
  });
  if (whole) {
    joint.warp = bound;
    joint.lanes.reset();
    order.each.reset();
    order.common = std::move(joint);
    return;
  }
  for_lanes(lanes, [&](int lane) { (*table)[static_cast<std::size_t>(lane)] = bound; });
  joint.lanes = std::move(table);
  for_lanes(lanes, [&](int lane) { each[static_cast<std::size_t>(lane)] = joint; });
}

void Order::fence(Warp& warp, std::uint32_t lanes, ptx::Scope scope, bool sc) {
  if (warp.order == nullptr) return;
  WarpOrder& order = *warp.order;
  if (!order.pending.empty() && state_->races != nullptr) state_->races->acquire_pending(warp, lanes, scope);
  if (sc && state_->races != nullptr) state_->races->note_sc_fence(warp, lanes);
  const std::uint32_t bound = ++order.clock;
  for (FenceMark& mark : order.fences) mark.mask &= ~lanes;
  std::erase_if(order.fences, [](const FenceMark& mark) { return mark.mask == 0; });
  if (!order.each) {
    order.fences.push_back({lanes, order.common, bound, scope});
    return;
  }
  for_lanes(lanes, [&](int lane) {
    order.fences.push_back(
        {1U << static_cast<unsigned>(lane), (*order.each)[static_cast<std::size_t>(lane)], bound, scope});
  });
}

}  // namespace echolo::vgpu
