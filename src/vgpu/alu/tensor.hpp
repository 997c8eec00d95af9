// The matrix products of wgmma (PTX ISA 9.7.15), for who has fetched the operands: vgpu/memory.
#pragma once

#include <cstdint>

#include "ptx/types.hpp"

namespace echolo::vgpu::alu {

// The elements (f16 bf16 tf32 e4m3 e5m2 f32) of `n` words of 32 bits as numbers, in order.
void widen_words(ptx::Type type, const std::uint32_t* words, int n, float* out);
void round_to_f16(const float* x, int n, std::uint16_t* out);

// 16 rows of A (a[row * 32 + k]) times 8 columns of B (b[k * 8 + column]) for each of `blocks`, added to c
// (c[block][row][column]). `depth` is the instruction's: 32 bytes of A's type. `half`: C and D are f16; the
// numbers left in `c` are then those that round to the right f16.
//
// Sums are those of mma (mma.hpp). 8-bit floats are multiplied as such, all 32 in one block, which keeps 13
// bits below the largest exponent and cuts the sum off to 13 bits of fraction.
void multiply_rows(ptx::Type type, bool half, const float* a, const float* b, float* c, int blocks);

}  // namespace echolo::vgpu::alu
