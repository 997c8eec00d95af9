// mma.sync: see mma.hpp for how it accumulates. f16 and bf16 have a path of their own; the others gather
// whole tiles. Fragments (PTX ISA 9.7.14.5): lane = 4 * group + t. With E elements a register, register i of
// A holds row group + 8 * (i % 2) and k from 4E * (i / 2) + E * t on, of B column group and k from 4E * i + E
// * t on; a 32-bit register i of C and D holds row group + 8 * (i / 2) and column 2 * t + i % 2.
#include "vgpu/alu/mma.hpp"

#include <array>

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

// The numbers of e4m3 (PTX ISA 5.2.3), by their bits.
const float* table_of_e4m3() {
  static const auto table = [] {
    std::array<float, 256> values{};
    for (std::uint32_t bits = 0; bits < 256; ++bits) {
      values[bits] = as_float(static_cast<std::uint32_t>(
          exact::pack(exact::kF32, exact::unpack(exact::kE4m3, bits), ptx::Rounding::kRn)));
    }
    return values;
  }();
  return table.data();
}

// How elements of a type lie in the registers of a warp, and what number they are.
template <Type kType>
struct Element;
template <>
struct Element<Type::kF64> {
  using Word = double;
  static constexpr int kPerWord = 1;
  static HWY_INLINE double get(double word, int /*part*/, const float* /*table*/) { return word; }
};
template <>
struct Element<Type::kF32> {
  using Word = float;
  static constexpr int kPerWord = 1;
  static HWY_INLINE float get(float word, int /*part*/, const float* /*table*/) { return word; }
};
template <>
struct Element<Type::kS32> {
  using Word = std::int32_t;
  static constexpr int kPerWord = 1;
  static HWY_INLINE std::int32_t get(std::int32_t word, int /*part*/, const float* /*table*/) { return word; }
};
template <>
struct Element<Type::kTf32> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 1;
  static HWY_INLINE float get(std::uint32_t word, int /*part*/, const float* /*table*/) {
    return as_float(word & 0xffffe000U);
  }
};
template <>
struct Element<Type::kF16> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 2;
  static HWY_INLINE float get(std::uint32_t word, int part, const float* /*table*/) {
    return f16_to_f32(static_cast<std::uint16_t>(word >> (16 * part)));
  }
};
template <>
struct Element<Type::kBf16> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 2;
  static HWY_INLINE float get(std::uint32_t word, int part, const float* /*table*/) {
    return bf16_to_f32(static_cast<std::uint16_t>(word >> (16 * part)));
  }
};
template <>
struct Element<Type::kE5m2> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 4;
  static HWY_INLINE float get(std::uint32_t word, int part, const float* /*table*/) {
    return f16_to_f32(static_cast<std::uint16_t>((word >> (8 * part)) << 8U));
  }
};
template <>
struct Element<Type::kE4m3> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 4;
  static HWY_INLINE float get(std::uint32_t word, int part, const float* table) {
    return table[(word >> (8 * part)) & 0xffU];
  }
};
template <>
struct Element<Type::kS8> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 4;
  static HWY_INLINE std::int32_t get(std::uint32_t word, int part, const float* /*table*/) {
    return static_cast<std::int8_t>(word >> (8 * part));
  }
};
template <>
struct Element<Type::kU8> {
  using Word = std::uint32_t;
  static constexpr int kPerWord = 4;
  static HWY_INLINE std::int32_t get(std::uint32_t word, int part, const float* /*table*/) {
    return static_cast<std::uint8_t>(word >> (8 * part));
  }
};

template <Type kA, Type kB, Type kC, typename T>
void gather(const Lanes& lanes, const Slot* slots, bool tall, const MmaCode::Counts& counts,
            Tiles<T>* tiles) {
  using A = Element<kA>;
  using B = Element<kB>;
  using C = Element<kC>;
  const float* table = kA == Type::kE4m3 || kB == Type::kE4m3 ? table_of_e4m3() : nullptr;
  const Slot* at = slots + counts.d;
  for (int i = 0; i < counts.a; ++i) {
    const auto* words = lanes.read<typename A::Word>(at[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      T* row =
          tiles->a[lane / 4 + (tall ? 8 * (i % 2) : 0)] + A::kPerWord * (4 * (tall ? i / 2 : i) + lane % 4);
      for (int e = 0; e < A::kPerWord; ++e) row[e] = A::get(words[lane], e, table);
    }
  }
  for (int i = 0; i < counts.b; ++i) {
    const auto* words = lanes.read<typename B::Word>(at[counts.a + i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < B::kPerWord; ++e)
        tiles->b[B::kPerWord * (4 * i + lane % 4) + e][lane / 4] = B::get(words[lane], e, table);
    }
  }
  for (int i = 0; i < counts.c; ++i) {
    const auto* words = lanes.read<typename C::Word>(at[counts.a + counts.b + i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if constexpr (C::kPerWord == 2) {
        for (int e = 0; e < 2; ++e)
          tiles->c[lane / 4 + 8 * i][2 * (lane % 4) + e] = C::get(words[lane], e, table);
      } else {
        tiles->c[lane / 4 + 8 * (i / 2)][2 * (lane % 4) + i % 2] = C::get(words[lane], 0, table);
      }
    }
  }
}

template <Type kC, typename T>
void scatter(const Lanes& lanes, const Slot* slots, int n_registers, const Tiles<T>& tiles,
             std::uint32_t mask) {
  for (int i = 0; i < n_registers; ++i) {
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((mask & kLaneBit[lane]) == 0) continue;
      const int row = lane / 4, column = 2 * (lane % 4);
      if constexpr (kC == Type::kF16) {
        const std::uint32_t low = f32_to_f16(tiles.c[row + 8 * i][column]),
                            high = f32_to_f16(tiles.c[row + 8 * i][column + 1]);
        lanes.write<std::uint32_t>(slots[i])[lane] = high << 16U | low;
      } else {
        const T value = tiles.c[row + 8 * (i / 2)][column + i % 2];
        if constexpr (kC == Type::kF64)
          lanes.write<double>(slots[i])[lane] = pick(is_nan(value), as_double(0xfff8000000000000ULL), value);
        else if constexpr (kC == Type::kF32)
          lanes.write<float>(slots[i])[lane] = canonical(value);
        else
          lanes.write<std::int32_t>(slots[i])[lane] = value;
      }
    }
  }
}

HWY_INLINE float fused(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
HWY_INLINE double fused(double a, double b, double c) { return __builtin_fma(a, b, c); }

template <Type kA, Type kB, Type kC>
void run_tiles(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  using T = decltype(Element<kC>::get({}, 0, nullptr));
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  const MmaCode::Counts counts = code.counts();
  alignas(64) Tiles<T> tiles;
  gather<kA, kB, kC>(lanes, inst.operands, code.m == 16, counts, &tiles);
  for (int row = 0; row < code.m; ++row) {
    if constexpr (kC == Type::kS32) {
      // 32 products of 16 bits do not overflow; the sum with C may.
      std::int32_t sums[8] = {};
      for (int k = 0; k < code.k; ++k) {
        for (int n = 0; n < 8; ++n) sums[n] += tiles.a[row][k] * tiles.b[k][n];
      }
      for (int n = 0; n < 8; ++n) {
        constexpr std::int64_t kMost = 0x7fffffff, kLeast = -kMost - 1;
        const std::int64_t sum = std::int64_t{tiles.c[row][n]} + sums[n];
        const std::int64_t clamped = sum > kMost ? kMost : (sum < kLeast ? kLeast : sum);
        tiles.c[row][n] = static_cast<std::int32_t>(code.saturate ? clamped : sum);
      }
    } else {
      T sums[8];
      for (int n = 0; n < 8; ++n) sums[n] = tiles.c[row][n];
      for (int k = 0; k < code.k; ++k) {
        for (int n = 0; n < 8; ++n) sums[n] = fused(tiles.a[row][k], tiles.b[k][n], sums[n]);
      }
      for (int n = 0; n < 8; ++n) tiles.c[row][n] = sums[n];
    }
  }
  scatter<kC>(lanes, inst.operands, counts.d, tiles, mask);
}

// ---- f16 and bf16 into f32
// ----------------------------------------------------------------------------------------

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
#define ECHOLO_MMA_VECTORS 1

// A register of A is, over the warp, a block of 8 rows and as many columns as 4 lanes hold, in row order; one
// of B the same with columns for rows. Rows of C are kept as they lie in the registers, even columns first,
// then odd ones; the transposition of B gives its columns in that order when 128-bit blocks are transposed by
// themselves.
struct Tf32 {};
template <class H>
inline constexpr int kBlockDepth = std::is_same_v<H, Tf32> ? 4 : 8;

template <class H>
HWY_INLINE void widen_block(const std::uint16_t* halves, float* out) {
  const hn::FixedTag<float, 8> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  if constexpr (std::is_same_v<H, Tf32>) {
    const auto* words = reinterpret_cast<const std::uint32_t*>(halves);
    for (int i = 0; i < 32; i += 8) {
      hn::Store(hn::BitCast(d, hn::And(hn::LoadU(du, words + i), hn::Set(du, 0xffffe000U))), d, out + i);
    }
    return;
  }
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
    if constexpr (std::is_same_v<H, Tf32>) {
      hn::Store(hn::BitCast(d, hn::And(words, hn::Set(du, 0xffffe000U))), d, out + 8 * pair);
      continue;
    }
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

template <class H, int kDepth, bool kNarrow>  // kNarrow: C and D are f16
void run_vectors(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  constexpr int kWide = kBlockDepth<H>, kBlocks = kDepth / kWide, kSums = kNarrow ? 2 : 4;
  const hn::FixedTag<float, 8> d;
  const hn::FixedTag<float, 4> d4;
  alignas(64) float a[2 * kBlocks][64];
  alignas(64) float b[kDepth * 8];
  const Slot* slots = inst.operands;
  for (int i = 0; i < 2 * kBlocks; ++i) widen_block<H>(lanes.read<std::uint16_t>(slots[kSums + i]), a[i]);
  for (int i = 0; i < kBlocks; ++i) {
    transpose_block<H>(lanes.read<std::uint32_t>(slots[kSums + 2 * kBlocks + i]), b + 8 * kWide * i);
  }
  // Even and odd columns of the upper and the lower half. D may be C in another order: C is read before D is
  // written.
  alignas(64) float c[4][kWarpSize];
  for (int i = 0; i < kSums; ++i) {
    const Slot slot = slots[kSums + 3 * kBlocks + i];
    if constexpr (kNarrow) {
      const auto* words = lanes.read<std::uint32_t>(slot);
      for (int lane = 0; lane < kWarpSize; ++lane)
        c[2 * i][lane] = f16_to_f32(static_cast<std::uint16_t>(words[lane]));
      for (int lane = 0; lane < kWarpSize; ++lane)
        c[2 * i + 1][lane] = f16_to_f32(static_cast<std::uint16_t>(words[lane] >> 16U));
    } else {
      std::memcpy(c[i], lanes.read<float>(slot), sizeof(c[i]));
    }
  }
  const auto nan = hn::BitCast(d, hn::Set(hn::RebindToUnsigned<decltype(d)>(), kNanF32));
  for (int half = 0; half < 2; ++half) {
    float* even = c[2 * half];
    float* odd = c[2 * half + 1];
    decltype(hn::Zero(d)) sums[8];
    for (int r = 0; r < 8; ++r)
      sums[r] = hn::Combine(d, hn::Load(d4, odd + 4 * r), hn::Load(d4, even + 4 * r));
    for (int block = 0; block < kBlocks; ++block) {
      const float* tile = a[2 * block + half];
      for (int k = 0; k < kWide; ++k) {
        const auto column = hn::Load(d, b + 8 * (kWide * block + k));
        for (int r = 0; r < 8; ++r) sums[r] = hn::MulAdd(hn::Set(d, tile[kWide * r + k]), column, sums[r]);
      }
    }
    for (int r = 0; r < 8; ++r) {
      const auto result = hn::IfThenElse(hn::IsNaN(sums[r]), nan, sums[r]);
      hn::Store(hn::LowerHalf(d4, result), d4, even + 4 * r);
      hn::Store(hn::UpperHalf(d4, result), d4, odd + 4 * r);
    }
  }
  for (int i = 0; i < kSums; ++i) {
    auto* out = lanes.write<std::uint32_t>(slots[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::uint32_t word = 0;
      if constexpr (kNarrow)
        word = std::uint32_t{f32_to_f16(c[2 * i + 1][lane])} << 16U | f32_to_f16(c[2 * i][lane]);
      else
        word = as_bits(c[i][lane]);
      out[lane] = pick((mask & kLaneBit[lane]) != 0, word, out[lane]);
    }
  }
}
#else
#define ECHOLO_MMA_VECTORS 0
#endif

template <Type kC>
Functions eight_bit_floats(const MmaCode& code) {
  if (code.a == Type::kE4m3) {
    return same(code.b == Type::kE4m3 ? run_tiles<Type::kE4m3, Type::kE4m3, kC>
                                      : run_tiles<Type::kE4m3, Type::kE5m2, kC>);
  }
  return same(code.b == Type::kE4m3 ? run_tiles<Type::kE5m2, Type::kE4m3, kC>
                                    : run_tiles<Type::kE5m2, Type::kE5m2, kC>);
}
Functions eight_bit_integers(const MmaCode& code) {
  if (code.a == Type::kS8) {
    return same(code.b == Type::kS8 ? run_tiles<Type::kS8, Type::kS8, Type::kS32>
                                    : run_tiles<Type::kS8, Type::kU8, Type::kS32>);
  }
  return same(code.b == Type::kS8 ? run_tiles<Type::kU8, Type::kS8, Type::kS32>
                                  : run_tiles<Type::kU8, Type::kU8, Type::kS32>);
}

}  // namespace

Functions select_mma(const Form& form) {
  const MmaCode code = MmaCode::of(form.inst);
  if (code.counts().d == 0) return {};
  const bool narrow = code.d == Type::kF16;
#if ECHOLO_MMA_VECTORS
  switch (code.a) {
    case Type::kBf16:
      return same(code.k == 16 ? run_vectors<Bf16, 16, false> : run_vectors<Bf16, 8, false>);
    case Type::kF16:
      if (narrow) return same(code.k == 16 ? run_vectors<F16, 16, true> : run_vectors<F16, 8, true>);
      return same(code.k == 16 ? run_vectors<F16, 16, false> : run_vectors<F16, 8, false>);
    case Type::kTf32:
      return same(code.k == 8 ? run_vectors<Tf32, 8, false> : run_vectors<Tf32, 4, false>);
    default:
      break;
  }
#else
  switch (code.a) {
    case Type::kBf16:
      return same(run_tiles<Type::kBf16, Type::kBf16, Type::kF32>);
    case Type::kF16:
      return same(narrow ? run_tiles<Type::kF16, Type::kF16, Type::kF16>
                         : run_tiles<Type::kF16, Type::kF16, Type::kF32>);
    case Type::kTf32:
      return same(run_tiles<Type::kTf32, Type::kTf32, Type::kF32>);
    default:
      break;
  }
#endif
  if (code.d == Type::kF64) return same(run_tiles<Type::kF64, Type::kF64, Type::kF64>);
  if (code.d == Type::kS32) return eight_bit_integers(code);
  return narrow ? eight_bit_floats<Type::kF16>(code) : eight_bit_floats<Type::kF32>(code);
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
