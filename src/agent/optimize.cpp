#include "agent/optimize.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>

#include "agent/options.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "judge/jobs.hpp"
#include "judge/kept.hpp"
#include "judge/toolchain.hpp"
#include "problem/suite.hpp"
#include "reference/reference.hpp"

namespace echolo::agent {
namespace {

using Clock = std::chrono::steady_clock;
using nlohmann::json;

Error interrupted(const std::string& run) {
  Error error =
      machine_error("interrupted", "echolo runs resume " + run + " goes on without repeating what is judged");
  error.kind = ErrorKind::kInterrupted;
  return error;
}

json knobs_json(const judge::Knobs& knobs) {
  json out = json::object();
  for (const judge::KnobValue& knob : knobs) out[knob.name] = knob.value;
  return out;
}

double modelled_us_of(const json& verdict, const std::string& size) {
  for (const json& one : verdict.at("modelled").at("sizes")) {
    if (one.at("size") == size) return one.at("us_median").get<double>();
  }
  return 0;
}

// One run, from its proposals to its winner.
class Run {
 public:
  Run(const Problem& problem, OptimizeOptions options, store::Store& store, judge::Progress& progress)
      : problem_(problem), options_(std::move(options)), store_(store), progress_(progress) {}

  // Everything that can be wrong with the options, before a run is created for them.
  Status prepare() {
    if (options_.proposer != "search") {
      const std::vector<std::string> known = {"search"};
      const std::string near = did_you_mean(options_.proposer, known);
      return usage_error("there is no proposer '" + options_.proposer + "'",
                         near.empty() ? "this version has: search" : near);
    }
    if (options_.budget < 1) return usage_error("--budget must be at least 1");
    if (Status used = use_store(store_, options_.check); !used) return used;
    judge::Candidate any;
    Result<judge::CheckPlan> plan = judge::plan_check(problem_, any, options_.check);
    if (!plan) return plan.error();
    plan_ = std::move(*plan);
    Result<Proposals> proposals = search_proposals(problem_, plan_, options_.check.fabric);
    if (!proposals && options_.start.empty()) return proposals.error();
    if (!options_.start.empty()) {
      Result<judge::Candidate> first = judge::load_candidate(options_.start, {});
      if (!first) return first.error();
      Attempt attempt;
      attempt.source = options_.start;
      add(std::move(*first), std::move(attempt));
    }
    if (proposals) {
      report_.n_settings = proposals->n_settings;
      report_.n_dropped = proposals->n_dropped;
      for (const Proposal& proposal : choose(*proposals, static_cast<std::size_t>(options_.budget))) {
        Result<judge::Candidate> candidate = judge::library_candidate(proposal.library, proposal.knobs);
        if (!candidate) return candidate.error();
        Attempt attempt;
        attempt.source = "kernels/" + proposal.library.name;
        attempt.has_cost = true;
        attempt.cost = proposal.cost;
        add(std::move(*candidate), std::move(attempt));
      }
    }
    report_.problem = problem_.name;
    report_.world = plan_.world;
    report_.dtype = dtype_name(plan_.dtype);
    report_.fabric = options_.check.fabric;
    report_.n_jobs = plan_.n_jobs();
    for (const judge::PlannedSize& size : plan_.sizes) {
      if (size.name != "drawn" || report_.target.name.empty()) report_.target = size;
    }
    return {};
  }

  const OptimizeOptions& options() const { return options_; }
  int world() const { return plan_.world; }

  Result<OptimizeReport> work(const std::string& run) {
    const auto start = Clock::now();
    report_.run = run;
    Status status = judge_all();
    if (status) status = find_winner();
    if (!status) {
      if (status.error().kind != ErrorKind::kInterrupted) return status.error();
      Result<store::RunInfo> info = store_.run(run);
      if (info && info->stop_requested) {
        if (Status finished = store_.finish_run(run, "stopped", "{}"); !finished) return finished.error();
      }
      return interrupted(run);
    }
    report_.seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const char* outcome = report_.winner ? "done" : "failed";
    if (Status finished = store_.finish_run(run, outcome, to_json(report_).dump()); !finished)
      return finished.error();
    return std::move(report_);
  }

 private:
  void add(judge::Candidate candidate, Attempt attempt) {
    const bool known =
        std::any_of(candidates_.begin(), candidates_.end(),
                    [&](const judge::Candidate& other) { return other.hash == candidate.hash; });
    if (known) return;
    attempt.label = candidate.label;
    attempt.candidate = candidate.hash;
    attempt.knobs = candidate.knobs;
    candidates_.push_back(std::move(candidate));
    report_.attempts.push_back(std::move(attempt));
  }

  // Gives every attempt its number; those of an earlier life of the run keep theirs.
  Status number_attempts() {
    Result<std::vector<store::Iteration>> before = store_.iterations(report_.run);
    if (!before) return before.error();
    int last = before->empty() ? 0 : before->back().number;
    for (Attempt& attempt : report_.attempts) {
      const auto known = std::find_if(before->begin(), before->end(), [&](const store::Iteration& one) {
        return one.candidate == attempt.candidate;
      });
      if (known != before->end()) {
        attempt.iteration = known->number;
        continue;
      }
      attempt.iteration = ++last;
      json detail = {
          {"iteration", attempt.iteration}, {"knobs", knobs_json(attempt.knobs)}, {"source", attempt.source}};
      if (attempt.has_cost) {
        detail["estimate"] = {{"provenance", "modelled"},
                              {"us", attempt.cost.microseconds},
                              {"link_bytes", attempt.cost.link_bytes},
                              {"messages", attempt.cost.messages},
                              {"issue_slots", attempt.cost.issue_slots},
                              {"waits", attempt.cost.waits}};
      }
      const store::Iteration iteration{attempt.iteration, attempt.candidate, attempt.label,
                                       detail.dump(),     "proposed",        ""};
      if (Status added = store_.add_iteration(report_.run, iteration); !added) return added;
    }
    return {};
  }

  // All candidates share inputs and oracle; computed once, before several of them ask for it.
  Status warm_reference() {
    progress_.stage("reference", problem_.name + " in PyTorch, " + std::to_string(plan_.world) + " ranks");
    ReferenceRequest request;
    request.world = plan_.world;
    request.cache_directory = options_.check.reference_cache;
    for (const judge::PlannedSize& size : plan_.sizes) {
      for (const std::uint64_t seed : plan_.seeds) {
        for (int call = 0; call < judge::kCalls + judge::kReplays; ++call) {
          request.cases.push_back({size.params, plan_.dtype, seed, call});
        }
      }
    }
    Result<ReferenceRun> run = run_reference(problem_, request);
    return run ? Status() : Status(run.error());
  }

  Status judge_all() {
    if (Status numbered = number_attempts(); !numbered) return numbered;
    if (Status warmed = warm_reference(); !warmed) return warmed;
    progress_.stage("judge", std::to_string(candidates_.size()) + " candidates");
    const int cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    const int at_once = std::min<int>(cores, static_cast<int>(candidates_.size()));
    judge::CheckOptions check = options_.check;
    check.n_parallel = std::max(1, cores / at_once);
    std::atomic<std::size_t> n_done{0};
    // A candidate that fails is an outcome, not an end: every job counts as good.
    const Result<std::size_t> all =
        judge::run_until_bad(candidates_.size(), at_once, [&](std::size_t i) -> Result<bool> {
          if (Status judged = judge_one(i, check); !judged) return judged.error();
          const Attempt& attempt = report_.attempts[i];
          std::string line =
              "#" + std::to_string(attempt.iteration) + " " + attempt.label + ": " + attempt.status;
          if (attempt.status == "correct") line += ", modelled " + format_us(attempt.modelled_us);
          if (attempt.reused) line += " (judged before)";
          progress_.note(line);
          progress_.advance(++n_done, candidates_.size(), attempt.label);
          return true;
        });
    return all ? Status() : Status(all.error());
  }

  static std::string format_us(double us) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2f us", us);
    return text;
  }

  Status judge_one(std::size_t i, const judge::CheckOptions& check) {
    Attempt& attempt = report_.attempts[i];
    Result<std::string> key = judge::check_key(problem_, candidates_[i], check);
    if (!key) return key.error();
    Result<std::optional<std::string>> before = store_.find_verdict(report_.run, attempt.candidate, *key);
    if (!before) return before.error();
    if (*before) {
      Result<std::string> text = store_.artifact(**before);
      if (text && take_verdict(json::parse(*text, nullptr, false), attempt)) {
        attempt.verdict = **before;
        attempt.reused = true;
        return {};
      }
    }
    judge::Progress silent;
    Result<judge::Verdict> verdict = judge::check_candidate(problem_, candidates_[i], check, silent);
    if (!verdict) return verdict.error();
    if (verdict->status == "infra")
      return machine_error(verdict->message, "echolo doctor says what is missing");
    if (Status kept = judge::keep_check(store_, problem_, candidates_[i], check, *verdict); !kept)
      return kept;
    const json document = judge::to_json(*verdict);
    take_verdict(document, attempt);
    Result<std::string> artifact = store_.put_artifact(document.dump(1));
    if (!artifact) return artifact.error();
    attempt.verdict = *artifact;
    return store_.record_verdict(report_.run, attempt.iteration, *key, attempt.candidate, attempt.status,
                                 *artifact);
  }

  bool take_verdict(const json& verdict, Attempt& attempt) const {
    if (!verdict.is_object()) return false;
    try {
      verdict.at("status").get_to(attempt.status);
      verdict.at("message").get_to(attempt.message);
      attempt.modelled_us = attempt.status == "correct" ? modelled_us_of(verdict, report_.target.name) : 0;
      return true;
    } catch (const json::exception&) {
      return false;
    }
  }

  // The correct candidate with the least modelled time that a clean process confirms.
  Status find_winner() {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < report_.attempts.size(); ++i) {
      if (report_.attempts[i].status == "correct") order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return report_.attempts[a].modelled_us < report_.attempts[b].modelled_us;
    });
    for (const std::size_t i : order) {
      Attempt& attempt = report_.attempts[i];
      progress_.stage("re-check", attempt.label + " in a clean process");
      Result<json> verdict = check_elsewhere(attempt);
      if (!verdict) return verdict.error();
      const double in_run = attempt.modelled_us;
      if (!take_verdict(*verdict, attempt) || attempt.status != "correct") {
        attempt.message =
            "correct in the run, but not when checked again in a clean process: " + attempt.message;
        continue;
      }
      report_.winner = i;
      report_.winner_verdict = verdict->dump();
      report_.winner_evidence = std::to_string(verdict->at("checks").size()) +
                                " comparisons with the oracle within tolerance, no finding";
      if (!verdict->at("findings").empty()) report_.winner_evidence += " but leaks";
      report_.winner_evidence += "; checked again in a clean process, modelled " + format_us(in_run) +
                                 " in the run and " + format_us(attempt.modelled_us) + " there";
      return {};
    }
    return {};
  }

  Result<json> check_elsewhere(const Attempt& attempt) {
    Result<std::string> binaries = judge::binary_directory();
    if (!binaries) return binaries.error();
    const judge::CheckOptions& check = options_.check;
    Command command;
    command.argv = {*binaries + "/echolo",
                    "check",
                    problem_.directory,
                    attempt.source,
                    "--json",
                    "--store",
                    store_.directory(),
                    "--world",
                    std::to_string(plan_.world),
                    "--dtype",
                    report_.dtype,
                    "--seeds",
                    std::to_string(check.n_seeds),
                    "--seed",
                    std::to_string(check.seed),
                    "--schedules",
                    std::to_string(check.n_schedules),
                    "--fabric",
                    check.fabric,
                    "--timeout",
                    std::to_string((check.timeout.count() + 999) / 1000)};
    if (!check.policy.empty()) command.argv.insert(command.argv.end(), {"--policy", check.policy});
    for (const std::string& size : check.sizes) command.argv.insert(command.argv.end(), {"--size", size});
    for (const std::string& setting : check.settings)
      command.argv.insert(command.argv.end(), {"--set", setting});
    for (const judge::KnobValue& knob : attempt.knobs) {
      command.argv.insert(command.argv.end(), {"--knob", knob.name + "=" + std::to_string(knob.value)});
    }
    command.capture_limit = 256U << 20U;
    Result<Outcome> outcome = run_command(command);
    if (!outcome) return outcome.error();
    if (outcome->interrupted) return interrupted(report_.run);
    json verdict = json::parse(outcome->standard_output, nullptr, false);
    if (verdict.is_discarded() || !verdict.is_object() || !verdict.contains("status")) {
      return machine_error("the winner could not be checked in a clean process: " +
                           std::string(trim(outcome->standard_error)));
    }
    return verdict;
  }

  const Problem& problem_;
  OptimizeOptions options_;
  store::Store& store_;
  judge::Progress& progress_;
  judge::CheckPlan plan_;
  std::vector<judge::Candidate> candidates_;
  OptimizeReport report_;
};

}  // namespace

Result<OptimizeReport> optimize(const Problem& problem, const OptimizeOptions& options, store::Store& store,
                                judge::Progress& progress) {
  Run run(problem, options, store, progress);
  if (Status ready = run.prepare(); !ready) return ready.error();
  // Recorded as decided, so that a later default does not change what a resumed run does.
  OptimizeOptions recorded = options;
  recorded.check.world = run.world();
  std::error_code code;
  if (std::filesystem::exists(options.start, code))
    recorded.start = std::filesystem::absolute(options.start).string();
  Result<store::OpenRun> open =
      store.create_run({"optimize", lasting_name(problem), run.world(), options_to_text(recorded)});
  if (!open) return std::move(open).error();
  progress.note("run " + open.value().id);
  return run.work(open.value().id);
}

Result<OptimizeReport> resume(const std::string& run_id, store::Store& store, judge::Progress& progress) {
  Result<store::RunInfo> info = store.run(run_id);
  if (!info) return info.error();
  if (info->command != "optimize") return usage_error("run " + info->id + " is no optimisation");
  Result<OptimizeOptions> options = options_from_text(info->options);
  if (!options) return options.error();
  Result<Problem> problem = find_problem(info->problem);
  if (!problem) return problem.error();
  Run run(*problem, *options, store, progress);
  if (Status ready = run.prepare(); !ready) return ready.error();
  Result<store::OpenRun> open = store.resume_run(info->id);
  if (!open) return std::move(open).error();
  progress.note("run " + open.value().id);
  return run.work(open.value().id);
}

}  // namespace echolo::agent
