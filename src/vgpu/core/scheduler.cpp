// Turns, rounds, virtual time, and what wakes a warp that waits.
#include <algorithm>

#include "vgpu/core/engine.hpp"
#include "vgpu/memory/async.hpp"

namespace echolo::vgpu {
namespace {

// Warp instructions: until changes of memory are looked at more closely; without news until a livelock is
// declared.
constexpr std::uint64_t kPatience = 4'000'000;
constexpr std::uint64_t kSpinBudget = 32'000'000, kSpinBudgetPerWarp = 1'000'000;
constexpr std::uint64_t kSpinBudgetMin = 1'000'000;
constexpr std::uint64_t kIssuePerSm = 4;  // warp instructions a cycle

bool runs(const CoreWarp& warp) {
  return std::any_of(warp.groups.begin(), warp.groups.end(),
                     [](const Group& group) { return group.state == GroupState::kRunnable; });
}

bool waits_in(const CoreWarp& warp, GroupState a, GroupState b) {
  return std::any_of(warp.groups.begin(), warp.groups.end(),
                     [&](const Group& group) { return group.state == a || group.state == b; });
}

}  // namespace

std::uint64_t Machine::State::to_ns(std::uint64_t cycles) const {
  const auto khz = static_cast<std::uint64_t>(config.gpu.clock_khz);
  return cycles / khz * 1'000'000U + cycles % khz * 1'000'000U / khz;
}

std::uint64_t Machine::State::to_cycles(std::uint64_t ns) const {
  const auto khz = static_cast<std::uint64_t>(config.gpu.clock_khz);
  return ns / 1'000'000U * khz + (ns % 1'000'000U * khz + 999'999U) / 1'000'000U;
}

void Machine::State::make_ready(CoreWarp& warp) {
  if (warp.ready) return;
  warp.ready = true;
  ready.push(warp);
}

void Machine::State::park(CoreWarp& warp) {
  if (warp.parked) return;
  warp.parked = true;
  parked.push_back(&warp);
}

void Machine::State::put_to_sleep(CoreWarp& warp, Group& group, std::uint64_t cycle) {
  group.state = GroupState::kAsleep;
  group.wake_cycle = cycle;
  if (warp.asleep) return;
  warp.asleep = true;
  sleepers.push_back(&warp);
}

void Machine::State::forget(CoreWarp& warp) {
  const auto drop = [&](std::vector<CoreWarp*>& list) { std::erase(list, &warp); };
  if (warp.parked) drop(parked);
  if (warp.asleep) drop(sleepers);
  if (warp.ready) ready.erase(warp);
  warp.parked = warp.asleep = warp.ready = false;
}

std::uint64_t Machine::State::next_wake_cycle() const {
  std::uint64_t first = ~0ULL;
  for (const CoreWarp* warp : sleepers) {
    for (const Group& group : warp->groups) {
      if (group.state == GroupState::kAsleep) first = std::min(first, group.wake_cycle);
    }
  }
  return first;
}

bool Machine::State::wake_sleepers() {
  bool any = false;
  std::size_t kept = 0;
  for (CoreWarp* warp : sleepers) {
    bool woke = false;
    bool more = false;
    for (Group& group : warp->groups) {
      if (group.state != GroupState::kAsleep) continue;
      if (group.wake_cycle <= now_cycles) {
        group.state = GroupState::kRunnable;
        woke = true;
      } else {
        more = true;
      }
    }
    if (more) {
      sleepers[kept++] = warp;
    } else {
      warp->asleep = false;
    }
    if (woke) make_ready(*warp);
    any = any || woke;
  }
  sleepers.resize(kept);
  return any;
}

bool Machine::State::wake_parked(bool all_calls) {
  last_scan = executed;
  const std::uint64_t changes = memory->changes();
  bool any = false;
  std::size_t kept = 0;
  for (CoreWarp* warp : parked) {
    bool woke = false;
    for (Group& group : warp->groups) {
      if (group.state == GroupState::kSpin) {
        const auto& watches = group.track.watches;
        const bool moved = group.track.complete ? std::any_of(watches.begin(), watches.end(), watch_moved)
                                                : group.parked_changes != changes;
        if (!moved) continue;
        group.track.phase = SpinTrack::Phase::kIdle;
        group.track.next_visit = group.track.visits + 1;
      } else if (group.state == GroupState::kCall) {
        if (!all_calls && group.parked_changes == changes && group.parked_progress == call_progress) continue;
      } else {
        continue;
      }
      group.state = GroupState::kRunnable;
      woke = true;
    }
    if (waits_in(*warp, GroupState::kSpin, GroupState::kCall)) {
      parked[kept++] = warp;
    } else {
      warp->parked = false;
    }
    if (woke) make_ready(*warp);
    any = any || woke;
  }
  parked.resize(kept);
  return any;
}

std::uint64_t Machine::State::turn(CoreWarp& warp, std::uint64_t quantum) {
  warp.turn_cycle = now_cycles;
  warp.turn_used = 0;
  warp.give_way = false;
  std::uint64_t left = quantum;
  while (left > 0 && !warp.give_way && pick(warp)) {
    left = meter == nullptr ? execute<false>(warp, left) : execute<true>(warp, left);
    if (findings.has_fatal()) break;
  }
  if (warp.live != 0 && !findings.has_fatal() && !runs(warp)) {
    settle(warp);
  }
  return quantum - left;
}

void Machine::State::note_end() {
  executed_at_end = executed_at_news = executed;
  if (watches_news) memory->watch_news(false);
  watches_news = false;
}

// Whether for very long nothing has happened that had not happened before. Kernels may compute for long
// without a store, all the more the more warps take turns; so patience grows with their number.
bool Machine::State::goes_in_circles() {
  if (memory->news() != seen_news) {
    seen_news = memory->news();
    executed_at_news = executed;
  }
  if (!watches_news && executed - executed_at_end > std::min(kPatience, config.spin_budget)) {
    memory->watch_news(true);
    watches_news = true;
  }
  if (executed - executed_at_news <= kSpinBudgetMin) return false;
  const std::uint64_t budget = std::min(config.spin_budget, kSpinBudget + kSpinBudgetPerWarp * ready.size());
  if (executed - executed_at_news <= budget) return false;
  livelock_budget = budget;
  return true;
}

Machine::Progress Machine::State::run(std::uint64_t budget) {
  if (findings.has_fatal()) return Progress::kFaulted;
  const std::uint64_t started = executed;
  grid_ended = false;
  bool retried = false;
  bool delivered = false;
  while (executed - started < budget) {
    if (ready.empty()) {
      round_left = 0;
      wake_sleepers();
      if (ready.empty()) wake_parked(false);
      // Copies on their way come to their end however long nobody else does anything.
      while (ready.empty() && !memory->async().empty()) {
        if (!memory->async().deliver_next()) return Progress::kFaulted;
        wake_parked(false);
      }
      if (ready.empty() && !parked.empty() && !retried) {
        // Whoever implements device calls may have come on without anybody seeing it.
        retried = true;
        wake_parked(true);
      }
      if (ready.empty() && calls != nullptr && calls->deliver(executed, true)) {
        if (findings.has_fatal()) return Progress::kFaulted;
        delivered = true;
        retried = false;
        continue;
      }
      if (ready.empty()) {
        bool idle = true;
        for (const PeState& pe : pes) idle = idle && pe.grids.empty();
        if (idle) return executed == started && !delivered ? Progress::kIdle : Progress::kRan;
        if (delivered && sleepers.empty()) return Progress::kRan;
        return sleepers.empty() ? Progress::kStuck : Progress::kAsleep;
      }
    }
    if (round_left == 0) {
      std::uint64_t sms = 0;
      for (const PeState& pe : pes) sms += static_cast<std::uint64_t>(pe.sms_in_use);
      now_cycles += std::max(round_longest, round_executed / (kIssuePerSm * std::max<std::uint64_t>(sms, 1)));
      round_left = ready.size();
      round_executed = round_longest = 0;
      if (!sleepers.empty() && wake_sleepers()) round_left = ready.size();
      if (!memory->async().empty() && !memory->async().tick()) return Progress::kFaulted;
    }
    std::uint64_t quantum = 0;
    CoreWarp& warp = ready.pop(&quantum);
    --round_left;
    const std::uint64_t used = turn(warp, std::min(quantum, budget - (executed - started)));
    executed += used;
    ready.ran(warp, used);
    counters.warp_instructions += used;
    if (warp.id != last_warp) ++counters.switches;
    last_warp = warp.id;
    round_executed += used;
    round_longest = std::max(round_longest, used);
    if (findings.has_fatal()) return Progress::kFaulted;
    warp.ready = false;
    if (warp.core_block->live_threads == 0) {
      end_block(*warp.core_block);
      if (findings.has_fatal()) return Progress::kFaulted;
      if (grid_ended) return Progress::kRan;
    } else if (runs(warp)) {
      make_ready(warp);
    }
    if (calls != nullptr && calls->pending() != 0) calls->deliver(executed, false);
    if (findings.has_fatal()) return Progress::kFaulted;
    if (memory->changes() != seen_changes) {
      seen_changes = memory->changes();
      retried = false;
    }
    if (goes_in_circles()) {
      if (calls == nullptr || !calls->deliver(executed, true)) return Progress::kLivelock;
      executed_at_news = executed;
    }
    // Looking at all who wait costs about as much as executing a few instructions for each.
    if (!parked.empty() && executed - last_scan > parked.size() * 4 + 64) wake_parked(false);
  }
  return Progress::kRan;
}

}  // namespace echolo::vgpu
