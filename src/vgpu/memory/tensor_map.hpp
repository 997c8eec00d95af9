// The tensor map of the virtual node: what cuTensorMapEncodeTiled makes and TMA instructions read (CUDA
// driver API, "Tensor Map Object Management"; PTX ISA, "Tensors"). Opaque to programs, 128 bytes, so the
// layout is our own.
#pragma once

#include <cstdint>

namespace echolo::vgpu {

enum class TensorSwizzle : std::uint8_t { kNone, k32, k64, k128 };

struct alignas(64) TensorMap {
  static constexpr std::uint64_t kMagic = 0x4550'414d'5254'4331ULL;
  std::uint64_t magic = kMagic;
  std::uint64_t address = 0;                // of element 0, in device memory
  std::uint64_t strides[4] = {0, 0, 0, 0};  // bytes, of dimensions 1 to 4
  std::uint32_t last[5] = {0, 0, 0, 0, 0};  // highest index of each dimension (its size less one)
  std::uint16_t box[5] = {1, 1, 1, 1, 1};   // elements of a tile, in steps of 1
  std::uint8_t steps[5] = {1, 1, 1, 1, 1};  // a tile takes every so-manieth element; that of dimension 0 is 1
  std::uint8_t rank = 0;
  std::uint8_t element = 0;  // bytes
  std::uint8_t type = 0;     // CUtensorMapDataType
  TensorSwizzle swizzle{};
  bool fills_nan = false;  // what is outside is NaN, else zero

  static constexpr std::uint64_t kMostBytes = 232448;  // of a tile: what a block's shared memory holds
  // Bytes from one row of a tile to the next in shared memory. With a swizzle a row takes the swizzle's whole
  // span, however short it is (seen on an H200).
  std::uint64_t row_pitch() const {
    return swizzle == TensorSwizzle::kNone ? std::uint64_t{box[0]} * element
                                           : 16ULL << static_cast<unsigned>(swizzle);
  }
  bool valid() const {
    if (magic != kMagic || rank < 1 || rank > 5 || element == 0 || element > 8) return false;
    std::uint64_t bytes = element;
    for (unsigned d = 0; d < 5; ++d) {
      if (box[d] == 0 || box[d] > 256 || steps[d] == 0) return false;
      bytes *= box[d];
    }
    const std::uint64_t row = std::uint64_t{box[0]} * element;
    if (bytes > kMostBytes || row % 16 != 0) return false;
    return swizzle == TensorSwizzle::kNone || (swizzle <= TensorSwizzle::k128 && row <= row_pitch());
  }
};
static_assert(sizeof(TensorMap) == 128);

// Moves the 16-byte chunk of an offset in shared memory as the mode says: bits 4 to 6 are mixed with those
// from bit 7 on (PTX ISA, "Tensors: Swizzling Modes").
inline std::uint64_t swizzled(TensorSwizzle mode, std::uint64_t offset) {
  switch (mode) {
    case TensorSwizzle::kNone:
      return offset;
    case TensorSwizzle::k32:
      return offset ^ ((offset >> 3U) & 0x10U);
    case TensorSwizzle::k64:
      return offset ^ ((offset >> 3U) & 0x30U);
    case TensorSwizzle::k128:
      return offset ^ ((offset >> 3U) & 0x70U);
  }
  return offset;
}

}  // namespace echolo::vgpu
