// Source places of instructions, for findings.
#pragma once

#include <string>
#include <vector>

#include "vgpu/exec.hpp"

namespace echolo::vgpu {

// A function's name as one would write it in a sentence: demangled, without return type and parameter list.
std::string readable_name(const std::string& symbol);

// A variable's name without the scopes around it.
std::string variable_name(const std::string& symbol);

// The source place of an instruction (its function's name where no line is known), and the calls it was
// inlined through, innermost first.
Frame frame_of(const ptx::Module& module, const ptx::Function& function, const ptx::Instruction* source,
               std::vector<Frame>* inlined_at);

// The line of an instruction; 0: unknown.
int line_of(const ptx::Module& module, const ptx::Instruction& source);

}  // namespace echolo::vgpu
