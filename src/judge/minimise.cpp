#include "judge/minimise.hpp"

#include <algorithm>

#include "vgpu/core/policy.hpp"

namespace echolo::judge {
namespace {

// From few switches between warps, easily followed, to many.
constexpr const char* kSimplestFirst[] = {"fair", "reversed", "one-slow-pe", "pct1", "pct2", "pct3"};

class Search {
 public:
  Search(Verdict& verdict, const RunAgain& run, Progress& progress)
      : verdict_(verdict), run_(run), progress_(progress), found_(verdict.findings.front()) {
    now_.world = found_.replay.world;
    now_.size = {found_.replay.size, found_.replay.params};
    now_.schedule = found_.replay.schedule;
  }

  const Attempt& now() const { return now_; }
  bool may_go_on() const { return n_trials_ < kMostTrials; }

  // Keeps the attempt where it shows the finding.
  Result<bool> keeps(const Attempt& attempt, std::string what) {
    ++n_trials_;
    progress_.stage("minimise", what);
    const Result<Verdict> verdict = run_(attempt);
    if (!verdict) {
      if (verdict.error().kind == ErrorKind::kInterrupted) return verdict.error();
      return false;
    }
    const auto same =
        std::find_if(verdict->findings.begin(), verdict->findings.end(), [&](const JudgedFinding& one) {
          return one.finding.kind == found_.finding.kind && one.finding.id == found_.finding.id;
        });
    if (same == verdict->findings.end()) return false;
    const std::uint64_t count = found_.finding.count;
    found_ = *same;
    found_.finding.count = std::max(count, found_.finding.count);
    now_ = attempt;
    verdict_.minimised.push_back(std::move(what));
    return true;
  }

  void finish() {
    if (!verdict_.minimised.empty()) verdict_.findings.front() = found_;
  }

 private:
  Verdict& verdict_;
  const RunAgain& run_;
  Progress& progress_;
  JudgedFinding found_;
  Attempt now_;
  int n_trials_ = 0;
};

}  // namespace

Status minimise(Verdict& verdict, const Smaller& smaller, const RunAgain& run, Progress& progress) {
  if (verdict.findings.empty() || verdict.findings.front().finding.kind == vgpu::FindingKind::kLeak)
    return {};
  Search search(verdict, run, progress);
  for (const int world : smaller.worlds) {
    if (world >= search.now().world || !search.may_go_on()) break;
    Attempt attempt = search.now();
    attempt.world = world;
    Result<bool> kept = search.keeps(
        attempt, std::to_string(world) + " PEs instead of " + std::to_string(search.now().world));
    if (!kept) return kept.error();
    if (*kept) break;
  }
  const Result<std::vector<PlannedSize>> sizes = smaller.sizes(search.now().world);
  if (sizes) {
    for (const PlannedSize& size : *sizes) {
      if (!search.may_go_on() || size.params == search.now().size.params) break;
      Attempt attempt = search.now();
      attempt.size = size;
      Result<bool> kept =
          search.keeps(attempt, "size " + size.name + " instead of " + search.now().size.name);
      if (!kept) return kept.error();
      if (*kept) break;
    }
  }
  for (const char* policy : kSimplestFirst) {
    if (!search.may_go_on() || search.now().schedule.policy == policy) break;
    Attempt attempt = search.now();
    attempt.schedule = {policy, 1};
    Result<bool> kept = search.keeps(
        attempt, std::string("policy ") + policy + " instead of " + search.now().schedule.policy);
    if (!kept) return kept.error();
    if (*kept) break;
  }
  search.finish();
  return {};
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
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    CheckOptions again = options;
    again.world = attempt.world;
    again.n_seeds = 1;
    again.seed = origin.seed;
    again.exact_sizes = {attempt.size};
    // What a size's name stands for may depend on the world.
    if (attempt.size.name != "drawn") {
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
  smaller.sizes = [](int) -> Result<std::vector<PlannedSize>> { return std::vector<PlannedSize>(); };
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    SanitizeOptions again = options;
    again.world = attempt.world;
    again.n_seeds = 1;
    again.seed = origin.seed;
    again.exact_schedules = {attempt.schedule};
    Progress quiet;  // of the runs in between nobody needs to hear
    return sanitize_program(path, again, quiet);
  };
  return minimise(verdict, smaller, run, progress);
}

}  // namespace echolo::judge
