// mov, also of vectors into and out of wider registers (PTX ISA 9.7.9.4 and 9.7.9.5).
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/move.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::OperandKind;

template <typename T>
HWY_INLINE T copy(T a) {
  return a;
}
HWY_INLINE std::uint64_t pack_words(std::uint32_t a, std::uint32_t b) { return std::uint64_t{b} << 32U | a; }
HWY_INLINE std::uint32_t pack_halves(std::uint16_t a, std::uint16_t b) { return std::uint32_t{b} << 16U | a; }

template <typename Part, typename Whole, bool kFull>
void run_unpack(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  Part* low = lanes.write<Part>(inst.operands[0]);
  Part* high = lanes.write<Part>(inst.operands[1]);
  const Whole* a = lanes.read<Whole>(inst.operands[2]);
  alignas(64) Part halves[2][kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    halves[0][i] = static_cast<Part>(a[i]);
    halves[1][i] = static_cast<Part>(a[i] >> (8 * sizeof(Part)));
  }
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) low[i] = kFull || (mask & kLaneBit[i]) != 0 ? halves[0][i] : low[i];
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) high[i] = kFull || (mask & kLaneBit[i]) != 0 ? halves[1][i] : high[i];
}

template <bool kFull>
void run_copy128(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  auto* d = lanes.write<std::uint64_t>(inst.operands[0]);
  const auto* a = lanes.read<std::uint64_t>(inst.operands[1]);
  for (int i = 0; i < 2 * kWarpSize; ++i) d[i] = kFull || (mask & kLaneBit[i & 31]) != 0 ? a[i] : d[i];
}

void run_copy_predicate(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  write_predicate(lanes, inst.operands[0], *lanes.read<std::uint32_t>(inst.operands[1]), mask);
}

// Any other packing. aux[0]: bits of a part, aux[1]: bits of the whole.
HWY_INLINE std::uint64_t read_bits(const Lanes& lanes, Slot slot, std::uint64_t bits, int lane) {
  if (bits <= 16) return lanes.read<std::uint16_t>(slot)[lane] & ((1ULL << bits) - 1);
  return bits == 32 ? lanes.read<std::uint32_t>(slot)[lane] : lanes.read<std::uint64_t>(slot)[lane];
}
HWY_INLINE void write_bits(const Lanes& lanes, Slot slot, std::uint64_t bits, int lane, std::uint64_t value) {
  if (bits <= 16) {
    lanes.write<std::uint16_t>(slot)[lane] = static_cast<std::uint16_t>(value & ((1ULL << bits) - 1));
  } else if (bits == 32) {
    lanes.write<std::uint32_t>(slot)[lane] = static_cast<std::uint32_t>(value);
  } else {
    lanes.write<std::uint64_t>(slot)[lane] = value;
  }
}
void run_pack_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const std::uint64_t part = inst.aux[0], whole = inst.aux[1];
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask & kLaneBit[i]) == 0) continue;
    std::uint64_t words[2] = {0, 0};
    for (std::uint64_t k = 0; k < whole / part; ++k) {
      words[k * part / 64] |= read_bits(lanes, inst.operands[1 + k], part, i) << (k * part % 64);
    }
    write_bits(lanes, inst.operands[0], whole == 128 ? 64 : whole, i, words[0]);
    if (whole == 128) lanes.write<std::uint64_t>(inst.operands[0])[kWarpSize + i] = words[1];
  }
}
void run_unpack_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const std::uint64_t part = inst.aux[0], whole = inst.aux[1], n = whole / part;
  const Slot source = inst.operands[n];
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask & kLaneBit[i]) == 0) continue;
    std::uint64_t words[2] = {0, 0};
    words[0] = read_bits(lanes, source, whole == 128 ? 64 : whole, i);
    if (whole == 128) words[1] = lanes.read<std::uint64_t>(source)[kWarpSize + i];
    for (std::uint64_t k = 0; k < n; ++k) {
      write_bits(lanes, inst.operands[k], part, i, words[k * part / 64] >> (k * part % 64));
    }
  }
}

}  // namespace

Functions select_move(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  const int bits = ptx::bits_of(inst.type);
  const ptx::Operand& to = inst.operands[0];
  const ptx::Operand& from = inst.operands[1];
  if (to.kind == OperandKind::kVector) {
    if (to.elements.size() == 2 && bits == 64) {
      return {run_unpack<std::uint32_t, std::uint64_t, false>,
              run_unpack<std::uint32_t, std::uint64_t, true>};
    }
    if (to.elements.size() == 2 && bits == 32) {
      return {run_unpack<std::uint16_t, std::uint32_t, false>,
              run_unpack<std::uint16_t, std::uint32_t, true>};
    }
    return same(run_unpack_any);
  }
  if (from.kind == OperandKind::kVector) {
    if (from.elements.size() == 2 && bits == 64) return lanewise<&pack_words>();
    if (from.elements.size() == 2 && bits == 32) return lanewise<&pack_halves>();
    return same(run_pack_any);
  }
  switch (bits) {
    case 1:
      return same(run_copy_predicate);
    case 8:
    case 16:
      return lanewise<&copy<std::uint16_t>>();
    case 32:
      return lanewise<&copy<std::uint32_t>>();
    case 64:
      return lanewise<&copy<std::uint64_t>>();
    case 128:
      return {run_copy128<false>, run_copy128<true>};
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_move);
}  // namespace
Functions find_move(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_move)(form); }
}  // namespace echolo::vgpu::alu
#endif
