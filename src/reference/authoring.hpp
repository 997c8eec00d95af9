// What a person who writes a problem needs: a skeleton that already passes lint, and lint.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo {

struct LintReport {
  std::string problem;
  std::vector<Error> faults;       // empty: good
  std::vector<std::string> notes;  // what was run and seen
};

// Static checks of problem.toml, then the reference at its smallest size in every dtype and the smallest
// world, with the demand that float64 inputs give float64 outputs. A fault of the problem is in the report;
// errors are the machine's or an interruption.
Result<LintReport> problem_lint(const std::string& directory, const std::string& cache_directory);
std::string render(const LintReport& report);
nlohmann::json to_json(const LintReport& report);

// Writes problem.toml and reference.py into `directory` (made; must not hold either), after lint has passed
// on them. `from` is empty or "script.py:function": the function is copied with what it needs of its file,
// its tensor arguments become inputs, and shapes that it accepts are found by running it on two ranks.
// Returns the paths written. Errors (kUsage): exists already, no such script or function, no shapes found;
// nothing is written then.
Result<std::vector<std::string>> problem_new(const std::string& directory, const std::string& from,
                                             const std::string& cache_directory);

}  // namespace echolo
