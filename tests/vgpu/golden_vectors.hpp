// Runs the forms of the golden vectors (tests/gpu/golden) on the virtual ALU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../gpu/golden/golden.hpp"

namespace echolo::vgpu::golden_vectors {

struct Run {
  std::string error;  // why the form is not executed
  // As the recorder writes them: for each destination kThreads values as wide as the register.
  std::vector<std::uint8_t> bytes;
};
Run run(const std::string& form);

std::size_t bytes_of(const std::string& name);    // of a register in Run::bytes
std::size_t result_bytes(const golden::Case& c);  // of a form

}  // namespace echolo::vgpu::golden_vectors
