// The judge's main service: screen, compile and check one candidate of one problem on the virtual node.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/candidate.hpp"
#include "judge/model_time.hpp"
#include "judge/progress.hpp"
#include "judge/verdict.hpp"
#include "problem/problem.hpp"

namespace echolo::judge {

inline constexpr int kCalls = 3;    // consecutive calls on one state
inline constexpr int kReplays = 3;  // of one captured graph

// One size of the plan.
struct PlannedSize {
  std::string name;  // "smoke", "small", "drawn", or as asked
  Params params;
};

struct CheckOptions {
  int world = 0;                      // 0: the problem's smallest
  std::string dtype;                  // empty: the problem's first that the candidate has
  std::vector<std::string> sizes;     // empty: smoke, small and a drawn one
  std::vector<std::string> settings;  // key=value on top of each size
  int n_seeds = 3;
  std::uint64_t seed = 1;  // the first one; the others follow
  int n_schedules = 2;     // of each seed, spread over the policies (schedules.hpp)
  std::string policy;      // empty: spread; else only this one
  std::string fabric = "nvlink";
  std::chrono::milliseconds timeout{60'000};                // of one job
  int n_parallel = 0;                                       // jobs at once; 0: as many as cores
  std::string compile_cache, reference_cache, work_folder;  // of the store
  // Where not empty: exactly these instead of what the options above lead to.
  std::vector<PlannedSize> exact_sizes;
  std::vector<Schedule> exact_schedules;
  vgpu::TraceFilter trace;         // of every job; the verdict keeps that of the last one that counts
  bool curve = false;              // the sizes of the problem's [curve] instead of `sizes`
  TimeOptions times;               // of the first job of each size
  std::uint64_t memory_limit = 0;  // bytes that judging may take; 0: what the machine has
};

// What a check consists of: for every size and seed one job for each of the seed's schedules.
struct CheckPlan {
  int world = 0;
  DType dtype{};
  std::vector<PlannedSize> sizes;
  std::vector<std::uint64_t> seeds;
  std::vector<Schedule> schedules;  // of the first seed, then of the second, ...

  std::size_t per_seed() const { return schedules.size() / seeds.size(); }
  std::size_t n_jobs() const { return sizes.size() * schedules.size(); }
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
