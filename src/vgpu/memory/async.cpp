#include "vgpu/memory/async.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "vgpu/memory/barrier_object.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint32_t kMostRounds = 6;  // an operation is due this many rounds after its issue at most

void spread(Memory::Pattern pattern, std::uint64_t step, std::array<std::uint64_t, kWarpSize>& addresses) {
  if (pattern == Memory::Pattern::kScattered) return;
  for (std::size_t i = 1; i < kWarpSize; ++i) {
    addresses[i] = addresses[0] + (pattern == Memory::Pattern::kUniform ? 0 : i * step);
  }
}

// The addresses lane by lane, whatever they are to each other.
void scatter(CopyEntry& entry) {
  spread(entry.from_pattern, entry.size, entry.from);
  spread(entry.to_pattern, entry.size, entry.to);
  entry.from_pattern = entry.to_pattern = Memory::Pattern::kScattered;
}

void fill_inactive(std::uint32_t mask, std::array<std::uint64_t, kWarpSize>& addresses) {
  const std::uint64_t filler = addresses[static_cast<std::size_t>(std::countr_zero(mask))];
  for (unsigned i = 0; i < kWarpSize; ++i) {
    if (((mask >> i) & 1U) == 0) addresses[i] = filler;
  }
}

}  // namespace

bool signal_barrier(Memory& memory, const AsyncSignal& signal, const Clock& clock,
                    const Memory::Accessor& who) {
  std::uint64_t before = 0;
  Memory::Accessor accessor = who;
  accessor.synchronises = true;
  accessor.order = ptx::Order::kRelaxed;
  accessor.scope = ptx::Scope::kCluster;
  if (!memory.read_shared(*signal.block, signal.offset, &before, sizeof before, accessor)) return false;
  BarrierObject object = BarrierObject::unpack(before);
  if (signal.arrives) {
    object.pending -= signal.count;
  } else {
    object.bytes -= signal.count;
  }
  if (object.pending < 0 || !object.bytes_in_range()) {
    Finding finding;
    finding.kind = FindingKind::kDeviceTrap;
    finding.fatal = true;
    finding.message =
        std::string(who.what) + (object.pending < 0 ? " arrives at an mbarrier that expects no more arrivals"
                                                    : " signals more bytes than an mbarrier can count");
    finding.why = "the mbarrier at byte " + std::to_string(signal.offset) + " of shared memory expects " +
                  std::to_string(object.expected) + " arrivals a phase";
    finding.advice =
        "initialise it (mbarrier.init) for the arrivals of one phase, and announce the bytes "
        "(expect_tx) in the phase in which they arrive";
    finding.sites.push_back(make_site(*who.warp, who.lane, *who.inst, "barrier"));
    who.warp->block->grid->findings->add(std::move(finding));
    return false;
  }
  memory.async().release_to(signal.block, signal.offset, clock);
  if (object.complete_if_done()) memory.async().end_phase(signal.block, signal.offset);
  const std::uint64_t after = object.pack();
  return memory.write_shared(*signal.block, signal.offset, &after, sizeof after, accessor);
}

// ---- cp.async ----

void AsyncCopies::issue(Warp& warp, CopyEntry entry) {
  WarpCopies& copies = warps_[&warp];
  const std::uint32_t group = copies.committed[static_cast<std::size_t>(std::countr_zero(entry.mask))];
  bool same = true;
  for_each_lane(entry.mask,
                [&](int i) { same = same && copies.committed[static_cast<std::size_t>(i)] == group; });
  entry.group = group;
  if (same) {
    copies.entries.push_back(entry);
    return;
  }
  scatter(entry);
  for (std::uint32_t left = entry.mask; left != 0;) {
    CopyEntry part = entry;
    part.group = copies.committed[static_cast<std::size_t>(std::countr_zero(left))];
    part.mask = 0;
    for_each_lane(left, [&](int i) {
      if (copies.committed[static_cast<std::size_t>(i)] == part.group)
        part.mask |= 1U << static_cast<unsigned>(i);
    });
    left &= ~part.mask;
    fill_inactive(part.mask, part.from);
    fill_inactive(part.mask, part.to);
    copies.entries.push_back(part);
  }
}

void AsyncCopies::commit(const Warp& warp, std::uint32_t mask) {
  WarpCopies& copies = warps_[&warp];
  for_each_lane(mask, [&](int i) { ++copies.committed[static_cast<std::size_t>(i)]; });
}

// Moves the lanes of `mask` of each entry for which done(entry, lane) holds, in the order of issue.
template <typename Done>
bool AsyncCopies::move_entries(Warp& warp, WarpCopies& copies, std::uint32_t mask, Done done) {
  std::vector<CopyEntry>& entries = copies.entries;
  std::size_t kept = 0;
  bool good = true;
  for (std::size_t at = 0; at < entries.size(); ++at) {
    CopyEntry& entry = entries[at];
    std::uint32_t now = 0;
    for_each_lane(entry.mask & mask, [&](int i) {
      if (done(entry, static_cast<std::size_t>(i))) now |= 1U << static_cast<unsigned>(i);
    });
    if (good && now == entry.mask) {
      good = entry.move(warp, entry);
      continue;
    }
    if (good && now != 0) {
      scatter(entry);
      CopyEntry part = entry;
      part.mask = now;
      entry.mask &= ~now;
      for (CopyEntry* each : {&part, &entry}) {
        fill_inactive(each->mask, each->from);
        fill_inactive(each->mask, each->to);
      }
      good = part.move(warp, part);
    }
    if (kept != at) entries[kept] = entry;
    ++kept;
  }
  entries.resize(kept);
  return good;
}

bool AsyncCopies::wait(Warp& warp, std::uint32_t mask, std::uint32_t newest) {
  const auto found = warps_.find(&warp);
  if (found == warps_.end() || found->second.entries.empty()) return true;
  const WarpCopies& copies = found->second;
  return move_entries(warp, found->second, mask, [&](const CopyEntry& entry, std::size_t lane) {
    return std::uint64_t{entry.group} + newest < copies.committed[lane];
  });
}

bool AsyncCopies::wait_all(Warp& warp, std::uint32_t mask) {
  const auto found = warps_.find(&warp);
  if (found == warps_.end() || found->second.entries.empty()) return true;
  return move_entries(warp, found->second, mask, [](const CopyEntry&, std::size_t) { return true; });
}

void AsyncCopies::arrive_when_done(Warp& warp, const Inst& inst, int lane, AsyncSignal signal) {
  AsyncOperation operation;
  operation.warp = &warp;
  operation.inst = &inst;
  operation.lane = lane;
  operation.what = "cp.async.mbarrier.arrive";
  operation.signals.push_back(signal);
  operation.uses.push_back(signal.block);
  const std::size_t issued = warps_[&warp].entries.size();
  operation.move = [this, &warp, lane, issued](const Memory::Accessor&) {
    // Later copies of the lane may go along: an asynchronous copy may be done at any time.
    return issued == 0 || wait_all(warp, 1U << static_cast<unsigned>(lane));
  };
  issue(std::move(operation));
}

// ---- bulk ----

void AsyncCopies::issue(AsyncOperation operation) {
  operation.rounds_left = static_cast<std::uint32_t>(1 + rng_.below(kMostRounds));
  Order& order = memory_.order();
  for (const Block* block : operation.uses) order.open_shared(*block);
  const AgentId issuer = order.thread(*operation.warp, operation.lane);
  if (issuer.value != 0) {
    operation.agent =
        order.spawn(issuer, AgentKind::kAsyncCopy, operation.warp->block->grid->pe, operation.what);
  }
  if (operation.in_bulk_group) {
    operation.group = warps_[operation.warp].bulk_committed[static_cast<std::size_t>(operation.lane)];
  }
  pending_.push_back(std::move(operation));
}

void AsyncCopies::commit_bulk(const Warp& warp, std::uint32_t mask) {
  WarpCopies& copies = warps_[&warp];
  for_each_lane(mask, [&](int i) { ++copies.bulk_committed[static_cast<std::size_t>(i)]; });
}

bool AsyncCopies::wait_bulk(Warp& warp, int lane, std::uint32_t newest) {
  const std::uint32_t committed = warps_[&warp].bulk_committed[static_cast<std::size_t>(lane)];
  for (std::size_t i = 0; i < pending_.size();) {
    const AsyncOperation& operation = pending_[i];
    if (operation.warp != &warp || operation.lane != lane || !operation.in_bulk_group ||
        std::uint64_t{operation.group} + newest >= committed) {
      ++i;
      continue;
    }
    if (!perform_at(i)) return false;
  }
  std::erase_if(warps_[&warp].done, [&](const WarpCopies::Done& done) {
    if (done.lane != lane || std::uint64_t{done.group} + newest >= committed) return false;
    memory_.order().acquire(memory_.order().thread(warp, lane), done.clock);
    return true;
  });
  return true;
}

void AsyncCopies::begin_barrier(const Block* block, std::uint64_t offset) {
  barriers_.erase({block, offset});
}

void AsyncCopies::release_to(const Block* block, std::uint64_t offset, const Clock& clock) {
  if (!clock.empty()) memory_.order().merge(barriers_[{block, offset}].pending, clock);
}

void AsyncCopies::end_phase(const Block* block, std::uint64_t offset) {
  BarrierClocks& clocks = barriers_[{block, offset}];
  // Who waits for an older phase knows of it through those who arrived later.
  clocks.completed = std::exchange(clocks.pending, Clock());
}

const Clock* AsyncCopies::acquire_from(const Block* block, std::uint64_t offset) const {
  const auto found = barriers_.find({block, offset});
  return found == barriers_.end() || found->second.completed.empty() ? nullptr : &found->second.completed;
}

bool AsyncCopies::perform(AsyncOperation& operation) {
  Memory::Accessor who;
  who.warp = operation.warp;
  who.inst = operation.inst;
  who.lane = operation.lane;
  who.pe = operation.warp->block->grid->pe;
  who.what = operation.what;
  who.agent = operation.agent;
  if (!operation.move(who)) return false;
  Order& order = memory_.order();
  Clock clock = order.release(operation.agent);
  // The bytes of cp.async were moved in the thread's own name.
  if (!operation.signals.empty() && operation.signals[0].arrives)
    order.merge(clock, order.release(order.thread(*operation.warp, operation.lane)));
  if (operation.in_bulk_group && !clock.empty())
    warps_[operation.warp].done.push_back({operation.lane, operation.group, clock});
  const bool good =
      std::all_of(operation.signals.begin(), operation.signals.end(),
                  [&](const AsyncSignal& signal) { return signal_barrier(memory_, signal, clock, who); });
  order.retire(operation.agent);
  return good;
}

bool AsyncCopies::perform_at(std::size_t index) {
  AsyncOperation operation = std::move(pending_[index]);
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(index));
  return perform(operation);
}

bool AsyncCopies::tick() {
  for (AsyncOperation& operation : pending_) --operation.rounds_left;
  for (std::size_t i = 0; i < pending_.size();) {
    if (pending_[i].rounds_left != 0) {
      ++i;
    } else if (!perform_at(i)) {
      return false;
    }
  }
  return true;
}

bool AsyncCopies::deliver_next() {
  const auto first = std::min_element(
      pending_.begin(), pending_.end(),
      [](const AsyncOperation& a, const AsyncOperation& b) { return a.rounds_left < b.rounds_left; });
  return perform_at(static_cast<std::size_t>(first - pending_.begin()));
}

bool AsyncCopies::block_ends(Block& block) {
  for (std::size_t i = 0; i < pending_.size();) {
    AsyncOperation& operation = pending_[i];
    const bool uses = std::find(operation.uses.begin(), operation.uses.end(), &block) != operation.uses.end();
    if (operation.warp->block != &block && !uses) {
      ++i;
      continue;
    }
    // cp.async without a wait is common at the end of a loop and harmless: the copy's target dies with it.
    const bool plain = operation.what == std::string_view("cp.async.mbarrier.arrive");
    if (uses && !plain) {
      Finding finding;
      finding.kind = FindingKind::kEarlyExit;
      finding.message = "PE " + std::to_string(block.grid->pe) + " ends a block whose shared memory a " +
                        operation.what + " still uses";
      finding.why =
          "the threads of the block exit before the copy is known to be complete; its shared memory "
          "is gone then";
      finding.advice = operation.in_bulk_group
                           ? "wait for the copy (cp.async.bulk.wait_group.read 0) before the thread exits"
                           : "wait for the copy's mbarrier before the threads of the block exit";
      finding.sites.push_back(make_site(*operation.warp, operation.lane, *operation.inst, "call"));
      block.grid->findings->add(std::move(finding));
    }
    if (!perform_at(i)) return false;
  }
  barriers_.erase(barriers_.lower_bound({&block, 0}), barriers_.upper_bound({&block, ~std::uint64_t{0}}));
  clusters_.erase(&block);
  return true;
}

bool AsyncCopies::warp_ends(Warp& warp) {
  if (warps_.empty()) return true;
  const bool good = wait_all(warp, kAllLanes);
  warps_.erase(&warp);
  return good;
}

}  // namespace echolo::vgpu
