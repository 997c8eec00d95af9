// The one place that every memory access of a kernel passes: bounds, rights, alignment, written marks.
#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "vgpu/memory/cluster.hpp"
#include "vgpu/memory/lane_ops.hpp"
#include "vgpu/memory/state.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::vgpu {

namespace {

using AccessKind = Memory::AccessKind;
using Pattern = Memory::Pattern;
using ReportedReads = std::map<std::pair<const Inst*, int>, std::size_t>;

const char* verb_of(AccessKind kind) {
  return kind == AccessKind::kLoad ? "reads" : kind == AccessKind::kStore ? "writes" : "updates";
}

const char* role_of(AccessKind kind) {
  return kind == AccessKind::kLoad ? "read" : kind == AccessKind::kStore ? "write" : "atomic";
}

std::string dim_text(const Dim3& dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) + ")";
}

std::string thread_text(const Warp& warp, int lane) {
  return "thread " + dim_text(thread_index(warp, lane)) + " of block " + dim_text(warp.block->index);
}

std::string pe_text(const Warp& warp) { return "PE " + std::to_string(warp.block->grid->pe); }

void log_fault(Warp& warp, const Inst& inst, AccessKind access, FindingKind kind, int lane, FaultText text,
               unsigned count) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(text.message);
  finding.why = std::move(text.why);
  finding.advice = std::move(text.advice);
  finding.address = std::move(text.address);
  finding.sites.push_back(make_site(warp, lane, inst, role_of(access)));
  finding.count = count;
  finding.fatal = true;
  warp.block->grid->findings->add(std::move(finding));
}

// Do all lanes lie within [begin, begin + size), aligned as they must be?
bool inside(const Memory::Access& access, std::uint64_t begin, std::uint64_t size) {
  static const LaneOps& ops = lane_ops();
  const std::uint64_t low_bits = access.alignment - 1U;
  if (access.pattern == Pattern::kScattered) {
    return size >= access.bytes && ops.all_within(access.addresses, begin, size - access.bytes, low_bits);
  }
  const std::uint64_t bytes =
      access.pattern == Pattern::kUniform ? access.bytes : std::uint64_t{access.bytes} * kWarpSize;
  const std::uint64_t bits =
      access.pattern == Pattern::kUniform ? access.addresses[0] : access.addresses[0] | access.bytes;
  return size >= bytes && access.addresses[0] - begin <= size - bytes && (bits & low_bits) == 0;
}

// Bytes that a uniform or contiguous access covers from addresses[0] on.
std::uint64_t extent(const Memory::Access& access) {
  return access.pattern == Pattern::kUniform ? access.bytes : std::uint64_t{access.bytes} * kWarpSize;
}

std::uint64_t address_of(const Memory::Access& access, int lane) {
  switch (access.pattern) {
    case Pattern::kUniform:
      return access.addresses[0];
    case Pattern::kContiguous:
      return access.addresses[0] + static_cast<std::uint64_t>(lane) * access.bytes;
    case Pattern::kScattered:
      break;
  }
  return access.addresses[lane];
}

template <typename Visit>
void for_lanes(std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
}

// Kinds of memory whose bytes belong to a block, a thread or a launch, not to the arena.
struct Window {
  std::uint8_t* bytes = nullptr;
  std::uint8_t* marks = nullptr;  // nullptr: always written
  std::uint64_t size = 0;         // bytes that a thread may address
  std::uint64_t lane_stride = 0;  // local memory: lane i's bytes begin at i * lane_stride
  bool read_only = false;
  const char* name = "";
  const Block* block = nullptr;  // shared memory: whose
};

std::string window_object(const Warp& warp, const Window& window, int lane) {
  std::string out = human_bytes(window.size) + " of " + window.name;
  if (window.lane_stride != 0) return out + " of " + thread_text(warp, lane);
  if (window.read_only) return out;
  return out + " of block " + dim_text((window.block != nullptr ? window.block : warp.block)->index);
}

bool misaligned(Warp& warp, const Inst& inst, const Memory::Access& access, const AllocationTable* table) {
  const std::uint64_t low_bits = access.alignment - 1U;
  int first = -1;
  unsigned count = 0;
  for_lanes(access.mask, [&](int lane) {
    if ((address_of(access, lane) & low_bits) == 0) return;
    if (first < 0) first = lane;
    ++count;
  });
  if (first < 0) return false;
  const std::uint64_t address = address_of(access, first);
  FaultText text;
  const std::uint64_t held = std::uint64_t{1} << static_cast<unsigned>(std::countr_zero(address));
  text.message = pe_text(warp) + " " + verb_of(access.kind) + " " + std::to_string(access.bytes) +
                 " bytes at an address aligned to " + std::to_string(held) + ", but " +
                 std::to_string(access.alignment) + " is needed";
  text.why = thread_text(warp, first) + " is at ";
  const Allocation* near = table == nullptr ? nullptr : table->before(address);
  if (near != nullptr && address - near->base < near->size) {
    text.address = address_in(*near, address);
    text.why += "byte " + with_commas(address - near->base) + " of " + short_name(*near) +
                ", no multiple of " + std::to_string(access.alignment);
  } else {
    text.why +=
        "byte " + with_commas(address) + " of its space, no multiple of " + std::to_string(access.alignment);
  }
  text.advice =
      access.bytes > access.element_bytes
          ? "make the index of the vector's first element a multiple of " +
                std::to_string(access.bytes / access.element_bytes) + ", or access the elements one by one"
          : "align the address to the size of the type (__align__, or a cast that does not widen it)";
  log_fault(warp, inst, access.kind, FindingKind::kMisaligned, first, std::move(text), count);
  return true;
}

// Logs an uninitialised read; once an instruction and PE, then it only counts.
void report_unwritten(ReportedReads& reported, Warp& warp, const Inst& inst, const Memory::Access& access,
                      int lane, unsigned count, FindingAddress where, const std::string& object) {
  FindingLog& log = *warp.block->grid->findings;
  const std::pair key(&inst, warp.block->grid->pe);
  if (const auto known = reported.find(key); known != reported.end()) {
    log.add_count(known->second, count);
    return;
  }
  Finding finding;
  finding.kind = FindingKind::kUninitialisedRead;
  finding.message =
      pe_text(warp) + " " + verb_of(access.kind) + " " + object + " before anybody has written it";
  finding.why = thread_text(warp, lane) + " " + verb_of(access.kind) + " " + std::to_string(access.bytes) +
                " bytes; byte " + with_commas(static_cast<std::uint64_t>(where.offset)) +
                " was never written";
  finding.advice = "write it before this line (and order the write before the read), or clear it first";
  finding.address = std::move(where);
  finding.sites.push_back(make_site(warp, lane, inst, role_of(access.kind)));
  finding.count = count;
  reported.emplace(key, log.add(std::move(finding)));
}

// False: it is no fault of bounds or rights.
bool window_fault(Warp& warp, const Inst& inst, const Memory::Access& access, const Window& window) {
  int first = -1;
  unsigned count = 0;
  for_lanes(access.mask, [&](int lane) {
    const std::uint64_t at = address_of(access, lane);
    if (at <= window.size && access.bytes <= window.size - at &&
        !(window.read_only && access.kind != AccessKind::kLoad))
      return;
    if (first < 0) first = lane;
    ++count;
  });
  if (first < 0) return false;
  const std::uint64_t at = address_of(access, first);
  FaultText text;
  const std::string what =
      pe_text(warp) + " " + verb_of(access.kind) + " " + std::to_string(access.bytes) + " bytes ";
  const bool negative = static_cast<std::int32_t>(at) < 0;
  text.address = {warp.block->grid->pe, window_object(warp, window, first),
                  negative ? static_cast<std::int32_t>(at) : static_cast<std::int64_t>(at)};
  if (window.read_only && at < window.size) {
    text.message = what + "of " + window.name + ", which can only be read";
    text.why = thread_text(warp, first) + " writes byte " + with_commas(at);
    text.advice = "copy the parameter to a local variable and write that";
  } else {
    text.message = what + (negative ? "before the start of " : "past the end of ") + window.name;
    text.why = thread_text(warp, first) + " is at byte " +
               (negative ? std::to_string(static_cast<std::int32_t>(at)) : with_commas(at)) + "; there are " +
               with_commas(window.size) + " bytes";
    text.advice =
        window.lane_stride != 0 ? "guard the index into the local array with its length"
        : window.read_only
            ? "guard the index with the parameter's length"
            : "guard the index, or ask for more shared memory (its size is the third launch argument "
              "where it is dynamic)";
  }
  log_fault(warp, inst, access.kind, FindingKind::kOutOfBounds, first, std::move(text), count);
  return true;
}

// The first unwritten byte of a lane's access that counts, or -1. In local memory an element counts only when
// none of it was written: compilers copy structures with their padding through it.
int first_unwritten(const std::uint8_t* marks, std::uint64_t index, const Memory::Access& access,
                    bool local) {
  if (!local) {
    for (int i = 0; i < access.bytes; ++i) {
      if (!shadow::test(marks, index + static_cast<unsigned>(i))) return i;
    }
    return -1;
  }
  for (int element = 0; element < access.bytes; element += access.element_bytes) {
    bool any = false;
    for (int i = 0; i < access.element_bytes; ++i)
      any = any || shadow::test(marks, index + static_cast<unsigned>(element + i));
    if (!any) return element;
  }
  return -1;
}

}  // namespace

// Looks for the lanes that read what was never written, and poisons that.
static void unwritten_in_window(ReportedReads& reported, Warp& warp, const Inst& inst,
                                const Memory::Access& access, const Window& window) {
  int worst = -1, byte = 0;
  unsigned count = 0;
  for_lanes(access.mask, [&](int lane) {
    const std::uint64_t index = address_of(access, lane);
    const int missing = first_unwritten(window.marks, index, access, window.lane_stride != 0);
    shadow::poison_unwritten(window.bytes + index, window.marks, index, access.bytes);
    if (missing < 0) return;
    if (worst < 0) {
      worst = lane;
      byte = missing;
    }
    ++count;
  });
  if (worst < 0) return;
  const std::uint64_t index =
      address_of(access, worst) - static_cast<std::uint64_t>(worst) * window.lane_stride;
  report_unwritten(
      reported, warp, inst, access, worst, count,
      {warp.block->grid->pe, window_object(warp, window, worst), static_cast<std::int64_t>(index) + byte},
      window.name);
}

// Shared, local and parameter memory.
static bool access_window(ReportedReads& reported, Warp& warp, const Inst& inst, Memory::Access& access,
                          const Window& window) {
  const bool stores = access.kind != AccessKind::kLoad;
  if (!inside(access, 0, window.size) || (window.read_only && stores)) [[unlikely]] {
    if (window_fault(warp, inst, access, window)) return false;
    return !misaligned(warp, inst, access, nullptr);
  }
  std::uint64_t* at = access.addresses;
  if (window.lane_stride != 0) {
    // Each lane has its own bytes: neighbours in address are no neighbours on the host.
    if (access.pattern == Pattern::kUniform) std::fill(at + 1, at + kWarpSize, at[0]);
    if (access.pattern == Pattern::kContiguous) {
      for (unsigned i = 1; i < kWarpSize; ++i) at[i] = at[0] + std::uint64_t{i} * access.bytes;
    }
    for (unsigned i = 0; i < kWarpSize; ++i) at[i] += i * window.lane_stride;
    if (access.mask != kAllLanes) {
      const std::uint64_t filler = at[std::countr_zero(access.mask)];
      for (unsigned i = 0; i < kWarpSize; ++i) at[i] = ((access.mask >> i) & 1U) != 0 ? at[i] : filler;
    }
    access.pattern = Pattern::kScattered;
  }
  if (window.marks != nullptr) {
    const bool scattered = access.pattern == Pattern::kScattered;
    const bool aligned = access.alignment == access.bytes &&
                         window.lane_stride % std::max<std::uint64_t>(access.bytes, 1) == 0;
    const bool all = scattered ? shadow::all_set_at(window.marks, at, access.bytes, aligned)
                               : shadow::all_set(window.marks, at[0], extent(access));
    if (!all) {
      if (access.kind != AccessKind::kStore) unwritten_in_window(reported, warp, inst, access, window);
      if (stores && scattered) {
        for_lanes(access.mask, [&](int lane) { shadow::assign(window.marks, at[lane], access.bytes, true); });
      } else if (stores) {
        shadow::assign(window.marks, at[0], extent(access), true);
      }
    }
  }
  const auto base = reinterpret_cast<std::uint64_t>(window.bytes);
  if (access.pattern == Pattern::kScattered) {
    for (int i = 0; i < kWarpSize; ++i) at[i] += base;
  } else {
    at[0] += base;
  }
  access.thread_local_memory = window.lane_stride != 0;
  return true;
}

// Lane by lane, lowest first, so that a finding names the first thread at fault. False: one was logged.
// records[i] is what lane i met.
static bool resolve_lanes(Memory& memory, Memory::State& s, Warp& warp, const Inst& inst,
                          const Memory::Access& access, AllocationRecord** records) {
  const int pe = warp.block->grid->pe;
  const bool stores = access.kind != AccessKind::kLoad;
  int first = -1;
  unsigned count = 0;
  Fault first_fault = Fault::kNone;
  for_lanes(access.mask, [&](int lane) {
    const std::uint64_t address = address_of(access, lane);
    AllocationRecord* found = s.table.find(address);
    Fault fault = Fault::kNone;
    if (found == nullptr || access.bytes > found->info.size - (address - found->info.base)) {
      fault = Fault::kNowhere;
    } else {
      fault = s.right_of(pe, found->info, s.config.peers_reachable);
      const bool constant = found->info.kind == AllocationKind::kConstant;
      if (fault == Fault::kNone && stores && constant) fault = Fault::kConstWrite;
      if (fault == Fault::kNone && access.space == ptx::Space::kConst && !constant) fault = Fault::kNotConst;
    }
    records[lane] = found;
    if (fault == Fault::kNone) return;
    if (first < 0) {
      first = lane;
      first_fault = fault;
    }
    ++count;
  });
  if (first >= 0) {
    const std::uint64_t address = address_of(access, first);
    log_fault(warp, inst, access.kind, FindingKind::kOutOfBounds, first,
              explain_fault(s.table, first_fault, pe, memory.pe_of(address), address, access.bytes,
                            verb_of(access.kind), pe_text(warp), thread_text(warp, first)),
              count);
    return false;
  }
  return !misaligned(warp, inst, access, &s.table);
}

// Looks for the lanes that read what was never written, and poisons that.
static void unwritten_in_arena(Memory::State& s, Warp& warp, const Inst& inst, const Memory::Access& access,
                               AllocationRecord* const* records) {
  int worst = -1, byte = 0;
  unsigned count = 0;
  for_lanes(access.mask, [&](int lane) {
    const std::uint64_t address = address_of(access, lane);
    if (s.written(*records[lane], address, access.bytes)) return;
    if (worst < 0) {
      worst = lane;
      byte = first_unwritten(s.marks_by_address(), address, access, false);
    }
    ++count;
    shadow::poison_unwritten(reinterpret_cast<std::uint8_t*>(address), s.marks_by_address(), address,
                             access.bytes);
  });
  if (worst < 0) return;
  const Allocation& allocation = records[worst]->info;
  report_unwritten(s.reported, warp, inst, access, worst, count,
                   address_in(allocation, address_of(access, worst) + static_cast<unsigned>(byte)),
                   short_name(allocation));
}

// Device, symmetric, constant and pinned memory: addresses are host addresses.
static bool access_arena(Memory& memory, Memory::State& s, Warp& warp, const Inst& inst,
                         Memory::Access& access) {
  const bool stores = access.kind != AccessKind::kLoad;
  access.fresh = false;
  CachedRange& cached =
      s.cache[static_cast<std::size_t>(warp.block->grid->pe)]
             [(reinterpret_cast<std::uintptr_t>(&inst) / sizeof(Inst)) % Memory::State::kCached];
  AllocationRecord* records[kWarpSize];
  const auto usable = [&] {
    return inside(access, cached.begin, cached.size) && (!stores || cached.writable) &&
           (access.space != ptx::Space::kConst || cached.constant);
  };
  if (!usable()) [[unlikely]] {
    // Instructions share the cache's places: most often all lanes are in the allocation that the first one is
    // in.
    AllocationRecord* const found = s.table.find(address_of(access, std::countr_zero(access.mask)));
    cached = CachedRange{};
    if (found != nullptr &&
        s.right_of(warp.block->grid->pe, found->info, s.config.peers_reachable) == Fault::kNone) {
      cached.begin = found->info.base;
      cached.size = found->info.size;
      cached.record = found;
      cached.constant = found->info.kind == AllocationKind::kConstant;
      cached.writable = !cached.constant;
    }
    if (!usable()) {
      if (!resolve_lanes(memory, s, warp, inst, access, records)) return false;
      if (access.kind != AccessKind::kStore) unwritten_in_arena(s, warp, inst, access, records);
      if (stores) {
        access.fresh = true;
        for_lanes(access.mask,
                  [&](int lane) { s.mark_written(*records[lane], address_of(access, lane), access.bytes); });
      }
      return true;
    }
  }
  AllocationRecord* const record = cached.record;
  if (record->complete || !s.config.checkers.unwritten) return true;

  std::uint8_t* const marks = s.marks_by_address();
  const bool scattered = access.pattern == Pattern::kScattered;
  const bool all =
      scattered ? shadow::all_set_at(marks, access.addresses, access.bytes, access.alignment == access.bytes)
                : shadow::all_set(marks, access.addresses[0], extent(access));
  if (all) {
    s.look(*record, std::uint64_t{access.bytes} * kWarpSize);
    return true;
  }
  if (access.kind != AccessKind::kStore) {
    std::fill(records, records + kWarpSize, record);
    unwritten_in_arena(s, warp, inst, access, records);
  }
  access.fresh = stores;
  if (stores && scattered) {
    for_lanes(access.mask,
              [&](int lane) { shadow::assign(marks, access.addresses[lane], access.bytes, true); });
  } else if (stores) {
    shadow::assign(marks, access.addresses[0], extent(access), true);
  }
  return true;
}

// A warp whose lanes' generic addresses lie in different windows: each group on its own.
static bool access_mixed(Memory& memory, Warp& warp, const Inst& inst, Memory::Access& access);

static ptx::Space window_of(std::uint64_t address) {
  if (address - kSharedWindow < kSharedWindowBytes) return ptx::Space::kShared;
  if (address - kSharedWindow < kSharedClusterWindowBytes) return ptx::Space::kSharedCluster;
  if (address - kLocalWindow < kLocalWindowBytes) return ptx::Space::kLocal;
  if (address - kParamWindow < kParamWindowBytes) return ptx::Space::kParam;
  return ptx::Space::kGlobal;
}

static std::uint64_t window_base(ptx::Space space) {
  switch (space) {
    case ptx::Space::kShared:
    case ptx::Space::kSharedCluster:
      return kSharedWindow;
    case ptx::Space::kLocal:
      return kLocalWindow;
    case ptx::Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

static bool access_mixed(Memory& memory, Warp& warp, const Inst& inst, Memory::Access& access) {
  std::uint32_t left = access.mask;
  alignas(64) std::uint64_t resolved[kWarpSize] = {};
  bool local_only = true;
  while (left != 0) {
    const ptx::Space space = window_of(access.addresses[std::countr_zero(left)]);
    std::uint32_t group = 0;
    for_lanes(left, [&](int lane) {
      if (window_of(access.addresses[lane]) == space) group |= 1U << static_cast<unsigned>(lane);
    });
    alignas(64) std::uint64_t addresses[kWarpSize];
    const std::uint64_t filler = access.addresses[std::countr_zero(group)];
    for (int i = 0; i < kWarpSize; ++i) {
      addresses[i] = ((group >> static_cast<unsigned>(i)) & 1U) != 0 ? access.addresses[i] : filler;
    }
    Memory::Access part = access;
    part.mask = group;
    part.addresses = addresses;
    if (!memory.access(warp, inst, part)) return false;
    for_lanes(group, [&](int lane) { resolved[lane] = address_of(part, lane); });
    local_only = local_only && part.thread_local_memory;
    if (part.older != nullptr) access.older = part.older;
    left &= ~group;
  }
  for (int i = 0; i < kWarpSize; ++i) access.addresses[i] = resolved[i];
  access.thread_local_memory = local_only;
  return true;
}

bool Memory::access(Warp& warp, const Inst& inst, Access& access) {
  State& s = *state_;
  access.thread_local_memory = false;
  ptx::Space space = access.space;
  bool kernel_param = access.kernel_param;
  if (space == ptx::Space::kGeneric) {
    space = window_of(access.addresses[0]);
    if (access.pattern == Pattern::kScattered) {
      bool same = true;
      for (int i = 1; i < kWarpSize; ++i) same = same && window_of(access.addresses[i]) == space;
      if (!same) return access_mixed(*this, warp, inst, access);
    }
    if (const std::uint64_t base = window_base(space); base != 0) {
      const int n = access.pattern == Pattern::kScattered ? kWarpSize : 1;
      for (int i = 0; i < n; ++i) access.addresses[i] -= base;
    }
    kernel_param = true;  // only kernel parameters have generic addresses
  }
  if (space == ptx::Space::kSharedCluster && access.shared_block == nullptr) {
    return access_cluster(*this, warp, inst, access);
  }
  switch (space) {
    case ptx::Space::kShared:
    case ptx::Space::kSharedCluster: {
      Block& block = access.shared_block != nullptr ? *access.shared_block : *warp.block;
      Window window;
      window.bytes = block.shared.data();
      if (s.config.checkers.unwritten && !access.announced) window.marks = block.shared_written.data();
      window.size = block.shared.size();
      window.name = "shared memory";
      window.block = &block;
      if (!access_window(s.reported, warp, inst, access, window)) return false;
      if (warp.order != nullptr && s.config.checkers.races) s.races->kernel(warp, inst, access, &block);
      if (meter_ != nullptr && !access.announced) [[unlikely]]
        meter_->access(warp, inst, access, &block);
      return true;
    }
    case ptx::Space::kParam:
      if (kernel_param) {
        Grid& grid = *warp.block->grid;
        Window window;
        window.bytes = grid.params.data();
        window.size = grid.params.size();
        window.read_only = true;
        window.name = "the kernel's parameters";
        return access_window(s.reported, warp, inst, access, window);
      }
      [[fallthrough]];
    case ptx::Space::kLocal: {
      Window window;
      window.bytes = warp.local;
      window.marks = space == ptx::Space::kParam ? nullptr : warp.local_written;
      window.size = warp.local_bytes;
      window.lane_stride = warp.local_bytes;
      window.name = "local memory";
      return access_window(s.reported, warp, inst, access, window);
    }
    default:
      if (!access_arena(*this, s, warp, inst, access)) return false;
      if (warp.order != nullptr && space != ptx::Space::kConst && s.config.checkers.races)
        s.races->kernel(warp, inst, access, nullptr);
      if (meter_ != nullptr && space != ptx::Space::kConst) [[unlikely]]
        meter_->access(warp, inst, access, nullptr);
      return true;
  }
}

void Memory::note_strong_write(Warp& warp, const Inst& inst, const Access& access) {
  const std::uint64_t first = address_of(access, std::countr_zero(access.mask));
  if (!State::in_arena(first) && !State::in_host(first)) return;
  if (meter_ != nullptr) [[unlikely]]
    meter_->wrote(warp, access);
  State& s = *state_;
  const Grid& grid = *warp.block->grid;
  const std::uint32_t shared = s.writers.of_instruction(
      grid, inst, [&] { return make_site(warp, std::countr_zero(access.mask), inst, role_of(access.kind)); });
  std::uint32_t lanes = access.mask;
  if (access.pattern == Pattern::kUniform) {
    lanes = std::bit_floor(lanes);  // the last one stays
  }
  for_lanes(lanes, [&](int lane) {
    const std::uint64_t address = address_of(access, lane);
    for (std::uint64_t at = address; at < address + access.bytes;) {
      WriterTable::Record record;
      record.bytes = static_cast<std::uint8_t>(std::min(8 - at % 8, address + access.bytes - at));
      record.address = at;
      std::memcpy(&record.value, reinterpret_cast<const void*>(at), record.bytes);
      record.shared = shared;
      record.block = warp.block->linear_index;
      record.thread = warp.index_in_block * kWarpSize + static_cast<unsigned>(lane);
      at += record.bytes;
      s.writers.put(record);
    }
  });
}

}  // namespace echolo::vgpu
