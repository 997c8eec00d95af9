#include "vgpu/core/ready_queue.hpp"

#include <algorithm>

namespace echolo::vgpu {
namespace {

// Warp instructions a turn.
constexpr std::uint64_t kQuantum = 128;
constexpr std::uint64_t kRandomQuantumMin = 8, kRandomQuantumMax = 256;

// one-slow-pe: other warps' turns for one of the slow PE's. It shrinks with each such turn, so that others
// who wait for the slow PE in ways that nobody recognises do not wait for ever.
constexpr std::uint64_t kSlowInterval = 1000;

// Priorities: drawn ones have the top bit, those of warps that fell behind count down from below it.
constexpr std::uint64_t kDrawn = 1ULL << 63U;

// A warp of high priority that waits in a way that nobody recognises must not hold up all others, and a
// thousand of them not a thousand times as long.
constexpr std::uint64_t kPatienceMin = 2048, kPatienceOfAll = 1U << 20U;

// The length of the first kernel of a job is not known: points of change are drawn over a length that is
// itself drawn, from 2^8 to 2^17 instructions. Later ones: over the length of the kernels before.
constexpr std::uint64_t kFirstLengthBits = 8, kLengthBits = 10;

std::uint64_t mix(std::uint64_t a, std::uint64_t b) { return Rng(a ^ (b * 0x9fb21c651e98df25ULL)).next(); }

}  // namespace

ReadyQueue::ReadyQueue(Policy policy, std::uint64_t seed, int n_pes)
    : policy_(policy), n_pes_(n_pes), rng_(seed) {
  if (policy == Policy::kOneSlowPe) {
    slow_pe_ = static_cast<int>(rng_.below(static_cast<std::uint64_t>(n_pes)));
    if (n_pes > 1) held_back_pe_ = slow_pe_;
    interval_ = turns_to_slow_ = kSlowInterval;
  }
  begin_epoch();
}

int ReadyQueue::change_points() const {
  return policy_ == Policy::kPct1 ? 0 : policy_ == Policy::kPct2 ? 1 : policy_ == Policy::kPct3 ? 2 : -1;
}

void ReadyQueue::begin_epoch() {
  if (slow_pe_ >= 0) interval_ = turns_to_slow_ = kSlowInterval;
  if (!by_priority()) return;
  const std::uint64_t length =
      executed_ > 0 ? executed_ : 1ULL << (kFirstLengthBits + rng_.below(kLengthBits));
  executed_ = 0;
  next_low_ = kDrawn - 1;
  demoted_.clear();
  changes_.clear();
  epoch_salt_ = rng_.next();
  patience_ = kPatienceMin << rng_.below(7);
  if (policy_ == Policy::kReversed) {
    unit_ = Unit::kBlock;
    return;
  }
  unit_ = static_cast<Unit>(rng_.below(n_pes_ > 1 ? 3 : 2));
  for (int i = 0; i < change_points(); ++i) changes_.push_back(1 + rng_.below(length));
  std::sort(changes_.rbegin(), changes_.rend());
  held_back_pe_ = -1;
  if (unit_ != Unit::kPe) return;
  std::uint64_t lowest = ~0ULL;
  for (int pe = 0; pe < n_pes_; ++pe) {
    const std::uint64_t priority = mix(epoch_salt_, static_cast<std::uint64_t>(pe));
    if (priority < lowest) held_back_pe_ = pe;
    lowest = std::min(lowest, priority);
  }
}

std::uint64_t ReadyQueue::group_of(const CoreWarp& warp) const {
  const Grid& grid = *warp.block->grid;
  switch (unit_) {
    case Unit::kPe:
      return static_cast<std::uint64_t>(grid.pe);
    case Unit::kBlock:
      return grid.launch_id << 32U | warp.block->linear_index;
    case Unit::kWarp:
      break;
  }
  return warp.id;
}

void ReadyQueue::born(CoreWarp& warp) {
  if (!by_priority()) return;
  warp.executed = 0;
  if (policy_ == Policy::kReversed) {
    const Grid& grid = *warp.block->grid;
    warp.priority = kDrawn | static_cast<std::uint64_t>(grid.pe) << 48U |
                    std::min<std::uint64_t>(warp.block->linear_index, (1ULL << 40U) - 1) << 8U |
                    std::min<std::uint64_t>(warp.index_in_block, 255);
    return;
  }
  // Warps of one group stand together, in an order of their own.
  const std::uint64_t of_group = mix(epoch_salt_, group_of(warp)) >> 16U;
  warp.priority = kDrawn | of_group << 15U | (mix(epoch_salt_ + 1, warp.id) & 0x7fffU);
}

void ReadyQueue::push(CoreWarp& warp) {
  if (!by_priority()) {
    (warp.block->grid->pe == slow_pe_ ? slow_ : queue_).push_back(&warp);
    return;
  }
  if (!demoted_.empty()) {
    if (const auto at = demoted_.find(group_of(warp)); at != demoted_.end())
      warp.priority = std::min(warp.priority, at->second);
  }
  heap_.push_back({warp.priority, warp.id, &warp});
  std::push_heap(heap_.begin(), heap_.end());
}

void ReadyQueue::erase(const CoreWarp& warp) {
  std::erase(queue_, &warp);
  std::erase(slow_, &warp);
  if (std::erase_if(heap_, [&](const Entry& entry) { return entry.warp == &warp; }) != 0)
    std::make_heap(heap_.begin(), heap_.end());
}

CoreWarp& ReadyQueue::pop(std::uint64_t* quantum) {
  *quantum = kQuantum;
  if (by_priority()) {
    std::pop_heap(heap_.begin(), heap_.end());
    CoreWarp& warp = *heap_.back().warp;
    heap_.pop_back();
    if (!changes_.empty()) *quantum = std::clamp<std::uint64_t>(changes_.back() - executed_, 1, kQuantum);
    return warp;
  }
  std::deque<CoreWarp*>* from = &queue_;
  if (slow_pe_ >= 0 && !slow_.empty()) {
    if (queue_.empty()) {
      from = &slow_;
      interval_ = turns_to_slow_ = kSlowInterval;
    } else if (--turns_to_slow_ == 0) {
      from = &slow_;
      interval_ = std::max<std::uint64_t>(interval_ * 7 / 8, 2);
      turns_to_slow_ = interval_;
    }
  }
  if (policy_ == Policy::kRandom) {
    std::swap(queue_.front(), queue_[rng_.below(queue_.size())]);
    *quantum = kRandomQuantumMin + rng_.below(kRandomQuantumMax - kRandomQuantumMin + 1);
  }
  CoreWarp& warp = *from->front();
  from->pop_front();
  return warp;
}

void ReadyQueue::demote_group(const CoreWarp& warp) {
  const std::uint64_t group = group_of(warp);
  const std::uint64_t low = next_low_--;
  demoted_[group] = low;
  for (Entry& entry : heap_) {
    if (group_of(*entry.warp) == group) entry.priority = entry.warp->priority = low;
  }
  std::make_heap(heap_.begin(), heap_.end());
}

void ReadyQueue::ran(CoreWarp& warp, std::uint64_t used) {
  if (!by_priority()) return;
  executed_ += used;
  warp.executed += used;
  const bool change = !changes_.empty() && executed_ >= changes_.back();
  if (change) {
    changes_.pop_back();
    demote_group(warp);
  }
  const std::uint64_t patience =
      std::clamp<std::uint64_t>(kPatienceOfAll / (heap_.size() + 1), kPatienceMin, patience_);
  if (change || warp.executed > patience) {
    warp.executed = 0;
    warp.priority = next_low_--;
  }
}

}  // namespace echolo::vgpu
