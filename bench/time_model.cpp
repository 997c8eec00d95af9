// Modelled times beside times measured on two H200s (kernels/*/README.md and tests/gpu/README.md: warm, in a
// graph; the links' figures: 2026-11-30, NVSHMEM 3.4.5), with their ratio. Nothing is fitted: what a topology
// file holds is all that the model knows. The measured ones are constants here, not measured in this run.
//   --quick      only what runs in seconds
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "agent/options.hpp"
#include "judge/candidate.hpp"
#include "judge/check.hpp"
#include "judge/progress.hpp"
#include "judge/sanitize.hpp"
#include "problem/suite.hpp"
#include "store/store.hpp"

namespace echolo {
namespace {

struct Row {
  const char* kernel;
  std::vector<std::string> knobs, settings;
  double measured_us;
  bool quick;
};

const std::vector<Row>& rows() {
  static const std::vector<std::string> small = {"TILE_N=32", "GROUPS=1", "STAGES=8"};
  static const std::vector<std::string> middle = {"TILE_N=64", "GROUPS=1", "STAGES=6"};
  static const std::vector<Row> all = {
      {"all_reduce_push", {}, {"N=512"}, 6.7, true},
      {"all_reduce_push", {}, {"N=32768"}, 7.4, true},
      {"all_reduce_push", {}, {"N=524288"}, 12.6, false},
      {"ulysses_push", {}, {"L=256", "H=16", "D=64"}, 7.5, true},
      {"ulysses_push", {}, {"L=4096", "H=16", "D=64"}, 15.3, false},
      {"ag_gemm_wgmma", small, {"M=256", "N=256", "K=256"}, 11.1, true},
      {"ag_gemm_wgmma", middle, {"M=512", "N=512", "K=512"}, 12.3, false},
      {"ag_gemm_wgmma", middle, {"M=1024", "N=1024", "K=1024"}, 16.3, false},
      {"gemm_rs_wgmma", small, {"M=256", "N=256", "K=256"}, 12.2, true},
      {"gemm_rs_wgmma", middle, {"M=512", "N=512", "K=512"}, 13.4, false},
      {"gemm_rs_wgmma", middle, {"M=1024", "N=1024", "K=1024"}, 16.5, false},
  };
  return all;
}

struct LinkRow {
  const char* what;
  std::uint64_t bytes;
  double measured_us;
};
// 140 and 178 GB/s at 1 MiB, 330 at 16 MiB; a signal one way, its launch not counted; a barrier of a kernel.
constexpr LinkRow kLinks[] = {{"put", 1U << 20U, 7.49},  {"store", 1U << 20U, 5.89},
                              {"put", 16U << 20U, 50.8}, {"store", 16U << 20U, 50.8},
                              {"signal", 8, 0.95},       {"barrier", 8, 5.6}};

void print(const std::string& name, const judge::ModelledSize& modelled, double measured, double launch_us,
           double* sum, int* n) {
  const double us = modelled.median_us - launch_us;
  std::printf("| %-52s | %8.2f | %8.2f | %5.2fx | %s |\n", name.c_str(), us, measured, us / measured,
              modelled.model ? modelled.model->bottleneck.c_str() : "-");
  std::fflush(stdout);
  *sum += std::abs(std::log(us / measured));
  ++*n;
}

Result<judge::ModelledSize> run_kernel(const Row& row, store::Store& store) {
  const std::string folder = std::string(ECHOLO_SOURCE_DIR) + "/kernels/" + row.kernel;
  Result<judge::Candidate> candidate = judge::load_candidate(folder, row.knobs);
  if (!candidate) return candidate.error();
  Result<Problem> problem = find_problem(candidate->library->problem);
  if (!problem) return problem.error();
  judge::CheckOptions options;
  if (Status used = agent::use_store(store, options); !used) return used.error();
  options.world = 2;
  options.dtype = "bf16";
  options.sizes = {problem->sizes.front().name};
  options.settings = row.settings;
  options.n_seeds = options.n_schedules = 1;
  options.timeout = std::chrono::minutes(10);
  judge::Progress silent;
  const Result<judge::Verdict> verdict = judge::check_candidate(*problem, *candidate, options, silent);
  if (!verdict) return verdict.error();
  if (verdict->modelled.empty()) return machine_error(verdict->status + ": " + verdict->message);
  return verdict->modelled.front();
}

Result<judge::ModelledSize> run_link(const LinkRow& row, store::Store& store) {
  judge::SanitizeOptions options;
  options.arguments = {row.what, std::to_string(row.bytes)};
  options.times.wanted = true;
  Result<std::string> cache = store.cache_directory("compile");
  if (!cache) return cache.error();
  options.compile_cache = *cache;
  Result<std::string> work = store.cache_directory("work");
  if (!work) return work.error();
  options.times.work_folder = *work;
  judge::Progress silent;
  const Result<judge::Verdict> verdict =
      judge::sanitize_program(std::string(ECHOLO_SOURCE_DIR) + "/bench/time_model/link.cu", options, silent);
  if (!verdict) return verdict.error();
  if (verdict->modelled.empty()) return machine_error(verdict->status + ": " + verdict->message);
  return verdict->modelled.front();
}

int run(bool quick) {
  Result<std::string> folder = store::default_directory();
  Result<store::Store> store = folder ? store::Store::open(*folder) : folder.error();
  const Result<timing::Topology> topology = timing::load_topology("h200-nvlink-x2");
  if (!store || !topology) {
    std::fprintf(stderr, "%s\n", (!store ? store.error() : topology.error()).render().c_str());
    return 3;
  }
  std::printf(
      "modelled on h200-nvlink-x2; measured on two H200s (recorded, not in this run), microseconds\n");
  std::printf("| case | modelled | measured | ratio | held back by (modelled) |\n|---|---|---|---|---|\n");
  double sum = 0;
  int n = 0, failed = 0;
  const auto add = [&](const std::string& name, const Result<judge::ModelledSize>& modelled, double measured,
                       double launch_us) {
    if (modelled) return print(name, *modelled, measured, launch_us, &sum, &n);
    std::fprintf(stderr, "%s: %s\n", name.c_str(), modelled.error().render().c_str());
    ++failed;
  };
  for (const LinkRow& row : kLinks) {
    if (quick && row.bytes > (1U << 20U)) continue;
    const bool one_way = std::string_view(row.what) == "signal";
    add(std::string(row.what) + " " + std::to_string(row.bytes) + " B", run_link(row, *store),
        row.measured_us, one_way ? topology->launch_us : 0);
  }
  for (const Row& row : rows()) {
    if (quick && !row.quick) continue;
    std::string name = row.kernel;
    for (const std::string& setting : row.settings) name += " " + setting;
    add(name, run_kernel(row, *store), row.measured_us, 0);
  }
  if (n > 0) std::printf("typical factor between the two: %.2fx, over %d cases\n", std::exp(sum / n), n);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace echolo

int main(int argc, char** argv) {
  const bool quick = argc > 1 && std::string_view(argv[1]) == "--quick";
  if (argc > 2 || (argc == 2 && !quick)) {
    std::fprintf(stderr, "usage: time_model [--quick]\n");
    return 2;
  }
  return echolo::run(quick);
}
