// mma.sync: see mma.hpp for how it accumulates. f16 and bf16 have a path of their own; the others gather
// whole tiles. Fragments (PTX ISA 9.7.14.5): lane = 4 * group + t. With E elements a register, register i of
// A holds row group + 8 * (i % 2) and k from 4E * (i / 2) + E * t on, of B column group and k from 4E * i + E
// * t on; a 32-bit register i of C and D holds row group + 8 * (i / 2) and column 2 * t + i % 2.
#include "vgpu/alu/mma.hpp"

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/exact.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/mma.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using ptx::Type;

// ---- Any form
// -----------------------------------------------------------------------------------------------------

template <typename T>
struct Tiles {
  T a[16][32];  // [row][k]
  T b[32][8];   // [k][column]
  T c[16][8];
};

template <typename T>
HWY_INLINE T decode(Type type, std::uint64_t bits) {
  if constexpr (std::is_same_v<T, double>) {
    return as_double(bits);
  } else if constexpr (std::is_same_v<T, std::int32_t>) {
    return type == Type::kS8
               ? static_cast<std::int8_t>(bits)
               : (type == Type::kU8 ? static_cast<std::uint8_t>(bits) : static_cast<std::int32_t>(bits));
  } else {
    switch (type) {
      case Type::kF16:
        return f16_to_f32(static_cast<std::uint16_t>(bits));
      case Type::kBf16:
        return bf16_to_f32(static_cast<std::uint16_t>(bits));
      case Type::kTf32:
        return as_float(static_cast<std::uint32_t>(bits) & 0xffffe000U);
      case Type::kE5m2:
        return f16_to_f32(static_cast<std::uint16_t>(bits << 8U));
      case Type::kE4m3: {
        const auto wide = exact::pack(exact::kF32, exact::unpack(exact::kE4m3, bits), ptx::Rounding::kRn);
        return as_float(static_cast<std::uint32_t>(wide));
      }
      default:
        return as_float(static_cast<std::uint32_t>(bits));
    }
  }
}

struct Fragment {
  const Lanes& lanes;
  Type type;
  int bits() const { return ptx::bits_of(type) == 64 ? 64 : (type == Type::kTf32 ? 32 : ptx::bits_of(type)); }
  int per_register() const { return bits() >= 32 ? 1 : 32 / bits(); }
  std::uint64_t element(Slot slot, int lane, int index) const {
    if (bits() == 64) return lanes.read<std::uint64_t>(slot)[lane];
    const std::uint32_t word = lanes.read<std::uint32_t>(slot)[lane];
    if (bits() == 32) return word;
    return (word >> (bits() * index)) & ((1U << bits()) - 1);
  }
};

template <typename T>
void gather(const Lanes& lanes, const Slot* slots, const MmaCode& code, const MmaCode::Counts& counts,
            Tiles<T>* tiles) {
  const Fragment a{lanes, code.a}, b{lanes, code.b}, c{lanes, code.c};
  const Slot* at = slots + counts.d;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int group = lane / 4, t = lane % 4;
    const int n_a = a.per_register();
    for (int i = 0; i < counts.a; ++i) {
      const int row = code.m == 16 ? group + 8 * (i % 2) : group;
      const int k = 4 * n_a * (code.m == 16 ? i / 2 : i) + n_a * t;
      for (int e = 0; e < n_a; ++e) tiles->a[row][k + e] = decode<T>(code.a, a.element(at[i], lane, e));
    }
    const int n_b = b.per_register();
    for (int i = 0; i < counts.b; ++i) {
      for (int e = 0; e < n_b; ++e)
        tiles->b[4 * n_b * i + n_b * t + e][group] = decode<T>(code.b, b.element(at[counts.a + i], lane, e));
    }
    const Slot* c_at = at + counts.a + counts.b;
    for (int i = 0; i < counts.c; ++i) {
      if (c.per_register() == 2) {
        for (int e = 0; e < 2; ++e)
          tiles->c[group + 8 * i][2 * t + e] = decode<T>(code.c, c.element(c_at[i], lane, e));
      } else {
        tiles->c[group + 8 * (i / 2)][2 * t + i % 2] = decode<T>(code.c, c.element(c_at[i], lane, 0));
      }
    }
  }
}

template <typename T>
void scatter(const Lanes& lanes, const Slot* slots, const MmaCode& code, const MmaCode::Counts& counts,
             const Tiles<T>& tiles, std::uint32_t mask) {
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if ((mask & kLaneBit[lane]) == 0) continue;
    const int group = lane / 4, t = lane % 4;
    for (int i = 0; i < counts.d; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        const double value = tiles.c[group + 8 * (i / 2)][2 * t + i % 2];
        lanes.write<double>(slots[i])[lane] = is_nan(value) ? as_double(0xfff8000000000000ULL) : value;
      } else if constexpr (std::is_same_v<T, float>) {
        if (code.d == Type::kF16) {
          const std::uint32_t low = f32_to_f16(tiles.c[group + 8 * i][2 * t]),
                              high = f32_to_f16(tiles.c[group + 8 * i][2 * t + 1]);
          lanes.write<std::uint32_t>(slots[i])[lane] = high << 16U | low;
        } else {
          lanes.write<float>(slots[i])[lane] = canonical(tiles.c[group + 8 * (i / 2)][2 * t + i % 2]);
        }
      } else {
        lanes.write<std::int32_t>(slots[i])[lane] = tiles.c[group + 8 * (i / 2)][2 * t + i % 2];
      }
    }
  }
}

HWY_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HWY_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <typename T>
void run_tiles(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  const MmaCode::Counts counts = code.counts();
  alignas(64) Tiles<T> tiles;
  gather(lanes, inst.operands, code, counts, &tiles);
  for (int row = 0; row < code.m; ++row) {
    if constexpr (std::is_same_v<T, std::int32_t>) {
      std::int64_t sums[8];
      for (int n = 0; n < 8; ++n) sums[n] = tiles.c[row][n];
      for (int k = 0; k < code.k; ++k) {
        for (int n = 0; n < 8; ++n) sums[n] += std::int64_t{tiles.a[row][k]} * tiles.b[k][n];
      }
      for (int n = 0; n < 8; ++n) {
        constexpr std::int64_t kMost = 0x7fffffff, kLeast = -kMost - 1;
        const std::int64_t clamped = sums[n] > kMost ? kMost : (sums[n] < kLeast ? kLeast : sums[n]);
        tiles.c[row][n] = static_cast<std::int32_t>(code.saturate ? clamped : sums[n]);
      }
    } else {
      for (int k = 0; k < code.k; ++k) {
        for (int n = 0; n < 8; ++n) tiles.c[row][n] = fused(tiles.a[row][k], tiles.b[k][n], tiles.c[row][n]);
      }
    }
  }
  scatter(lanes, inst.operands, code, counts, tiles, mask);
}

// ---- f16 and bf16 into f32
// ----------------------------------------------------------------------------------------

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ECHOLO_MMA_VECTORS 1

// A register of A is, over the warp, an 8 x 8 block of halves in row order; one of B the same with columns
// for rows. Rows of C are kept as they lie in the registers, even columns first, then odd ones; the
// transposition of B gives its columns in that order when 128-bit blocks are transposed by themselves.
template <class H>
HWY_INLINE void widen_block(const std::uint16_t* halves, float* out) {
  const hn::FixedTag<float, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Rebind<std::uint16_t, decltype(d)> d16;
  for (int i = 0; i < 64; i += 8) {
    if constexpr (std::is_same_v<H, Bf16>) {
      hn::Store(hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(du, hn::LoadU(d16, halves + i)))), d, out + i);
    } else {
      const hn::Rebind<hwy::float16_t, decltype(d)> dh;
      hn::Store(hn::PromoteTo(d, hn::BitCast(dh, hn::LoadU(d16, halves + i))), d, out + i);
    }
  }
}

template <class H>
HWY_INLINE void transpose_block(const std::uint32_t* pairs, float* out) {
  const hn::FixedTag<std::uint32_t, 8> du;
  const hn::RebindToFloat<decltype(du)> d;
  const auto w0 = hn::LoadU(du, pairs), w1 = hn::LoadU(du, pairs + 8), w2 = hn::LoadU(du, pairs + 16),
             w3 = hn::LoadU(du, pairs + 24);
  const hn::Repartition<std::uint64_t, decltype(du)> d64;
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(du, w0, w1)),
             low23 = hn::BitCast(d64, hn::InterleaveLower(du, w2, w3));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(du, w0, w1)),
             high23 = hn::BitCast(d64, hn::InterleaveUpper(du, w2, w3));
  const decltype(hn::Zero(du)) by_pair[4] = {hn::BitCast(du, hn::InterleaveLower(d64, low01, low23)),
                                             hn::BitCast(du, hn::InterleaveUpper(d64, low01, low23)),
                                             hn::BitCast(du, hn::InterleaveLower(d64, high01, high23)),
                                             hn::BitCast(du, hn::InterleaveUpper(d64, high01, high23))};
  for (int pair = 0; pair < 4; ++pair) {
    const auto words = by_pair[pair];
    if constexpr (std::is_same_v<H, Bf16>) {
      hn::Store(hn::BitCast(d, hn::ShiftLeft<16>(words)), d, out + 16 * pair);
      hn::Store(hn::BitCast(d, hn::And(words, hn::Set(du, 0xffff0000U))), d, out + 16 * pair + 8);
    } else {
      const hn::Rebind<std::uint16_t, decltype(du)> d16;
      const hn::Rebind<hwy::float16_t, decltype(du)> dh;
      const auto low = hn::DemoteTo(
          d16, hn::BitCast(hn::RebindToSigned<decltype(du)>(), hn::And(words, hn::Set(du, 0xffffU))));
      const auto high =
          hn::DemoteTo(d16, hn::BitCast(hn::RebindToSigned<decltype(du)>(), hn::ShiftRight<16>(words)));
      hn::Store(hn::PromoteTo(d, hn::BitCast(dh, low)), d, out + 16 * pair);
      hn::Store(hn::PromoteTo(d, hn::BitCast(dh, high)), d, out + 16 * pair + 8);
    }
  }
}

template <class H, int kDepth, bool kFull>
void run_halves(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  constexpr int kBlocks = kDepth / 8;
  const hn::FixedTag<float, 8> d;
  const hn::FixedTag<float, 4> d4;
  alignas(64) float a[2 * kBlocks][64];
  alignas(64) float b[kBlocks * 64];
  const Slot* slots = inst.operands;
  for (int i = 0; i < 2 * kBlocks; ++i) widen_block<H>(lanes.read<std::uint16_t>(slots[4 + i]), a[i]);
  for (int i = 0; i < kBlocks; ++i)
    transpose_block<H>(lanes.read<std::uint32_t>(slots[4 + 2 * kBlocks + i]), b + 64 * i);
  // D may be C in another order: what the second half adds to is read before the first half is written.
  alignas(64) float c[4][kWarpSize];
  for (int i = 0; i < 4; ++i) std::memcpy(c[i], lanes.read<float>(slots[4 + 3 * kBlocks + i]), sizeof(c[i]));
  const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), kNanF32));
  for (int half = 0; half < 2; ++half) {
    const float* c_even = c[2 * half];
    const float* c_odd = c[2 * half + 1];
    decltype(hn::Zero(d)) sums[8];
    for (int r = 0; r < 8; ++r)
      sums[r] = hn::Combine(d, hn::LoadU(d4, c_odd + 4 * r), hn::LoadU(d4, c_even + 4 * r));
    for (int block = 0; block < kBlocks; ++block) {
      const float* tile = a[2 * block + half];
      for (int k = 0; k < 8; ++k) {
        const auto column = hn::Load(d, b + 64 * block + 8 * k);
        for (int r = 0; r < 8; ++r) sums[r] = hn::MulAdd(hn::Set(d, tile[8 * r + k]), column, sums[r]);
      }
    }
    float* d_even = lanes.write<float>(slots[2 * half]);
    float* d_odd = lanes.write<float>(slots[2 * half + 1]);
    for (int r = 0; r < 8; ++r) {
      const auto result = hn::IfThenElse(hn::IsNaN(sums[r]), nan, sums[r]);
      if constexpr (kFull) {
        hn::StoreU(hn::LowerHalf(d4, result), d4, d_even + 4 * r);
        hn::StoreU(hn::UpperHalf(d4, result), d4, d_odd + 4 * r);
      } else {
        alignas(32) float row[8];
        hn::Store(result, d, row);
        for (int t = 0; t < 4; ++t) {
          if ((mask & kLaneBit[4 * r + t]) == 0) continue;
          d_even[4 * r + t] = row[t];
          d_odd[4 * r + t] = row[4 + t];
        }
      }
    }
  }
}
#else
#define ECHOLO_MMA_VECTORS 0
#endif

}  // namespace

Functions select_mma(const Form& form) {
  const MmaCode code = MmaCode::of(form.inst);
  if (code.counts().d == 0) return {};
#if ECHOLO_MMA_VECTORS
  if (code.d == Type::kF32 && code.k == 16 && code.a == Type::kBf16)
    return {run_halves<Bf16, 16, false>, run_halves<Bf16, 16, true>};
  if (code.d == Type::kF32 && code.k == 8 && code.a == Type::kBf16)
    return {run_halves<Bf16, 8, false>, run_halves<Bf16, 8, true>};
  if (code.d == Type::kF32 && code.k == 16 && code.a == Type::kF16)
    return {run_halves<F16, 16, false>, run_halves<F16, 16, true>};
  if (code.d == Type::kF32 && code.k == 8 && code.a == Type::kF16)
    return {run_halves<F16, 8, false>, run_halves<F16, 8, true>};
#endif
  if (code.d == Type::kF64) return same(run_tiles<double>);
  if (code.d == Type::kS32) return same(run_tiles<std::int32_t>);
  return same(run_tiles<float>);
}
#undef ECHOLO_MMA_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_mma);
}  // namespace
Functions find_mma(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_mma)(form); }
}  // namespace echolo::vgpu::alu
#endif
