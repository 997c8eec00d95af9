// mma.sync, mma.sp and wmma.mma on f16, bf16, tf32, e4m3 and e5m2. The sums: tensor-inl.hpp.
#include <algorithm>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/mma.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/mma_float.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"
#include "vgpu/alu/mma_elements-inl.hpp"
#include "vgpu/alu/tensor-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

namespace hn = hwy::HWY_NAMESPACE;  // NOLINT(misc-unused-alias-decls): of the targets with vectors
using ptx::Type;

bool is_eight_bits(Type type) { return type == Type::kE4m3 || type == Type::kE5m2; }
std::int32_t least_exponent(Type type) { return type == Type::kBf16 || type == Type::kTf32 ? -126 : -14; }

// ---- Any form
// -----------------------------------------------------------------------------------------------------

struct Tiles {
  float a[32][32];   // [row][k], compressed if sparse
  float b[32][64];   // [column][k]
  float c[32][32];   // [row][column]
  int k_of[32][32];  // sparse: which k an element of A has
};

void gather(const Lanes& lanes, const Slot* slots, const MmaCode& code, Tiles* tiles) {
  const MmaCode::Counts counts = code.counts();
  const Slot* a = slots + counts.d;
  const Slot* b = a + counts.a;
  const Slot* c = b + counts.b;
  const int n_a = registers_of(code.m * code.k / (code.sparse ? 2 : 1), code.a);
  const int n_b = registers_of(code.n * code.k, code.b);
  for (int i = 0; i < n_a; ++i) {
    const auto* words = lanes.read<std::uint32_t>(a[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per_register(code.a); ++e) {
        const Place at = place_of_a(code, i, lane, e);
        tiles->a[at.row][at.column] = float_element(code.a, words[lane], e);
      }
    }
  }
  for (int i = 0; i < n_b; ++i) {
    const auto* words = lanes.read<std::uint32_t>(b[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per_register(code.b); ++e) {
        const Place at = place_of_b(code, i, lane, e);
        tiles->b[at.column][at.row] = float_element(code.b, words[lane], e);
      }
    }
  }
  for (int i = 0; i < counts.c; ++i) {
    const auto* words = lanes.read<std::uint32_t>(c[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per_register(code.c); ++e) {
        const Place at = place_of_c(code, code.c, i, lane, e);
        tiles->c[at.row][at.column] = float_element(code.c, words[lane], e);
      }
    }
  }
  if (!code.sparse) return;
  const auto* metadata = lanes.read<std::uint32_t>(c[counts.c]);
  for (int row = 0; row < code.m; ++row) {
    for (int j = 0; j < code.k / 2; ++j) tiles->k_of[row][j] = sparse_column(code, metadata, row, j);
  }
}

void scatter(const Lanes& lanes, const Slot* slots, const MmaCode& code, const Tiles& tiles,
             std::uint32_t mask) {
  const int n = code.counts().d;
  for (int i = 0; i < n; ++i) {
    auto* d = lanes.write<std::uint32_t>(slots[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      if ((mask & kLaneBit[lane]) == 0) continue;
      std::uint32_t word = 0;
      for (int e = 0; e < per_register(code.d); ++e) {
        const Place at = place_of_c(code, code.d, i, lane, e);
        const float value = tiles.c[at.row][at.column];
        word |= code.d == Type::kF16 ? std::uint32_t{f32_to_f16(value)} << (16 * e) : as_bits(value);
      }
      d[lane] = word;
    }
  }
}

// The sum of one result.
float dot(const MmaCode& code, const float* a, const float* b, int depth, float c) {
  const std::int32_t least = least_exponent(code.a);
  const bool half = code.d == Type::kF16;
  if (is_eight_bits(code.a)) {
    // Two instructions on halves: the lower two of every four elements, then the upper two.
    float x[16] = {}, y[16] = {}, sum = 0;
    for (int part = 0; part < 2; ++part) {
      for (int i = 0; i < depth / 2; ++i) {
        x[i] = a[i / 2 * 4 + i % 2 + 2 * part];
        y[i] = b[i / 2 * 4 + i % 2 + 2 * part];
      }
      sum = tensor_sum(x, y, 1, depth / 2, sum, least, half);
      if (half) sum = f16_to_f32(f32_to_f16(sum));
    }
    return canonical(c + sum);
  }
  if (code.wmma && code.a == Type::kTf32) {
    c = tensor_sum(a, b, 1, 4, c, least, false);
    return tensor_sum(a + 4, b + 4, 1, 4, c, least, false);
  }
  // A sum of f32 that is stored as f16 has been cut off before.
  return tensor_sum(a, b, 1, depth, c, least, half && code.c == Type::kF16);
}

void run_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  alignas(64) Tiles tiles = {};
  gather(lanes, inst.operands, code, &tiles);
  const int depth = code.k / (code.sparse ? 2 : 1);
  for (int row = 0; row < code.m; ++row) {
    for (int column = 0; column < code.n; ++column) {
      const float* b = tiles.b[column];
      float chosen[32] = {};
      if (code.sparse) {
        for (int j = 0; j < depth; ++j) chosen[j] = b[tiles.k_of[row][j]];
        b = chosen;
      }
      tiles.c[row][column] = dot(code, tiles.a[row], b, depth, tiles.c[row][column]);
    }
  }
  scatter(lanes, inst.operands, code, tiles, mask);
}

// ---- Dense m16n8 of f16, bf16 and tf32
// ----------------------------------------------------------------------------

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
  constexpr std::int32_t kLeast = std::is_same_v<H, F16> ? -14 : -126;
  alignas(64) float a[2][8][kDepth];  // [half of the rows][row][k]
  alignas(64) float b[kDepth * 8];
  alignas(64) std::int32_t ea[2][8][kDepth], eb[kDepth * 8];
  const Slot* slots = inst.operands;
  for (int i = 0; i < 2 * kBlocks; ++i) {
    alignas(64) float block[8 * kWide];
    widen_block<H>(lanes.read<std::uint16_t>(slots[kSums + i]), block);
    for (int row = 0; row < 8; ++row)
      std::memcpy(&a[i % 2][row][kWide * (i / 2)], block + kWide * row, kWide * sizeof(float));
  }
  for (int i = 0; i < kBlocks; ++i)
    transpose_block<H>(lanes.read<std::uint32_t>(slots[kSums + 2 * kBlocks + i]), b + 8 * kWide * i);
  // Rows of the upper and the lower half, even columns, then odd ones. D may be C in another order: C is read
  // before D is written.
  alignas(64) float c[2][8][8];
  bool ordinary = true;
  for (int i = 0; i < kSums; ++i) {
    const auto* words = lanes.read<std::uint32_t>(slots[kSums + 3 * kBlocks + i]);
    if constexpr (kNarrow) {
      for (int lane = 0; lane < kWarpSize; ++lane) {
        c[i][lane / 4][lane % 4] = f16_to_f32(static_cast<std::uint16_t>(words[lane]));
        c[i][lane / 4][4 + lane % 4] = f16_to_f32(static_cast<std::uint16_t>(words[lane] >> 16U));
      }
    } else {
      for (int row = 0; row < 8; ++row)
        std::memcpy(&c[i / 2][row][i % 2 * 4], words + 4 * row, 4 * sizeof(float));
    }
  }
  {
    const hn::FixedTag<float, 8> d;
    const hn::RebindToUnsigned<decltype(d)> du;
    auto most = hn::Zero(du);
    for (int i = 0; i < 128; i += 8)
      most = hn::Max(most, hn::And(hn::BitCast(du, hn::Load(d, &c[0][0][0] + i)), hn::Set(du, 0x7fffffffU)));
    ordinary = hn::AllTrue(du, hn::Lt(most, hn::Set(du, 0x7f800000U)));
  }
  ordinary = ordinary && tensor_exponents(&a[0][0][0], 16 * kDepth, kLeast, &ea[0][0][0]) &&
             tensor_exponents(b, 8 * kDepth, kLeast, eb);
  for (int half = 0; half < 2; ++half) {
    if (ordinary &&
        tensor_tile<kDepth, kNarrow>(&a[half][0][0], &ea[half][0][0], kDepth, b, eb, &c[half][0][0], 8))
      continue;
    for (int row = 0; row < 8; ++row) {
      for (int column = 0; column < 8; ++column) {
        float& sum = c[half][row][column];
        sum = tensor_sum(a[half][row], b + column, 8, kDepth, sum, kLeast, kNarrow);
      }
    }
  }
  if constexpr (!kNarrow) {
    if (mask == kAllLanes) {
      for (int i = 0; i < kSums; ++i) {
        auto* out = lanes.write<float>(slots[i]);
        for (int row = 0; row < 8; ++row)
          std::memcpy(out + 4 * row, &c[i / 2][row][i % 2 * 4], 4 * sizeof(float));
      }
      return;
    }
  }
  for (int i = 0; i < kSums; ++i) {
    auto* out = lanes.write<std::uint32_t>(slots[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      std::uint32_t word = 0;
      if constexpr (kNarrow)
        word = std::uint32_t{f32_to_f16(c[i][lane / 4][4 + lane % 4])} << 16U |
               f32_to_f16(c[i][lane / 4][lane % 4]);
      else
        word = as_bits(c[i / 2][lane / 4][i % 2 * 4 + lane % 4]);
      out[lane] = pick((mask & kLaneBit[lane]) != 0, word, out[lane]);
    }
  }
}
#else
#define ECHOLO_MMA_VECTORS 0
#endif

}  // namespace

Functions select_mma_float(const Form& form) {
  [[maybe_unused]] const MmaCode code = MmaCode::of(form.inst);
#if ECHOLO_MMA_VECTORS
  if (!code.wmma && !code.sparse && code.m == 16 && code.n == 8) {
    switch (code.a) {
      case Type::kBf16:
        return same(code.k == 16 ? run_vectors<Bf16, 16, false> : run_vectors<Bf16, 8, false>);
      case Type::kF16:
        if (code.d == Type::kF16)
          return same(code.k == 16 ? run_vectors<F16, 16, true> : run_vectors<F16, 8, true>);
        return same(code.k == 16 ? run_vectors<F16, 16, false> : run_vectors<F16, 8, false>);
      case Type::kTf32:
        return same(code.k == 8 ? run_vectors<Tf32, 8, false> : run_vectors<Tf32, 4, false>);
      default:
        break;
    }
  }
#endif
  return same(run_any);
}
#undef ECHOLO_MMA_VECTORS

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_mma_float);
}  // namespace
Functions find_mma_float(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_mma_float)(form); }
}  // namespace echolo::vgpu::alu
#endif
