// Private to vgpu/memory: what a Memory is made of.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vgpu/memory/allocator.hpp"
#include "vgpu/memory/memory.hpp"
#include "vgpu/memory/shadow.hpp"
#include "vgpu/memory/writers.hpp"
#include "vgpu/order/races.hpp"

namespace echolo::vgpu {

// Of a PE's span; the symmetric heap has the rest. Both hold what an H200 has (141 GiB) and a heap of 64 GiB.
inline constexpr std::uint64_t kDeviceSpan = kPeSpan / 8 * 5;

enum class Fault : std::uint8_t {
  kNone,
  kNowhere,      // in no live allocation
  kPeerPrivate,  // another PE's memory that is not symmetric
  kPeerRemote,   // another PE's symmetric memory, and the fabric has no plain access
  kConstWrite,   // a store to constant memory
  kNotConst,     // ld.const of other memory
};

// The allocation that an instruction met last on one PE: checked bounds and rights.
struct CachedRange {
  std::uint64_t begin = 0, size = 0;
  AllocationRecord* record = nullptr;
  bool writable = false, constant = false;
};

struct Memory::State {
  MemoryConfig config;
  FindingLog* findings = nullptr;
  Order order;
  std::unique_ptr<Races> races;
  Mapping cells, host_cells;    // the shadow of the arena and of pinned memory (vgpu/order/races.hpp)
  std::vector<int> slot_of_pe;  // where each PE's span lies
  std::array<int, kMaxPes> pe_of_slot{};
  std::vector<std::uint64_t> symmetric_begin;      // a PE
  std::vector<Region> device, host;                // a PE
  Region symmetric;                                // offsets from symmetric_begin
  std::map<std::uint64_t, int> symmetric_holders;  // offset -> PEs that have not freed it
  AllocationTable table;
  std::vector<Descriptor> host_files;
  Mapping arena, marks;
  std::vector<Mapping> host_maps;
  WriterTable writers;
  std::vector<std::uint16_t> news_of_place;  // how often a place gave news (news.cpp), likewise
  std::vector<bool> seen_values;  // one bit a hash of where and what (news.cpp); empty while nobody watches
  std::size_t n_seen_values = 0;

  static constexpr std::size_t kCached = 256;
  std::vector<std::array<CachedRange, kCached>> cache;  // a PE
  void forget_cached() {
    for (auto& ranges : cache) ranges.fill(CachedRange{});
  }

  // Uninitialised reads already logged: instruction and PE -> index in the log.
  std::map<std::pair<const Inst*, int>, std::size_t> reported;
  static bool in_arena(std::uint64_t address) { return address - kArenaBase < kArenaBytes; }
  static bool in_host(std::uint64_t address) { return address - kHostBase < kHostBytes; }
  static std::uint64_t mark_index(std::uint64_t address) { return address - kArenaBase; }
  std::uint8_t* mark_bits() { return marks.data(); }
  // The marks such that a device address is their index.
  std::uint8_t* marks_by_address() {
    return reinterpret_cast<std::uint8_t*>(reinterpret_cast<std::uintptr_t>(marks.data()) -
                                           (kArenaBase >> 3U));
  }

  // May `pe` (-1: the node itself) touch this allocation?
  Fault right_of(int pe, const Allocation& allocation, bool peers_symmetric) const {
    if (pe < 0 || allocation.pe == pe || ((allocation.opened_by >> pe) & 1U) != 0) return Fault::kNone;
    if (allocation.kind != AllocationKind::kSymmetric) return Fault::kPeerPrivate;
    return peers_symmetric ? Fault::kNone : Fault::kPeerRemote;
  }

  // Are all bytes of [address, address + n) written? Learns when a whole allocation is.
  bool written(AllocationRecord& record, std::uint64_t address, std::uint64_t n) {
    if (record.complete || !in_arena(address)) return true;
    if (!shadow::all_set(mark_bits(), mark_index(address), n)) return false;
    look(record, n);
    return true;
  }
  void look(AllocationRecord& record, std::uint64_t n) {
    record.looked_at += n;
    if (record.looked_at < record.next_scan) return;
    record.complete = shadow::all_set(mark_bits(), mark_index(record.info.base), record.info.size);
    record.looked_at = 0;
    record.next_scan *= 2;
  }
  void mark_written(AllocationRecord& record, std::uint64_t address, std::uint64_t n) {
    if (record.complete || !in_arena(address)) return;
    if (address == record.info.base && n == record.info.size) record.complete = true;
    shadow::assign(mark_bits(), mark_index(address), n, true);
  }
};

// ---- explain.cpp: what a fault is called ----

// "`buf`", or "the 64 KiB from cudaMalloc at candidate.cu:12".
std::string short_name(const Allocation& allocation);
// "`tile` ..." of an address, for FindingAddress.
FindingAddress address_in(const Allocation& allocation, std::uint64_t address);

struct FaultText {
  std::string message, why, advice;
  FindingAddress address;
};
// `verb`: "reads", "writes", "updates"; `who`: "PE 1"; `whose`: "thread (31,0,0) of block (2,0,0)", may be
// empty.
FaultText explain_fault(const AllocationTable& table, Fault fault, int pe, int target_pe,
                        std::uint64_t address, std::uint64_t bytes, const std::string& verb,
                        const std::string& who, const std::string& whose);

}  // namespace echolo::vgpu
