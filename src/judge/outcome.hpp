// From what one job on the virtual node gave to the parts of a verdict.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/compile.hpp"
#include "judge/verdict.hpp"
#include "problem/problem.hpp"
#include "reference/reference.hpp"
#include "runtime/job.hpp"

namespace echolo::judge {

struct JobOutcome {
  std::string status;  // as Verdict::status
  std::string message;
  std::vector<JudgedFinding> findings;
  std::vector<CheckRow> rows;
  std::vector<PeOutput> pes;
  ModelledSize modelled;
  std::string timeline;  // for Perfetto; empty: none was asked for
  std::vector<vgpu::TraceEvent> trace;
  std::uint64_t trace_skipped = 0;
};

// Places in the job's messages as the user knows them.
void name_sources(runtime::JobResult& job, const CompileRequest& compiled);

// The status that findings, the job's own status and the comparisons add up to: findings outrank wrong
// results, and a leak alone leaves things correct.
void settle(const runtime::JobResult& job, JobOutcome& outcome);

// File names as the user knows them, circumstances added, leaks last.
std::vector<JudgedFinding> judge_findings(const runtime::JobResult& job, const CompileRequest& compiled,
                                          const Replay& replay);

// The trace with file names as the user knows them.
void judge_trace(runtime::JobResult& job, const CompileRequest& compiled, JobOutcome& outcome);

// What PEs had to say, where they did not end well or printed something.
std::vector<PeOutput> pe_outputs(const runtime::JobResult& job);

// Compares the outputs of every call (in `output_dir`) with the oracle. Error (kMachine): an output or oracle
// is missing or unreadable.
Result<std::vector<CheckRow>> compare_outputs(const Problem& problem,
                                              const std::vector<const CaseResult*>& calls,
                                              const std::string& output_dir, const CheckRow& where);

}  // namespace echolo::judge
