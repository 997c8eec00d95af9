// Runs a random kernel on a Machine and says where it differs from the scalar evaluator.
#pragma once

#include <string>

#include "random_kernel.hpp"
#include "vgpu/core/policy.hpp"

namespace echolo::vgpu {

// Empty: the kernel gave what the evaluator says. Otherwise what went wrong: a refused text, a finding, a
// kernel that does not end, or the first words that differ.
std::string run_random_kernel(const RandomKernel& kernel, Policy policy, std::uint64_t seed);

}  // namespace echolo::vgpu
