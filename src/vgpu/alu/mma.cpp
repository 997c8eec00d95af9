// mma.sync, mma.sp and wmma.mma on f64, integers and single bits, and mma.m8n8k4 on halves: rare enough to be
// done element by element. The others: mma_float.cpp.
#include "vgpu/alu/mma.hpp"

#include <bit>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/exact.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/mma.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"
#include "vgpu/alu/mma_elements-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::Rounding;
using ptx::Type;

struct Operands {
  const Slot *a, *b, *c, *metadata;
};
Operands operands_of(const Inst& inst, const MmaCode& code) {
  const MmaCode::Counts counts = code.counts();
  const Slot* a = inst.operands + counts.d;
  return {a, a + counts.a, a + counts.a + counts.b, a + counts.a + counts.b + counts.c};
}
bool active(std::uint32_t mask, int lane) { return (mask & kLaneBit[lane]) != 0; }

// ---- f64
// ----------------------------------------------------------------------------------------------------------

// a * b + c; of several NaN operands that of b is handed on, else that of c, else that of a.
double fused(double a, double b, double c, Rounding rounding) {
  for (const double x : {b, c, a}) {
    if (is_nan(x)) return as_double(as_bits(x) | 1ULL << 51U);
  }
  if (rounding == Rounding::kDefault || rounding == Rounding::kRn) {
    const double result = __builtin_fma(a, b, c);
    return is_nan(result) ? as_double(0xfff8000000000000ULL) : result;
  }
  const exact::Number product =
      exact::multiply(exact::unpack(exact::kF64, as_bits(a)), exact::unpack(exact::kF64, as_bits(b)));
  return as_double(exact::pack(
      exact::kF64, exact::add(product, exact::unpack(exact::kF64, as_bits(c)), rounding), rounding));
}

void run_f64(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  const MmaCode::Counts counts = code.counts();
  const Operands in = operands_of(inst, code);
  double a[16][16], b[16][8], c[16][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int i = 0; i < counts.a; ++i) {
      const Place at = place_of_a(code, i, lane, 0);
      a[at.row][at.column] = lanes.read<double>(in.a[i])[lane];
    }
    for (int i = 0; i < counts.b; ++i) {
      const Place at = place_of_b(code, i, lane, 0);
      b[at.row][at.column] = lanes.read<double>(in.b[i])[lane];
    }
    for (int i = 0; i < counts.c; ++i) {
      const Place at = place_of_c(code, code.c, i, lane, 0);
      c[at.row][at.column] = lanes.read<double>(in.c[i])[lane];
    }
  }
  for (int row = 0; row < code.m; ++row) {
    for (int column = 0; column < code.n; ++column) {
      for (int k = 0; k < code.k; ++k)
        c[row][column] = fused(a[row][k], b[k][column], c[row][column], code.rounding);
    }
  }
  for (int i = 0; i < counts.d; ++i) {
    auto* d = lanes.write<double>(inst.operands[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Place at = place_of_c(code, code.d, i, lane, 0);
      if (active(mask, lane)) d[lane] = c[at.row][at.column];
    }
  }
}

// ---- Integers and bits
// --------------------------------------------------------------------------------------------

struct IntegerTiles {
  std::int32_t a[32][128];  // [row][k], compressed if sparse; of bits, a word of 32 for each
  std::int32_t b[32][128];  // [column][k]
  std::int32_t c[32][32];
};

void gather(const Lanes& lanes, const Inst& inst, const MmaCode& code, IntegerTiles* tiles) {
  const MmaCode::Counts counts = code.counts();
  const Operands in = operands_of(inst, code);
  const bool bits = code.a == Type::kB1;
  const int n = bits ? 1 : per_register(code.a), unit = bits ? 32 : 1;
  for (int lane = 0; lane < kWarpSize; ++lane) {
    for (int e = 0; e < n; ++e) {
      for (int i = 0; i < counts.a; ++i) {
        const Place at = place_of_a(code, i, lane, e);
        tiles->a[at.row][at.column / unit] =
            integer_element(code.a, lanes.read<std::uint32_t>(in.a[i])[lane], e);
      }
      for (int i = 0; i < counts.b; ++i) {
        const Place at = place_of_b(code, i, lane, e);
        tiles->b[at.column][at.row / unit] =
            integer_element(code.b, lanes.read<std::uint32_t>(in.b[i])[lane], e);
      }
    }
    for (int i = 0; i < counts.c; ++i) {
      const Place at = place_of_c(code, code.c, i, lane, 0);
      tiles->c[at.row][at.column] = lanes.read<std::int32_t>(in.c[i])[lane];
    }
  }
}

std::int64_t sum_of(const MmaCode& code, const std::int32_t* a, const std::int32_t* b, int depth) {
  std::int64_t sum = 0;
  if (code.a == Type::kB1) {
    for (int k = 0; k < depth / 32; ++k)
      sum += std::popcount(static_cast<std::uint32_t>(code.exclusive_or ? a[k] ^ b[k] : a[k] & b[k]));
  } else {
    for (int k = 0; k < depth; ++k) sum += a[k] * b[k];
  }
  return sum;
}

void run_integer(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  alignas(64) IntegerTiles tiles;
  gather(lanes, inst, code, &tiles);
  const auto* metadata = code.sparse ? lanes.read<std::uint32_t>(*operands_of(inst, code).metadata) : nullptr;
  const int depth = code.k / (code.sparse ? 2 : 1);
  for (int row = 0; row < code.m; ++row) {
    int k_of[64];
    for (int j = 0; code.sparse && j < depth; ++j) k_of[j] = sparse_column(code, metadata, row, j);
    for (int column = 0; column < code.n; ++column) {
      const std::int32_t* b = tiles.b[column];
      std::int32_t chosen[64];
      if (code.sparse) {
        for (int j = 0; j < depth; ++j) chosen[j] = b[k_of[j]];
        b = chosen;
      }
      constexpr std::int64_t kMost = 0x7fffffff, kLeast = -kMost - 1;
      std::int64_t sum = tiles.c[row][column] + sum_of(code, tiles.a[row], b, depth);
      if (code.saturate) sum = sum > kMost ? kMost : (sum < kLeast ? kLeast : sum);
      tiles.c[row][column] = static_cast<std::int32_t>(sum);
    }
  }
  const int n = code.counts().d;
  for (int i = 0; i < n; ++i) {
    auto* d = lanes.write<std::int32_t>(inst.operands[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const Place at = place_of_c(code, code.d, i, lane, 0);
      if (active(mask, lane)) d[lane] = tiles.c[at.row][at.column];
    }
  }
}

// ---- m8n8k4 on halves
// ---------------------------------------------------------------------------------------------

// Lanes 4q .. 4q + 3 and 16 + 4q .. 16 + 4q + 3 multiply matrices of their own. The compiler makes of it, for
// Hopper, multiplications and additions in f32 in the order that is kept here.
float quad_pair_sum(const MmaCode& code, const float* a, const float* b, float c) {
  if (code.d == Type::kF32) {
    float sum = 0;
    for (int k = 0; k < 4; ++k) sum = __builtin_fmaf(a[k], b[k], sum);
    return canonical(c + sum);
  }
  const float low = __builtin_fmaf(a[1], b[1], a[0] * b[0]), high = __builtin_fmaf(a[3], b[3], a[2] * b[2]);
  return canonical((c + low) + high);
}

void run_quad_pairs(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const MmaCode code = MmaCode::unpack(inst.aux[0]);
  const MmaCode::Counts counts = code.counts();
  const Operands in = operands_of(inst, code);
  float a[4][8][4], b[4][8][4], c[4][8][8];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int q = lane % 16 / 4;
    for (int e = 0; e < 2; ++e) {
      for (int i = 0; i < 2; ++i) {
        const Place in_a = place_of_a(code, i, lane, e), in_b = place_of_b(code, i, lane, e);
        a[q][in_a.row][in_a.column] = float_element(code.a, lanes.read<std::uint32_t>(in.a[i])[lane], e);
        b[q][in_b.column][in_b.row] = float_element(code.b, lanes.read<std::uint32_t>(in.b[i])[lane], e);
      }
    }
    for (int i = 0; i < counts.c; ++i) {
      for (int e = 0; e < per_register(code.c); ++e) {
        const Place at = place_of_c(code, code.c, i, lane, e);
        c[q][at.row][at.column] = float_element(code.c, lanes.read<std::uint32_t>(in.c[i])[lane], e);
      }
    }
  }
  for (int i = 0; i < counts.d; ++i) {
    auto* d = lanes.write<std::uint32_t>(inst.operands[i]);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const int q = lane % 16 / 4;
      std::uint32_t word = 0;
      for (int e = 0; e < per_register(code.d); ++e) {
        const Place at = place_of_c(code, code.d, i, lane, e);
        const float sum = quad_pair_sum(code, a[q][at.row], b[q][at.column], c[q][at.row][at.column]);
        word |= code.d == Type::kF16 ? std::uint32_t{f32_to_f16(sum)} << (16 * e) : as_bits(sum);
      }
      if (active(mask, lane)) d[lane] = word;
    }
  }
}

}  // namespace

Functions select_mma(const Form& form) {
  const MmaCode code = MmaCode::of(form.inst);
  if (code.counts().d == 0) return {};
  if (code.d == Type::kF64) return same(run_f64);
  if (code.d == Type::kS32) return same(run_integer);
  if (!code.wmma && code.m == 8) return same(run_quad_pairs);
  return find_mma_float(form);
}

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
