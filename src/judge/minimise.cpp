#include "judge/minimise.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.hpp"

namespace echolo::judge {
namespace {

// Those that run each warp until it waits, and so switch least, in front.
const Schedule kFewSwitches[] = {{"reversed", 1}, {"pct1", 1}, {"pct1", 2},        {"pct1", 3},
                                 {"pct2", 1},     {"pct2", 2}, {"one-slow-pe", 1}, {"fair", 1}};

// The same fault in a run of another size: kind and lines, however many PEs stand there.
bool is_same(const vgpu::Finding& a, const vgpu::Finding& b) {
  const auto lines = [](const vgpu::Finding& finding) {
    std::set<std::pair<std::string, int>> out;
    for (const vgpu::Site& site : finding.sites) out.emplace(site.where.file, site.where.line);
    return out;
  };
  return a.kind == b.kind && lines(a) == lines(b);
}

class Search {
 public:
  Search(Verdict& verdict, const Smaller& smaller, const RunAgain& run, Progress& progress)
      : verdict_(verdict),
        smaller_(smaller),
        run_(run),
        progress_(progress),
        end_(std::chrono::steady_clock::now() + smaller.budget),
        found_(verdict.findings.front()) {
    now_.world = found_.replay.world;
    now_.size = {found_.replay.size, found_.replay.params};
    now_.schedule = found_.replay.schedule;
  }

  Status run() {
    for (const auto phase :
         {&Search::fewer_pes, &Search::smaller_size, &Search::smaller_parameters, &Search::fewer_switches}) {
      if (Status done = (this->*phase)(); !done) return done;
    }
    if (!verdict_.minimised.empty()) verdict_.findings.front() = found_;
    return {};
  }

 private:
  bool may_go_on() {
    if (verdict_.minimise_runs >= kMostTrials) return false;
    verdict_.minimise_cut = std::chrono::steady_clock::now() >= end_;
    return !verdict_.minimise_cut;
  }

  // The finding as that run shows it; nobody where it does not.
  Result<std::optional<JudgedFinding>> shown(const Attempt& attempt, const std::string& what) {
    ++verdict_.minimise_runs;
    progress_.stage("minimise", what);
    Result<Verdict> verdict = run_(attempt);
    if (!verdict) {
      if (verdict.error().kind == ErrorKind::kInterrupted) return verdict.error();
      return std::optional<JudgedFinding>();
    }
    const auto same =
        std::find_if(verdict->findings.begin(), verdict->findings.end(),
                     [&](const JudgedFinding& one) { return is_same(one.finding, found_.finding); });
    if (same == verdict->findings.end()) return std::optional<JudgedFinding>();
    return std::optional<JudgedFinding>(std::move(*same));
  }

  void keep(const Attempt& attempt, JudgedFinding finding) {
    const std::uint64_t count = std::max(found_.finding.count, finding.finding.count);
    found_ = std::move(finding);
    found_.finding.count = count;
    now_ = attempt;
  }

  Result<bool> keeps(const Attempt& attempt, const std::string& what) {
    Result<std::optional<JudgedFinding>> finding = shown(attempt, what);
    if (!finding) return finding.error();
    if (!*finding) return false;
    keep(attempt, std::move(**finding));
    verdict_.minimised.push_back(what);
    return true;
  }

  Status fewer_pes() {
    for (const int world : smaller_.worlds) {
      if (world >= now_.world || !may_go_on()) break;
      Attempt attempt = now_;
      attempt.world = world;
      const Result<bool> kept = keeps(attempt, std::to_string(world) + (world == 1 ? " PE" : " PEs") +
                                                   " instead of " + std::to_string(now_.world));
      if (!kept) return kept.error();
      if (*kept) break;
    }
    return {};
  }

  Status smaller_size() {
    const Result<std::vector<PlannedSize>> sizes = smaller_.sizes(now_.world);
    if (!sizes) return {};
    for (const PlannedSize& size : *sizes) {
      if (size.params == now_.size.params || !may_go_on()) break;
      Attempt attempt = now_;
      attempt.size = size;
      const Result<bool> kept = keeps(attempt, "size " + size.name + " instead of " + now_.size.name);
      if (!kept) return kept.error();
      if (*kept) break;
    }
    return {};
  }

  Status smaller_parameters() {
    for (const ParamValue& param : smaller_.params(now_.size, now_.world)) {
      if (!may_go_on()) break;
      Attempt attempt = now_;
      attempt.size.name = "reduced";
      const auto place = std::find_if(attempt.size.params.begin(), attempt.size.params.end(),
                                      [&](const ParamValue& one) { return one.name == param.name; });
      if (place == attempt.size.params.end() || place->value <= param.value) continue;
      const std::string what =
          param.name + "=" + std::to_string(param.value) + " instead of " + std::to_string(place->value);
      place->value = param.value;
      if (const Result<bool> kept = keeps(attempt, what); !kept) return kept.error();
    }
    return {};
  }

  // All of them are looked at, because which one switches least is known afterwards only.
  Status fewer_switches() {
    const Schedule first = now_.schedule;
    const std::uint64_t first_switches = found_.switches;
    for (const Schedule& schedule : kFewSwitches) {
      if (schedule == first) continue;
      if (!may_go_on()) break;
      Attempt attempt = now_;
      attempt.schedule = schedule;
      Result<std::optional<JudgedFinding>> finding = shown(attempt, "policy " + schedule.policy);
      if (!finding) return finding.error();
      if (*finding && (*finding)->switches < found_.switches) keep(attempt, std::move(**finding));
    }
    if (now_.schedule == first) return {};
    verdict_.minimised.push_back("policy " + now_.schedule.policy + " instead of " + first.policy + ", " +
                                 with_commas(found_.switches) + " switches between warps instead of " +
                                 with_commas(first_switches));
    return {};
  }

  Verdict& verdict_;
  const Smaller& smaller_;
  const RunAgain& run_;
  Progress& progress_;
  std::chrono::steady_clock::time_point end_;
  JudgedFinding found_;
  Attempt now_;
};

// The least value of each parameter that sizes are drawn of; for the others there is no saying.
std::vector<ParamValue> least_values(const Problem& problem, const PlannedSize& size, int world) {
  std::vector<ParamValue> out;
  Bindings bindings{{"world", world}};
  for (const ParamValue& value : size.params) bindings.insert_or_assign(value.name, value.value);
  for (const ParamSpec& param : problem.params) {
    if (!param.draw) continue;
    const Result<std::int64_t> low = param.draw->min.expression.evaluate(bindings);
    const Result<std::int64_t> step = param.draw->multiple_of.expression.evaluate(bindings);
    if (!low || !step || *low < 0 || *step < 1) continue;
    const std::int64_t least = (*low + *step - 1) / *step * *step;
    out.push_back({param.name, least});
    bindings.insert_or_assign(param.name, least);
  }
  return out;
}

}  // namespace

Status minimise(Verdict& verdict, const Smaller& smaller, const RunAgain& run, Progress& progress) {
  if (verdict.findings.empty()) return {};
  // A leak is in every run; a livelock costs its whole budget each time.
  const vgpu::FindingKind kind = verdict.findings.front().finding.kind;
  if (kind == vgpu::FindingKind::kLeak || kind == vgpu::FindingKind::kLivelock) return {};
  return Search(verdict, smaller, run, progress).run();
}

Status minimise_check(Verdict& verdict, const Problem& problem, const Candidate& candidate,
                      const CheckOptions& options, Progress& progress) {
  if (verdict.findings.empty()) return {};
  const Replay origin = verdict.findings.front().replay;
  Smaller smaller;
  smaller.worlds = problem.worlds;
  std::sort(smaller.worlds.begin(), smaller.worlds.end());
  smaller.sizes = [&](int world) -> Result<std::vector<PlannedSize>> {
    std::vector<PlannedSize> out;
    for (const SizeSpec& size : problem.sizes) {
      if (size.name == origin.size) break;
      Result<Params> params = problem.size(size.name, world);
      if (!params) continue;
      // A parameter that the user has set stays as it is.
      if (!options.settings.empty()) params = problem.with_settings(*params, options.settings, world);
      if (params) out.push_back({size.name, std::move(*params)});
      if (origin.size == "drawn") break;
    }
    return out;
  };
  smaller.params = [&](const PlannedSize& size, int world) {
    std::vector<ParamValue> out = least_values(problem, size, world);
    std::erase_if(out, [&](const ParamValue& param) {
      return std::any_of(options.settings.begin(), options.settings.end(), [&](const std::string& setting) {
        return setting.substr(0, setting.find('=')) == param.name;
      });
    });
    return out;
  };
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    CheckOptions again = options;
    again.world = attempt.world;
    again.n_seeds = 1;
    again.times.wanted = false;
    again.seed = origin.seed;
    again.exact_sizes = {attempt.size};
    // What a size's name stands for may depend on the world.
    const bool named = std::any_of(problem.sizes.begin(), problem.sizes.end(),
                                   [&](const SizeSpec& size) { return size.name == attempt.size.name; });
    if (named) {
      Result<Params> params = problem.size(attempt.size.name, attempt.world);
      if (params && !options.settings.empty())
        params = problem.with_settings(*params, options.settings, attempt.world);
      if (!params) return params.error();
      again.exact_sizes.front().params = std::move(*params);
    } else if (Status fits = problem.check(attempt.size.params, attempt.world); !fits) {
      return fits.error();
    }
    again.exact_schedules = {attempt.schedule};
    Progress quiet;  // of the runs in between nobody needs to hear
    return check_candidate(problem, candidate, again, quiet);
  };
  return minimise(verdict, smaller, run, progress);
}

Status minimise_program(Verdict& verdict, const std::string& path, const SanitizeOptions& options,
                        Progress& progress) {
  if (verdict.findings.empty()) return {};
  const Replay origin = verdict.findings.front().replay;
  Smaller smaller;
  for (int world = 1; world < options.world && world <= 4; ++world) smaller.worlds.push_back(world);
  // How many blocks a program launches is its own affair.
  smaller.sizes = [](int) -> Result<std::vector<PlannedSize>> { return std::vector<PlannedSize>(); };
  smaller.params = [](const PlannedSize&, int) { return std::vector<ParamValue>(); };
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    SanitizeOptions again = options;
    again.world = attempt.world;
    again.n_seeds = 1;
    again.times.wanted = false;
    again.seed = origin.seed;
    again.exact_schedules = {attempt.schedule};
    Progress quiet;  // of the runs in between nobody needs to hear
    return sanitize_program(path, again, quiet);
  };
  return minimise(verdict, smaller, run, progress);
}

}  // namespace echolo::judge
