// Which bytes go where: shared memory's banks, sectors of the caches, bytes over links.
#include <algorithm>
#include <array>
#include <bit>

#include "vgpu/meter/meter_state.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::uint64_t kWordBytes = 4, kBanks = 32;

// Wavefronts of lanes that access these offsets of shared memory: how many different words the busiest bank
// has to give (CUDA programming guide, "Shared Memory" of compute capability 5.x and later).
std::uint64_t wavefronts(const std::uint8_t* base, const Memory::Access& access) {
  if (access.pattern == Memory::Pattern::kUniform) return (access.bytes + 127U) / 128U;
  if (access.pattern == Memory::Pattern::kContiguous)
    return std::max<std::uint64_t>(1, std::uint64_t{access.bytes} * kWarpSize / 128);
  std::array<std::uint64_t, kWarpSize * 8> words{};
  std::size_t n = 0;
  const auto start = reinterpret_cast<std::uint64_t>(base);
  const std::uint64_t words_each = std::clamp<std::uint64_t>((access.bytes + 3U) / kWordBytes, 1, 8);
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const std::uint64_t first = (access.addresses[std::countr_zero(lanes)] - start) / kWordBytes;
    for (std::uint64_t i = 0; i < words_each; ++i) words[n++] = first + i;
  }
  std::sort(words.begin(), words.begin() + static_cast<std::ptrdiff_t>(n));
  std::array<std::uint32_t, kBanks> in_bank{};
  std::uint32_t most = 1;
  for (std::size_t i = 0; i < n; ++i) {
    if (i > 0 && words[i] == words[i - 1]) continue;
    most = std::max(most, ++in_bank[words[i] % kBanks]);
  }
  return most;
}

std::uint8_t sectors_of(std::uint64_t first, std::uint64_t last) {
  std::uint8_t bits = 0;
  for (std::uint64_t s = first; s <= last; ++s) bits = static_cast<std::uint8_t>(bits | 1U << s);
  return bits;
}

}  // namespace

void Meter::State::add_sectors(MeterBlock& block, std::uint64_t line, std::uint8_t sectors) {
  Work& to = stretch(block).work;
  to.l2_bytes += kSectorBytes * static_cast<std::uint64_t>(std::popcount(sectors));
  const std::uint8_t missing = l2[static_cast<std::size_t>(block.pe)].touch(line, sectors);
  to.dram_bytes += kSectorBytes * static_cast<std::uint64_t>(std::popcount(missing));
}

void Meter::State::add_range(MeterBlock& block, std::uint64_t address, std::uint64_t bytes, bool write) {
  if (bytes == 0) return;
  const int pe = memory.pe_of(address);
  if (pe >= 0 && pe != block.pe) {
    (write ? peer(block, pe).bytes_out : peer(block, pe).bytes_in) += bytes;
    return;
  }
  const std::uint64_t last = address + bytes - 1;
  for (std::uint64_t line = address / kLineBytes; line <= last / kLineBytes; ++line) {
    const std::uint64_t from = std::max(address, line * kLineBytes) % kLineBytes / kSectorBytes;
    const std::uint64_t to = std::min(last, line * kLineBytes + kLineBytes - 1) % kLineBytes / kSectorBytes;
    add_sectors(block, line, sectors_of(from, to));
  }
}

void Meter::access(Warp& warp, const Inst& inst, const Memory::Access& access, const Block* shared) {
  State& s = *state_;
  MeterBlock& block = *warp.block->meter;
  if (shared != nullptr) {
    s.stretch(block).work.shared_wavefronts += wavefronts(shared->shared.data(), access);
    return;
  }
  const bool reads = access.kind == Memory::AccessKind::kLoad;
  const bool strong = access.order != ptx::Order::kWeak;
  const bool acquires = access.order == ptx::Order::kAcquire || access.order == ptx::Order::kAcqRel ||
                        access.order == ptx::Order::kSc;
  if ((reads && strong) || (access.kind == Memory::AccessKind::kAtomic && acquires)) {
    for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
      const int lane = std::countr_zero(lanes);
      std::uint64_t address = access.addresses[0];
      if (access.pattern == Memory::Pattern::kScattered) address = access.addresses[lane];
      if (access.pattern == Memory::Pattern::kContiguous)
        address += static_cast<std::uint64_t>(lane) * access.bytes;
      saw(&warp, &inst, lane, address, "");
      if (access.pattern == Memory::Pattern::kUniform) break;
    }
  }
  // Pieces of the warp's access, each within one line.
  struct Piece {
    std::uint64_t line;
    std::uint8_t sectors;
    std::uint32_t bytes;
  };
  std::array<Piece, kWarpSize * 2> pieces;
  std::size_t n = 0;
  const auto add = [&](std::uint64_t address, std::uint64_t bytes) {
    const std::uint64_t last = address + bytes - 1;
    for (std::uint64_t line = address / kLineBytes; line <= last / kLineBytes; ++line) {
      const std::uint64_t from = std::max(address, line * kLineBytes),
                          to = std::min(last, (line + 1) * kLineBytes - 1);
      const std::uint8_t sectors =
          sectors_of(from % kLineBytes / kSectorBytes, to % kLineBytes / kSectorBytes);
      const auto size = static_cast<std::uint32_t>(to - from + 1);
      if (n > 0 && pieces[n - 1].line == line) {
        pieces[n - 1].sectors = static_cast<std::uint8_t>(pieces[n - 1].sectors | sectors);
        pieces[n - 1].bytes += size;
      } else if (n < pieces.size()) {
        pieces[n++] = {line, sectors, size};
      }
    }
  };
  switch (access.pattern) {
    case Memory::Pattern::kUniform:
      add(access.addresses[0], access.bytes);
      break;
    case Memory::Pattern::kContiguous:
      add(access.addresses[0], std::uint64_t{access.bytes} * kWarpSize);
      break;
    case Memory::Pattern::kScattered:
      for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1)
        add(access.addresses[std::countr_zero(lanes)], access.bytes);
      std::sort(pieces.begin(), pieces.begin() + static_cast<std::ptrdiff_t>(n),
                [](const Piece& a, const Piece& b) { return a.line < b.line; });
      break;
  }
  for (std::size_t i = 0; i < n;) {
    Piece piece = pieces[i];
    for (++i; i < n && pieces[i].line == piece.line; ++i) {
      piece.sectors = static_cast<std::uint8_t>(piece.sectors | pieces[i].sectors);
      piece.bytes += pieces[i].bytes;
    }
    const int pe = s.memory.pe_of(piece.line * kLineBytes);
    if (pe >= 0 && pe != block.pe) {
      // Lanes that read one place share it.
      const std::uint64_t whole = kSectorBytes * static_cast<std::uint64_t>(std::popcount(piece.sectors));
      PeerTraffic& peer = s.peer(block, pe);
      (reads ? peer.bytes_in : peer.bytes_out) += std::min<std::uint64_t>(piece.bytes, whole);
      continue;
    }
    ++s.stretch(block).work.shared_wavefronts;
    if (reads && !strong && block.l1->touch(piece.line, piece.sectors)) continue;
    s.add_sectors(block, piece.line, piece.sectors);
  }
}

void Meter::moved(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool write) {
  state_->add_range(*warp.block->meter, address, bytes, write);
}

}  // namespace echolo::vgpu
