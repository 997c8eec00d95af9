// Private to vgpu/order: what the shadow remembers of an access. One cell stands for a line of 128 bytes; the
// usual line, written and read by one converged warp each, needs nothing more. Exact to the byte.
#pragma once

#include <algorithm>
#include <cstdint>

#include "vgpu/exec.hpp"

namespace echolo::vgpu {

inline constexpr std::uint64_t kLine = 128;

// One access to bytes [offset, offset + bytes) of a line, by the lanes of one instruction.
//   spread   lane first_lane + i has the i-th piece of 2^shift bytes
//   shared   lanes first_lane .. first_lane + n_lanes - 1 all have all of the bytes
struct Entry {
  static constexpr std::uint32_t kNobody = 0, kList = 0xffffffffU;

  std::uint32_t who = kNobody;  // a warp's number, or an agent's id; kList: `clock` numbers a list
  std::uint32_t clock = 0;
  std::uint32_t place = 0;  // instruction or call
  std::uint32_t shape = 0;

  unsigned offset() const { return shape & 127U; }
  unsigned bytes() const { return ((shape >> 7U) & 127U) + 1; }
  unsigned end() const { return offset() + bytes(); }
  unsigned first_lane() const { return (shape >> 14U) & 31U; }
  bool is_shared() const { return ((shape >> 24U) & 1U) != 0; }
  unsigned shift() const { return (shape >> 19U) & 31U; }
  unsigned n_lanes() const { return ((shape >> 19U) & 31U) + 1; }
  bool strong() const { return ((shape >> 25U) & 1U) != 0; }
  ptx::Scope scope() const { return static_cast<ptx::Scope>(((shape >> 26U) & 3U) + 1U); }
  bool atomic() const { return ((shape >> 28U) & 1U) != 0; }
  unsigned element() const { return shape >> 29U; }  // log2 of its bytes, 7: unknown

  bool overlaps(const Entry& other) const { return offset() < other.end() && other.offset() < end(); }
  bool covers(const Entry& other) const { return offset() <= other.offset() && other.end() <= end(); }
  // The same lane has the same byte.
  bool maps_as(const Entry& other) const {
    return !is_shared() && !other.is_shared() && shift() == other.shift() &&
           ((first_lane() - other.first_lane()) << shift()) == offset() - other.offset();
  }
  // The lanes that have a byte of [begin, end), which overlaps.
  std::uint32_t lanes(unsigned begin, unsigned end) const {
    if (is_shared()) return range(first_lane(), n_lanes());
    const unsigned low = std::max(begin, offset()) - offset();
    const unsigned high = std::min(end, this->end()) - 1 - offset();
    return range(first_lane() + (low >> shift()), (high >> shift()) - (low >> shift()) + 1);
  }
  std::uint32_t lanes() const { return lanes(offset(), end()); }
  static std::uint32_t range(unsigned first, unsigned n) {
    return static_cast<std::uint32_t>(((std::uint64_t{1} << n) - 1) << first);
  }

  static std::uint32_t spread(unsigned offset, unsigned bytes, unsigned first_lane, unsigned shift) {
    return offset | (bytes - 1) << 7U | first_lane << 14U | shift << 19U;
  }
  static std::uint32_t shared(unsigned offset, unsigned bytes, unsigned first_lane, unsigned n_lanes) {
    return offset | (bytes - 1) << 7U | first_lane << 14U | (n_lanes - 1) << 19U | 1U << 24U;
  }
  static std::uint32_t strength(bool strong, ptx::Scope scope, bool atomic, unsigned element_bytes) {
    unsigned log = 7;
    for (unsigned i = 0; i < 5; ++i) {
      if (element_bytes == 1U << i) log = i;
    }
    const unsigned reach = scope == ptx::Scope::kNone ? 3U : static_cast<unsigned>(scope) - 1U;
    return (strong ? 1U << 25U : 0U) | reach << 26U | (atomic ? 1U << 28U : 0U) | log << 29U;
  }
};
static_assert(sizeof(Entry) == 16);

struct LineCell {
  Entry write, read;
};
static_assert(sizeof(LineCell) == 32);

}  // namespace echolo::vgpu
