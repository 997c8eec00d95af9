// Allocations and addresses of the virtual node.
#include "vgpu/memory/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "base/rng.hpp"
#include "base/text.hpp"
#include "vgpu/memory/async.hpp"
#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kStartGrain = 2ULL << 20U;  // regions start at multiples of this
constexpr std::uint64_t kStartChoices = 512;        // so a region starts up to 1 GiB into its part

Error out_of_memory(int pe, std::uint64_t size, const Region& region, const char* what) {
  return machine_error("out of memory: PE " + std::to_string(pe) + " asks for " + human_bytes(size) + " of " +
                           what + ", and " + human_bytes(region.capacity() - region.used()) + " of " +
                           human_bytes(region.capacity()) + " are left",
                       "free what is no longer used, or allocate less");
}

Dim3 index_in(const Dim3& dim, std::uint32_t linear) {
  return {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
}

}  // namespace

std::string Allocation::describe() const {
  std::string out;
  if (!name.empty()) out += "`" + name + "`, ";
  out += human_bytes(size);
  if (kind == AllocationKind::kGlobal) return out + ", a __device__ variable";
  if (kind == AllocationKind::kConstant) return out + ", a __constant__ variable";
  if (!maker.empty()) out += " from " + maker;
  if (!where.empty()) out += " at " + where;
  return out;
}

Memory::Memory() : async_(std::make_unique<AsyncCopies>(*this)) {}
Memory::~Memory() = default;

Order& Memory::order() { return state_->order; }
AsyncCopies& Memory::async() { return *async_; }

Result<std::unique_ptr<Memory>> Memory::create(const MemoryConfig& config, FindingLog& findings) {
  if (config.n_pes < 1 || config.n_pes > kMaxPes) {
    return usage_error("a virtual node has 1 to " + std::to_string(kMaxPes) + " PEs, not " +
                       std::to_string(config.n_pes));
  }
  std::unique_ptr<Memory> memory(new Memory);
  memory->state_ = std::make_unique<State>();
  memory->async_->seed(config.seed);
  State& s = *memory->state_;
  s.config = config;
  s.findings = &findings;

  auto arena = Mapping::reserve(kArenaBase, kArenaBytes, -1, "device memory");
  if (!arena) return arena.error();
  s.arena = std::move(*arena);
  auto marks = Mapping::reserve(0, kArenaBytes / 8, -1, "the marks of written memory");
  if (!marks) return marks.error();
  s.marks = std::move(*marks);
  auto cells = Mapping::reserve(0, Races::shadow_bytes(kArenaBytes), -1, "the shadow of device memory");
  if (!cells) return cells.error();
  s.cells = std::move(*cells);
  auto host_cells = Mapping::reserve(0, Races::shadow_bytes(kHostBytes), -1, "the shadow of pinned memory");
  if (!host_cells) return host_cells.error();
  s.host_cells = std::move(*host_cells);
  s.races = std::make_unique<Races>(s.order, findings);
  s.races->set_table(&s.table);
  s.races->set_shadow(kArenaBase, kArenaBytes, s.cells.data());
  s.races->set_shadow(kHostBase, kHostBytes, s.host_cells.data());
  s.races->set_marks(s.marks.data());
  s.races->read_older(config.older_values, config.seed);
  s.order.state().races = s.races.get();

  Rng rng(config.seed);
  std::array<int, kMaxPes> slots{};
  std::iota(slots.begin(), slots.end(), 0);
  for (int i = kMaxPes - 1; i > 0; --i) {
    std::swap(slots[static_cast<std::size_t>(i)], slots[rng.below(static_cast<std::uint64_t>(i) + 1)]);
  }
  s.pe_of_slot.fill(-1);
  for (int pe = 0; pe < config.n_pes; ++pe) {
    const int slot = slots[static_cast<std::size_t>(pe)];
    s.slot_of_pe.push_back(slot);
    s.pe_of_slot[static_cast<std::size_t>(slot)] = pe;
    const std::uint64_t begin = kArenaBase + static_cast<std::uint64_t>(slot) * kPeSpan;
    const std::uint64_t device_begin = begin + (1 + rng.below(kStartChoices)) * kStartGrain;
    s.device.emplace_back(device_begin, begin + kDeviceSpan, config.device_bytes);
    s.symmetric_begin.push_back(begin + kDeviceSpan + (1 + rng.below(kStartChoices)) * kStartGrain);

    // Sealed, because the PE gets the descriptor: were it to shrink the file, our own accesses would fault.
    Descriptor file(memfd_create("echolo-host-memory", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(kHostSpan)) != 0 ||
        fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
      return machine_error(std::string("cannot make shared host memory: ") + std::strerror(errno));
    }
    const std::uint64_t host = memory->host_base(pe);
    auto map = Mapping::reserve(host, kHostSpan, file.get(), "pinned host memory");
    if (!map) return map.error();
    s.host_files.push_back(std::move(file));
    s.host_maps.push_back(std::move(*map));
    s.host.emplace_back(host, host + kHostSpan, kHostSpan);
  }
  const std::uint64_t symmetric_span = kPeSpan - kDeviceSpan - (kStartChoices + 1) * kStartGrain;
  s.symmetric = Region(0, symmetric_span, std::min(config.symmetric_bytes, symmetric_span));
  s.cache.resize(static_cast<std::size_t>(config.n_pes));
  return memory;
}

Result<std::uint64_t> Memory::allocate(int pe, std::uint64_t size, std::uint64_t alignment,
                                       AllocationKind kind, std::string name, std::string maker,
                                       std::string where) {
  State& s = *state_;
  if (size == 0) return usage_error("an allocation of no bytes");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0) {
    return usage_error("alignment " + std::to_string(alignment) + " is not a power of two");
  }
  if (kind == AllocationKind::kSymmetric)
    return usage_error("symmetric memory is allocated on all PEs at once");
  const bool on_host = kind == AllocationKind::kPinned || kind == AllocationKind::kManaged;
  Region& region = (on_host ? s.host : s.device)[static_cast<std::size_t>(pe)];
  const std::uint64_t base = region.take(size, alignment);
  if (base == 0) return out_of_memory(pe, size, region, on_host ? "pinned host memory" : "device memory");
  Allocation allocation;
  allocation.base = base;
  allocation.size = size;
  allocation.pe = pe;
  allocation.kind = kind;
  allocation.name = std::move(name);
  allocation.maker = std::move(maker);
  allocation.where = std::move(where);
  AllocationRecord& record = s.table.add(std::move(allocation));
  record.complete = on_host;
  return base;
}

Result<std::vector<std::uint64_t>> Memory::allocate_symmetric(std::uint64_t size, std::uint64_t alignment,
                                                              const std::string& maker,
                                                              const std::vector<std::string>& where) {
  State& s = *state_;
  if (size == 0) return usage_error("an allocation of no bytes");
  if (alignment == 0 || (alignment & (alignment - 1)) != 0 || alignment > kStartGrain) {
    return usage_error("alignment " + std::to_string(alignment) + " is not a power of two of at most 2 MiB");
  }
  const std::uint64_t offset = s.symmetric.take(size, alignment);
  if (offset == 0) return out_of_memory(0, size, s.symmetric, "symmetric memory");
  std::vector<std::uint64_t> bases;
  for (std::size_t pe = 0; pe < s.symmetric_begin.size(); ++pe) {
    Allocation allocation;
    allocation.base = s.symmetric_begin[pe] + offset;
    allocation.size = size;
    allocation.pe = static_cast<int>(pe);
    allocation.kind = AllocationKind::kSymmetric;
    allocation.maker = maker;
    if (pe < where.size()) allocation.where = where[pe];
    bases.push_back(allocation.base);
    s.table.add(std::move(allocation));
  }
  s.symmetric_holders[offset] = s.config.n_pes;
  return bases;
}

Status Memory::release(std::uint64_t base) {
  State& s = *state_;
  AllocationRecord* const record = s.table.find_base(base);
  if (record == nullptr) {
    if (const Allocation* freed = s.table.find_freed(base); freed != nullptr) {
      return usage_error("frees " + short_name(*freed) + " a second time");
    }
    if (const AllocationRecord* inside = s.table.find(base); inside != nullptr) {
      return usage_error("frees an address " + with_commas(base - inside->info.base) + " bytes into " +
                         short_name(inside->info) + "; only its start can be freed");
    }
    return usage_error("frees an address that is no allocation's");
  }
  const Allocation allocation = record->info;
  s.races->forget(allocation.base, allocation.size);
  const auto pe = static_cast<std::size_t>(allocation.pe);
  switch (allocation.kind) {
    case AllocationKind::kSymmetric: {
      const std::uint64_t offset = base - s.symmetric_begin[pe];
      if (--s.symmetric_holders[offset] == 0) {
        s.symmetric_holders.erase(offset);
        s.symmetric.give(offset);
      }
      break;
    }
    case AllocationKind::kPinned:
    case AllocationKind::kManaged:
      s.host[pe].give(base);
      break;
    default:
      s.device[pe].give(base);
  }
  s.table.free(base);
  s.forget_cached();

  // Gives whole pages back to the machine, and leaves no written marks for the next owner of the range.
  const std::uint64_t first = (base + kPage - 1) & ~(kPage - 1);
  const std::uint64_t last = (base + allocation.size) & ~(kPage - 1);
  if (State::in_arena(base)) {
    if (first < last) madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
    shadow::assign(s.mark_bits(), State::mark_index(base), allocation.size, false);
  } else {
    std::memset(reinterpret_cast<void*>(base), 0, allocation.size);
    if (first < last) {
      fallocate(s.host_files[pe].get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                static_cast<off_t>(first - host_base(allocation.pe)), static_cast<off_t>(last - first));
    }
  }
  return {};
}

const Allocation* Memory::find(std::uint64_t address) const {
  const AllocationRecord* record = state_->table.find(address);
  return record == nullptr ? nullptr : &record->info;
}

const Allocation* Memory::find_freed(std::uint64_t address) const {
  if (const Allocation* live = find(address); live != nullptr) return live;
  return state_->table.find_freed(address);
}

std::vector<const Allocation*> Memory::live_allocations(int pe) const {
  std::vector<const Allocation*> out;
  for (const auto& [base, record] : state_->table.live()) {
    if (pe < 0 || record.info.pe == pe) out.push_back(&record.info);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->serial < b->serial; });
  return out;
}

std::uint64_t Memory::free_bytes(int pe) const {
  const Region& region = state_->device[static_cast<std::size_t>(pe)];
  return region.capacity() - region.used();
}

void Memory::set_name(std::uint64_t base, std::string name) {
  if (AllocationRecord* record = state_->table.find_base(base); record != nullptr)
    record->info.name = std::move(name);
}

int Memory::pe_of(std::uint64_t address) const {
  if (State::in_arena(address)) return state_->pe_of_slot[(address - kArenaBase) / kPeSpan];
  if (State::in_host(address)) {
    const auto pe = static_cast<int>((address - kHostBase) / kHostSpan);
    return pe < state_->config.n_pes ? pe : -1;
  }
  return -1;
}

std::uint64_t Memory::symmetric_base(int pe) const {
  return state_->symmetric_begin[static_cast<std::size_t>(pe)];
}

bool Memory::is_symmetric(std::uint64_t address) const {
  const Allocation* allocation = find(address);
  return allocation != nullptr && allocation->kind == AllocationKind::kSymmetric;
}

std::uint64_t Memory::translate(std::uint64_t address, int to_pe) const {
  const Allocation* allocation = find(address);
  if (allocation == nullptr || allocation->kind != AllocationKind::kSymmetric) return 0;
  if (to_pe < 0 || to_pe >= state_->config.n_pes) return 0;
  return address - symmetric_base(allocation->pe) + symmetric_base(to_pe);
}

int Memory::host_fd(int pe) const { return state_->host_files[static_cast<std::size_t>(pe)].get(); }

std::uint64_t Memory::host_base(int pe) const {
  return kHostBase + static_cast<std::uint64_t>(pe) * kHostSpan;
}

std::optional<Memory::LastWriter> Memory::last_writer(std::uint64_t address) const {
  const WriterTable::Record* record = state_->writers.find(address);
  if (record == nullptr) return std::nullopt;
  const WriterTable::Shared& shared = state_->writers.shared(*record);
  LastWriter out;
  out.site = shared.site;
  if (shared.block_dim.x != 0) {
    out.site.block = index_in(shared.grid_dim, record->block);
    out.site.thread = index_in(shared.block_dim, record->thread);
  }
  out.address = record->address;
  out.bytes = record->bytes;
  out.value = record->value;
  return out;
}

void report_leaks(const Memory& memory, FindingLog& findings) {
  struct Group {
    std::uint64_t count = 0, bytes = 0;
    const Allocation* first = nullptr;
  };
  std::map<std::pair<std::string, std::string>, Group> groups;
  std::vector<std::pair<std::string, std::string>> order;
  for (const Allocation* allocation : memory.live_allocations(-1)) {
    if (allocation->kind != AllocationKind::kDevice && allocation->kind != AllocationKind::kSymmetric)
      continue;
    const auto key = std::pair(allocation->maker, allocation->where);
    Group& group = groups[key];
    if (group.count++ == 0) {
      group.first = allocation;
      order.push_back(key);
    }
    group.bytes += allocation->size;
  }
  for (const auto& key : order) {
    const Group& group = groups[key];
    const Allocation& first = *group.first;
    Finding finding;
    finding.kind = FindingKind::kLeak;
    const bool one = group.count == 1;
    finding.message =
        (one ? short_name(first) + " is"
             : with_commas(group.count) + " allocations, " + human_bytes(group.bytes) + " in all, are") +
        " never freed";
    const bool symmetric = first.kind == AllocationKind::kSymmetric;
    finding.advice = symmetric ? "nvshmem_free on every PE, before nvshmem_finalize"
                               : "cudaFree when it is no longer used";
    Site site = make_host_site(first.pe, "allocation");
    const auto colon = first.where.rfind(':');
    if (colon != std::string::npos) {
      site.where.file = first.where.substr(0, colon);
      site.where.line = std::atoi(first.where.c_str() + colon + 1);
    }
    site.where.function = first.maker;
    finding.sites.push_back(std::move(site));
    finding.address = {first.pe, first.describe(), 0};
    finding.count = group.count;
    findings.add(std::move(finding));
  }
}

}  // namespace echolo::vgpu
