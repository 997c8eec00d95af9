#include "judge/sanitize.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "judge/compile.hpp"
#include "judge/jobs.hpp"
#include "judge/outcome.hpp"
#include "judge/schedules.hpp"
#include "judge/scratch.hpp"
#include "judge/toolchain.hpp"
#include "runtime/job.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMaxWorld = 64;
constexpr std::string_view kBenign = "// echolo: benign(";

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A finding is excused where one of its own lines (not one it was inlined into) is marked.
bool excused(const vgpu::Finding& finding, std::map<std::string, std::map<int, std::string>>& marks) {
  return std::any_of(finding.sites.begin(), finding.sites.end(), [&](const vgpu::Site& site) {
    const auto [file, fresh] = marks.emplace(site.where.file, std::map<int, std::string>{});
    if (fresh) {
      const Result<std::string> text = read_file(site.where.file);
      if (text) file->second = benign_lines(*text);
    }
    return file->second.contains(site.where.line);
  });
}

void crash_if_a_pe_failed(const runtime::JobResult& job, JobOutcome& outcome) {
  if (outcome.status != "correct") return;
  for (std::size_t i = 0; i < job.pes.size(); ++i) {
    if (job.pes[i].end == runtime::PeEnd::kOk) continue;
    outcome.status = "crashed";
    const std::string& detail = job.pes[i].detail;
    outcome.message = "PE " + std::to_string(i) + ": " +
                      (detail.empty() ? "ended with exit code " + std::to_string(job.pes[i].code) : detail);
    return;
  }
}

}  // namespace

std::map<int, std::string> benign_lines(std::string_view source) {
  std::map<int, std::string> lines;
  int number = 0;
  for (const std::string& line : split(source, '\n')) {
    ++number;
    const std::size_t at = line.find(kBenign);
    if (at == std::string::npos) continue;
    const std::size_t begin = at + kBenign.size();
    const std::size_t end = line.rfind(')');
    if (end == std::string::npos || end <= begin) continue;
    const std::string reason(trim(std::string_view(line).substr(begin, end - begin)));
    if (!reason.empty()) lines[number] = reason;
  }
  return lines;
}

Result<Verdict> sanitize_program(const std::string& path, const SanitizeOptions& options,
                                 Progress& progress) {
  std::error_code code;
  if (!options.source && !fs::is_regular_file(path, code))
    return usage_error("there is no file '" + path + "'");
  if (options.world < 1 || options.world > kMaxWorld) {
    return usage_error("-n must be between 1 and " + std::to_string(kMaxWorld));
  }
  if (options.fabric != "nvlink" && options.fabric != "rdma") {
    return usage_error("unknown fabric '" + options.fabric + "'", "nvlink or rdma");
  }
  Result<std::vector<Schedule>> spread =
      spread_schedules(options.n_seeds, options.n_schedules, options.policy);
  if (!spread) return spread.error();
  const std::vector<Schedule>& schedules =
      options.exact_schedules.empty() ? *spread : options.exact_schedules;
  const std::size_t per_seed = schedules.size() / static_cast<std::size_t>(options.n_seeds);
  Result<std::string> text = options.source ? Result<std::string>(*options.source) : read_file(path);
  if (!text) return text.error();

  Verdict verdict;
  verdict.candidate = "sha256:" + sha256_hex(*text);
  verdict.label = path;
  verdict.path = path;
  verdict.world = options.world;
  verdict.fabric = options.fabric;
  verdict.sources[path] = *text;
  verdict.origin = fs::absolute(path, code).string();
  for (int i = 0; i < options.n_seeds; ++i)
    verdict.seeds.push_back(options.seed + static_cast<std::uint64_t>(i));
  verdict.schedules = schedules;
  verdict.arguments = options.arguments;
  verdict.timeout_ms = options.timeout.count();

  progress.stage("screen", path);
  auto start = Clock::now();
  verdict.gates = screen(*text, path, SourceKind::kProgram);
  verdict.stages.push_back({"screen", seconds_since(start), false, ""});
  if (const Gate* refused = refusal(verdict.gates); refused != nullptr) {
    verdict.status = "refused";
    verdict.message = "gate " + refused->name + ": " + refused->evidence;
    return verdict;
  }

  progress.stage("compile", path);
  start = Clock::now();
  Result<Toolchain> toolchain = find_toolchain();
  if (!toolchain) return toolchain.error();
  CompileRequest request;
  request.kind = SourceKind::kProgram;
  request.path = path;
  request.text = *text;
  request.folder = fs::absolute(path, code).parent_path().string();
  request.cache_directory = options.compile_cache;
  Result<CompileResult> compiled = compile(request, *toolchain);
  if (!compiled) return compiled.error();
  // In messages a program's own files stand as the user wrote the program's path.
  request.folder = fs::path(path).parent_path().string();
  verdict.stages.push_back({"compile", seconds_since(start), compiled->cached, compiled->log});
  verdict.registers = compiled->register_counts;
  if (compiled->status != "ok") {
    verdict.status = compiled->status;
    verdict.message = "it does not compile";
    return verdict;
  }

  Result<timing::Topology> topology = choose_topology(options.times, options.fabric, options.world);
  if (!topology) return topology.error();
  std::optional<ScratchFolder> folder;
  if (!topology->name.empty()) {
    Result<ScratchFolder> made = ScratchFolder::make(options.times.work_folder);
    if (!made) return made.error();
    folder.emplace(std::move(*made));
  }

  start = Clock::now();
  const std::size_t n_jobs = schedules.size();
  progress.stage("run", std::to_string(options.world) + " PEs on the virtual node");
  std::vector<JobOutcome> outcomes(n_jobs);
  std::vector<int> suppressed(n_jobs, 0);
  const Result<std::size_t> first_bad =
      run_until_bad(n_jobs, options.n_parallel, [&](std::size_t i) -> Result<bool> {
        runtime::JobSpec spec;
        spec.world = options.world;
        spec.seed = options.seed + i / per_seed;
        const Schedule& schedule = schedules[i];
        spec.policy = schedule.policy;
        spec.policy_seed = schedule.seed;
        spec.fabric = options.fabric;
        spec.timeout = options.timeout;
        spec.is_candidate = false;
        spec.program.executable = compiled->output;
        spec.program.arguments = options.arguments;
        spec.register_counts = compiled->register_counts;
        spec.trace = options.trace;
        if (i == 0 && folder) spec.work_file = folder->path() + "/work";
        Result<runtime::JobResult> result = runtime::run_job(spec);
        if (!result) return result.error();
        name_sources(*result, request);
        JobOutcome& outcome = outcomes[i];
        outcome.findings = judge_findings(*result, request, {spec.world, spec.seed, schedule, "", {}});
        std::map<std::string, std::map<int, std::string>> marks;
        const std::size_t before = outcome.findings.size();
        std::erase_if(outcome.findings,
                      [&](const JudgedFinding& one) { return excused(one.finding, marks); });
        suppressed[i] = static_cast<int>(before - outcome.findings.size());
        const bool all_excused = outcome.findings.empty() && suppressed[i] > 0;
        if (all_excused) result->status = "correct";
        outcome.pes = pe_outputs(*result);
        judge_trace(*result, request, outcome);
        settle(*result, outcome);
        crash_if_a_pe_failed(*result, outcome);
        if (!spec.work_file.empty() && outcome.status == "correct") {
          outcome.modelled.warp_instructions = result->warp_instructions;
          if (Status modelled = model_times(spec.work_file, *topology, 0, request, outcome.modelled,
                                            options.times.timeline ? &outcome.timeline : nullptr);
              !modelled)
            return modelled.error();
        }
        progress.advance(i + 1, n_jobs, outcome.status);
        return outcome.status == "correct";
      });
  if (!first_bad) return first_bad.error();
  const std::size_t n_counted = std::min(*first_bad + 1, n_jobs);
  for (std::size_t i = 0; i < n_counted; ++i) {
    JobOutcome& outcome = outcomes[i];
    verdict.status = outcome.status;
    verdict.message = outcome.message;
    verdict.pes = std::move(outcome.pes);
    verdict.suppressed += suppressed[i];
    verdict.trace = std::move(outcome.trace);
    verdict.trace_skipped = outcome.trace_skipped;
    if (outcome.modelled.model) {
      verdict.timeline = std::move(outcome.timeline);
      verdict.timeline_of = "the whole program";
      verdict.modelled = {std::move(outcome.modelled)};
    }
    if (outcome.status != "correct")
      verdict.failed = Replay{options.world, options.seed + i / per_seed, schedules[i], "", {}};
    for (JudgedFinding& judged : outcome.findings) {
      const bool known =
          std::any_of(verdict.findings.begin(), verdict.findings.end(),
                      [&](const JudgedFinding& old) { return old.finding.id == judged.finding.id; });
      if (!known) verdict.findings.push_back(std::move(judged));
    }
  }
  for (const JudgedFinding& judged : verdict.findings) {
    for (const vgpu::Site& site : judged.finding.sites) {
      if (site.where.file.empty() || verdict.sources.contains(site.where.file)) continue;
      // Only files of the program's own folder: the toolkit's need no excerpt.
      const bool own = request.folder.empty() ? !site.where.file.starts_with('/')
                                              : site.where.file.starts_with(request.folder + "/");
      if (Result<std::string> other = own ? read_file(site.where.file) : Result<std::string>(usage_error(""));
          other) {
        verdict.sources[site.where.file] = std::move(*other);
      }
    }
  }
  verdict.stages.push_back({"run", seconds_since(start), false, ""});
  return verdict;
}

}  // namespace echolo::judge
