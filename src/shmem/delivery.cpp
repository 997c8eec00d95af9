// Issuing, completing and ordering of operations; delivery_run.cpp does them.
#include "shmem/delivery.hpp"

#include <algorithm>

#include "shmem/call.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::shmem {

using vgpu::AgentId;
using vgpu::AgentKind;
using vgpu::Clock;

namespace {

// Lazy operations are done after this many warp instructions of the node even where everybody could go on:
// "as late as allowed" ends somewhere, or a spin that counts its tries would never see its flag.
constexpr std::uint64_t kLaziness = 1U << 18U;
constexpr std::uint64_t kMostHeldBytes = 256U << 20U;
constexpr std::size_t kKeptEntries = 64, kKeptFences = 16;

bool is_window(std::uint64_t address) {
  return address >= vgpu::kSharedWindow && address < vgpu::kLocalWindow + vgpu::kLocalWindowBytes;
}

}  // namespace

Delivery::Delivery(const FabricRules& rules, Timing timing, std::uint64_t seed, int n_pes)
    : rules_(rules),
      timing_(timing),
      rng_(seed ^ 0x64656c69ULL),  // its own stream: no draw repeats the scheduler's
      n_pes_(n_pes),
      paths_(static_cast<std::size_t>(n_pes) * static_cast<std::size_t>(n_pes) * 2) {}

void Delivery::attach(vgpu::Memory& memory, vgpu::FindingLog& findings) {
  memory_ = &memory;
  findings_ = &findings;
}

Delivery::Path& Delivery::path(int from, Side side, int to) {
  const auto n = static_cast<std::size_t>(n_pes_);
  return paths_[(static_cast<std::size_t>(from) * n + static_cast<std::size_t>(to)) * 2 +
                (side == Side::kHost ? 1 : 0)];
}

Origin Delivery::origin_of(Call& call) {
  Origin origin;
  if (call.warp == nullptr) {
    origin.site = std::make_shared<const vgpu::Site>(call.site("call"));
    return origin;
  }
  // Of all threads of a grid at one instruction only block and thread differ.
  const vgpu::Grid& grid = *call.warp->block->grid;
  std::shared_ptr<const vgpu::Site>& site = sites_[{grid.launch_id, call.inst}];
  if (site == nullptr) site = std::make_shared<const vgpu::Site>(call.site("call"));
  origin.site = site;
  origin.inst = call.inst;
  origin.block = call.warp->block->index;
  origin.thread = vgpu::thread_index(*call.warp, call.lane);
  return origin;
}

bool Delivery::known(AgentId who, std::uint32_t at, const Call& call) {
  return call.warp == nullptr || order().happened_before(who, at, call.agent);
}

void Delivery::precedents(Path& path, const Call& call, std::vector<EntryPtr>* after, Clock* effects) {
  for (auto& [fencer, fences] : path.fences) {
    const auto last = std::find_if(fences.rbegin(), fences.rend(),
                                   [&](const Fence& fence) { return known(fence.who, fence.time, call); });
    if (last == fences.rend()) continue;
    order().merge(*effects, last->effects);
    for (const EntryPtr& entry : last->before) {
      if (entry->done) {
        order().merge(*effects, entry->effects);
      } else {
        after->push_back(entry);
      }
    }
  }
}

// Of operations on one word without order between them the later mostly comes first: that is what a program
// that counts on the other order does not survive.
std::uint64_t Delivery::due_for(const Flight& flight) {
  if (timing_ == Timing::kLazy) return now_ + kLaziness;
  unsigned bits = 0;
  while ((1U << bits) < rules_.longest_delay) ++bits;
  std::uint64_t due = now_ + rng_.below(std::uint64_t{1} << rng_.below(bits + 1));
  if (flight.message.word == 0 || !rules_.atomics_overtake) return due;
  const auto others = words_.find(flight.message.word);
  if (others == words_.end()) {
    // Something that others may overtake stays on its way for a while.
    return flight.message.amo == Amo::kAdd ? std::max(due, now_ + rules_.longest_delay / 8) : due;
  }
  for (const std::uint64_t id : others->second) {
    if (rng_.below(8) != 0) due = std::min(due, std::max(pending_.at(id).due, now_ + 1) - 1);
  }
  return due;
}

bool Delivery::issue(Call& call, Message message) {
  if (vgpu::Meter* const meter = memory_->meter()) {
    meter->sent(call.warp, {message.to, message.bytes, message.get, message.local, call.op.granularity,
                            message.word, message.amo == Amo::kSet || message.amo == Amo::kSwap});
  }
  Path& way = path(call.pe, call.side, message.to);
  Flight flight;
  flight.op = &call.op;
  flight.from = call.pe;
  flight.entry = std::make_shared<Entry>();
  flight.entry->id = next_id_++;
  flight.entry->issuer = call.agent;
  flight.entry->time = order().time_of(call.agent);
  precedents(way, call, &flight.after, &flight.known);
  if (message.bytes > 0) {
    flight.data_agent =
        order().spawn(call.agent, message.get ? AgentKind::kGet : AgentKind::kPut, call.pe, call.op.name);
    order().acquire(flight.data_agent, flight.known);
  }
  if (message.word != 0) {
    flight.update_agent = order().spawn_carrying(call.agent, AgentKind::kRemoteAtomic, call.pe, call.op.name);
    order().acquire(flight.update_agent, flight.known);
  }
  flight.message = std::move(message);
  const Message& m = flight.message;
  auto& issued = way.issued[call.agent.value];
  issued.push_back(flight.entry);
  if (issued.size() > kKeptEntries) forget_done(issued);
  if (m.nonblocking && m.local_bytes > 0 && !memory_->is_symmetric(m.local)) {
    LocalUse use{m.local,         m.local_bytes, nullptr, flight.entry, flight.data_agent,
                 origin_of(call), call.op.name,  call.pe, !m.get};
    if (is_window(m.local) && call.warp != nullptr) use.block = call.warp->block;
    uses_.push_back(std::move(use));
  }
  if (timing_ == Timing::kEager) {
    if (!finish_all(flight.after)) return false;
    return run(flight, &call);
  }
  flight.origin = origin_of(call);
  enqueue(std::move(flight));
  while (held_bytes_ > kMostHeldBytes) {
    if (!finish(pending_.begin()->first)) return false;
  }
  return true;
}

void Delivery::enqueue(Flight flight) {
  flight.due = due_for(flight);
  const std::uint64_t id = flight.entry->id;
  held_bytes_ += flight.message.packet.bytes.size();
  queue_.insert({flight.due, id});
  if (flight.message.word != 0) words_[flight.message.word].push_back(id);
  pending_.emplace(id, std::move(flight));
}

// The oldest are kept as one.
void Delivery::forget_done(std::vector<EntryPtr>& entries) {
  std::size_t n = 0;
  while (n < kKeptEntries / 2 && entries[n]->done) ++n;
  if (n < 2) return;
  auto joint = std::make_shared<Entry>(*entries.front());
  for (std::size_t i = 1; i < n; ++i) order().merge(joint->effects, entries[i]->effects);
  entries.erase(entries.begin() + 1, entries.begin() + static_cast<std::ptrdiff_t>(n));
  entries.front() = std::move(joint);
}

bool Delivery::quiet(Call& call) {
  std::vector<EntryPtr> mine;
  for (const Side side : {Side::kDevice, Side::kHost}) {
    if (side != call.side && !call.completes_both_sides) continue;
    for (int to = 0; to < n_pes_; ++to) {
      for (auto& [issuer, entries] : path(call.pe, side, to).issued) {
        auto end = entries.end();
        while (end != entries.begin() && !known((*(end - 1))->issuer, (*(end - 1))->time, call)) --end;
        mine.insert(mine.end(), entries.begin(), end);
      }
    }
  }
  std::vector<EntryPtr> open;
  for (const EntryPtr& entry : mine) {
    entry->waited_for = true;
    if (!entry->done) open.push_back(entry);
  }
  if (!finish_all(open)) return false;
  Clock effects;
  for (const EntryPtr& entry : mine) order().merge(effects, entry->effects);
  order().acquire(call.agent, effects);
  std::erase_if(uses_, [](const LocalUse& use) { return use.entry->waited_for; });
  return true;
}

void Delivery::fence(Call& call) {
  for (int to = 0; to < n_pes_; ++to) {
    Path& way = path(call.pe, call.side, to);
    Fence fence;
    fence.who = call.agent;
    fence.time = order().time_of(call.agent);
    fence.next = next_id_;
    // Whatever the caller's last fence covered comes before what the caller has issued since, so that goes
    // for it too.
    auto& fences = way.fences[call.agent.value];
    const auto own = way.issued.find(call.agent.value);
    const bool chained = !fences.empty() && own != way.issued.end() && !own->second.empty() &&
                         own->second.back()->id >= fences.back().next && !own->second.back()->done;
    bool any = false;
    for (auto& [issuer, entries] : way.issued) {
      auto end = entries.end();
      while (end != entries.begin() && !known((*(end - 1))->issuer, (*(end - 1))->time, call)) --end;
      for (auto at = entries.begin(); at != end; ++at) {
        any = true;
        if ((*at)->done) {
          order().merge(fence.effects, (*at)->effects);
        } else if (!chained || (*at)->fencer != call.agent) {
          fence.before.push_back(*at);
        }
        (*at)->fencer = call.agent;
      }
    }
    if (!any) continue;
    fences.push_back(std::move(fence));
    if (fences.size() > kKeptFences) fences.erase(fences.begin());
  }
}

bool Delivery::before(Call& call, int to) {
  std::vector<EntryPtr> after;
  Clock effects;
  precedents(path(call.pe, call.side, to), call, &after, &effects);
  return finish_all(after);
}

void Delivery::report_early_exit(const LocalUse& use, const std::string& when, const vgpu::Site* where) {
  vgpu::Finding finding;
  finding.kind = vgpu::FindingKind::kEarlyExit;
  const std::string pe = "PE " + std::to_string(use.pe);
  finding.message = when + " while " + use.what + " of " + pe + " may still " +
                    (use.reads ? "read" : "write") + (use.block != nullptr ? " its shared memory" : " it");
  finding.why = std::string(
      "a non-blocking operation uses its local buffer until a quiet or a barrier that "
      "comes after it; none does");
  finding.advice =
      use.block != nullptr
          ? "nvshmem_quiet before the block ends, or a buffer in global memory that lives longer"
          : "nvshmem_quiet (in the kernel, or nvshmemx_quiet_on_stream) before the memory goes away";
  vgpu::Site site = *use.origin.site;
  if (site.on_device) {
    site.block = use.origin.block;
    site.thread = use.origin.thread;
  }
  site.role = "call";
  finding.sites.push_back(std::move(site));
  if (where != nullptr) finding.sites.push_back(*where);
  if (const vgpu::Allocation* object = memory_->find(use.address); object != nullptr) {
    finding.address = {object->pe, object->describe(), static_cast<std::int64_t>(use.address - object->base)};
  }
  findings_->add(std::move(finding));
}

void Delivery::block_finished(const vgpu::Block& block) {
  if (uses_.empty()) return;
  for (const LocalUse& use : uses_) {
    if (use.block == &block && !use.entry->waited_for) report_early_exit(use, "a block ends", nullptr);
  }
  std::erase_if(uses_, [&](const LocalUse& use) { return use.block == &block; });
}

void Delivery::released(std::uint64_t base, std::uint64_t bytes, const Clock& known,
                        const vgpu::Site& where) {
  const auto touches = [&](const LocalUse& use) {
    return use.block == nullptr && use.address < base + bytes && base < use.address + use.bytes;
  };
  for (const LocalUse& use : uses_) {
    if (touches(use) && !use.entry->waited_for && !order().covers(known, use.agent)) {
      vgpu::Site site = where;
      report_early_exit(use, "PE " + std::to_string(where.pe) + " gives memory back", &site);
    }
  }
  // What still uses it is done now, in bounds: the finding has been made.
  std::vector<EntryPtr> open;
  for (const LocalUse& use : uses_) {
    if (touches(use) && !use.entry->done) open.push_back(use.entry);
  }
  if (!finish_all(open)) return;
  std::erase_if(uses_, touches);
}

}  // namespace echolo::shmem
