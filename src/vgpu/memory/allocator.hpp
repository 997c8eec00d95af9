// Address ranges and the allocations in them. Knows nothing of accesses or findings.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/result.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

// Hands out pieces of [begin, end). Between two live pieces lie at least kGuard bytes, so that an access a
// little past an allocation hits nothing; a freed piece is used again only when fresh addresses have run out,
// so that a use after free finds nothing either.
class Region {
 public:
  static constexpr std::uint64_t kGuard = 512;

  Region() = default;
  Region(std::uint64_t begin, std::uint64_t end, std::uint64_t capacity)
      : begin_(begin), end_(end), top_(begin), capacity_(capacity) {}

  // 0: no room. `size` > 0, `alignment` a power of two.
  std::uint64_t take(std::uint64_t size, std::uint64_t alignment);
  void give(std::uint64_t base);
  std::uint64_t used() const { return used_; }
  std::uint64_t capacity() const { return capacity_; }
  bool contains(std::uint64_t address) const { return address >= begin_ && address < end_; }

 private:
  std::uint64_t begin_ = 0, end_ = 0, top_ = 0, capacity_ = 0, used_ = 0;
  std::map<std::uint64_t, std::uint64_t> live_;  // base -> size
};

// An allocation with what the checkers remember of it.
struct AllocationRecord {
  Allocation info;
  bool complete = false;        // every byte is known to be written: marks need no look
  std::uint64_t looked_at = 0;  // bytes looked at since the last scan for `complete`
  std::uint64_t next_scan = 0;  // scan when looked_at reaches this
};

// Addresses that have been reserved, and what is mapped where.
struct ReservedRange {
  struct Part {
    std::uint64_t size = 0, handle = 0;
    bool accessible = false;
  };
  std::uint64_t base = 0, size = 0;
  int pe = -1;
  std::string maker, where;
  std::map<std::uint64_t, Part> parts;          // by address
  std::map<std::uint64_t, std::uint64_t> runs;  // address -> size of the accessible allocations
  std::map<std::uint64_t, std::uint64_t> left;  // what was unmapped last
  const Part* part_at(std::uint64_t address, std::uint64_t* start) const;
};

// All allocations by address, live ones and the recent freed ones.
class AllocationTable {
 public:
  AllocationRecord& add(Allocation allocation);
  // Moves the record to the freed ones. Precondition: `base` is live.
  void free(std::uint64_t base);
  AllocationRecord* find(std::uint64_t address);
  AllocationRecord* find_base(std::uint64_t base);
  const Allocation* find_freed(std::uint64_t address) const;
  // Nearest live allocations around an address that is in none; nullptr: none.
  const Allocation* before(std::uint64_t address) const;
  const Allocation* after(std::uint64_t address) const;
  const std::map<std::uint64_t, AllocationRecord>& live() const { return live_; }
  // Reserved addresses, by start; maintained by reserved.cpp.
  std::map<std::uint64_t, ReservedRange> reserved;
  const ReservedRange* reserved_at(std::uint64_t address) const;

 private:
  static constexpr std::size_t kFreedKept = 1U << 16U;
  void forget_freed_within(std::uint64_t base, std::uint64_t size);

  std::map<std::uint64_t, AllocationRecord> live_;
  std::map<std::uint64_t, Allocation> freed_;
  std::deque<std::uint64_t> freed_order_;
  std::uint64_t serial_ = 0;
  AllocationRecord* last_found_ = nullptr;
};

// A range of address space that is given back at the end. Memory in it costs nothing until it is touched.
class Mapping {
 public:
  Mapping() = default;
  ~Mapping();
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  // Readable and writable zeros; `at` 0: anywhere. `fd` -1: private and anonymous, otherwise shared with that
  // file.
  static Result<Mapping> reserve(std::uint64_t at, std::uint64_t bytes, int fd, const std::string& what);
  std::uint8_t* data() const { return data_; }

 private:
  std::uint8_t* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// A file descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(other.fd_) { other.fd_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }

 private:
  int fd_ = -1;
};

}  // namespace echolo::vgpu
