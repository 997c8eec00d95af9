// Control flow of a thread's code.
#pragma once

#include <vector>

#include "litmus/program.hpp"

namespace echolo::litmus {

// By instruction, and one more for the end: which registers may be read before they are written. Registers
// that the final condition shows live at the end.
std::vector<std::vector<bool>> live_registers(const Program& program, int thread);

// Which instructions may run once a thread stands before `pc`.
std::vector<bool> reachable_from(const Thread& thread, int pc);

}  // namespace echolo::litmus
