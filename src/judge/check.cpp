#include "judge/check.hpp"

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "judge/compile.hpp"
#include "judge/jobs.hpp"
#include "judge/memory_need.hpp"
#include "judge/model_time.hpp"
#include "judge/outcome.hpp"
#include "judge/scratch.hpp"
#include "judge/toolchain.hpp"
#include "reference/feed.hpp"
#include "runtime/job.hpp"

namespace echolo::judge {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// One job of the plan, smallest size first, so that what fails fails soon.
struct PlannedJob {
  std::size_t size = 0, seed = 0, schedule = 0;
};

class Check {
 public:
  Check(const Problem& problem, const Candidate& candidate, const CheckOptions& options, CheckPlan plan,
        Progress& progress)
      : problem_(problem),
        candidate_(candidate),
        options_(options),
        plan_(std::move(plan)),
        progress_(progress) {}

  Result<Verdict> run() {
    if (Status fits = fits_memory(problem_, plan_, options_); !fits) return fits.error();
    Result<timing::Topology> topology = choose_topology(options_.times, options_.fabric, plan_.world);
    if (!topology) return topology.error();
    topology_ = std::move(*topology);
    verdict_.problem = problem_.name;
    verdict_.candidate = candidate_.hash;
    verdict_.label = candidate_.label;
    verdict_.path = candidate_.path;
    verdict_.world = plan_.world;
    verdict_.dtype = dtype_name(plan_.dtype);
    verdict_.fabric = options_.fabric;
    verdict_.sources[candidate_.path] = candidate_.text;
    std::error_code code;
    verdict_.origin =
        std::filesystem::absolute(candidate_.library ? candidate_.library->directory : candidate_.path, code)
            .string();
    verdict_.problem_folder = problem_.directory;
    verdict_.seeds = plan_.seeds;
    verdict_.schedules = plan_.schedules;
    verdict_.timeout_ms = options_.timeout.count();
    for (const KnobValue& knob : candidate_.knobs)
      verdict_.knobs.push_back(knob.name + "=" + std::to_string(knob.value));
    if (!screened()) return std::move(verdict_);
    start_reference();
    if (Status status = compile_source(); !status) return status.error();
    if (!is_good(verdict_)) return std::move(verdict_);
    if (Status status = run_jobs(); !status) return status.error();
    return std::move(verdict_);
  }

 private:
  bool screened() {
    progress_.stage("screen", candidate_.label);
    const auto start = Clock::now();
    verdict_.gates = screen(candidate_.text, candidate_.path, SourceKind::kCandidate);
    verdict_.stages.push_back({"screen", seconds_since(start), false, ""});
    return accept_gates();
  }

  bool accept_gates() {
    const Gate* refused = refusal(verdict_.gates);
    if (refused == nullptr) return true;
    verdict_.status = "refused";
    verdict_.message = "gate " + refused->name + ": " + refused->evidence;
    return false;
  }

  Status compile_source() {
    progress_.stage("compile", candidate_.label);
    const auto start = Clock::now();
    Result<Toolchain> toolchain = find_toolchain();
    if (!toolchain) return toolchain.error();
    request_ = {SourceKind::kCandidate, candidate_.path,         candidate_.text, candidate_.knobs, "",
                options_.compile_cache, CompileRequest{}.timeout};
    Result<CompileResult> compiled = compile(request_, *toolchain);
    if (!compiled) return compiled.error();
    compiled_ = std::move(*compiled);
    verdict_.stages.push_back({"compile", seconds_since(start), compiled_.cached, compiled_.log});
    verdict_.gates.insert(verdict_.gates.end(), compiled_.gates.begin(), compiled_.gates.end());
    verdict_.registers = compiled_.register_counts;
    if (!accept_gates() || compiled_.status == "ok") return {};
    verdict_.status = compiled_.status;
    verdict_.message = "it does not compile";
    return {};
  }

  // PyTorch takes seconds to start, so it does so while the compiler works, and jobs start as soon as their
  // own inputs are there.
  void start_reference() {
    ReferenceRequest request;
    request.world = plan_.world;
    request.cache_directory = options_.reference_cache;
    for (const PlannedSize& size : plan_.sizes) {
      for (const std::uint64_t seed : plan_.seeds) {
        for (int call = 0; call < kCalls + kReplays; ++call) {
          request.cases.push_back({size.params, plan_.dtype, seed, call});
        }
      }
    }
    reference_.emplace(problem_, std::move(request));
  }

  // Waits for the cases of one size and seed, call by call.
  Result<std::vector<const CaseResult*>> cases_of(const PlannedJob& job) {
    std::vector<const CaseResult*> out;
    const std::size_t first = (job.size * plan_.seeds.size() + job.seed) * (kCalls + kReplays);
    for (std::size_t k = 0; k < kCalls + kReplays; ++k) {
      Result<const CaseResult*> one = reference_->wait_for(first + k);
      if (!one) return one.error();
      out.push_back(*one);
    }
    return out;
  }

  Status run_jobs() {
    progress_.stage("reference", problem_.name + " in PyTorch");
    if (const auto first = cases_of({}); !first) return first.error();
    const auto start = Clock::now();
    std::vector<PlannedJob> jobs;
    for (std::size_t size = 0; size < plan_.sizes.size(); ++size) {
      for (std::size_t seed = 0; seed < plan_.seeds.size(); ++seed) {
        for (std::size_t k = 0; k < plan_.per_seed(); ++k) {
          jobs.push_back({size, seed, seed * plan_.per_seed() + k});
        }
      }
    }
    progress_.stage("check", std::to_string(jobs.size()) + " jobs on the virtual node");
    std::vector<JobOutcome> outcomes(jobs.size());
    std::atomic<std::size_t> n_done{0};
    const Result<std::size_t> first_bad =
        run_until_bad(jobs.size(), options_.n_parallel, [&](std::size_t i) -> Result<bool> {
          Result<JobOutcome> outcome = run_one(jobs[i]);
          if (!outcome) return outcome.error();
          outcomes[i] = std::move(*outcome);
          const PlannedJob& job = jobs[i];
          progress_.advance(++n_done, jobs.size(),
                            plan_.sizes[job.size].name + ", seed " + std::to_string(plan_.seeds[job.seed]) +
                                ", " + plan_.schedules[job.schedule].policy + ": " + outcomes[i].status);
          return outcomes[i].status == "correct";
        });
    if (!first_bad) return first_bad.error();
    const std::size_t n_counted = std::min(*first_bad + 1, jobs.size());
    for (std::size_t i = 0; i < n_counted; ++i) absorb(jobs[i], std::move(outcomes[i]));
    const double seconds = seconds_since(start);
    reference_->stop();  // what no job asked for is of no use
    verdict_.stages.push_back({"reference", reference_->seconds(), reference_->all_cached(), ""});
    verdict_.stages.push_back({"check", seconds, false,
                               std::to_string(n_counted) + " of " + std::to_string(jobs.size()) + " jobs"});
    return {};
  }

  Result<JobOutcome> run_one(const PlannedJob& planned) {
    const PlannedSize& size = plan_.sizes[planned.size];
    const Result<std::vector<const CaseResult*>> expected = cases_of(planned);
    if (!expected) return expected.error();
    const std::vector<const CaseResult*>& cases = *expected;
    Result<ScratchFolder> outputs = ScratchFolder::make(options_.work_folder);
    if (!outputs) return outputs.error();

    runtime::JobSpec spec;
    spec.world = plan_.world;
    spec.seed = plan_.seeds[planned.seed];
    spec.policy = plan_.schedules[planned.schedule].policy;
    spec.policy_seed = plan_.schedules[planned.schedule].seed;
    spec.fabric = options_.fabric;
    spec.timeout = options_.timeout;
    spec.register_counts = compiled_.register_counts;
    spec.trace = options_.trace;
    runtime::CandidateJob& job = spec.candidate;
    job.library = compiled_.output;
    job.problem = problem_.name;
    job.dtype = plan_.dtype;
    for (const ParamValue& param : size.params) job.params.emplace_back(param.name, param.value);
    for (const TensorInfo& input : cases.front()->ranks.front().inputs) job.inputs.push_back(input.name);
    for (const RankResult& rank : cases.front()->ranks) {
      std::vector<runtime::OutputSpec> wanted;
      for (const TensorInfo& output : rank.outputs)
        wanted.push_back({output.name, output.dtype, output.shape});
      job.outputs.push_back(std::move(wanted));
    }
    for (std::size_t k = 0; k < cases.size(); ++k) {
      runtime::CallSpec call;
      for (const RankResult& rank : cases[k]->ranks) call.input_files.push_back(rank.inputs_path);
      (k < kCalls ? job.calls : job.replays).push_back(std::move(call));
    }
    job.output_dir = outputs->path();
    const bool timed = !topology_.name.empty() && planned.seed == 0 && planned.schedule == 0;
    if (timed) spec.work_file = outputs->path() + "/work";

    Result<runtime::JobResult> result = runtime::run_job(spec);
    if (!result) return result.error();
    name_sources(*result, request_);
    JobOutcome outcome;
    outcome.findings =
        judge_findings(*result, request_,
                       {spec.world, spec.seed, plan_.schedules[planned.schedule], size.name, size.params});
    outcome.pes = pe_outputs(*result);
    judge_trace(*result, request_, outcome);
    const bool ran = result->status == "correct" || result->status == "leak";
    if (ran) {
      CheckRow where;
      where.size = size.name;
      where.seed = spec.seed;
      where.schedule = plan_.schedules[planned.schedule];
      Result<std::vector<CheckRow>> rows = compare_outputs(problem_, cases, outputs->path(), where);
      if (!rows) return rows.error();
      outcome.rows = std::move(*rows);
    }
    settle(*result, outcome);
    outcome.modelled.size = size.name;
    outcome.modelled.params = size.params;
    for (std::size_t k = 0; k < result->call_modelled_ns.size() && k < kCalls; ++k) {
      outcome.modelled.call_us.push_back(static_cast<double>(result->call_modelled_ns[k]) / 1000.0);
    }
    outcome.modelled.median_us = median(outcome.modelled.call_us);
    outcome.modelled.warp_instructions = result->warp_instructions;
    if (timed && ran) {
      const bool last = options_.times.timeline && planned.size + 1 == plan_.sizes.size();
      if (Status modelled = model_times(spec.work_file, topology_, kCalls, request_, outcome.modelled,
                                        last ? &outcome.timeline : nullptr);
          !modelled)
        return modelled.error();
    }
    return outcome;
  }

  void absorb(const PlannedJob& job, JobOutcome outcome) {
    for (JudgedFinding& judged : outcome.findings) {
      const auto known =
          std::find_if(verdict_.findings.begin(), verdict_.findings.end(), [&](const JudgedFinding& old) {
            return old.finding.id == judged.finding.id && old.finding.kind == judged.finding.kind;
          });
      if (known == verdict_.findings.end()) {
        verdict_.findings.push_back(std::move(judged));
      } else {
        known->finding.count += judged.finding.count;
      }
    }
    std::stable_partition(
        verdict_.findings.begin(), verdict_.findings.end(),
        [](const JudgedFinding& judged) { return judged.finding.kind != vgpu::FindingKind::kLeak; });
    verdict_.checks.insert(verdict_.checks.end(), outcome.rows.begin(), outcome.rows.end());
    verdict_.trace = std::move(outcome.trace);
    verdict_.trace_skipped = outcome.trace_skipped;
    if (outcome.status != "correct") {
      verdict_.status = outcome.status;
      verdict_.message = outcome.message;
      verdict_.pes = std::move(outcome.pes);
      verdict_.failed = Replay{plan_.world, plan_.seeds[job.seed], plan_.schedules[job.schedule],
                               plan_.sizes[job.size].name, plan_.sizes[job.size].params};
    } else if (job.seed == 0 && job.schedule == 0) {
      if (!outcome.timeline.empty()) {
        verdict_.timeline = std::move(outcome.timeline);
        verdict_.timeline_of = outcome.modelled.size + ", call " + std::to_string(kCalls);
      }
      verdict_.modelled.push_back(std::move(outcome.modelled));
    }
  }

  const Problem& problem_;
  const Candidate& candidate_;
  const CheckOptions& options_;
  CheckPlan plan_;
  Progress& progress_;
  timing::Topology topology_;  // without a name: no times are modelled
  Verdict verdict_;
  CompileRequest request_;
  CompileResult compiled_;
  std::optional<ReferenceFeed> reference_;
};

}  // namespace

Result<Verdict> check_candidate(const Problem& problem, const Candidate& candidate,
                                const CheckOptions& options, Progress& progress) {
  Result<CheckPlan> plan = plan_check(problem, candidate, options);
  if (!plan) return plan.error();
  return Check(problem, candidate, options, std::move(*plan), progress).run();
}

}  // namespace echolo::judge
