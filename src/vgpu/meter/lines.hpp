// Which lines a block finds in its L1 cache, and which bytes a PE's L2 still holds.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>

namespace echolo::vgpu {

inline constexpr std::uint64_t kLineBytes = 128, kSectorBytes = 32;

// Direct-mapped, 128 bytes a line, a bit a sector.
class L1Lines {
 public:
  // True where all of `sectors` were there; they are there now.
  bool touch(std::uint64_t line, std::uint8_t sectors) {
    Entry& entry = entries_[line % kEntries];
    if (entry.line != line) entry = {line, 0};
    const bool had = (entry.sectors & sectors) == sectors;
    entry.sectors = static_cast<std::uint8_t>(entry.sectors | sectors);
    return had;
  }

 private:
  static constexpr std::size_t kEntries = 512;  // 64 KiB: what is left beside shared memory
  struct Entry {
    std::uint64_t line = ~0ULL;
    std::uint8_t sectors = 0;
  };
  std::array<Entry, kEntries> entries_;
};

// A sector is there until so many bytes as the cache holds have been fetched after its line's last use: what
// a cache that replaces the least recently used line would do, as far as whole lines go.
class L2Lines {
 public:
  explicit L2Lines(std::uint64_t bytes) : sectors_held_(bytes / kSectorBytes) {}

  // Sectors (bits) of the line that have to be fetched; they are there now.
  std::uint8_t touch(std::uint64_t line, std::uint8_t sectors) {
    const std::uint64_t number = line / kPageLines;
    if (number != last_number_ || last_ == nullptr) {
      std::unique_ptr<Page>& page = pages_[number];
      if (page == nullptr) page = std::make_unique<Page>();
      last_ = page.get();
      last_number_ = number;
    }
    Entry& entry = (*last_)[line % kPageLines];
    if (fetched_ - entry.used > sectors_held_) entry.sectors = 0;
    const auto missing = static_cast<std::uint8_t>(sectors & ~entry.sectors);
    entry.sectors = static_cast<std::uint8_t>(entry.sectors | sectors);
    for (std::uint8_t bits = missing; bits != 0; bits = static_cast<std::uint8_t>(bits & (bits - 1)))
      ++fetched_;
    entry.used = fetched_;
    return missing;
  }

 private:
  static constexpr std::uint64_t kPageLines = 1024;
  struct Entry {
    std::uint64_t used : 56 = 0;  // `fetched_` then
    std::uint64_t sectors : 8 = 0;
  };
  using Page = std::array<Entry, kPageLines>;
  std::unordered_map<std::uint64_t, std::unique_ptr<Page>> pages_;
  Page* last_ = nullptr;
  std::uint64_t last_number_ = 0;
  std::uint64_t fetched_ = 0;  // sectors
  std::uint64_t sectors_held_;
};

}  // namespace echolo::vgpu
