// Shared memory of a resident block, reached by others than the lanes of an instruction: asynchronous copies
// and the mbarriers they signal.
#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "base/text.hpp"
#include "vgpu/memory/async.hpp"
#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

namespace {

std::string block_text(const Block& block) {
  return "block (" + std::to_string(block.index.x) + "," + std::to_string(block.index.y) + "," +
         std::to_string(block.index.z) + ")";
}

bool inside(const Block& block, std::uint64_t offset, std::uint64_t n, const char* verb,
            const Memory::Accessor& who) {
  const std::uint64_t size = block.shared.size();
  if (offset <= size && n <= size - offset) return true;
  Finding finding;
  finding.kind = FindingKind::kOutOfBounds;
  finding.fatal = true;
  finding.message = std::string(who.what) + " of PE " + std::to_string(who.pe) + " " + verb + " " +
                    with_commas(n) + " bytes past the end of shared memory";
  finding.why = "they begin at byte " + with_commas(offset) + " of the shared memory of " +
                block_text(block) + ", which has " + with_commas(size);
  finding.advice = "guard the offset, or ask for more shared memory";
  finding.address = {who.pe, human_bytes(size) + " of shared memory of " + block_text(block),
                     static_cast<std::int64_t>(offset)};
  finding.sites.push_back(make_site(*who.warp, who.lane, *who.inst, *verb == 'r' ? "read" : "write"));
  block.grid->findings->add(std::move(finding));
  return false;
}

}  // namespace

bool Memory::read_shared(const Block& block, std::uint64_t offset, void* to, std::uint64_t n,
                         const Accessor& who) {
  if (n == 0) return true;
  if (!inside(block, offset, n, "reads", who)) return false;
  if (state_->config.checkers.races) state_->races->touch_shared(block, offset, n, false, who);
  const std::uint8_t* const marks = block.shared_written.data();
  std::memcpy(to, block.shared.data() + offset, n);
  if (shadow::all_set(marks, offset, n)) return true;
  std::uint64_t first = 0;
  while (shadow::test(marks, offset + first)) ++first;
  auto* const bytes = static_cast<std::uint8_t*>(to);
  for (std::uint64_t i = first; i < n; ++i) {
    if (!shadow::test(marks, offset + i)) bytes[i] = poison_byte(offset + i);
  }
  State& s = *state_;
  const std::pair key(who.inst, block.grid->pe);
  if (const auto known = s.reported.find(key); known != s.reported.end()) {
    block.grid->findings->add_count(known->second, 1);
    return true;
  }
  Finding finding;
  finding.kind = FindingKind::kUninitialisedRead;
  finding.message = std::string(who.what) + " of PE " + std::to_string(who.pe) +
                    " reads shared memory before anybody has written it";
  finding.why = "byte " + with_commas(offset + first) + " of the shared memory of " + block_text(block) +
                " is the first of " + with_commas(n) + " that nobody has written";
  finding.advice = "write it before this line (and order the write before the read), or clear it first";
  finding.address = {who.pe, human_bytes(block.shared.size()) + " of shared memory of " + block_text(block),
                     static_cast<std::int64_t>(offset + first)};
  finding.sites.push_back(make_site(*who.warp, who.lane, *who.inst, "read"));
  s.reported.emplace(key, block.grid->findings->add(std::move(finding)));
  return true;
}

bool Memory::write_shared(Block& block, std::uint64_t offset, const void* from, std::uint64_t n,
                          const Accessor& who) {
  if (n == 0) return true;
  if (!inside(block, offset, n, "writes", who)) return false;
  if (state_->config.checkers.races) state_->races->touch_shared(block, offset, n, true, who);
  std::uint8_t* const at = block.shared.data() + offset;
  const bool changed =
      std::memcmp(at, from, n) != 0 || !shadow::all_set(block.shared_written.data(), offset, n);
  std::memcpy(at, from, n);
  shadow::assign(block.shared_written.data(), offset, n, true);
  if (changed) note_change(at, n);
  return true;
}

std::uint64_t Memory::multicast(std::uint64_t address, const std::vector<int>& pes) {
  const int pe = pe_of(address);
  if (pe < 0 || pes.empty() || !is_symmetric(address)) return 0;
  auto at = std::find(multicast_groups_.begin(), multicast_groups_.end(), pes);
  if (at == multicast_groups_.end()) {
    if (multicast_groups_.size() >= kMaxMulticastGroups) return 0;
    multicast_groups_.push_back(pes);
    at = std::prev(multicast_groups_.end());
  }
  const auto window = static_cast<std::uint64_t>(at - multicast_groups_.begin());
  return kMulticastBase + window * kPeSpan + (address - symmetric_base(pe));
}

std::vector<std::uint64_t> Memory::multicast_targets(std::uint64_t address) const {
  std::vector<std::uint64_t> out;
  const std::uint64_t window = (address - kMulticastBase) / kPeSpan;
  if (address < kMulticastBase || window >= multicast_groups_.size()) return out;
  const std::uint64_t offset = (address - kMulticastBase) % kPeSpan;
  for (const int pe : multicast_groups_[window]) out.push_back(symmetric_base(pe) + offset);
  return out;
}

}  // namespace echolo::vgpu
