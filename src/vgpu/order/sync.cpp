// Release and acquire (PTX ISA, "Release and Acquire Patterns", "Observation Order", "Synchronizes"): which
// strong write lets its reader know what the writer knew, and which merely looks as if it did.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vgpu/order/races.hpp"

namespace echolo::vgpu {
namespace {

bool acquires(ptx::Order order) {
  return order == ptx::Order::kAcquire || order == ptx::Order::kAcqRel || order == ptx::Order::kSc;
}
bool releases(ptx::Order order) {
  return order == ptx::Order::kRelease || order == ptx::Order::kAcqRel || order == ptx::Order::kSc;
}

constexpr std::size_t kMostPending = 64;
constexpr std::size_t kMostNear = 4096;

}  // namespace

std::uint64_t Races::value_at(std::uint64_t address, std::uint32_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(address), std::min<std::uint32_t>(bytes, 8));
  return value;
}

void Races::synchronise(const Toucher& by, int lane, std::uint64_t address, std::uint32_t bytes,
                        const Block* shared, Memory::OlderValues* older) {
  const std::uint32_t home = shared == nullptr ? 0 : shared->order->number;
  const bool versions = stale_share_ != 0 && shared == nullptr;
  if (versions) {
    ++time_;
    if (!by.write) {
      if (older == nullptr) {
        if (const auto word = words_.find(address); word != words_.end())
          note_reader(word->second.readers, by, lane);
      } else if (Version* const version = older_version(by, lane, address, bytes); version != nullptr) {
        older->mask |= 1U << static_cast<unsigned>(lane);
        older->value[lane] = version->value;
        ++by.kernel_warp->older_reads;
        observe(version->records, by, lane, address, bytes, &version->value);
        return;
      }
    }
  }
  const auto found = records_.find(address / 8);
  if (versions && by.write)
    keep_version(by, lane, address, bytes, found == records_.end() ? nullptr : &found->second);
  if (found != records_.end()) {
    // Shared memory of a block that has ended may lie where this one's does.
    std::erase_if(found->second, [&](const Record& record) { return record.home != home; });
    if (!by.write || by.atomic) observe(found->second, by, lane, address, bytes, nullptr);
  }
  if (!by.write) return;
  const FenceMark* fence = nullptr;
  if (by.warp != nullptr && !releases(by.order)) {
    for (const FenceMark& mark : by.warp->fences) {
      if ((mark.mask >> static_cast<unsigned>(lane) & 1U) != 0) fence = &mark;
    }
  }
  std::shared_ptr<const Record> previous;
  if (found != records_.end()) {
    for (const Record& other : found->second) {
      if (other.address != address || other.bytes != bytes) continue;
      auto told = std::make_shared<Record>(told_by(other, nullptr));
      told->previous.reset();
      previous = std::move(told);
    }
  }
  if (!by.atomic && found != records_.end()) {
    std::erase_if(found->second, [&](const Record& record) {
      return address <= record.address && record.address + record.bytes <= address + bytes;
    });
  }
  if (!releases(by.order) && fence == nullptr) return;
  Record record;
  record.home = home;
  record.address = address;
  record.bytes = bytes;
  record.scope = record.first_scope = by.scope;
  record.pe = pe_of(by.who);
  record.who = by.who;
  record.clock_value = by.clock;
  record.lane = static_cast<std::uint32_t>(lane);
  record.place = by.place;
  record.grid = grid_of(by.who);
  record.before = value_at(address, bytes);
  record.previous = std::move(previous);
  if (fence != nullptr) {
    record.first_scope = fence->scope;
    record.clock = Order::State::clock_of(state_.snapshot(*by.warp, fence->known, lane, fence->bound));
  } else {
    record.clock = order_.release(
        by.warp != nullptr ? AgentId{by.who * kWarpSize + static_cast<std::uint32_t>(lane)} : by.agent);
  }
  Records& records = records_of(address / 8);
  // A chain of updates: what they release adds up where they reach equally far.
  for (Record& other : records) {
    const bool same_block = Order::State::is_thread({by.who}) && Order::State::is_thread({other.who}) &&
                            state_.block_of_warp[by.who] == state_.block_of_warp[other.who];
    if (other.address != address || other.bytes != bytes || other.pe != record.pe ||
        other.scope != record.scope || other.first_scope != record.first_scope ||
        (std::min(record.scope, record.first_scope) < ptx::Scope::kGpu && !same_block)) {
      continue;
    }
    order_.merge(record.clock, other.clock);
    other = std::move(record);
    return;
  }
  records.push_back(std::move(record));
}

const Races::Record& Races::told_by(const Record& record, const std::uint64_t* value) {
  if (record.previous == nullptr || record.previous->who == record.who) return record;
  const std::uint64_t now = value != nullptr ? *value : value_at(record.address, record.bytes);
  return record.before == now ? *record.previous : record;
}

void Races::observe(const Records& records, const Toucher& by, int lane, std::uint64_t address,
                    std::uint32_t bytes, const std::uint64_t* value) {
  const AgentId self =
      by.warp != nullptr ? AgentId{by.who * kWarpSize + static_cast<std::uint32_t>(lane)} : by.agent;
  for (const Record& newest : records) {
    const Record& record = told_by(newest, value);
    if (record.address >= address + bytes || address >= record.address + record.bytes) continue;
    if (record.address != address || record.bytes != bytes) {
      remember_near(NearReason::kSize, record, record.clock, by, lane);
      continue;
    }
    if (!includes_each_other(record.who, record.scope, by.who, by.scope)) {
      const bool write = !includes_each_other(record.who, record.scope, by.who, ptx::Scope::kSys);
      remember_near(write ? NearReason::kWriteScope : NearReason::kReadScope, record, record.clock, by, lane);
      continue;
    }
    if (acquires(by.order)) {
      if (includes_each_other(record.who, record.first_scope, by.who, by.scope)) {
        order_.acquire(self, record.clock);
        remember_taken(record, by, lane);
      } else {
        const bool write = !includes_each_other(record.who, record.first_scope, by.who, ptx::Scope::kSys);
        remember_near(write ? NearReason::kWriteScope : NearReason::kReadScope, record, record.clock, by,
                      lane);
      }
      continue;
    }
    // A relaxed read: a fence after it makes it an acquire.
    if (by.warp == nullptr) continue;
    auto& pending = by.warp->pending;
    const std::uint32_t bit = 1U << static_cast<unsigned>(lane);
    const auto known = std::find_if(pending.begin(), pending.end(), [&](const PendingAcquire& other) {
      return Order::State::data_of(other.clock) == Order::State::data_of(record.clock) &&
             other.first_scope == record.first_scope;
    });
    if (known != pending.end()) {
      known->mask |= bit;
    } else {
      if (pending.size() >= kMostPending) pending.erase(pending.begin());
      pending.push_back({bit, record.clock, record.first_scope, record.who});
    }
    remember_near(NearReason::kNoAcquire, record, record.clock, by, lane);
  }
}

void Races::acquire_pending(Warp& warp, std::uint32_t lanes, ptx::Scope scope) {
  auto& pending = warp.order->pending;
  for (PendingAcquire& read : pending) {
    const std::uint32_t mine = read.mask & lanes;
    if (mine == 0) continue;
    if (includes_each_other(read.writer, read.first_scope, warp.order->number, scope))
      order_.acquire(warp, mine, read.clock);
    read.mask &= ~mine;
  }
  std::erase_if(pending, [](const PendingAcquire& read) { return read.mask == 0; });
}

// Edges between blocks, for the words of findings.
void Races::remember_taken(const Record& record, const Toucher& by, int lane) {
  if (Order::State::is_thread({by.who}) && Order::State::is_thread({record.who}) &&
      state_.block_of_warp[by.who] == state_.block_of_warp[record.who]) {
    return;
  }
  for (std::size_t back = 0; back < std::min<std::size_t>(near_.size(), 128); ++back) {
    Near& other = near_[near_.size() - 1 - back];
    if (other.reason != NearReason::kTaken || other.reader != by.who ||
        other.reader_lane != static_cast<std::uint32_t>(lane) || other.record.address != record.address) {
      continue;
    }
    if (other.record.grid >= record.grid) return;
    other.record.grid = record.grid;  // it went on to see a newer one
    other.reader_clock = by.clock;
    other.clock = record.clock;
    return;
  }
  remember_near(NearReason::kTaken, record, record.clock, by, lane);
}

void Races::remember_near(NearReason reason, const Record& record, const Clock& clock, const Toucher& by,
                          int lane) {
  for (std::size_t back = 0; back < std::min<std::size_t>(near_.size(), 64); ++back) {
    const Near& other = near_[near_.size() - 1 - back];
    if (other.reason == reason && other.reader == by.who && other.reader_place == by.place &&
        other.reader_clock == by.clock && other.reader_lane == static_cast<std::uint32_t>(lane) &&
        other.record.place == record.place &&
        Order::State::data_of(other.clock) == Order::State::data_of(clock)) {
      return;
    }
  }
  if (near_.size() >= kMostNear) near_.pop_front();
  Near near;
  near.reason = reason;
  near.clock = clock;
  near.reader = by.who;
  near.reader_clock = by.clock;
  near.reader_lane = static_cast<std::uint32_t>(lane);
  near.reader_place = by.place;
  near.reader_grid = grid_of(by.who);
  near.reader_scope = by.scope;
  near.record = record;
  near.record.clock = {};
  near_.push_back(std::move(near));
}

}  // namespace echolo::vgpu
