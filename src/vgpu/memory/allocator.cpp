#include "vgpu/memory/allocator.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/text.hpp"

namespace echolo::vgpu {

namespace {

std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) & ~(alignment - 1);
}

}  // namespace

std::uint64_t Region::take(std::uint64_t size, std::uint64_t alignment) {
  if (size > capacity_ - used_ || size > end_ - begin_) return 0;
  const auto place = [&](std::uint64_t base) {
    live_.emplace(base, size);
    used_ += size;
    return base;
  };
  const std::uint64_t fresh = align_up(top_ + kGuard, alignment);
  if (fresh < end_ && size <= end_ - fresh) {
    top_ = fresh + size;
    return place(fresh);
  }
  std::uint64_t from = begin_;
  for (auto next = live_.begin();; ++next) {
    const std::uint64_t to = next == live_.end() ? end_ : next->first;
    const std::uint64_t base = align_up(from + kGuard, alignment);
    if (base + size + (next == live_.end() ? 0 : kGuard) <= to) return place(base);
    if (next == live_.end()) return 0;
    from = next->first + next->second;
  }
}

void Region::give(std::uint64_t base) {
  const auto at = live_.find(base);
  if (at == live_.end()) return;
  used_ -= at->second;
  live_.erase(at);
}

AllocationRecord& AllocationTable::add(Allocation allocation) {
  allocation.serial = ++serial_;
  allocation.live = true;
  forget_freed_within(allocation.base, allocation.size);
  const std::uint64_t base = allocation.base;
  AllocationRecord record;
  record.next_scan = allocation.size;
  record.info = std::move(allocation);
  return live_.emplace(base, std::move(record)).first->second;
}

void AllocationTable::free(std::uint64_t base) {
  const auto at = live_.find(base);
  at->second.info.live = false;
  freed_.insert_or_assign(base, std::move(at->second.info));
  freed_order_.push_back(base);
  live_.erase(at);
  last_found_ = nullptr;
  if (freed_order_.size() > kFreedKept) {
    freed_.erase(freed_order_.front());
    freed_order_.pop_front();
  }
}

void AllocationTable::forget_freed_within(std::uint64_t base, std::uint64_t size) {
  auto at = freed_.upper_bound(base);
  if (at != freed_.begin()) --at;
  while (at != freed_.end() && at->first < base + size) {
    at = at->first + at->second.size > base ? freed_.erase(at) : std::next(at);
  }
}

AllocationRecord* AllocationTable::find(std::uint64_t address) {
  if (last_found_ != nullptr && address - last_found_->info.base < last_found_->info.size) return last_found_;
  auto at = live_.upper_bound(address);
  if (at == live_.begin()) return nullptr;
  --at;
  if (address - at->first >= at->second.info.size) return nullptr;
  last_found_ = &at->second;
  return last_found_;
}

AllocationRecord* AllocationTable::find_base(std::uint64_t base) {
  const auto at = live_.find(base);
  return at == live_.end() ? nullptr : &at->second;
}

const Allocation* AllocationTable::find_freed(std::uint64_t address) const {
  auto at = freed_.upper_bound(address);
  if (at == freed_.begin()) return nullptr;
  --at;
  return address - at->first < at->second.size ? &at->second : nullptr;
}

const Allocation* AllocationTable::before(std::uint64_t address) const {
  auto at = live_.upper_bound(address);
  return at == live_.begin() ? nullptr : &std::prev(at)->second.info;
}

const Allocation* AllocationTable::after(std::uint64_t address) const {
  const auto at = live_.upper_bound(address);
  return at == live_.end() ? nullptr : &at->second.info;
}

Result<Mapping> Mapping::reserve(std::uint64_t at, std::uint64_t bytes, int fd, const std::string& what) {
  const int flags = MAP_NORESERVE | (fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED) |
                    (at == 0 ? 0 : MAP_FIXED_NOREPLACE);
  void* const wanted = reinterpret_cast<void*>(at);
  void* const data = mmap(wanted, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (data == MAP_FAILED) {
    return machine_error("cannot reserve " + human_bytes(bytes) + " of address space for " + what + ": " +
                             std::strerror(errno),
                         "check `ulimit -v` (unlimited is needed) and vm.overcommit_memory (0 or 1)");
  }
  Mapping mapping;
  mapping.data_ = static_cast<std::uint8_t*>(data);
  mapping.bytes_ = bytes;
  if (at != 0 && data != wanted) {
    return machine_error("the address range for " + what + " is taken in this process",
                         "one virtual node a process: the arena lies at a fixed address");
  }
  // Terabytes of address space would otherwise be walked for a core file.
  madvise(data, bytes, MADV_DONTDUMP);
  return mapping;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

}  // namespace echolo::vgpu
