#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/memory/lane_ops.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target, as Highway wants it.
#include <bit>

#include "hwy/highway.h"
#include "vgpu/memory/lane_ops.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)

using Pattern = Memory::Pattern;

// The addresses of 32 active lanes, told apart.
HWY_INLINE Pattern pattern_of(const std::uint64_t* at, std::uint32_t mask, std::uint32_t bytes) {
  const std::uint64_t first = at[0];
  const std::uint64_t step = at[1] - first;
  // Most scattered accesses are told by their second lane, or by their last.
  if (at[kWarpSize - 1] - first != step * (kWarpSize - 1)) return Pattern::kScattered;
  if (step != 0 && (step != bytes || mask != kAllLanes)) return Pattern::kScattered;
  std::uint64_t differ = 0, expected = first;
  for (int i = 0; i < kWarpSize; ++i, expected += step) differ |= at[i] ^ expected;
  if (differ != 0) return Pattern::kScattered;
  return step == 0 ? Pattern::kUniform : Pattern::kContiguous;
}

HWY_INLINE void fill_inactive(std::uint64_t* at, std::uint32_t mask) {
  const std::uint64_t filler = at[std::countr_zero(mask)];
  for (int i = 0; i < kWarpSize; ++i) at[i] = ((mask >> static_cast<unsigned>(i)) & 1U) != 0 ? at[i] : filler;
}

Pattern form_narrow(const std::uint32_t* base, std::uint32_t offset, std::uint32_t mask, std::uint32_t bytes,
                    std::uint64_t* out) {
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) out[i] = base[i] + offset;
  if (mask != kAllLanes) fill_inactive(out, mask);
  return pattern_of(out, mask, bytes);
}

Pattern form_wide(const std::uint64_t* base, std::uint64_t offset, std::uint32_t mask, std::uint32_t bytes,
                  std::uint64_t* out) {
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) out[i] = base[i] + offset;
  if (mask != kAllLanes) fill_inactive(out, mask);
  return pattern_of(out, mask, bytes);
}

bool all_within(const std::uint64_t* addresses, std::uint64_t begin, std::uint64_t limit,
                std::uint64_t low_bits) {
  // A distance outside [0, limit] shows in the sign of it or of what is left.
  std::uint64_t signs = 0, bits = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    const std::uint64_t distance = addresses[i] - begin;
    signs |= distance | (limit - distance);
    bits |= addresses[i];
  }
  return static_cast<std::int64_t>(signs) >= 0 && (bits & low_bits) == 0;
}

void split32(const std::uint32_t* packed, unsigned vector, std::uint32_t* const* out) {
  if (vector == 4) {
    std::uint32_t *a = out[0], *b = out[1], *c = out[2], *d = out[3];
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      a[i] = packed[4 * i];
      b[i] = packed[4 * i + 1];
      c[i] = packed[4 * i + 2];
      d[i] = packed[4 * i + 3];
    }
  } else {
    std::uint32_t *a = out[0], *b = out[1];
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      a[i] = packed[2 * i];
      b[i] = packed[2 * i + 1];
    }
  }
}

void join32(const std::uint32_t* const* in, unsigned vector, std::uint32_t* packed) {
  if (vector == 4) {
    const std::uint32_t *a = in[0], *b = in[1], *c = in[2], *d = in[3];
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      packed[4 * i] = a[i];
      packed[4 * i + 1] = b[i];
      packed[4 * i + 2] = c[i];
      packed[4 * i + 3] = d[i];
    }
  } else {
    const std::uint32_t *a = in[0], *b = in[1];
#pragma GCC ivdep
    for (int i = 0; i < kWarpSize; ++i) {
      packed[2 * i] = a[i];
      packed[2 * i + 1] = b[i];
    }
  }
}

LaneOps ops_of_target() { return {form_narrow, form_wide, all_within, split32, join32}; }

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu {

HWY_EXPORT(ops_of_target);

const LaneOps& lane_ops() {
  static const LaneOps ops = HWY_DYNAMIC_DISPATCH(ops_of_target)();
  return ops;
}

}  // namespace echolo::vgpu
#endif
