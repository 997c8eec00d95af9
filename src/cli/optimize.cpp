// echolo optimize PROBLEM
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "agent/optimize.hpp"
#include "cli/session.hpp"
#include "problem/suite.hpp"

namespace echolo::cli {
namespace {

struct Arguments {
  std::string problem;
  bool all = false;
  CheckFlags flags;
  agent::OptimizeOptions options;
};

int run(const Session& session, const Arguments& given) {
  if (given.problem.empty() != given.all) {
    return session.fail(usage_error("give a problem, or --all", "echolo problems list shows them"));
  }
  Result<std::vector<std::string>> names =
      given.all ? suite_names() : Result<std::vector<std::string>>(std::vector{given.problem});
  if (!names) return session.fail(names.error());
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<judge::CheckOptions> check = check_options(given.flags, store.value());
  if (!check) return session.fail(check.error());
  agent::OptimizeOptions options = given.options;
  options.check = *check;
  nlohmann::json documents = nlohmann::json::array();
  std::string text;
  bool all_won = true;
  for (const std::string& name : *names) {
    Result<Problem> problem = find_problem(name);
    if (!problem) return session.fail(problem.error());
    auto progress = session.progress();
    Result<agent::OptimizeReport> report = agent::optimize(*problem, options, store.value(), *progress);
    progress.reset();
    if (!report) return session.fail(report.error());
    all_won = all_won && report->winner.has_value();
    if (session.json) documents.push_back(agent::to_json(*report));
    text += agent::render(*report, session.colour_out);
  }
  if (session.json)
    text = (given.all ? nlohmann::json{{"runs", documents}} : documents.front()).dump(2) + "\n";
  return session.print(text, all_won ? kGood : kNo);
}

}  // namespace

void add_optimize(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("optimize", "Propose, judge, repeat; prints the winner and its evidence");
  const auto given = std::make_shared<Arguments>();
  add_common_options(*command, session);
  add_check_options(*command, given->flags);
  command->add_option("PROBLEM", given->problem, "A problem's name or directory");
  command->add_option("--proposer", given->options.proposer,
                      "Who proposes: search (the kernel library's knobs)");
  command->add_option("--start", given->options.start,
                      "A candidate to judge first: a .cu file or a kernel directory");
  command->add_option("--budget", given->options.budget, "How many proposals are judged (default: 4)");
  command->add_flag("--all", given->all, "Every problem of the suite");
  command->callback(
      [&session, given] { session.chosen = [&session, given] { return run(session, *given); }; });
}

}  // namespace echolo::cli
