// What one instruction of a warp takes of an SM.
#pragma once

#include "vgpu/exec.hpp"
#include "vgpu/work.hpp"

namespace echolo::vgpu {

struct InstCost {
  Pipe pipe = Pipe::kControl;
  std::uint8_t slots = 1;          // machine instructions that ptxas makes of it, about
  std::uint32_t tensor_flops = 0;  // of this warp, at the rate of bf16
};

InstCost cost_of(const ptx::Instruction& inst);

}  // namespace echolo::vgpu
