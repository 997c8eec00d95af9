// Runs reference.py under torch.distributed (gloo, one process a rank): inputs, in-type outputs and the
// float64 oracle, the noise between the two, the collectives it issued and its FLOPs. Everything is cached by
// content, so asking twice is cheap, and many cases run in one Python process: ask for all the cases of a
// check at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "problem/problem.hpp"
#include "problem/tolerance.hpp"

namespace echolo {

// One call of solution() on all ranks. Seed and call together decide the inputs.
struct ReferenceCase {
  Params params;
  DType dtype = DType::kF32;
  std::uint64_t seed = 0;
  int call = 0;
};

struct ReferenceRequest {
  int world = 0;
  std::vector<ReferenceCase> cases;
  std::string cache_directory;              // made where missing; several processes may share it
  std::chrono::milliseconds limit{60'000};  // that one call of solution() may take
  const std::atomic<bool>* cancel =
      nullptr;         // once true, the run ends with kInterrupted; what is finished stays cached
  bool oracle = true;  // false: inputs and in-type outputs only (large sizes, timing)
};

// A collective as one rank issued it, outermost calls only.
struct Collective {
  std::string op;         // "all_gather_into_tensor"
  std::string dtype;      // "bf16"; empty where no tensor moves (barrier)
  std::string reduce_op;  // "sum"; empty where nothing is reduced
  std::int64_t bytes =
      0;  // the whole message, as NCCL counts it: the larger of what goes in and what comes out
  int group_size = 0;
  int peer = -1;  // of send/recv and the root of rooted ones; -1 otherwise
  bool asynchronous = false;
  std::string file;  // where the reference called it
  int line = 0;
};

struct RankResult {
  std::string inputs_path;     // safetensors: every input by name, in-type
  std::string reference_path;  // safetensors: the in-type reference's outputs by name
  std::string
      oracle_path;  // safetensors: outputs in float64 (integers in their own type); empty without oracle
  std::vector<TensorInfo> inputs;    // in the order in which the candidate gets them
  std::vector<TensorInfo> outputs;   // likewise; a data-dependent output is padded with zeros to its bound
  std::vector<std::int64_t> n_rows;  // per output: valid rows of a data-dependent output, -1 for all others
  std::vector<Collective> collectives;  // in the order of issue
  std::int64_t flops = 0;               // torch.utils.flop_counter's: 2 per multiply-add
  double seconds = 0;                   // of the in-type call; a CPU's time, not a claim about speed
};

struct CaseResult {
  ReferenceCase request;
  std::vector<RankResult> ranks;
  std::vector<OutputNoise> noise;  // per output, over all ranks; empty without oracle
  bool cached = false;
};

// Called in the order of the request's cases, each as soon as it lies in the cache.
using OnCase = std::function<void(std::size_t, const CaseResult&)>;

struct ReferenceRun {
  std::string problem;
  int world = 0;
  std::vector<CaseResult> cases;  // in the order asked for
  std::string python_version, torch_version;
  double seconds = 0;
};

// Errors: kUsage - the reference raised (its own traceback), hung (ranks and the collective each was in),
// returned something else than declared, never uses an input (file:line); kMachine - no Python, no torch,
// disk full; kInterrupted. Nothing half-written stays in the cache.
Result<ReferenceRun> run_reference(const Problem& problem, const ReferenceRequest& request,
                                   const OnCase& on_case = {});

// `echolo reference`: one JSON document, or text for a terminal.
nlohmann::json to_json(const ReferenceRun& run);
std::string render(const Problem& problem, const ReferenceRun& run);

// `echolo problems list|show`.
nlohmann::json to_json(const Problem& problem);
std::string render(const Problem& problem);

// The Python that runs references: ECHOLO_PYTHON where set, else .venv/bin/python of echolo_home(). Error
// (kMachine).
Result<std::string> reference_python();

}  // namespace echolo
