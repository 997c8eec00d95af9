// One run of one candidate or program on a virtual node: the node (a process of its own, `echolo-node`), one
// host process a PE, a seed, a schedule. The judge and the command line call run_job; nothing else starts a
// node.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "echolo/candidate.hpp"
#include "vgpu/core/trace.hpp"
#include "vgpu/finding.hpp"

namespace echolo::runtime {

struct OutputSpec {  // what the candidate must fill
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
};

struct CallSpec {
  // Per PE: a safetensors file with this call's inputs, by name.
  std::vector<std::string> input_files;
};

struct CandidateJob {
  std::string library;  // candidate.so
  std::string problem;
  DType dtype{};
  std::vector<std::pair<std::string, std::int64_t>> params;  // in problem order
  std::vector<std::string> inputs;                           // names, in problem order
  std::vector<std::vector<OutputSpec>> outputs;              // per PE
  std::vector<CallSpec> calls;    // eager calls on one state, no synchronisation between them
  std::vector<CallSpec> replays;  // then one captured graph, replayed this many times with fresh contents
  std::string output_dir;         // node writes call<k>.rank<r>.safetensors (k counts calls, then replays)
};

struct ProgramJob {
  std::string executable;  // linked against our libraries
  std::vector<std::string> arguments;
  std::map<std::string, std::string> env;
};

struct JobSpec {
  int world = 2;
  std::uint64_t seed = 1;
  std::string policy = "fair";
  std::uint64_t policy_seed = 1;
  std::string fabric = "nvlink";                    // or "rdma"
  std::chrono::milliseconds timeout{60'000};        // of the whole job, wall time
  std::chrono::milliseconds host_timeout{10'000};   // of a host thread that computes without calling anything
  std::size_t output_limit = 1U << 20U;             // bytes of output kept of one PE
  bool sandbox = true;                              // PEs in bubblewrap + seccomp
  bool check_races = true, check_unwritten = true;  // off only to measure what they cost
  vgpu::TraceFilter trace;                          // empty: none is recorded
  std::string
      work_file;  // where what was asked of the hardware is written (vgpu/work.hpp); empty: not counted
  bool is_candidate = true;
  CandidateJob candidate;  // one of the two
  ProgramJob program;
  std::map<std::string, std::uint32_t>
      register_counts;  // kernel name (mangled) -> registers a thread, from ptxas
};

enum class PeEnd : std::uint8_t { kOk, kExitCode, kSignal, kException, kTimeout, kKilled };

struct PeReport {
  PeEnd end = PeEnd::kOk;
  int code = 0;        // exit code or signal number
  std::string detail;  // "exit(3) inside candidate_run, call 2", "SIGSEGV at address 0x10 in
                       // candidate_create, candidate.cu:40"
  std::string output;  // stdout and stderr, printable, cut at the limit
  bool output_truncated = false;
};

struct JobResult {
  // "correct" (ran to its end; nobody compared outputs yet), "crashed", "timeout", "launch_error", "infra",
  // or the status of the first finding.
  std::string status;
  std::string message;  // one sentence where status isn't "correct" and no finding says it
  std::vector<vgpu::Finding> findings;
  std::vector<PeReport> pes;
  std::uint64_t modelled_ns = 0;                // virtual time of the whole job
  std::vector<std::uint64_t> call_modelled_ns;  // per call: the maximum over PEs
  std::uint64_t warp_instructions = 0, lane_instructions = 0;
  std::uint64_t switches = 0;  // turns of another warp than the one before
  std::vector<vgpu::TraceEvent> trace;
  std::uint64_t trace_skipped = 0;  // events that were too many to keep
  double seconds = 0;               // wall
  double device_seconds = 0;        // of them, executing kernels
};

void to_json(nlohmann::json& out, const JobSpec& spec);
void from_json(const nlohmann::json& in, JobSpec& spec);
void to_json(nlohmann::json& out, const JobResult& result);
void from_json(const nlohmann::json& in, JobResult& result);
nlohmann::json trace_to_json(const std::vector<vgpu::TraceEvent>& events);

// Starts `echolo-node` (beside this binary), waits, kills everything at the limit or on interruption. An
// Error means the machine's fault (no sandbox, no node binary, interrupted); whatever the candidate does is a
// JobResult.
Result<JobResult> run_job(const JobSpec& spec);

}  // namespace echolo::runtime
