// What a corpus case asks for: the comments of its source (tests/corpus/README.md says how they read).
#pragma once

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace echolo::corpus {

struct CaseFile {
  std::filesystem::path path;
  bool check = false;   // a candidate; otherwise a whole program
  std::string problem;  // of a candidate
  std::string fabric = "nvlink";
  bool any_fabric = true;  // the case does not say which one it is about
  std::string arguments;   // of a program, separated by spaces
  std::string output;      // what a program must have printed
  int world = 2;
  std::chrono::seconds timeout{60};
  std::string status;                              // expected, as in a verdict
  std::set<std::string> kinds;                     // of findings that must be there; others must not
  std::vector<std::pair<std::string, int>> marks;  // kind and line that must be among a finding's sites
};

// Error: what is missing or unknown, with file and line.
Result<CaseFile> read_case(const std::filesystem::path& path);

// All cases below `directory`, sorted by path.
std::vector<std::filesystem::path> find_cases(const std::filesystem::path& directory);

}  // namespace echolo::corpus
