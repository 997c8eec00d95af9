// The loops over the lanes of a warp that memory instructions spend their time in, compiled for several SIMD
// targets. Integers only: every target gives the same bits.
#pragma once

#include <cstdint>

#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

struct LaneOps {
  // out[i] = base[i] + offset for lanes in `mask`; the others repeat the lowest active lane's. Says how they
  // lie to each other when a lane accesses `bytes` bytes. 32-bit addresses wrap at 32 bits.
  Memory::Pattern (*form_narrow)(const std::uint32_t* base, std::uint32_t offset, std::uint32_t mask,
                                 std::uint32_t bytes, std::uint64_t* out);
  Memory::Pattern (*form_wide)(const std::uint64_t* base, std::uint64_t offset, std::uint32_t mask,
                               std::uint32_t bytes, std::uint64_t* out);
  // Are all of 32 addresses within [begin, begin + limit], and multiples of low_bits + 1? limit < 2^63.
  bool (*all_within)(const std::uint64_t* addresses, std::uint64_t begin, std::uint64_t limit,
                     std::uint64_t low_bits);
  // out[v][lane] = packed[lane * vector + v] for 32 lanes; vector is 2 or 4.
  void (*split32)(const std::uint32_t* packed, unsigned vector, std::uint32_t* const* out);
  // The inverse.
  void (*join32)(const std::uint32_t* const* in, unsigned vector, std::uint32_t* packed);
};

// The widest target that this processor has (and HWY's environment allows), chosen once.
const LaneOps& lane_ops();

}  // namespace echolo::vgpu
