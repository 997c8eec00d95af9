// The judge's main service: screen, compile and check one candidate of one problem on the virtual node.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/candidate.hpp"
#include "judge/progress.hpp"
#include "judge/verdict.hpp"
#include "problem/problem.hpp"

namespace echolo::judge {

inline constexpr int kCalls = 3;    // consecutive calls on one state
inline constexpr int kReplays = 3;  // of one captured graph

struct CheckOptions {
  int world = 0;                      // 0: the problem's smallest
  std::string dtype;                  // empty: the problem's first that the candidate has
  std::vector<std::string> sizes;     // empty: smoke, small and a drawn one
  std::vector<std::string> settings;  // key=value on top of each size
  int n_seeds = 3;
  std::uint64_t seed = 1;  // the first one; the others follow
  int n_schedules = 2;     // fair, then random ones
  std::string fabric = "nvlink";
  std::chrono::milliseconds timeout{60'000};                // of one job
  int n_parallel = 0;                                       // jobs at once; 0: as many as cores
  std::string compile_cache, reference_cache, work_folder;  // of the store
};

// One size of the plan.
struct PlannedSize {
  std::string name;  // "smoke", "small", "drawn", or as asked
  Params params;
};

// What a check consists of: every combination of sizes, seeds and schedules is one job.
struct CheckPlan {
  int world = 0;
  DType dtype{};
  std::vector<PlannedSize> sizes;
  std::vector<std::uint64_t> seeds;
  std::vector<Schedule> schedules;
};

// Errors (kUsage): world, size, setting or dtype that the problem or candidate does not have.
Result<CheckPlan> plan_check(const Problem& problem, const Candidate& candidate, const CheckOptions& options);

// A candidate's faults are in the verdict. Errors: bad options, a reference that fails (kUsage), the
// machine's fault, interruption. The same input gives the same verdict apart from times and `cached`.
Result<Verdict> check_candidate(const Problem& problem, const Candidate& candidate,
                                const CheckOptions& options, Progress& progress);

// What decides a verdict apart from the candidate, as one line of text: the key under which verdicts are
// found again.
Result<std::string> check_key(const Problem& problem, const Candidate& candidate,
                              const CheckOptions& options);

}  // namespace echolo::judge
