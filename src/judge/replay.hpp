// Runs one job of an earlier verdict again, exactly: same source, world, size, seed, schedule and fabric.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "judge/check.hpp"
#include "judge/progress.hpp"

namespace echolo::judge {

struct ReplayRequest {
  bool program = false;
  std::string origin, problem_folder, candidate;  // candidate: the source's hash
  std::string path, label;                        // as messages show them
  // The source as the store has kept it: taken where the file is gone or says something else by now.
  std::optional<std::string> source;
  std::vector<std::string> knobs, arguments;
  std::string dtype, fabric;
  std::int64_t timeout_ms = 60'000;
  Replay circumstances;
  std::vector<std::pair<std::string, std::int64_t>> params;  // of the size, in no order
  std::string status;  // of the verdict; empty where another job decided it
  std::vector<std::pair<std::string, std::string>> findings;  // kind and id, under these circumstances
  vgpu::TraceFilter filter;                                   // of the chosen finding
};

// From a verdict's JSON. `finding` is the beginning of a finding's id; empty: the first one, or, where there
// is none, the job that decided the status. Errors (kUsage): no verdict, nothing in it that failed while
// running, no such finding.
Result<ReplayRequest> replay_request(const nlohmann::json& verdict, const std::string& finding);

struct ReplayReport {
  Verdict verdict;
  bool same = false;
  std::string difference;  // what is not as it was; empty where `same`
  std::string note;        // where the source does not come from its file; empty otherwise
};

// `folders` says where the store's caches are. Errors (kUsage): the source is gone or has changed since, and
// is not in the store either.
Result<ReplayReport> replay(const ReplayRequest& request, const CheckOptions& folders, bool trace,
                            Progress& progress);

nlohmann::json to_json(const ReplayReport& report);
std::string render(const ReplayReport& report, const TextOptions& options, bool trace);

}  // namespace echolo::judge
