// Data on its way: bytes taken from memory with their written marks, and put elsewhere later.
#include <algorithm>
#include <cstring>

#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

bool Memory::pack(std::uint64_t address, std::uint64_t n, Packet* packet, const Accessor& who) {
  State& s = *state_;
  const std::size_t at = packet->bytes.size();
  packet->bytes.resize(at + n);
  if (!read(address, packet->bytes.data() + at, n, who)) return false;
  AllocationRecord* record = s.table.find(address);
  const bool whole = record == nullptr || s.written(*record, address, n);
  if (whole && packet->written.empty()) return true;
  packet->written.resize(at, true);
  for (std::uint64_t i = 0; i < n; ++i) {
    packet->written.push_back(whole || shadow::test(s.mark_bits(), State::mark_index(address) + i));
  }
  return true;
}

bool Memory::unpack(std::uint64_t address, const Packet& packet, std::uint64_t from, std::uint64_t n,
                    const Accessor& who) {
  if (!write(address, packet.bytes.data() + from, n, who)) return false;
  if (packet.written.empty()) return true;
  State& s = *state_;
  AllocationRecord* record = s.table.find(address);
  if (record == nullptr || !State::in_arena(address)) return true;
  for (std::uint64_t i = 0; i < n; ++i) {
    if (packet.written[from + i]) continue;
    record->complete = false;
    record->next_scan = std::max(record->next_scan, record->info.size);
    shadow::assign(s.mark_bits(), State::mark_index(address) + i, 1, false);
  }
  return true;
}

}  // namespace echolo::vgpu
