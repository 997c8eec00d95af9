#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "reference/authoring.hpp"
#include "reference/runner.hpp"

namespace echolo {
namespace {

// The named size with the fewest elements on one rank.
std::string smallest_size(const Problem& problem, int world) {
  std::string best;
  std::int64_t fewest = 0;
  for (const SizeSpec& size : problem.sizes) {
    const Result<Params> params = problem.size(size.name, world);
    if (!params) continue;
    std::int64_t n = 0;
    const auto inputs = problem.input_infos(*params, world, 0, problem.dtypes.front());
    const auto outputs = problem.output_infos(*params, world, 0, problem.dtypes.front());
    for (const auto* infos : {&inputs, &outputs}) {
      if (!infos->ok()) continue;
      for (const TensorInfo& info : infos->value()) n += info.elements();
    }
    if (best.empty() || n < fewest) {
      best = size.name;
      fewest = n;
    }
  }
  return best;
}

bool is_the_problems(const Error& error) { return error.kind == ErrorKind::kUsage; }

std::string n_calls_text(std::size_t n) {
  return n == 1 ? "1 collective" : std::to_string(n) + " collectives";
}

}  // namespace

Result<LintReport> problem_lint(const std::string& directory, const std::string& cache_directory) {
  LintReport report;
  report.problem = directory;
  const Result<Problem> problem = load_problem(directory);
  if (!problem) {
    if (!is_the_problems(problem.error())) return problem.error();
    report.faults.push_back(problem.error());
    return report;
  }
  report.problem = problem->name;
  ReferenceRequest request;
  request.world = *std::min_element(problem->worlds.begin(), problem->worlds.end());
  request.cache_directory = cache_directory;
  const std::string size = smallest_size(*problem, request.world);
  const Result<Params> params = problem->size(size, request.world);
  if (!params) return params.error();
  std::vector<std::string> dtypes;
  for (const DType dtype : problem->dtypes) {
    request.cases.push_back({*params, dtype, 0, 0});
    dtypes.emplace_back(dtype_name(dtype));
  }
  const Result<ReferenceRun> run = run_reference(*problem, request, /*strict_oracle=*/true, {});
  if (!run) {
    if (!is_the_problems(run.error())) return run.error();
    report.faults.push_back(run.error());
    return report;
  }
  report.notes.push_back("ran size " + size + " (" + params_text(*params) + ") on " +
                         std::to_string(request.world) + " ranks in " + join(dtypes, ", ") +
                         "; float64 inputs give float64 outputs");
  const std::size_t n_calls = run->cases.front().ranks.front().collectives.size();
  report.notes.push_back(n_calls == 0 ? "issues no collective, so there is no communication to fuse"
                                      : "issues " + n_calls_text(n_calls) + " on rank 0");
  return report;
}

std::string render(const LintReport& report) {
  std::string out;
  for (const Error& fault : report.faults) out += fault.render() + "\n";
  if (!report.faults.empty()) return out;
  out = report.problem + ": good\n";
  for (const std::string& note : report.notes) out += "  " + note + "\n";
  return out;
}

nlohmann::json to_json(const LintReport& report) {
  nlohmann::json faults = nlohmann::json::array();
  for (const Error& fault : report.faults) {
    faults.push_back({{"message", fault.message},
                      {"hint", fault.hint},
                      {"file", fault.file},
                      {"line", fault.line},
                      {"column", fault.column}});
  }
  return {{"problem", report.problem},
          {"ok", report.faults.empty()},
          {"faults", std::move(faults)},
          {"notes", report.notes}};
}

}  // namespace echolo
