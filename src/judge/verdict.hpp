// What the judge says about one candidate or program, and its two forms: JSON (docs/architecture.md names the
// keys) and text for a terminal.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "judge/screen.hpp"
#include "problem/problem.hpp"
#include "vgpu/core/trace.hpp"
#include "vgpu/finding.hpp"

namespace echolo::judge {

struct Schedule {
  std::string policy = "fair";
  std::uint64_t seed = 1;
  bool operator==(const Schedule&) const = default;
};

// One comparison with the oracle.
struct CheckRow {
  std::string size;
  std::uint64_t seed = 0;
  Schedule schedule;
  int call = 0;        // from 1; replays of the captured graph go on counting
  bool graph = false;  // a replay
  int rank = 0;
  std::string output;
  double max_error = 0, allowed = 0;  // of the worst element, in the output's unit
  bool ok = false;
  std::string detail;  // what is wrong; empty when ok
};

struct StageTime {
  std::string name;
  double seconds = 0;
  bool cached = false;
  std::string log;
};

// Under which circumstances a finding was first seen: enough to see it again.
struct Replay {
  int world = 0;
  std::uint64_t seed = 0;
  Schedule schedule;
  std::string size;
  Params params;
};

struct JudgedFinding {
  vgpu::Finding finding;  // file names as the user knows them
  Replay replay;
  std::uint64_t switches = 0;  // of the whole run: turns of another warp than the one before
};

// What the time model (src/timing) says of one run. Modelled, never measured.
struct TimeModel {
  std::string topology;
  double total_us = 0;
  double roofline_us = 0;                          // no schedule needs less, ...
  std::string roofline;                            // ... for this: "tensor cores"
  std::string bottleneck;                          // what holds blocks back for most of the time they work
  double bottleneck_share = 0, exposed_share = 0;  // 0 to 1
  double longest_wait_us = 0;
  std::string longest_wait_at;  // "candidate.cu:44"
  std::uint64_t link_bytes = 0;
  std::string words;  // all of it in sentences
};

// Time of the calls of one size, first seed, first schedule: of the time model; where that has no topology of
// so many PEs, of the node's virtual clock.
struct ModelledSize {
  std::string size;  // empty: of a whole program
  Params params;
  std::vector<double> call_us;
  double median_us = 0;
  std::optional<TimeModel> model;       // of the last eager call
  std::uint64_t warp_instructions = 0;  // of the whole job
};

struct PeOutput {
  int pe = 0;
  std::string end;     // "exit code 3", "SIGSEGV ..."; empty for a clean end
  std::string output;  // what it printed, printable
};

struct Verdict {
  std::string id;  // in the store; empty where it is not kept
  std::string status = "correct";
  std::string message;         // one sentence where no finding says it
  std::string problem;         // empty for a program
  std::string candidate;       // "sha256:..."
  std::string label;           // for people
  std::string path;            // of the source
  std::string origin;          // absolute: what to give to `check` or `sanitize` to judge it again
  std::string problem_folder;  // absolute; empty for a program
  int world = 0;
  std::string device = "virtual";
  std::string dtype;  // empty for a program
  std::string fabric = "nvlink";
  std::vector<JudgedFinding> findings;
  std::vector<Gate> gates;
  int suppressed = 0;
  std::vector<CheckRow> checks;
  std::vector<StageTime> stages;
  std::vector<ModelledSize> modelled;
  std::vector<PeOutput> pes;                       // those with something to tell
  std::map<std::string, std::uint32_t> registers;  // kernel (demangled where possible) -> registers a thread
  // What was run: for each seed in turn the same number of schedules.
  std::vector<std::uint64_t> seeds;
  std::vector<Schedule> schedules;
  std::vector<std::string> knobs;      // NAME=VALUE
  std::vector<std::string> arguments;  // of a program
  std::int64_t timeout_ms = 0;         // of one job
  std::optional<Replay> failed;        // the job that decided a bad status, where one did
  std::vector<std::string> minimised;  // what the first finding's run was reduced by
  int minimise_runs = 0;               // how many further runs were made for that
  bool minimise_cut = false;           // some were not made, because the time for it was over
  std::string timeline;     // of the last size, for Perfetto, where one was asked for; not part of the JSON
  std::string timeline_of;  // "small, call 3"
  std::vector<vgpu::TraceEvent> trace;  // where one was asked for; not part of the JSON
  std::uint64_t trace_skipped = 0;
  std::map<std::string, std::string> sources;  // user's file name -> text, for excerpts; not part of the JSON
};

// True for "correct".
bool is_good(const Verdict& verdict);
// 0 correct, 3 infra, 1 everything else.
int exit_code_of(const Verdict& verdict);

nlohmann::json to_json(const Verdict& verdict);

struct TextOptions {
  bool colour = false;
  bool verbose = false;  // the whole error matrix and logs
  std::string again;     // the command that repeats the first finding's run; empty: not said
};
// Ends with a newline.
std::string render(const Verdict& verdict, const TextOptions& options);

}  // namespace echolo::judge
