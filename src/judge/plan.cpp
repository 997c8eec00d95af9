#include <algorithm>
#include <sstream>

#include "base/hash.hpp"
#include "base/text.hpp"
#include "judge/check.hpp"
#include "judge/schedules.hpp"

namespace echolo::judge {
namespace {

// Raised whenever what a check does changes, so that old verdicts are not taken for new ones.
constexpr const char* kCheckVersion = "2";

Result<DType> choose_dtype(const Problem& problem, const Candidate& candidate, const std::string& asked) {
  if (!asked.empty()) {
    Result<DType> dtype = problem.dtype(asked);
    if (!dtype) return dtype.error();
    if (candidate.library && std::find(candidate.library->dtypes.begin(), candidate.library->dtypes.end(),
                                       *dtype) == candidate.library->dtypes.end()) {
      return usage_error("kernel " + candidate.library->name + " has no " + asked + " form");
    }
    return dtype;
  }
  for (const DType dtype : problem.dtypes) {
    if (!candidate.library || std::find(candidate.library->dtypes.begin(), candidate.library->dtypes.end(),
                                        dtype) != candidate.library->dtypes.end()) {
      return dtype;
    }
  }
  return usage_error("kernel " + candidate.library->name + " has none of the problem's dtypes");
}

Status fits_library(const KernelLibrary& library, const Problem& problem, int world,
                    const std::string& fabric) {
  if (library.problem != problem.name) {
    return usage_error("kernel " + library.name + " solves " + library.problem + ", not " + problem.name);
  }
  if (std::find(library.worlds.begin(), library.worlds.end(), world) == library.worlds.end()) {
    return usage_error("kernel " + library.name + " is not written for a world of " + std::to_string(world));
  }
  if (std::find(library.fabrics.begin(), library.fabrics.end(), fabric) == library.fabrics.end()) {
    return usage_error("kernel " + library.name + " is not written for --fabric " + fabric);
  }
  return {};
}

}  // namespace

Result<CheckPlan> plan_check(const Problem& problem, const Candidate& candidate,
                             const CheckOptions& options) {
  CheckPlan plan;
  plan.world = options.world > 0 ? options.world : problem.worlds.front();
  if (Status allowed = problem.check_world(plan.world); !allowed) return allowed.error();
  if (options.fabric != "nvlink" && options.fabric != "rdma") {
    return usage_error("unknown fabric '" + options.fabric + "'", "nvlink or rdma");
  }
  Result<DType> dtype = choose_dtype(problem, candidate, options.dtype);
  if (!dtype) return dtype.error();
  plan.dtype = *dtype;

  std::vector<std::string> names = options.sizes;
  plan.sizes = options.exact_sizes;
  if (options.curve && plan.sizes.empty()) {
    if (!names.empty()) return usage_error("--curve and --size name sizes both", "give one of them");
    for (const SizeSpec& size : problem.curve) names.push_back(size.name);
    if (names.empty()) return usage_error("problem " + problem.name + " has no [curve]");
  }
  if (names.empty() && plan.sizes.empty()) {
    for (const SizeSpec& size : problem.sizes) {
      if (names.size() < 2) names.push_back(size.name);
    }
    names.emplace_back("drawn");
  }
  for (const std::string& name : names) {
    Result<Params> params =
        name == "drawn" ? problem.draw_size(options.seed, plan.world) : problem.size(name, plan.world);
    if (!params) return params.error();
    if (!options.settings.empty()) params = problem.with_settings(*params, options.settings, plan.world);
    if (!params) return params.error();
    const PlannedSize size{name, std::move(*params)};
    // Settings can make several sizes the same one.
    const bool known = std::any_of(plan.sizes.begin(), plan.sizes.end(),
                                   [&](const PlannedSize& other) { return other.params == size.params; });
    if (!known) plan.sizes.push_back(size);
  }
  for (int i = 0; i < options.n_seeds; ++i)
    plan.seeds.push_back(options.seed + static_cast<std::uint64_t>(i));
  if (options.exact_schedules.empty()) {
    Result<std::vector<Schedule>> schedules =
        spread_schedules(options.n_seeds, options.n_schedules, options.policy);
    if (!schedules) return schedules.error();
    plan.schedules = std::move(*schedules);
  } else {
    plan.schedules = options.exact_schedules;
  }
  if (candidate.library) {
    if (Status fits = fits_library(*candidate.library, problem, plan.world, options.fabric); !fits)
      return fits.error();
    for (const PlannedSize& size : plan.sizes) {
      Result<std::string> broken = candidate.library->broken_constraint(
          candidate.knobs, problem_bindings(size.params, plan.world, plan.dtype));
      if (!broken) return broken.error();
      if (!broken->empty()) {
        return usage_error("the knobs " + knobs_text(candidate.knobs) + " break a constraint: " + *broken);
      }
    }
  }
  return plan;
}

Result<std::string> check_key(const Problem& problem, const Candidate& candidate,
                              const CheckOptions& options) {
  Result<CheckPlan> plan = plan_check(problem, candidate, options);
  if (!plan) return plan.error();
  Sha256 hash;
  hash.field(kCheckVersion);
  for (const std::string& path : {problem.toml_path, problem.reference_path}) {
    Result<std::string> text = read_file(path);
    if (!text) return text.error();
    hash.field(*text);
  }
  std::ostringstream rest;
  rest << plan->world << ' ' << dtype_name(plan->dtype) << ' ' << options.fabric << ' '
       << options.timeout.count();
  for (const PlannedSize& size : plan->sizes) rest << " | " << size.name << ' ' << params_text(size.params);
  for (const std::uint64_t seed : plan->seeds) rest << " s" << seed;
  for (const Schedule& schedule : plan->schedules) rest << ' ' << schedule.policy << schedule.seed;
  hash.field(rest.str());
  return hash.hex();
}

}  // namespace echolo::judge
