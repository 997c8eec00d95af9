// mma.sync, mma.sp and wmma.mma (PTX ISA 9.7.14): what their functions find in Inst::aux[0], and where the
// elements of a fragment lie.
//
// How tensor cores of Hopper add up, found by running every form on an H200 (tests/gpu/golden), and what is
// done here bit for bit:
//   A block of products and the addend are aligned to the largest exponent among them (of a product: the sum
//   of its factors' exponents; numbers that are zero do not count), each is cut off 25 bits below that, the
//   rest is added exactly, and the sum is cut off to f32, or rounded to nearest even to f16. A block has the
//   whole depth of the instruction, up to 16 products of f16 or bf16 and 8 of tf32. 8-bit floats: the
//   elements whose k is 0 or 1 modulo 4 are one block and the others the next, starting from zero; C is added
//   last, in the precision of D. wmma with tf32 takes two blocks of 4. m8n8k4 on halves: ordinary f32
//   arithmetic, see run_quad_pairs. f64: fused multiply-adds in the order of k. Integer sums are exact; they
//   wrap, or with .satfinite are clamped once at the end.
// NaN results are 0x7fffffff and 0x7fff; of f64, a NaN operand goes through.
#pragma once

#include <cstdint>

#include "ptx/module.hpp"
#include "vgpu/alu/alu.hpp"

namespace echolo::vgpu::alu {

struct MmaCode {
  std::uint16_t m = 0, n = 0, k = 0;
  ptx::Type d{}, a{}, b{}, c{};
  ptx::Rounding rounding{};  // f64
  bool saturate = false;
  bool sparse = false;        // A is compressed; its metadata follows C
  bool wmma = false;          // the fragments of wmma
  bool a_column = false;      // .col, m8n8k4 only
  bool b_row = false;         // .row, m8n8k4 only
  bool exclusive_or = false;  // of single bits: xor, else and
  std::uint8_t selector = 0;  // sparse

  // Registers of each operand; an empty result in `d` means an unknown form.
  struct Counts {
    int d = 0, a = 0, b = 0, c = 0;
  };
  Counts counts() const;

  // Fails where a modifier has no meaning here.
  static MmaCode of(const ptx::Instruction& inst);
  std::uint64_t pack() const;
  static MmaCode unpack(std::uint64_t code);
};

// Elements of a type in a register.
constexpr int per_register(ptx::Type type) {
  switch (type) {
    case ptx::Type::kF16:
    case ptx::Type::kBf16:
      return 2;
    case ptx::Type::kE4m3:
    case ptx::Type::kE5m2:
    case ptx::Type::kS8:
    case ptx::Type::kU8:
      return 4;
    case ptx::Type::kS4:
    case ptx::Type::kU4:
      return 8;
    case ptx::Type::kB1:
      return 32;
    default:
      return 1;
  }
}

struct Place {
  int row = 0, column = 0;
};
// Where element `e` of register `i` of a lane lies (9.7.14.5, "Matrix Fragments"). Of A, with .sp, in the
// compressed matrix. wmma's layouts are the GPU's own, which the ISA leaves open.
Place place_of_a(const MmaCode& code, int i, int lane, int e);
Place place_of_b(const MmaCode& code, int i, int lane, int e);
Place place_of_c(const MmaCode& code, ptx::Type type, int i, int lane, int e);

// Which of the elements of a chunk of A (of 4, with tf32 of 2, of s4 pairs) a compressed one is: the k of
// compressed element `column` of `row`. `metadata`: the operand's lanes.
int sparse_column(const MmaCode& code, const std::uint32_t* metadata, int row, int column);

}  // namespace echolo::vgpu::alu
