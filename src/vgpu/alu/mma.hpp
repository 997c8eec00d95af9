// mma.sync (PTX ISA 9.7.14.5): what its functions find in Inst::aux[0].
//
// How it accumulates. Each element of D starts from C's and takes the products in the order of k, one fused
// multiply-add each, rounding to nearest even: in f32 for f16, bf16, tf32 and 8-bit float inputs, in f64 for
// f64. A D of f16 is rounded once, from the f32 sum. Subnormals are kept, the low 13 bits of tf32 operands
// are ignored, NaN results are canonical. Tensor cores align the products of a block and truncate, so their
// sums differ from these in the last places of f32, as they differ between generations; both are within what
// the ISA specifies. Integer sums are exact: they wrap, or with .satfinite are clamped once at the end.
#pragma once

#include <cstdint>

#include "ptx/module.hpp"
#include "vgpu/alu/alu.hpp"

namespace echolo::vgpu::alu {

struct MmaCode {
  std::uint8_t m = 0, n = 0, k = 0;
  ptx::Type d{}, a{}, b{}, c{};
  bool saturate = false;

  // Registers of each operand, for `inst` as written; an empty result in `d` means an unknown form.
  struct Counts {
    int d = 0, a = 0, b = 0, c = 0;
  };
  Counts counts() const;

  static MmaCode of(const ptx::Instruction& inst);
  std::uint64_t pack() const;
  static MmaCode unpack(std::uint64_t code);
};

}  // namespace echolo::vgpu::alu
