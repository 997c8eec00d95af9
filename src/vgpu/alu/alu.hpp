// The ALU room: register-to-register instructions (PTX ISA 9.7.1 to 9.7.9), those across the lanes of a warp
// (shfl, vote, match, redux: 9.7.9 and 9.7.13) and mma.sync (9.7.14). plan_alu (vgpu/exec.hpp) is its
// entrance.
//
// Each family is compiled for several SIMD targets by Highway's foreach_target; which one runs is decided
// once, at plan time. All targets give the same bits: only operations that IEEE 754 defines exactly are used
// on floating-point data, never the host's libm, rounding mode or estimate instructions.
//
// Choices where the ISA leaves room (the exact operations were compared with an H200, bit for bit):
//   NaN: f32 results are 0x7fffffff, f16 and bf16 ones 0x7fff, also of neg and abs. f64 hands on a NaN
//   operand, made quiet (which of several: float64.cpp); an invalid f64 operation gives 0xfff8000000000000.
//   cvt between f64 and a narrower type keeps the sign and the leading payload bits, from bf16 all bits;
//   other conversions give the canonical NaN. Quotients and remainders of an integer division by zero are all
//   ones. .ftz flushes products and sums by their value before rounding. approx forms are at least as exact
//   as the ISA asks; see approx.cpp. Matrix products: mma.hpp. tests/gpu/golden has what an H200 gave for
//   every form.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "ptx/module.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu::alu {

// The names of the SIMD targets: "sse4" (or the machine's own baseline elsewhere), "avx2", "avx512".
// Holds this process to one target, for plans made from now on; "" means the widest this machine has. An
// error names the targets that this machine has. The environment variable ECHOLO_SIMD sets the target at the
// first plan.
Status set_simd_target(std::string_view name);
std::string_view simd_target();                // the name of the one in use
std::vector<std::string_view> simd_targets();  // those this machine can run, narrowest first
// Called by the planner: reads ECHOLO_SIMD the first time. An error only then, and where it names no target.
Status use_simd_target_of_environment();

// The functions of one instruction. `full` may assume that all 32 lanes are active.
struct Functions {
  AluFn masked = nullptr;
  AluFn full = nullptr;
  std::uint64_t helper = 0;  // goes to Inst::aux[1]: a function that `masked` calls in its turn
  explicit operator bool() const { return masked != nullptr; }
};

// What a family needs to know beyond the instruction's own fields: the widths of the registers, which mov and
// cvt allow to differ from the type (PTX ISA 9.4.1).
struct Form {
  const ptx::Instruction& inst;
  int destination_bits = 0;  // storage: 1, 16, 32, 64, 128
  int source_bits = 0;       // of the first source
};

// One function a family; an empty result means that the family has no such form.
Functions find_integer(
    const Form& form);  // add sub mul mad mul24 mad24 sad div rem abs neg min max addc subc madc
Functions find_bits(
    const Form& form);  // popc clz bfind fns brev bfe bfi bmsk szext dp4a dp2a logic shifts prmt
Functions find_compare(const Form& form);     // setp set selp slct testp
Functions find_move(const Form& form);        // mov, with packing and unpacking
Functions find_convert(const Form& form);     // cvt
Functions find_float32(const Form& form);     // f32 arithmetic, rounding to nearest
Functions find_float64(const Form& form);     // f64 arithmetic, rounding to nearest
Functions find_half(const Form& form);        // f16, f16x2, bf16, bf16x2 arithmetic
Functions find_approx(const Form& form);      // rcp rsqrt sqrt sin cos ex2 lg2 tanh div: .approx, .full
Functions find_directed(const Form& form);    // f32 and f64 with .rz, .rm, .rp
Functions find_cross_lane(const Form& form);  // shfl vote match redux movmatrix
bool is_video(ptx::Opcode op);
Functions find_video(const Form& form);      // vadd and its like
Functions find_mma(const Form& form);        // mma.sync, mma.sp, wmma.mma
Functions find_mma_float(const Form& form);  // those on narrow floating-point numbers

}  // namespace echolo::vgpu::alu
