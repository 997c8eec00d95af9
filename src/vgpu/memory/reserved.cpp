// Addresses that are reserved first and get memory later: what is mapped, what is accessible, and the
// allocations that kernels see there.
#include <algorithm>
#include <utility>

#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

const ReservedRange::Part* ReservedRange::part_at(std::uint64_t address, std::uint64_t* start) const {
  auto it = parts.upper_bound(address);
  if (it == parts.begin()) return nullptr;
  --it;
  if (address - it->first >= it->second.size) return nullptr;
  if (start != nullptr) *start = it->first;
  return &it->second;
}

const ReservedRange* AllocationTable::reserved_at(std::uint64_t address) const {
  auto it = reserved.upper_bound(address);
  if (it == reserved.begin()) return nullptr;
  --it;
  return address - it->first < it->second.size ? &it->second : nullptr;
}

namespace {

ReservedRange* range_of(AllocationTable& table, int pe, std::uint64_t address, std::uint64_t size) {
  auto it = table.reserved.upper_bound(address);
  if (it == table.reserved.begin() || size == 0) return nullptr;
  ReservedRange& range = (--it)->second;
  const std::uint64_t offset = address - range.base;
  return range.pe == pe && offset < range.size && size <= range.size - offset ? &range : nullptr;
}

// The mappings that [address, address + size) is made of; empty: it cuts one, or has a gap.
std::vector<std::uint64_t> whole_parts(const ReservedRange& range, std::uint64_t address,
                                       std::uint64_t size) {
  std::vector<std::uint64_t> starts;
  std::uint64_t at = address;
  while (at < address + size) {
    const auto it = range.parts.find(at);
    if (it == range.parts.end()) return {};
    starts.push_back(at);
    at += it->second.size;
  }
  return at == address + size ? starts : std::vector<std::uint64_t>{};
}

// Makes the allocations of a range those runs that are mapped and accessible without a gap.
void remake_runs(Memory::State& s, ReservedRange& range) {
  std::map<std::uint64_t, std::uint64_t> runs;
  std::uint64_t start = 0, end = 0;
  for (const auto& [address, part] : range.parts) {
    if (!part.accessible) continue;
    if (end != address || runs.empty()) start = address;
    end = address + part.size;
    runs[start] = end - start;
  }
  for (const auto& [address, size] : range.runs) {
    const auto same = runs.find(address);
    if (same == runs.end() || same->second != size) s.table.free(address);
  }
  for (const auto& [address, size] : runs) {
    const auto same = range.runs.find(address);
    if (same != range.runs.end() && same->second == size) continue;
    Allocation allocation;
    allocation.base = address;
    allocation.size = size;
    allocation.pe = range.pe;
    allocation.kind = AllocationKind::kDevice;
    allocation.maker = "cuMemMap, in addresses from " + range.maker;
    allocation.where = range.where;
    s.table.add(std::move(allocation));
  }
  range.runs = std::move(runs);
  s.forget_cached();
}

}  // namespace

Result<std::uint64_t> Memory::reserve(int pe, std::uint64_t size, std::uint64_t alignment, std::string maker,
                                      std::string where) {
  State& s = *state_;
  const std::uint64_t base = s.device[static_cast<std::size_t>(pe)].take(size, alignment);
  if (base == 0)
    return machine_error("out of memory: PE " + std::to_string(pe) +
                         " reserves more addresses than are left");
  ReservedRange range;
  range.base = base;
  range.size = size;
  range.pe = pe;
  range.maker = std::move(maker);
  range.where = std::move(where);
  s.table.reserved[base] = std::move(range);
  return base;
}

bool Memory::unreserve(int pe, std::uint64_t base, std::uint64_t size) {
  State& s = *state_;
  const auto it = s.table.reserved.find(base);
  if (it == s.table.reserved.end() || it->second.pe != pe || it->second.size != size ||
      !it->second.parts.empty())
    return false;
  s.table.reserved.erase(it);
  s.device[static_cast<std::size_t>(pe)].give(base);
  return true;
}

bool Memory::map(int pe, std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
  ReservedRange* range = range_of(state_->table, pe, address, size);
  if (range == nullptr || range->part_at(address, nullptr) != nullptr) return false;
  const auto next = range->parts.upper_bound(address);
  if (next != range->parts.end() && next->first < address + size) return false;
  range->parts[address] = {size, handle, false};
  std::erase_if(range->left, [&](const auto& old) {
    return old.first < address + size && address < old.first + old.second;
  });
  return true;
}

std::vector<std::uint64_t> Memory::unmap(int pe, std::uint64_t address, std::uint64_t size) {
  State& s = *state_;
  ReservedRange* range = range_of(s.table, pe, address, size);
  if (range == nullptr) return {};
  std::vector<std::uint64_t> handles;
  for (const std::uint64_t start : whole_parts(*range, address, size)) {
    handles.push_back(range->parts[start].handle);
    range->parts.erase(start);
  }
  if (handles.empty()) return {};
  range->left[address] = size;
  remake_runs(s, *range);
  s.races->forget(address, size);
  shadow::assign(s.mark_bits(), State::mark_index(address), size, false);
  note_change();
  return handles;
}

bool Memory::allow_access(int pe, std::uint64_t address, std::uint64_t size, bool allowed) {
  ReservedRange* range = range_of(state_->table, pe, address, size);
  if (range == nullptr) return false;
  const std::vector<std::uint64_t> starts = whole_parts(*range, address, size);
  for (const std::uint64_t start : starts) range->parts[start].accessible = allowed;
  if (!starts.empty()) remake_runs(*state_, *range);
  return !starts.empty();
}

std::optional<Memory::Mapped> Memory::mapped_at(std::uint64_t address) const {
  const ReservedRange* range = state_->table.reserved_at(address);
  std::uint64_t start = 0;
  const ReservedRange::Part* part = range == nullptr ? nullptr : range->part_at(address, &start);
  if (part == nullptr) return std::nullopt;
  return Mapped{start, part->size, part->handle, part->accessible};
}

bool Memory::is_reserved(std::uint64_t address) const {
  return state_->table.reserved_at(address) != nullptr;
}

bool Memory::open_to(std::uint64_t base, int pe, bool open) {
  AllocationRecord* record = state_->table.find_base(base);
  if (record == nullptr) return false;
  const std::uint64_t bit = std::uint64_t{1} << static_cast<unsigned>(pe);
  record->info.opened_by = open ? record->info.opened_by | bit : record->info.opened_by & ~bit;
  state_->forget_cached();
  return true;
}

}  // namespace echolo::vgpu
