// Doing what is on its way.
#include <algorithm>

#include "shmem/call.hpp"
#include "shmem/delivery.hpp"

namespace echolo::shmem {

using vgpu::Clock;

namespace {

constexpr int kMostPieces = 4;

vgpu::Site site_of(const Origin& origin) {
  vgpu::Site site = *origin.site;
  if (site.on_device) {
    site.block = origin.block;
    site.thread = origin.thread;
  }
  return site;
}

}  // namespace

bool Delivery::deliver(std::uint64_t now, bool force) {
  now_ = std::max(now_, now);
  bool any = false;
  while (!queue_.empty() && queue_.begin()->first <= now_) {
    const std::uint64_t id = queue_.begin()->second;
    any = true;
    if (!move_piece(pending_.at(id))) return true;
    const auto still = pending_.find(id);
    if (still != pending_.end() && still->second.due > now_) continue;  // its rest comes later
    if (!finish(id)) return true;
  }
  if (any || !force || queue_.empty()) return any;
  // Nobody can go on: one of all that are on their way, so that what a lazy fabric holds back comes in any
  // order.
  auto at = queue_.begin();
  if (timing_ == Timing::kLazy) {
    std::advance(at, static_cast<std::ptrdiff_t>(rng_.below(std::min<std::uint64_t>(queue_.size(), 64))));
  }
  finish(at->second);
  return true;
}

bool Delivery::finish_all(const std::vector<EntryPtr>& entries) {
  return std::all_of(entries.begin(), entries.end(),
                     [this](const EntryPtr& entry) { return entry->done || finish(entry->id); });
}

// What comes before an operation was issued before it, so in order of number everything comes after what it
// must.
bool Delivery::finish(std::uint64_t id) {
  std::set<std::uint64_t> all{id};
  std::vector<std::uint64_t> open{id};
  while (!open.empty()) {
    const Flight& flight = pending_.at(open.back());
    open.pop_back();
    for (const EntryPtr& before : flight.after) {
      if (!before->done && all.insert(before->id).second) open.push_back(before->id);
    }
  }
  for (const std::uint64_t next : all) {
    const auto at = pending_.find(next);
    Flight flight = std::move(at->second);
    queue_.erase({flight.due, next});
    held_bytes_ -= flight.message.packet.bytes.size();
    if (const auto word = words_.find(flight.message.word); word != words_.end()) {
      std::erase(word->second, next);
      if (word->second.empty()) words_.erase(word);
    }
    pending_.erase(at);
    if (!run(flight, nullptr)) return false;
  }
  return true;
}

bool Delivery::run(Flight& flight, const Call* call) {
  Message& m = flight.message;
  Clock before = flight.known;
  for (const EntryPtr& entry : flight.after) order().merge(before, entry->effects);
  vgpu::Site site;
  vgpu::Memory::Accessor who;
  if (call != nullptr) {
    who = call->accessor();
  } else {
    site = site_of(flight.origin);
    who.site = &site;
    who.inst = flight.origin.inst;
    who.pe = flight.from;
    who.what = flight.op->name;
    who.any_pe = true;
  }
  Clock effects;
  if (flight.data_agent.value != 0) {
    order().acquire(flight.data_agent, before);
    who.agent = flight.data_agent;
    if (!move_data(flight, who, 0, m.bytes)) return false;
    order().merge(effects, order().release(flight.data_agent));
  }
  if (m.word != 0) {
    order().acquire(flight.update_agent, before);
    if (flight.data_agent.value != 0) {
      order().acquire(flight.update_agent, order().own(flight.data_agent));
    }
    who.agent = flight.update_agent;
    who.alignment = m.type->bytes;
    who.order = ptx::Order::kRelease;
    who.scope = ptx::Scope::kSys;
    who.synchronises = true;
    who.check_written = m.amo != Amo::kSet;
    const auto update = [&](std::uint64_t old) { return updated(*m.type, m.amo, old, m.operand); };
    if (!memory_->modify(m.word, m.type->bytes, update, nullptr, who)) return false;
    order().merge(effects, order().release(flight.update_agent));
    order().retire(flight.update_agent);
  }
  if (flight.data_agent.value != 0) order().retire(flight.data_agent);
  flight.entry->effects = std::move(effects);
  flight.entry->done = true;
  return true;
}

bool Delivery::move_data(Flight& flight, vgpu::Memory::Accessor who, std::uint64_t from,
                         std::uint64_t bytes) {
  const Message& m = flight.message;
  if (bytes == 0) return true;
  who.alignment = m.element;
  if (m.stride == 0) {
    if (m.source != 0) return memory_->copy(m.target + from, m.source + from, bytes, who);
    return memory_->unpack(m.target + from, m.packet, from, bytes, who);
  }
  for (std::uint64_t at = from; at < from + bytes; at += m.element) {
    const std::uint64_t to =
        m.target + static_cast<std::uint64_t>(static_cast<std::int64_t>(at / m.element) * m.stride);
    if (!memory_->unpack(to, m.packet, at, m.element, who)) return false;
  }
  return true;
}

// Large data is seen in pieces, the last first; what is left becomes due later.
bool Delivery::move_piece(Flight& flight) {
  Message& m = flight.message;
  const bool ready = std::all_of(flight.after.begin(), flight.after.end(),
                                 [](const EntryPtr& entry) { return entry->done; });
  const std::uint64_t granules = m.bytes / rules_.granule;
  if (!ready || m.stride != 0 || granules < 2 || flight.pieces + 1 >= kMostPieces || rng_.below(2) != 0) {
    return true;
  }
  const std::uint64_t keep = (1 + rng_.below(granules - 1)) * rules_.granule;
  for (const EntryPtr& entry : flight.after) order().merge(flight.known, entry->effects);
  flight.after.clear();
  order().acquire(flight.data_agent, flight.known);
  vgpu::Site site = site_of(flight.origin);
  vgpu::Memory::Accessor who;
  who.site = &site;
  who.inst = flight.origin.inst;
  who.pe = flight.from;
  who.what = flight.op->name;
  who.any_pe = true;
  who.agent = flight.data_agent;
  if (!move_data(flight, who, keep, m.bytes - keep)) return false;
  m.bytes = keep;
  ++flight.pieces;
  queue_.erase({flight.due, flight.entry->id});
  flight.due = now_ + 1 + rng_.below(rules_.longest_delay / 4);
  queue_.insert({flight.due, flight.entry->id});
  return true;
}

}  // namespace echolo::shmem
