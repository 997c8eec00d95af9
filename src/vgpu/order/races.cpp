#include "vgpu/order/races.hpp"

#include <algorithm>
#include <bit>
#include <tuple>

#include "vgpu/memory/shadow.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kFirstPrune = 32;  // a list of this length is looked through for what others stand for
constexpr std::size_t kMostStrong = 96;  // unordered strong accesses that are kept of a line
// Reads that are kept of a line, by how many lines have several: their memory stays in proportion to what is
// touched (at most 16 entries of 16 bytes for each 128 bytes, and a gibibyte).
constexpr std::size_t most_reads(std::size_t lists) {
  return lists < (1U << 18U) ? 4096U : lists < (1U << 20U) ? 64U : 16U;
}
constexpr std::size_t kTable = 128;  // ... where they are all alike: found by who and where

bool is_thread(std::uint32_t who) { return who != 0 && (who & Order::State::kOther) == 0; }

bool same_mapping(const Entry& a, const Entry& b) {
  constexpr std::uint32_t kPlaceBits = (1U << 25U) - 1U;
  if (a.shape == b.shape) return !a.is_shared() || a.n_lanes() == 1;
  if (a.is_shared() && b.is_shared())
    return a.n_lanes() == 1 && b.n_lanes() == 1 && a.first_lane() == b.first_lane();
  return ((a.shape ^ b.shape) & kPlaceBits) == 0 ? !a.is_shared() : a.maps_as(b);
}

}  // namespace

Races::Races(Order& order, FindingLog& findings)
    : order_(order), state_(order.state()), findings_(findings) {}
Races::~Races() = default;

void Races::set_shadow(std::uint64_t base, std::uint64_t bytes, std::uint8_t* cells) {
  shadows_.push_back(
      {base, bytes, reinterpret_cast<LineCell*>(cells), cells + bytes / kLine * sizeof(LineCell)});
}

std::uint32_t Races::place_of(const Inst& inst) {
  auto& recent = recent_[(reinterpret_cast<std::uintptr_t>(&inst) / sizeof(Inst)) % kRecent];
  if (recent.first == &inst) return recent.second;
  auto [at, fresh] = place_of_inst_.try_emplace(&inst, 0);
  if (fresh) {
    places_.push_back({&inst, 0, {}});
    at->second = static_cast<std::uint32_t>(places_.size() - 1);
  }
  std::uint32_t place = at->second;
  if (inst.source != nullptr &&
      (inst.source->op == ptx::Opcode::kMbarrier || inst.source->sub_op == ptx::SubOp::kMbarrierArrive))
    place |= kBarrierPlace;
  if (inst.source != nullptr && inst.source->op == ptx::Opcode::kWgmma) place |= kProxyPlace;
  // libcu++ invalidates the mbarriers of a pipeline behind a relaxed count; they are no data any more.
  if (inst.source != nullptr && inst.source->sub_op == ptx::SubOp::kInval) place |= kIgnoredPlace;
  recent = {&inst, place};
  return place;
}

std::uint32_t Races::place_of(const Memory::Accessor& who) {
  std::string key(who.what);
  if (who.inst != nullptr) {
    key += '\t' + std::to_string(reinterpret_cast<std::uintptr_t>(who.inst));
  } else if (who.site != nullptr) {
    key += '\t' + std::to_string(who.site->pe) + '\t' + std::to_string(who.site->call) + '\t' +
           who.site->where.file + '\t' + std::to_string(who.site->where.line) + '\t' +
           who.site->where.function;
  }
  auto [at, fresh] = place_of_call_.try_emplace(std::move(key), 0);
  if (fresh) {
    Place place;
    place.inst = who.inst;
    place.what = who.what;
    if (who.inst == nullptr && who.site != nullptr) {
      state_.sites.push_back(*who.site);
      place.site = static_cast<std::uint32_t>(state_.sites.size() - 1);
    }
    places_.push_back(std::move(place));
    at->second = static_cast<std::uint32_t>(places_.size() - 1);
  }
  return at->second;
}

// ---- lists ----

std::vector<Entry>& Races::list_of(Entry& slot) {
  if (slot.who == Entry::kList) return lists_[slot.clock];
  std::uint32_t number = 0;
  if (!free_lists_.empty()) {
    number = free_lists_.back();
    free_lists_.pop_back();
  } else {
    number = static_cast<std::uint32_t>(lists_.size());
    lists_.emplace_back();
  }
  std::vector<Entry>& list = lists_[number];
  list.clear();
  if (slot.who != Entry::kNobody) list.push_back(slot);
  slot = {Entry::kList, number, 0, 0};
  return list;
}

void Races::give_back(Entry& slot) {
  std::vector<Entry>& list = lists_[slot.clock];
  if (list.capacity() > 256) {
    list.clear();
    list.shrink_to_fit();
  }
  free_lists_.push_back(slot.clock);
}

// ---- order ----

bool Races::lanes_known(const WarpOrder& warp, const Knowledge& knowledge, const Entry& earlier,
                        std::uint32_t lanes) {
  const BlockOrder& block = *warp.block;
  const std::uint32_t at = earlier.who - block.first_warp;
  if (at < block.warps.size()) {
    if (knowledge.barrier != nullptr && earlier.clock < (*knowledge.barrier)[at]) return true;
    if (earlier.who == warp.number && Order::State::knows_mates(knowledge, lanes, earlier.clock)) return true;
  }
  const Clock::Data* data = knowledge.foreign.get();
  if (data == nullptr) return false;
  Known& memo = memo_[(earlier.who * 2654435761U >> 24U) ^ (data->serial & 255U)];
  if (memo.serial == data->serial && memo.who == earlier.who && earlier.clock <= memo.clock) return true;
  if (state_.knows_lanes(data, earlier.who, kAllLanes, earlier.clock)) {
    memo = {data->serial, earlier.who, earlier.clock};
    return true;
  }
  return state_.knows_lanes(data, earlier.who, lanes, earlier.clock);
}

inline bool Races::known(const Entry& earlier, const Entry& now, const Toucher& by) {
  if (by.warp != nullptr && !by.warp->each && is_thread(earlier.who)) {
    const Knowledge& common = by.warp->common;
    const std::uint32_t at = earlier.who - by.warp->block->first_warp;
    if (at < by.warp->block->warps.size()) {
      if (common.barrier != nullptr && earlier.clock < (*common.barrier)[at]) return true;
      if (earlier.who == now.who && (earlier.clock < common.warp || same_mapping(earlier, now))) return true;
    }
  }
  return known_slowly(earlier, now, by);
}

bool Races::known_slowly(const Entry& earlier, const Entry& now, const Toucher& by) {
  if (earlier.who == 0) return true;
  const unsigned begin = std::max(earlier.offset(), now.offset()), end = std::min(earlier.end(), now.end());
  if (by.warp == nullptr) {
    if (earlier.who == now.who) return true;
    const Clock::Data* data = state_.agent(by.agent).known.get();
    return is_thread(earlier.who)
               ? state_.knows_lanes(data, earlier.who, earlier.lanes(begin, end), earlier.clock)
               : state_.knows_agent(data, {earlier.who}, earlier.clock);
  }
  const WarpOrder& warp = *by.warp;
  if (!is_thread(earlier.who)) {
    if (!warp.each) return state_.knows_agent(warp.common.foreign.get(), {earlier.who}, earlier.clock);
    for (std::uint32_t bits = now.lanes(begin, end); bits != 0; bits &= bits - 1) {
      const Knowledge& mine = warp.of(std::countr_zero(bits));
      if (!state_.knows_agent(mine.foreign.get(), {earlier.who}, earlier.clock)) return false;
    }
    return true;
  }
  if (earlier.who != now.who && !warp.each)
    return lanes_known(warp, warp.common, earlier, earlier.lanes(begin, end));
  for (std::uint32_t bits = now.lanes(begin, end); bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<unsigned>(std::countr_zero(bits));
    unsigned from = begin, to = end;
    if (!now.is_shared()) {  // this lane's piece only
      const unsigned piece = now.offset() + ((lane - now.first_lane()) << now.shift());
      from = std::max(begin, piece);
      to = std::min(end, piece + (1U << now.shift()));
    }
    std::uint32_t others = earlier.lanes(from, to);
    if (earlier.who == now.who) others &= ~(1U << lane);
    if (others != 0 && !lanes_known(warp, warp.of(static_cast<int>(lane)), earlier, others)) return false;
  }
  return true;
}

// A read is over when its thread signals, whether or not it fences its stores before.
bool Races::read_known(const Entry& earlier, const Entry& now, const Toucher& by) const {
  const unsigned begin = std::max(earlier.offset(), now.offset()), end = std::min(earlier.end(), now.end());
  const auto told = [&](const Clock::Data* data) {
    if (data == nullptr || data->reads == nullptr) return false;
    return is_thread(earlier.who)
               ? state_.knows_lanes(data->reads.get(), earlier.who, earlier.lanes(begin, end), earlier.clock)
               : state_.knows_agent(data->reads.get(), {earlier.who}, earlier.clock);
  };
  if (by.warp == nullptr) return told(state_.agent(by.agent).known.get());
  if (!by.warp->each) return told(by.warp->common.foreign.get());
  for (std::uint32_t bits = now.lanes(begin, end); bits != 0; bits &= bits - 1) {
    if (!told(by.warp->of(std::countr_zero(bits)).foreign.get())) return false;
  }
  return true;
}

bool Races::includes_each_other(std::uint32_t a, ptx::Scope a_scope, std::uint32_t b,
                                ptx::Scope b_scope) const {
  if (a_scope == ptx::Scope::kSys && b_scope == ptx::Scope::kSys) return true;
  const std::uint32_t a_warp = issuer(a), b_warp = issuer(b);
  if (a_warp != 0 && b_warp != 0) {
    const std::uint32_t x = state_.block_of_warp[a_warp], y = state_.block_of_warp[b_warp];
    if (x == y) return true;
    const Order::State::BlockInfo &first = state_.blocks[x], &second = state_.blocks[y];
    if (first.grid == second.grid && first.cluster != 0 && first.cluster == second.cluster &&
        a_scope >= ptx::Scope::kCluster && b_scope >= ptx::Scope::kCluster)
      return true;
  }
  if (pe_of(a) == pe_of(b)) return a_scope >= ptx::Scope::kGpu && b_scope >= ptx::Scope::kGpu;
  return false;
}

bool Races::morally_strong(const Entry& a, const Entry& b) const {
  return a.strong() && b.strong() && a.element() == b.element() && a.element() < 5 &&
         includes_each_other(a.who, a.scope(), b.who, b.scope());
}

// A thread's plain write to shared memory that the async proxy reads with no fence in between.
bool Races::needs_proxy_fence(const Entry& earlier, const Toucher& by) const {
  const BlockOrder& home = *by.block->order;
  const std::uint32_t at = earlier.who - home.first_warp;
  return is_thread(earlier.who) && at < home.warps.size() && earlier.clock >= home.warps[at].proxied;
}

inline void Races::check(const Entry& earlier, bool earlier_writes, const Entry& now, const Toucher& by) {
  if (earlier.who == Entry::kNobody || !earlier.overlaps(now)) return;
  if (earlier.strong() && by.strength != 0 && morally_strong(earlier, now)) return;
  if (known(earlier, now, by)) {
    if (by.async_proxy && earlier_writes && needs_proxy_fence(earlier, by))
      report(earlier, true, now, by, true);
    return;
  }
  if (!earlier_writes && read_known(earlier, now, by)) return;
  report(earlier, earlier_writes, now, by);
}

// ---- what is remembered ----

std::uint32_t Races::alike(ptx::Scope scope, unsigned element_bytes, int pe, bool in_shared) {
  if (!std::has_single_bit(element_bytes) || element_bytes > 16) return 0;
  // Whoever reaches a block's shared memory is in its cluster.
  if (scope < (in_shared ? ptx::Scope::kCluster : ptx::Scope::kGpu)) return 0;
  const bool system = scope == ptx::Scope::kSys;
  return 1U | static_cast<std::uint32_t>(scope) << 1U | element_bytes << 4U |
         (system ? 0U : static_cast<std::uint32_t>(pe) << 16U);
}

std::uint32_t Races::alike(const Entry& entry, bool in_shared) const {
  if (!entry.strong() || entry.element() >= 5) return 0;
  return alike(entry.scope(), 1U << entry.element(), pe_of(entry.who), in_shared);
}

// Of one thread's accesses to the same bytes the last stands for all; so does `now` for what it comes after.
void Races::prune(std::vector<Entry>& list, const Entry& now, const Toucher& by) {
  std::sort(list.begin(), list.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.who, a.shape, b.clock) < std::tie(b.who, b.shape, a.clock);
  });
  const auto same = [](const Entry& a, const Entry& b) { return a.who == b.who && a.shape == b.shape; };
  list.erase(std::unique(list.begin(), list.end(), same), list.end());
  std::erase_if(list, [&](const Entry& entry) { return now.covers(entry) && known(entry, now, by); });
}

void Races::note_read(Entry& slot, const Entry& now, const Toucher& by) {
  if (slot.who == Entry::kNobody) {
    slot = now;
    return;
  }
  const auto replaced = [&](Entry& entry) {
    if (entry.who != now.who || entry.shape != now.shape) return false;
    entry = now;
    return true;
  };
  if (slot.who != Entry::kList) {
    if (replaced(slot)) return;
    if (now.covers(slot) && (now.strong() || !slot.strong()) && known(slot, now, by)) {
      slot = now;
      return;
    }
  }
  std::vector<Entry>& list = list_of(slot);
  const std::size_t newest = std::min<std::size_t>(list.size(), 4);
  for (std::size_t back = 1; back <= newest; ++back) {
    if (replaced(list[list.size() - back])) return;
  }
  if (list.size() >= kFirstPrune && std::has_single_bit(list.size())) prune(list, now, by);
  if (const std::size_t most = most_reads(lists_.size()); list.size() >= most)
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(list.size() - most / 2));
  list.push_back(now);
}

// Many strong writes that do not race with each other: a table, in which a newer one may push out an older.
// False: they are not of this kind.
bool Races::tabulate(Entry& slot, const Entry& now, const Toucher& by) {
  std::vector<Entry>& list = lists_[slot.clock];
  const auto place = [](const Entry& entry) {
    return ((entry.who * 2654435761U) ^ (entry.shape * 2246822519U)) >> 25U;
  };
  static_assert(kTable == 1U << (32U - 25U));
  if (slot.place == 0) {
    if (by.alike == 0 || list.size() < 8 || !std::has_single_bit(list.size())) return false;
    for (const Entry& entry : list) {
      if (alike(entry, by.block != nullptr) != by.alike) return false;
    }
    std::vector<Entry> table(kTable);
    for (const Entry& entry : list) table[place(entry)] = entry;
    list = std::move(table);
    slot.place = by.alike;
  } else if (slot.place != by.alike) {
    std::erase_if(list, [](const Entry& entry) { return entry.who == Entry::kNobody; });
    slot.place = 0;
    return false;
  }
  list[place(now)] = now;
  return true;
}

void Races::note_write(LineCell& cell, const Entry& now, const Toucher& by) {
  if (cell.read.who != Entry::kNobody) {
    // Reads that this write comes after need not be kept; strong ones that merely don't race with it must.
    const auto stays = [&](const Entry& entry) {
      if (!now.covers(entry)) return true;
      return now.strong() && entry.strong() && !known(entry, now, by);
    };
    if (cell.read.who != Entry::kList) {
      if (!stays(cell.read)) cell.read = {};
    } else {
      std::vector<Entry>& list = lists_[cell.read.clock];
      if (now.bytes() == kLine && !now.strong()) {
        list.clear();
      } else {
        std::erase_if(list, [&](const Entry& entry) { return !stays(entry); });
        if (list.size() > kMostStrong) list.erase(list.begin(), list.begin() + kMostStrong / 2);
      }
      if (list.empty()) drop(cell.read);
    }
  }
  if (cell.write.who == Entry::kNobody) {
    cell.write = now;
    return;
  }
  const auto stands_for = [&](const Entry& entry) {
    if (!now.covers(entry)) return false;
    if (entry.who == now.who && entry.shape == now.shape) return true;
    return !(now.strong() && entry.strong()) || known(entry, now, by);
  };
  if (cell.write.who != Entry::kList) {
    if (stands_for(cell.write)) {
      cell.write = now;
      return;
    }
    list_of(cell.write).push_back(now);
    return;
  }
  if (tabulate(cell.write, now, by)) return;
  std::vector<Entry>& list = lists_[cell.write.clock];
  if (now.atomic() && list.size() > 4) {
    // Contended counters: only its own earlier update is looked for.
    for (std::size_t i = list.size(); i-- > 0;) {
      if (list[i].who != now.who || list[i].shape != now.shape) continue;
      list[i] = now;
      return;
    }
    if (list.size() >= kMostStrong) {
      std::erase_if(list, stands_for);
      if (list.size() >= kMostStrong) list.erase(list.begin(), list.begin() + kMostStrong / 2);
    }
    list.push_back(now);
    return;
  }
  std::erase_if(list, stands_for);
  if (list.empty()) {
    drop(cell.write);
    cell.write = now;
    return;
  }
  if (list.size() > kLine + kMostStrong) list.erase(list.begin(), list.begin() + kMostStrong / 2);
  list.push_back(now);
}

void Races::piece(LineCell& cell, const Toucher& by, std::uint32_t shape) {
  const Entry now{by.who, by.clock, by.place, shape | by.strength};
  if (cell.write.who != Entry::kNobody) {
    if (cell.write.who != Entry::kList) {
      check(cell.write, true, now, by);
    } else if (by.alike == 0 || cell.write.place != by.alike) {
      const std::uint32_t number = cell.write.clock;
      for (std::size_t i = 0; i < lists_[number].size(); ++i) check(lists_[number][i], true, now, by);
    }
  }
  if (!by.write) {
    note_read(cell.read, now, by);
    return;
  }
  if (by.strength == 0 && (!records_.empty() || !words_.empty()) && cell.write.who != Entry::kNobody)
    overwrite_flags(cell, now, by);
  if (cell.read.who != Entry::kNobody) {
    if (cell.read.who != Entry::kList) {
      check(cell.read, false, now, by);
    } else {
      const std::uint32_t number = cell.read.clock;
      for (std::size_t i = 0; i < lists_[number].size(); ++i) check(lists_[number][i], false, now, by);
    }
  }
  note_write(cell, now, by);
}

// A weak write over a flag: whoever reads that learns nothing.
void Races::overwrite_flags(const LineCell& cell, const Entry& now, const Toucher& by) {
  if (cell.write.who != Entry::kList && !cell.write.strong()) return;
  forget_versions(by.line + now.offset(), now.bytes(), false);
  for (std::uint64_t word = (by.line + now.offset()) / 8; word <= (by.line + now.end() - 1) / 8; ++word)
    records_.erase(word);
}

void Races::pieces(Toucher& by, std::uint64_t address, std::uint64_t bytes, unsigned first_lane,
                   unsigned shift_or_lanes, bool shared_lanes, BlockOrder* home, std::uint64_t window) {
  std::uint64_t at = address;
  const std::uint64_t end = address + bytes;
  while (at < end) {
    const std::uint64_t in_space = home != nullptr ? at - window : at;
    const auto offset = static_cast<unsigned>(in_space % kLine);
    const auto n = static_cast<unsigned>(std::min<std::uint64_t>(kLine - offset, end - at));
    LineCell* cell = home != nullptr ? &shared_cell(*home, in_space / kLine) : cell_of(at);
    if (cell != nullptr) {
      by.line = at - offset;
      const unsigned lane =
          shared_lanes ? first_lane : first_lane + static_cast<unsigned>((at - address) >> shift_or_lanes);
      piece(*cell, by,
            shared_lanes ? Entry::shared(offset, n, lane, shift_or_lanes)
                         : Entry::spread(offset, n, lane, shift_or_lanes));
    }
    at += n;
  }
}

// Makes the shadow of a block's shared memory ready.
void Races::enter(const Block& block) {
  BlockOrder& home = *block.order;
  const std::size_t n = (block.shared.size() + kLine - 1) / kLine;
  if (home.cells.size() >= n) return;
  home.cells.resize(n);
  home.since.resize(n, 0);
}

void Races::kernel(Warp& warp, const Inst& inst, Memory::Access& access, const Block* shared) {
  using Pattern = Memory::Pattern;
  WarpOrder& order = *warp.order;
  Toucher by;
  by.warp = &order;
  by.who = order.number;
  by.clock = order.clock;
  by.place = place_of(inst);
  const bool barrier = (by.place & kBarrierPlace) != 0;
  if ((by.place & kIgnoredPlace) != 0) return;
  by.async_proxy = shared != nullptr && (by.place & kProxyPlace) != 0;
  by.place &= ~(kBarrierPlace | kProxyPlace);
  by.write = access.kind != Memory::AccessKind::kLoad;
  by.atomic = access.kind == Memory::AccessKind::kAtomic;
  by.order = access.order;
  by.scope = access.scope;
  by.pe = warp.block->grid->pe;
  by.block = shared;
  by.kernel_warp = &warp;
  by.fresh = access.fresh;
  const bool strong = by.atomic || access.order != ptx::Order::kWeak;
  if (access.order == ptx::Order::kVolatile || access.order == ptx::Order::kMmio) by.scope = ptx::Scope::kSys;
  if (by.atomic && by.scope == ptx::Scope::kNone) by.scope = ptx::Scope::kGpu;
  if (strong) {
    by.strength = Entry::strength(true, by.scope, by.atomic, access.element_bytes);
    by.alike = alike(by.scope, access.element_bytes, by.pe, shared != nullptr);
  }
  BlockOrder* home = nullptr;
  std::uint64_t window = 0;
  if (shared != nullptr) {
    home = shared->order;
    if (home->cells.size() * kLine < shared->shared.size()) enter(*shared);
    if (shared != warp.block) home->closed = false;
    window = reinterpret_cast<std::uint64_t>(shared->shared.data());
  }
  const unsigned bytes = access.bytes;
  const auto shift = static_cast<unsigned>(std::countr_zero(bytes));
  const std::uint64_t* at = access.addresses;
  switch (access.pattern) {
    case Pattern::kContiguous:
      pieces(by, at[0], std::uint64_t{bytes} * kWarpSize, 0, shift, false, home, window);
      break;
    case Pattern::kUniform:
      for (std::uint32_t left = access.mask; left != 0;) {  // runs of neighbouring lanes
        const auto first = static_cast<unsigned>(std::countr_zero(left));
        const auto n = static_cast<unsigned>(std::countr_one(left >> first));
        pieces(by, at[0], bytes, first, n, true, home, window);
        left &= ~Entry::range(first, n);
        if (by.write) break;  // of several lanes that write the same place at once one wins
      }
      break;
    case Pattern::kScattered:
      for (std::uint32_t left = access.mask; left != 0;) {
        const auto first = static_cast<unsigned>(std::countr_zero(left));
        const auto most = static_cast<unsigned>(std::countr_one(left >> first));
        unsigned n = 1;
        if (most > 1 && at[first + 1] == at[first]) {
          while (n < most && at[first + n] == at[first]) ++n;
          pieces(by, at[first], bytes, first, by.write ? 1 : n, true, home, window);
        } else {
          while (n < most && at[first + n] == at[first] + std::uint64_t{n} * bytes) ++n;
          pieces(by, at[first], std::uint64_t{bytes} * n, first, shift, false, home, window);
        }
        left &= ~Entry::range(first, n);
      }
      break;
  }
  if (!strong || barrier) return;  // what mbarriers order is their own affair (vgpu/memory/async.hpp)
  const bool versions = stale_share_ != 0 && shared == nullptr;
  const bool may_release = by.write && (by.order == ptx::Order::kRelease || by.order == ptx::Order::kAcqRel ||
                                        by.order == ptx::Order::kSc || !order.fences.empty());
  if (!may_release && !versions && records_.empty()) return;
  Memory::OlderValues* older = nullptr;
  if (access.kind == Memory::AccessKind::kLoad && bytes == access.element_bytes) {
    older = &older_;
    older->mask = 0;
  }
  for (std::uint32_t left = access.mask; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = access.pattern == Pattern::kScattered ? at[lane]
                                  : access.pattern == Pattern::kUniform
                                      ? at[0]
                                      : at[0] + static_cast<std::uint64_t>(lane) * bytes;
    for (unsigned done = 0; done < bytes; done += access.element_bytes) {
      if (may_release || versions || may_have_records((address + done) / 8))
        synchronise(by, lane, address + done, access.element_bytes, shared, older);
    }
  }
  if (older != nullptr && older->mask != 0) access.older = older;
}

void Races::touch(std::uint64_t address, std::uint64_t n, bool write, bool atomic,
                  const Memory::Accessor& who) {
  if (n == 0) return;
  if (who.agent.value != 0) {
    touch_as(address, n, write, atomic, who, nullptr);
  } else if (write) {
    forget(address, n);
  }
}

void Races::touch_shared(const Block& block, std::uint64_t offset, std::uint64_t n, bool write,
                         const Memory::Accessor& who) {
  if (n == 0 || who.agent.value == 0 || block.order == nullptr) return;
  enter(block);
  block.order->closed = false;
  touch_as(reinterpret_cast<std::uint64_t>(block.shared.data()) + offset, n, write, false, who, &block);
}

void Races::touch_as(std::uint64_t address, std::uint64_t n, bool write, bool atomic,
                     const Memory::Accessor& who, const Block* shared) {
  Toucher by;
  by.agent = who.agent;
  by.write = write;
  by.atomic = atomic;
  by.order = who.order;
  by.scope = who.scope == ptx::Scope::kNone ? ptx::Scope::kSys : who.scope;
  by.pe = who.pe;
  by.block = shared;
  by.async_proxy = shared != nullptr && !write && who.order == ptx::Order::kWeak;
  by.place = place_of(who);
  const bool strong = atomic || who.order != ptx::Order::kWeak;
  if (strong)
    by.strength =
        Entry::strength(true, by.scope, atomic, static_cast<unsigned>(std::min<std::uint64_t>(n, 255)));
  unsigned lane = 0;
  if (Order::State::is_thread(who.agent)) {
    by.warp = state_.live_warps[Order::State::warp_of(who.agent)];
    if (by.warp == nullptr) return;
    lane = static_cast<unsigned>(Order::State::lane_of(who.agent));
    by.who = by.warp->number;
    by.clock = by.warp->clock;
  } else {
    by.who = who.agent.value;
    by.clock = state_.agent(who.agent).clock;
  }
  if (strong && write && shared == nullptr && stale_share_ != 0 && address - kArenaBase < kArenaBytes)
    by.fresh = !shadow::all_set(marks_, address - kArenaBase, n);
  if (strong && n <= 16) by.alike = alike(by.scope, static_cast<unsigned>(n), by.pe, shared != nullptr);
  BlockOrder* const home = shared == nullptr ? nullptr : shared->order;
  const std::uint64_t window = home == nullptr ? 0 : reinterpret_cast<std::uint64_t>(shared->shared.data());
  pieces(by, address, n, lane, 1, true, home, window);
  if (strong && n <= 16 && home == nullptr)
    synchronise(by, static_cast<int>(lane), address, static_cast<std::uint32_t>(n), nullptr, nullptr);
}

void Races::forget(std::uint64_t address, std::uint64_t n) {
  const Shadow* shadow = nullptr;
  for (const Shadow& one : shadows_) {
    if (address - one.base < one.bytes) shadow = &one;
  }
  if (shadow == nullptr) return;
  forget_versions(address, n, false);
  const std::uint64_t end = address + n;
  for (std::uint64_t line = address / kLine * kLine; line < end; line += kLine) {
    if (shadow->used[(line - shadow->base) / kChunk] == 0) {
      line |= kChunk - kLine;  // the bases are multiples of a chunk
      continue;
    }
    LineCell* const cell = shadow->cells + (line - shadow->base) / kLine;
    if (cell->read.who == 0 && cell->write.who == 0) continue;
    const auto from = static_cast<unsigned>(std::max(line, address) - line);
    const auto to = static_cast<unsigned>(std::min(line + kLine, end) - line);
    const auto gone = [&](const Entry& entry) { return from <= entry.offset() && entry.end() <= to; };
    for (Entry* slot : {&cell->read, &cell->write}) {
      if (slot->who == Entry::kList) {
        std::vector<Entry>& list = lists_[slot->clock];
        std::erase_if(list, gone);
        if (list.empty()) drop(*slot);
      } else if (slot->who != 0 && gone(*slot)) {
        *slot = {};
      }
    }
    for (std::uint64_t word = std::max(line, address) / 8; word < (line + to + 7) / 8; ++word) {
      if (records_.empty()) break;
      records_.erase(word);
    }
  }
}

}  // namespace echolo::vgpu
