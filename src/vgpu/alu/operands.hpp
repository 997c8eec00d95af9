// Turning the operands of an instruction into those of a Plan: widths, immediates in the type the function
// reads.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "ptx/module.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu::alu {

int storage_bits(ptx::Type type);  // of a register of that type: 1, 16, 32, 64 or 128

struct PlanBuilder {
  const ptx::Function& function;
  Plan plan;
  bool any_width = false;  // registers may be wider than the type (cvt)

  // Appends the operand, which is read or written as `type`; an error says what does not fit. A sink is
  // unused. `negatable`: the caller looks at Operand::negated; elsewhere `!p` is an error.
  Status destination(const ptx::Operand& operand, ptx::Type type);
  Status source(const ptx::Operand& operand, ptx::Type type, bool negatable = false);

 private:
  Status add(const ptx::Operand& operand, ptx::Type type, bool is_destination);
};

// The bits of a literal as `type` reads it: decimal and 0d literals are doubles, 0f literals floats (PTX
// ISA 4.5.2).
Result<std::uint64_t> immediate_bits(const ptx::Operand& literal, ptx::Type type);

// Inst::aux[0] of cvt; see convert.hpp.
std::uint64_t convert_code(const ptx::Instruction& inst, int destination_bits, int source_bits);

Status plan_pack(PlanBuilder& to, const ptx::Instruction& inst);  // cvt.pack

// Inst::aux[0] of f32 and f64 arithmetic; see directed.cpp.
std::uint64_t directed_code(const ptx::Instruction& inst);
// The same of f16 and bf16 arithmetic: 1 ftz, 2 sat, 4 relu, 8 NaN, 16 xorsign.
std::uint64_t half_code(const ptx::Instruction& inst);

Status plan_cross_lane(PlanBuilder& to, const ptx::Instruction& inst);
Status plan_video(PlanBuilder& to, const ptx::Instruction& inst);
Status plan_mma(PlanBuilder& to, const ptx::Instruction& inst);

}  // namespace echolo::vgpu::alu
