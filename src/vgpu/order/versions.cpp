// What a strong load may return besides the newest value (PTX ISA, "Memory Consistency Model"): a write is
// visible to each observer in its own time. An older value may be read as long as nothing tells the reader
// otherwise: the write that replaced it, or a read of what replaced it, happened before the load
// ("Coherence", "Causality"), or a fence.sc that the reader knows of came after the replacement
// ("Fence-SC"; here fences take their places in that order as they are executed). Read-modify-writes always
// see the newest value ("Atomicity"). No value stays readable for long: strong loads become current.
#include <algorithm>
#include <bit>

#include "vgpu/order/races.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kMostVersions = 4;       // older values that are kept of a word
constexpr std::size_t kMostReaders = 16;       // of a value; beyond that nothing older is read
constexpr std::size_t kMostWords = 1U << 16U;  // beyond that all older values are forgotten
constexpr std::size_t kMostFences = 64;
constexpr std::uint64_t kCurrentWithin = 2048;  // strong accesses of the machine

}  // namespace

bool Races::event_known(const Event& event, const Toucher& by, int lane) const {
  if (event.who == 0) return true;
  const bool by_thread = Order::State::is_thread({event.who});
  if (by.warp == nullptr) {
    if (event.who == by.who) return true;
    const Clock::Data* data = state_.agent(by.agent).known.get();
    return by_thread ? state_.knows_lanes(data, event.who, 1U << event.lane, event.clock)
                     : state_.knows_agent(data, {event.who}, event.clock);
  }
  const Knowledge& mine = by.warp->of(lane);
  if (!by_thread) return state_.knows_agent(mine.foreign.get(), {event.who}, event.clock);
  if (event.who == by.who && event.lane == static_cast<std::uint32_t>(lane)) return true;
  return state_.lane_knows(*by.warp, mine, event.who, 1U << event.lane, event.clock);
}

void Races::note_reader(std::vector<Event>& readers, const Toucher& by, int lane) {
  const auto at = static_cast<std::uint32_t>(lane);
  if (readers.size() > kMostReaders) return;
  for (const Event& other : readers) {
    if (other.who == by.who && other.lane == at) return;  // who knows the later read knows the first
  }
  readers.push_back({by.who, at, by.clock});
}

void Races::keep_version(const Toucher& by, int lane, std::uint64_t address, std::uint32_t bytes,
                         const Records* records) {
  if (bytes > 8) return;
  forget_versions(address, bytes, true);
  if (words_.size() >= kMostWords) words_.clear();
  Word& word = words_[address];
  word.bytes = bytes;
  if (word.readers.size() > kMostReaders || by.fresh) word.older.clear();
  if (!by.fresh) {
    Version version;
    version.value = value_at(address, bytes);
    version.replaced_by = {by.who, static_cast<std::uint32_t>(lane), by.clock};
    version.replaced_at = time_;
    version.readers = std::move(word.readers);
    if (records != nullptr) {
      for (const Record& record : *records) {
        if (record.address < address + bytes && address < record.address + record.bytes)
          version.records.push_back(record);
      }
    }
    word.older.push_back(std::move(version));
    if (word.older.size() > kMostVersions) word.older.pop_front();
  }
  word.readers.clear();
}

Races::Version* Races::older_version(const Toucher& by, int lane, std::uint64_t address,
                                     std::uint32_t bytes) {
  const auto found = words_.find(address);
  if (found == words_.end() || found->second.bytes != bytes) return nullptr;
  Word& word = found->second;
  std::size_t n = 0;  // how many of the newest of the older values may be read
  if (!word.older.empty() && rng_.below(256) < stale_share_) {
    const std::uint64_t floor = fences_known(by, lane);
    const std::vector<Event>* readers = &word.readers;
    while (n < word.older.size()) {
      const auto knows = [&](const Event& event) { return event_known(event, by, lane); };
      const Version& version = word.older[word.older.size() - 1 - n];
      if (readers->size() > kMostReaders || std::any_of(readers->begin(), readers->end(), knows)) break;
      if (version.replaced_at <= floor || time_ - version.replaced_at > kCurrentWithin) break;
      if (knows(version.replaced_by)) break;
      readers = &version.readers;
      ++n;
    }
  }
  if (n == 0) {
    note_reader(word.readers, by, lane);
    return nullptr;
  }
  Version& chosen = word.older[word.older.size() - 1 - rng_.below(n)];
  note_reader(chosen.readers, by, lane);
  return &chosen;
}

void Races::note_sc_fence(const Warp& warp, std::uint32_t lanes) {
  if (stale_share_ == 0) return;
  ++time_;
  fences_.push_back({warp.order->number, lanes, warp.order->clock, time_});
  if (fences_.size() <= kMostFences) return;
  forgotten_fence_ = fences_.front().time;
  fences_.pop_front();
}

std::uint64_t Races::fences_known(const Toucher& by, int lane) const {
  for (std::size_t i = fences_.size(); i-- > 0;) {
    const Fence& fence = fences_[i];
    for (std::uint32_t lanes = fence.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto other = static_cast<std::uint32_t>(std::countr_zero(lanes));
      if (event_known({fence.who, other, fence.clock}, by, lane)) return fence.time;
    }
  }
  return forgotten_fence_;
}

void Races::forget_versions(std::uint64_t address, std::uint64_t n, bool but_this) {
  if (words_.empty()) return;
  const auto touches = [&](std::uint64_t at, const Word& word) {
    return at < address + n && address < at + word.bytes && !(but_this && at == address && word.bytes == n);
  };
  if (n > 2048) {
    std::erase_if(words_, [&](const auto& item) { return touches(item.first, item.second); });
    return;
  }
  for (std::uint64_t at = address - 7; at != address + n; ++at) {
    const auto found = words_.find(at);
    if (found != words_.end() && touches(at, found->second)) words_.erase(found);
  }
}

}  // namespace echolo::vgpu
