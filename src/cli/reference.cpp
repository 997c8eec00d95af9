// echolo reference PROBLEM
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.hpp"
#include "problem/suite.hpp"
#include "reference/reference.hpp"

namespace echolo::cli {
namespace {

int run(const Session& session, const std::string& name, const CheckFlags& flags) {
  Result<Problem> problem = find_problem(name);
  if (!problem) return session.fail(problem.error());
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<judge::CheckOptions> options = check_options(flags, store.value());
  if (!options) return session.fail(options.error());
  judge::CheckOptions wanted = *options;
  if (wanted.sizes.empty()) wanted.sizes = {problem->sizes.front().name};
  Result<judge::CheckPlan> plan = judge::plan_check(*problem, judge::Candidate{}, wanted);
  if (!plan) return session.fail(plan.error());
  ReferenceRequest request;
  request.world = plan->world;
  request.cache_directory = wanted.reference_cache;
  request.limit = wanted.timeout;
  for (const judge::PlannedSize& size : plan->sizes)
    request.cases.push_back({size.params, plan->dtype, wanted.seed, 0});
  const auto progress = session.progress();
  progress->stage("reference", problem->name + " in PyTorch");
  Result<ReferenceRun> done = run_reference(*problem, request);
  if (!done) return session.fail(done.error());
  return session.print(session.json ? to_json(*done).dump(2) + "\n" : render(*problem, *done));
}

}  // namespace

void add_reference(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("reference", "Run a problem's reference with PyTorch and show what it does");
  const auto problem = std::make_shared<std::string>();
  const auto flags = std::make_shared<CheckFlags>();
  add_common_options(*command, session);
  add_check_options(*command, *flags);
  command->add_option("PROBLEM", *problem, "A problem's name or directory")->required();
  command->callback([&session, problem, flags] {
    session.chosen = [&session, problem, flags] { return run(session, *problem, *flags); };
  });
}

}  // namespace echolo::cli
