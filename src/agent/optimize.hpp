// The main job: propose candidates, judge them, keep the best, and say what was tried and why the others
// fell.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "agent/search.hpp"
#include "base/result.hpp"
#include "judge/check.hpp"
#include "judge/progress.hpp"
#include "store/store.hpp"

namespace echolo::agent {

struct OptimizeOptions {
  judge::CheckOptions check;
  std::string proposer = "search";
  std::string start;  // a candidate (file or kernel directory) that is judged first; may be empty
  int budget = 4;     // candidates that are judged, without `start`
};

struct Attempt {
  int iteration = 0;
  std::string label, candidate;  // for people; "sha256:..."
  std::string source;            // the file or kernel directory
  judge::Knobs knobs;
  bool has_cost = false;
  ModelledCost cost;            // the proposer's guess
  std::string status, message;  // the verdict's
  double modelled_us = 0;  // a call at the target size, from the virtual node; 0 where it did not get there
  std::string verdict;     // artifact hash
  bool reused = false;     // judged earlier in this run, before an interruption
};

struct OptimizeReport {
  std::string run;
  std::string problem, dtype, fabric;
  int world = 0;
  judge::PlannedSize target;
  std::size_t n_jobs = 0;  // of one check
  std::size_t n_settings = 0, n_dropped = 0;
  std::vector<Attempt> attempts;      // in order of proposal
  std::optional<std::size_t> winner;  // index into attempts
  std::string winner_verdict;         // JSON of the re-check in a clean process
  std::string winner_evidence;        // one line about it
  double seconds = 0;
};

// Starts a run. Errors: bad options (kUsage), a failing reference, the machine's fault, kInterrupted (the
// hint says how to resume). That nothing correct was found is a report without a winner.
Result<OptimizeReport> optimize(const Problem& problem, const OptimizeOptions& options, store::Store& store,
                                judge::Progress& progress);
// Goes on with an interrupted run; what it judged already is not judged again.
Result<OptimizeReport> resume(const std::string& run, store::Store& store, judge::Progress& progress);

nlohmann::json to_json(const OptimizeReport& report);
std::string render(const OptimizeReport& report, bool colour);

}  // namespace echolo::agent
