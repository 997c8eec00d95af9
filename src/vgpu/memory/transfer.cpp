// Access by others than kernels: copies, NVSHMEM operations, the judge.
#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint64_t kRememberedBytes = 64;  // larger writes are data, not flags: nobody waits for them

std::uint8_t* host_bytes(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

std::string name_of_accessor(const Memory::Accessor& who) {
  const std::string pe = who.pe >= 0 ? "PE " + std::to_string(who.pe) : "the node";
  return who.what.empty() ? pe : std::string(who.what) + " of " + pe;
}

Site site_of(const Memory::Accessor& who, const char* role) {
  if (who.warp != nullptr) return make_site(*who.warp, who.lane, *who.inst, role);
  return who.site != nullptr ? *who.site : make_host_site(who.pe, role);
}

const char* role_of(const char* verb) { return *verb == 'r' ? "read" : *verb == 'w' ? "write" : "atomic"; }

void log_fault(FindingLog& findings, const Memory::Accessor& who, const char* verb, FindingKind kind,
               FaultText text) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(text.message);
  finding.why = std::move(text.why);
  finding.advice = std::move(text.advice);
  finding.address = std::move(text.address);
  finding.sites.push_back(site_of(who, role_of(verb)));
  finding.fatal = true;
  findings.add(std::move(finding));
}

// The allocation that holds [address, address + n), or nullptr after a fatal finding.
AllocationRecord* checked(Memory& memory, AllocationTable& table, const MemoryConfig& config,
                          FindingLog& findings, std::uint64_t address, std::uint64_t n, const char* verb,
                          const Memory::Accessor& who) {
  AllocationRecord* record = table.find(address);
  Fault fault = Fault::kNone;
  if (record == nullptr || n > record->info.size - (address - record->info.base)) {
    fault = Fault::kNowhere;
  } else if (who.pe >= 0 && record->info.pe != who.pe && ((record->info.opened_by >> who.pe) & 1U) == 0) {
    if (record->info.kind != AllocationKind::kSymmetric) {
      fault = Fault::kPeerPrivate;
    } else if (!who.any_pe && !config.peers_reachable) {
      fault = Fault::kPeerRemote;
    }
  }
  if (fault != Fault::kNone) {
    log_fault(findings, who, verb, FindingKind::kOutOfBounds,
              explain_fault(table, fault, who.pe, memory.pe_of(address), address, n, verb,
                            name_of_accessor(who), ""));
    return nullptr;
  }
  if (who.alignment > 1 && address % who.alignment != 0) {
    FaultText text;
    text.address = address_in(record->info, address);
    text.message = name_of_accessor(who) + " " + verb + " " + with_commas(n) +
                   " bytes at an address that is not a multiple of " + std::to_string(who.alignment);
    text.why = "it is at byte " + with_commas(static_cast<std::uint64_t>(text.address.offset)) + " of " +
               short_name(record->info);
    text.advice = "align the address to " + std::to_string(who.alignment) + " bytes";
    log_fault(findings, who, verb, FindingKind::kMisaligned, std::move(text));
    return nullptr;
  }
  return record;
}

void report_unwritten(FindingLog& findings, const AllocationRecord& record, std::uint64_t address,
                      std::uint64_t n, const std::uint8_t* marks, const Memory::Accessor& who) {
  std::uint64_t first = 0;
  while (first < n && shadow::test(marks, address - kArenaBase + first)) ++first;
  Finding finding;
  finding.kind = FindingKind::kUninitialisedRead;
  finding.address = address_in(record.info, address + first);
  finding.message =
      name_of_accessor(who) + " reads memory that was never written, " + short_name(record.info);
  finding.why = "byte " + with_commas(static_cast<std::uint64_t>(finding.address.offset)) +
                " is the first of " + with_commas(n) + " that nobody has written";
  finding.advice = "write it first, or clear the allocation (cudaMemset, nvshmem_calloc)";
  finding.sites.push_back(site_of(who, "read"));
  findings.add(std::move(finding));
}

void remember(WriterTable& writers, std::uint64_t address, std::uint64_t n, const Memory::Accessor& who,
              const char* role) {
  const bool host = who.warp == nullptr && who.site != nullptr;
  if (n > kRememberedBytes || !(who.synchronises || host)) return;
  WriterTable::Record record;
  if (who.warp != nullptr) {
    record.shared =
        writers.of_instruction(*who.warp->block->grid, *who.inst, [&] { return site_of(who, role); });
    record.block = who.warp->block->linear_index;
    record.thread = who.warp->index_in_block * kWarpSize + static_cast<unsigned>(who.lane);
  } else {
    record.shared = writers.of_host(site_of(who, role));
  }
  for (std::uint64_t at = address; at < address + n;) {
    const std::uint64_t bytes = std::min(8 - at % 8, address + n - at);
    record.address = at;
    record.bytes = static_cast<std::uint8_t>(bytes);
    record.value = 0;
    std::memcpy(&record.value, host_bytes(at), bytes);
    writers.put(record);
    at += bytes;
  }
}

}  // namespace

bool Memory::admits(std::uint64_t address, std::uint64_t n, bool write, const Accessor& who) {
  State& s = *state_;
  return n == 0 || checked(*this, s.table, s.config, *s.findings, address, n, write ? "writes" : "reads",
                           who) != nullptr;
}

bool Memory::read(std::uint64_t address, void* to, std::uint64_t n, const Accessor& who) {
  if (n == 0) return true;
  State& s = *state_;
  AllocationRecord* record = checked(*this, s.table, s.config, *s.findings, address, n, "reads", who);
  if (record == nullptr) return false;
  if (!s.written(*record, address, n)) {
    if (who.check_written) report_unwritten(*s.findings, *record, address, n, s.mark_bits(), who);
    shadow::poison_unwritten(host_bytes(address), s.mark_bits(), State::mark_index(address), n);
  }
  if (s.config.checkers.races) s.races->touch(address, n, false, false, who);
  std::memcpy(to, host_bytes(address), n);
  return true;
}

bool Memory::write(std::uint64_t address, const void* from, std::uint64_t n, const Accessor& who) {
  if (n == 0) return true;
  State& s = *state_;
  AllocationRecord* record = checked(*this, s.table, s.config, *s.findings, address, n, "writes", who);
  if (record == nullptr) return false;
  if (s.config.checkers.races) s.races->touch(address, n, true, false, who);
  const bool changed = std::memcmp(host_bytes(address), from, n) != 0 || !s.written(*record, address, n);
  std::memcpy(host_bytes(address), from, n);
  if (changed) note_change(host_bytes(address), n);
  s.mark_written(*record, address, n);
  remember(s.writers, address, n, who, "write");
  return true;
}

bool Memory::copy(std::uint64_t to, std::uint64_t from, std::uint64_t n, const Accessor& who) {
  if (n == 0) return true;
  State& s = *state_;
  AllocationRecord* source = checked(*this, s.table, s.config, *s.findings, from, n, "reads", who);
  if (source == nullptr) return false;
  AllocationRecord* target = checked(*this, s.table, s.config, *s.findings, to, n, "writes", who);
  if (target == nullptr) return false;
  if (s.config.checkers.races) s.races->touch(from, n, false, false, who);
  if (s.config.checkers.races) s.races->touch(to, n, true, false, who);
  const bool whole = s.written(*source, from, n);
  if (!whole) {
    if (who.check_written) report_unwritten(*s.findings, *source, from, n, s.mark_bits(), who);
    shadow::poison_unwritten(host_bytes(from), s.mark_bits(), State::mark_index(from), n);
  }
  if (std::memcmp(host_bytes(to), host_bytes(from), n) != 0 || !s.written(*target, to, n)) note_change();
  std::memmove(host_bytes(to), host_bytes(from), n);
  if (whole) {
    s.mark_written(*target, to, n);
  } else if (State::in_arena(to)) {
    target->complete = false;
    shadow::copy(s.mark_bits(), State::mark_index(to), s.mark_bits(), State::mark_index(from), n);
  }
  remember(s.writers, to, n, who, "write");
  return true;
}

bool Memory::fill(std::uint64_t address, std::uint8_t value, std::uint64_t n, const Accessor& who) {
  if (n == 0) return true;
  State& s = *state_;
  AllocationRecord* record = checked(*this, s.table, s.config, *s.findings, address, n, "writes", who);
  if (record == nullptr) return false;
  if (s.config.checkers.races) s.races->touch(address, n, true, false, who);
  std::memset(host_bytes(address), value, n);
  s.mark_written(*record, address, n);
  note_change();
  remember(s.writers, address, n, who, "write");
  return true;
}

void Memory::poison(std::uint64_t address, std::uint64_t n) {
  State& s = *state_;
  AllocationRecord* record = s.table.find(address);
  if (record == nullptr || !State::in_arena(address) || n == 0) return;
  n = std::min(n, record->info.size - (address - record->info.base));
  record->complete = false;
  record->looked_at = 0;
  record->next_scan = record->info.size;
  shadow::assign(s.mark_bits(), State::mark_index(address), n, false);
  note_change();
}

bool Memory::modify(std::uint64_t address, std::uint8_t bytes,
                    const std::function<std::uint64_t(std::uint64_t)>& update, std::uint64_t* old,
                    const Accessor& who) {
  State& s = *state_;
  Accessor aligned = who;
  aligned.alignment = std::max(who.alignment, bytes);
  AllocationRecord* record =
      checked(*this, s.table, s.config, *s.findings, address, bytes, "updates", aligned);
  if (record == nullptr) return false;
  if (!s.written(*record, address, bytes)) {
    if (who.check_written) report_unwritten(*s.findings, *record, address, bytes, s.mark_bits(), who);
    shadow::poison_unwritten(host_bytes(address), s.mark_bits(), State::mark_index(address), bytes);
  }
  if (s.config.checkers.races) s.races->touch(address, bytes, true, true, aligned);
  std::uint64_t before = 0;
  std::memcpy(&before, host_bytes(address), bytes);
  std::uint64_t after = update(before);
  std::memcpy(host_bytes(address), &after, bytes);
  std::uint64_t stored = 0;
  std::memcpy(&stored, host_bytes(address), bytes);
  if (stored != before) note_change(host_bytes(address), bytes);
  s.mark_written(*record, address, bytes);
  remember(s.writers, address, bytes, who, "atomic");
  if (old != nullptr) *old = before;
  return true;
}

}  // namespace echolo::vgpu
