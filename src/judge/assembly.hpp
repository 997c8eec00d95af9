// Where inline assembly stands: in device code, or in code that the host compiler gets.
#pragma once

#include <string>
#include <vector>

#include "judge/macros.hpp"
#include "judge/tokens.hpp"

namespace echolo::judge {

// The first inline assembly outside of functions that are __device__ or __global__ only, with its place;
// empty when there is none. Brackets that do not match make the question undecidable and are reported
// likewise.
std::string host_assembly(const std::vector<Token>& tokens, const MacroTable& macros,
                          const std::string& name);

// The same question asked of the host code that nvcc made (the .cudafe1.cpp of --keep), in which device
// bodies stand between #if 0 and #endif: the first line of `source_name` with assembly, or 0.
int assembly_line_in_host_code(const std::string& host_code, const std::string& source_name);

}  // namespace echolo::judge
