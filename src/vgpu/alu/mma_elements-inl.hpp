// The elements of matrix fragments: how they lie in the registers of a warp, and what numbers they are.
#if defined(ECHOLO_VGPU_ALU_MMA_ELEMENTS_INL_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHOLO_VGPU_ALU_MMA_ELEMENTS_INL_
#undef ECHOLO_VGPU_ALU_MMA_ELEMENTS_INL_
#else
#define ECHOLO_VGPU_ALU_MMA_ELEMENTS_INL_
#endif

#include <array>

#include "hwy/highway.h"
#include "vgpu/alu/exact.hpp"
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/mma.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)

// The numbers of e4m3 (PTX ISA 5.2.3), by their bits.
inline const float* table_of_e4m3() {
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

// Element `e` of a 32-bit register.
inline float float_element(ptx::Type type, std::uint32_t word, int e) {
  switch (type) {
    case ptx::Type::kF16:
      return f16_to_f32(static_cast<std::uint16_t>(word >> (16 * e)));
    case ptx::Type::kBf16:
      return bf16_to_f32(static_cast<std::uint16_t>(word >> (16 * e)));
    case ptx::Type::kTf32:
      return as_float(word & 0xffffe000U);
    case ptx::Type::kE4m3:
      return table_of_e4m3()[(word >> (8 * e)) & 0xffU];
    case ptx::Type::kE5m2:
      return f16_to_f32(static_cast<std::uint16_t>((word >> (8 * e)) << 8U));
    default:
      return as_float(word);
  }
}
inline std::int32_t integer_element(ptx::Type type, std::uint32_t word, int e) {
  switch (type) {
    case ptx::Type::kS8:
      return static_cast<std::int8_t>(word >> (8 * e));
    case ptx::Type::kU8:
      return static_cast<std::uint8_t>(word >> (8 * e));
    case ptx::Type::kS4:
      return static_cast<std::int32_t>(word << (28 - 4 * e)) >> 28;
    case ptx::Type::kU4:
      return static_cast<std::int32_t>((word >> (4 * e)) & 0xfU);
    default:
      return static_cast<std::int32_t>(word);
  }
}

// The registers of a fragment that are looked at: wmma's of halves have more.
inline int registers_of(int elements, ptx::Type type) { return elements / (kWarpSize * per_register(type)); }

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#endif
