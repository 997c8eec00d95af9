// The dynamic symbols of a 64-bit little-endian ELF file. The file was made from untrusted source, so every
// offset is checked.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo::judge {

struct DynamicSymbols {
  std::vector<std::string> imported;  // undefined in the file, sorted
  std::vector<std::string> exported;  // functions and objects that it defines, sorted
};
Result<DynamicSymbols> read_dynamic_symbols(const std::string& path);

// The first imported symbol that a candidate may not use (files, processes, sockets, threads, environment,
// loading of other libraries), or empty.
std::string forbidden_import(const std::vector<std::string>& imported);

}  // namespace echolo::judge
