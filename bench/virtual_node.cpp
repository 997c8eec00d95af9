// How fast the virtual node executes, all checkers on: lane-instructions per second on one core for four
// kernels of the library and three that lean on one thing each, and an f32 GEMM against PoCL (native code, no
// checks: the limit) and Numba's CUDA simulator, measured in the same run. Times are the node's own executing
// time; starting processes and copying tensors is not in them.
//   --checkers   instead: the same kernels with the checkers off in turn, and what each costs
//   --no-peers   without PoCL and Numba
//   --kernels    only the three kernels of bench/virtual_node/kernels.cu, whose times are processor time
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "judge/candidate.hpp"
#include "judge/compile.hpp"
#include "judge/toolchain.hpp"
#include "problem/problem.hpp"
#include "problem/suite.hpp"
#include "reference/reference.hpp"
#include "runtime/job.hpp"
#include "virtual_node/kernels.hpp"

namespace echolo {
namespace {

struct Workload {
  const char* title;
  const char* kernel;
  const char* dtype;
  int world;
  std::vector<std::pair<std::string, std::int64_t>> params;  // on top of the problem's defaults
  double flops;                                              // of all PEs; 0: not a GEMM
};

std::string cpu_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return std::string(trim(line.substr(line.find(':') + 1)));
  }
  return "unknown processor";
}

Result<Measured> measure(const Workload& workload, const std::string& cache, vgpu::Checkers checkers) {
  Result<judge::Candidate> candidate = judge::load_candidate(workload.kernel, {});
  if (!candidate.ok()) return candidate.error();
  Result<Problem> problem = find_problem(candidate->library->problem);
  if (!problem.ok()) return problem.error();
  Result<judge::Toolchain> toolchain = judge::find_toolchain();
  if (!toolchain.ok()) return toolchain.error();
  judge::CompileRequest request;
  request.path = candidate->path;
  request.text = candidate->text;
  request.knobs = candidate->knobs;
  request.cache_directory = cache + "/compile";
  Result<judge::CompileResult> compiled = judge::compile(request, *toolchain);
  if (!compiled.ok()) return compiled.error();
  if (compiled->status != "ok")
    return usage_error(std::string(workload.kernel) + " does not compile:\n" + compiled->log);

  ReferenceRequest reference;
  reference.world = workload.world;
  reference.cache_directory = cache + "/reference";
  reference.oracle = false;
  std::vector<std::string> settings;
  for (const auto& [name, value] : workload.params) settings.push_back(name + "=" + std::to_string(value));
  const Result<Params> small = problem->size("small", workload.world);
  if (!small.ok()) return small.error();
  const Result<Params> params = problem->with_settings(*small, settings, workload.world);
  if (!params.ok()) return params.error();
  const std::optional<DType> dtype = dtype_from_name(workload.dtype);
  reference.cases.push_back({*params, *dtype, 1, 0});
  Result<ReferenceRun> run = run_reference(*problem, reference);
  if (!run.ok()) return run.error();
  const CaseResult& made = run->cases.front();

  runtime::JobSpec spec;
  spec.world = workload.world;
  spec.check_races = checkers.races;
  spec.check_unwritten = checkers.unwritten;
  spec.timeout = std::chrono::milliseconds(300'000);
  spec.register_counts = compiled->register_counts;
  runtime::CandidateJob& job = spec.candidate;
  job.library = compiled->output;
  job.problem = problem->name;
  job.dtype = *dtype;
  for (const ParamValue& param : *params) job.params.emplace_back(param.name, param.value);
  for (const TensorInfo& input : made.ranks.front().inputs) job.inputs.push_back(input.name);
  runtime::CallSpec call;
  for (const RankResult& rank : made.ranks) {
    call.input_files.push_back(rank.inputs_path);
    auto& outputs = job.outputs.emplace_back();
    for (const TensorInfo& output : rank.outputs)
      outputs.push_back({output.name, output.dtype, output.shape});
  }
  job.calls = {call};
  job.output_dir = cache + "/outputs";
  std::filesystem::create_directories(job.output_dir);

  Measured best;
  for (int repeat = 0; repeat < 3; ++repeat) {
    Result<runtime::JobResult> result = runtime::run_job(spec);
    if (!result.ok()) return result.error();
    if (result->status != "correct") {
      return usage_error(std::string(workload.kernel) + " ended as " + result->status + " " +
                         result->message);
    }
    if (best.seconds == 0 || result->device_seconds < best.seconds) {
      best = {result->lane_instructions, result->device_seconds};
    }
  }
  return best;
}

nlohmann::json peers(const std::string& cache) {
  const std::string scripts = std::string(ECHOLO_SOURCE_DIR) + "/bench/peers/";
  const std::string venv = cache + "/venv";
  std::fprintf(stderr, "installing the peers (PoCL, Numba), then running them ...\n");
  Command setup;
  setup.argv = {scripts + "setup.sh", venv};
  setup.merge_output = true;
  const Result<Outcome> installed = run_command(setup);
  if (!installed.ok() || !installed->ok()) {
    return {{"error", installed.ok() ? installed->standard_output : installed.error().render()}};
  }
  Command command;
  command.argv = {venv + "/bin/python", scripts + "gemm_peers.py"};
  command.timeout = std::chrono::milliseconds(300'000);
  const Result<Outcome> outcome = run_command(command);
  if (!outcome.ok() || !outcome->ok()) return {{"error", "the peers' script did not end well"}};
  return nlohmann::json::parse(outcome->standard_output, nullptr, false);
}

std::vector<Workload> workloads() {
  const double gemm = 2.0 * 256 * 256 * 256;
  return {
      {"AG+GEMM, mma.sync bf16", "ag_gemm", "bf16", 2, {{"M", 256}, {"N", 256}, {"K", 256}}, 2 * gemm},
      {"AG+GEMM, FMA f32", "ag_gemm", "f32", 2, {{"M", 256}, {"N", 256}, {"K", 256}}, 2 * gemm},
      {"all-reduce, one-shot f32", "all_reduce_one_shot", "f32", 2, {{"N", 1 << 20}}, 0},
      {"all-to-all f32", "all_to_all", "f32", 2, {{"M", 256}, {"N", 4096}}, 0},
  };
}

// Each workload once with these checkers: title, PEs, flops, what was measured.
template <typename Visit>
bool for_all(const std::string& cache, bool library, vgpu::Checkers checkers, Visit visit) {
  bool good = true;
  const auto one = [&](const char* title, int world, double flops, const Result<Measured>& result) {
    if (result.ok()) return visit(title, world, flops, *result);
    std::printf("%-28s %s\n", title, result.error().render().c_str());
    good = false;
  };
  for (const Workload& workload : library ? workloads() : std::vector<Workload>())
    one(workload.title, workload.world, workload.flops, measure(workload, cache, checkers));
  const Result<std::string> ptx = compile_kernels(cache);
  for (const KernelWorkload& workload : kernel_workloads()) {
    one(workload.title, 1, workload.flops,
        ptx.ok() ? measure(workload, *ptx, checkers) : Result<Measured>(ptx.error()));
  }
  return good;
}

int what_checkers_cost(const std::string& cache, bool library) {
  std::printf(
      "G lane-instr/s, one core of %s; what a checker costs is the time with all on against without it\n\n",
      cpu_name().c_str());
  std::printf("%-28s %9s %9s %9s %9s %14s %14s\n", "kernel", "all on", "no races", "no unwr.", "neither",
              "races cost", "unwritten cost");
  std::vector<std::vector<double>> seconds(4);
  std::vector<std::pair<std::string, std::uint64_t>> rows;
  bool good = true;
  const vgpu::Checkers settings[] = {{true, true}, {false, true}, {true, false}, {false, false}};
  for (std::size_t i = 0; i < 4; ++i) {
    good = for_all(cache, library, settings[i],
                   [&](const char* title, int, double, const Measured& measured) {
                     if (i == 0) rows.emplace_back(title, measured.lane_instructions);
                     seconds[i].push_back(measured.seconds);
                   }) &&
           good;
  }
  if (!good) return 1;
  for (std::size_t row = 0; row < rows.size(); ++row) {
    std::printf("%-28s", rows[row].first.c_str());
    for (std::size_t i = 0; i < 4; ++i)
      std::printf(" %9.3f", static_cast<double>(rows[row].second) / seconds[i][row] / 1e9);
    std::printf(" %13.0f%% %13.0f%%\n", 100 * (seconds[0][row] / seconds[1][row] - 1),
                100 * (seconds[0][row] / seconds[2][row] - 1));
  }
  return 0;
}

int run(const std::vector<std::string>& options) {
  setenv("ECHOLO_BIN_DIR", ECHOLO_BINARY_DIR, 0);  // this program lies one folder deeper than the binaries
  const std::string cache = std::string(ECHOLO_BINARY_DIR) + "/bench-cache";
  std::filesystem::create_directories(cache);
  const auto given = [&](const char* option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  if (given("--checkers")) return what_checkers_cost(cache, !given("--kernels"));
  utsname system{};
  uname(&system);
  std::printf("virtual node, all checkers on, one core of %s, %s %s\n\n", cpu_name().c_str(), system.sysname,
              system.release);
  std::printf("%-28s %5s %18s %9s %16s %9s\n", "kernel", "PEs", "lane-instructions", "seconds",
              "G lane-instr/s", "GFLOP/s");
  double fma_gflops = 0;
  bool failed = !for_all(cache, !given("--kernels"), {},
                         [&](const std::string& title, int world, double flops, const Measured& result) {
                           const double rate =
                               static_cast<double>(result.lane_instructions) / result.seconds / 1e9;
                           const double gflops = flops / result.seconds / 1e9;
                           if (title == "AG+GEMM, FMA f32") fma_gflops = gflops;
                           std::printf("%-28s %5d %18s %9.3f %16.3f ", title.c_str(), world,
                                       with_commas(result.lane_instructions).c_str(), result.seconds, rate);
                           if (flops > 0) {
                             std::printf("%9.3f\n", gflops);
                           } else {
                             std::printf("%9s\n", "-");
                           }
                           std::fflush(stdout);
                         });
  if (given("--no-peers") || given("--kernels")) return failed ? 1 : 0;
  const nlohmann::json peer = peers(cache);
  std::printf("\nf32 GEMM, one core, measured in this run\n%-44s %6s %12s %26s\n", "who", "n", "GFLOP/s",
              "virtual node is faster by");
  std::printf("%-44s %6d %12.5f\n", "virtual node (checked PTX, AG+GEMM FMA)", 256, fma_gflops);
  for (const auto& [key, title] : {std::pair{"pocl", "PoCL (native code, no checks: the limit)"},
                                   std::pair{"numba_simulator", "Numba's CUDA simulator"}}) {
    if (!peer.contains(key) || peer[key].contains("error")) {
      const std::string why =
          peer.contains(key) ? peer[key]["error"].get<std::string>() : peer.value("error", "no answer");
      std::printf("%-44s not run: %s\n", title, why.c_str());
      failed = true;
      continue;
    }
    const double gflops = peer[key]["gflops"].get<double>();
    std::printf("%-44s %6d %12.5f %25.4gx\n", title, peer[key]["n"].get<int>(), gflops, fma_gflops / gflops);
  }
  return failed ? 1 : 0;
}

}  // namespace
}  // namespace echolo

int main(int argc, char** argv) { return echolo::run({argv + 1, argv + argc}); }
