// The smallest run that still shows a finding: fewer PEs, fewer blocks (a smaller size, smaller parameters),
// fewest switches between warps. A bounded number of further runs, so that the outcome depends on the input
// only; the limit of time is far beyond what they take, for those who would wait for long.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "judge/check.hpp"
#include "judge/sanitize.hpp"

namespace echolo::judge {

struct Attempt {
  int world = 0;
  PlannedSize size;  // empty for a program
  Schedule schedule;
};
// Gives the verdict of one run.
using RunAgain = std::function<Result<Verdict>(const Attempt&)>;

inline constexpr int kMostTrials = 16;
inline constexpr std::chrono::seconds kMinimiseBudget{60};  // after it no further run begins

// What may be tried instead of the run that found it, simplest first.
struct Smaller {
  std::vector<int> worlds;
  std::function<Result<std::vector<PlannedSize>>(int world)> sizes;  // smaller ones than that of the finding
  // The same with one parameter as small as it may be; each is tried on what the one before has left.
  std::function<std::vector<ParamValue>(const PlannedSize& size, int world)> params;
  std::chrono::milliseconds budget = kMinimiseBudget;
};

// Replaces the verdict's first finding by the same one (kind and lines) of the smallest run that shows it,
// and says in `verdict.minimised` what was left out. Runs that cannot be made (a size that the world does not
// allow) show nothing. Leaks and livelocks stay as they are. Error: interruption only.
Status minimise(Verdict& verdict, const Smaller& smaller, const RunAgain& run, Progress& progress);

Status minimise_check(Verdict& verdict, const Problem& problem, const Candidate& candidate,
                      const CheckOptions& options, Progress& progress);
Status minimise_program(Verdict& verdict, const std::string& path, const SanitizeOptions& options,
                        Progress& progress);

}  // namespace echolo::judge
