// Judges a whole CUDA + NVSHMEM program (with `main`) on the virtual node.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "judge/model_time.hpp"
#include "judge/progress.hpp"
#include "judge/verdict.hpp"

namespace echolo::judge {

struct SanitizeOptions {
  int world = 2;
  std::vector<std::string> arguments;
  std::uint64_t seed = 1;
  int n_seeds = 1;
  int n_schedules = 1;                    // of each seed, spread over the policies (schedules.hpp)
  std::string policy;                     // empty: spread; else only this one
  std::vector<Schedule> exact_schedules;  // where not empty: these, for the one seed
  std::optional<std::string> source;      // the program's text, where not what its file holds now
  vgpu::TraceFilter trace;                // of every job; the verdict keeps that of the last one that counts
  std::string fabric = "nvlink";
  std::chrono::milliseconds timeout{60'000};
  int n_parallel = 0;
  std::string compile_cache;
  TimeOptions times{.wanted = false, .topology = {}, .timeline = false};  // of the first job
};

// The status is "crashed" where a PE ends with another exit code than 0. Errors: no such file (kUsage), the
// machine's fault, interruption.
Result<Verdict> sanitize_program(const std::string& path, const SanitizeOptions& options, Progress& progress);

// Lines that carry "// echolo: benign(<reason>)", with their reasons. An empty reason excuses nothing.
std::map<int, std::string> benign_lines(std::string_view source);

}  // namespace echolo::judge
