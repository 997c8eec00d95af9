// echolo problems [list | show NAME | new DIR [--from script.py:function] | lint DIR]
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.hpp"
#include "problem/suite.hpp"
#include "reference/authoring.hpp"
#include "reference/reference.hpp"

namespace echolo::cli {
namespace {

int list(const Session& session) {
  Result<std::vector<Problem>> suite = load_suite();
  if (!suite) return session.fail(suite.error());
  nlohmann::json all = nlohmann::json::array();
  std::string text;
  for (const Problem& problem : *suite) {
    all.push_back(to_json(problem));
    text += problem.name + std::string(problem.name.size() < 16 ? 16 - problem.name.size() : 1, ' ') +
            problem.summary + "\n";
  }
  return session.print(session.json ? nlohmann::json{{"problems", all}}.dump(2) + "\n" : text);
}

int show(const Session& session, const std::string& name) {
  Result<Problem> problem = find_problem(name);
  if (!problem) return session.fail(problem.error());
  return session.print(session.json ? to_json(*problem).dump(2) + "\n" : render(*problem));
}

int lint(const Session& session, const std::string& directory) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<std::string> cache = store.value().cache_directory("reference");
  if (!cache) return session.fail(cache.error());
  const auto progress = session.progress();
  progress->stage("lint", directory);
  Result<LintReport> report = problem_lint(directory, *cache);
  if (!report) return session.fail(report.error());
  return session.print(session.json ? to_json(*report).dump(2) + "\n" : render(*report),
                       report->faults.empty() ? kGood : kBadUsage);
}

int make(const Session& session, const std::string& directory, const std::string& from) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<std::string> cache = store.value().cache_directory("reference");
  if (!cache) return session.fail(cache.error());
  auto progress = session.progress();
  progress->stage("new", directory);
  Result<std::vector<std::string>> written = problem_new(directory, from, *cache);
  progress.reset();
  if (!written) return session.fail(written.error());
  if (session.json) return session.print(nlohmann::json{{"written", *written}}.dump(2) + "\n");
  std::string text;
  for (const std::string& path : *written) text += "wrote " + path + "\n";
  return session.print(text + "next: echolo problems lint " + directory + "\n");
}

}  // namespace

void add_problems(CLI::App& app, Session& session) {
  CLI::App* problems =
      app.add_subcommand("problems", "The problem suite; make and examine problems of your own");
  add_common_options(*problems, session);
  problems->require_subcommand(0, 1);
  problems->callback([&session, problems] {
    if (problems->get_subcommands().empty()) session.chosen = [&session] { return list(session); };
  });
  CLI::App* list_command = problems->add_subcommand("list", "All problems of the suite");
  add_common_options(*list_command, session);
  list_command->callback([&session] { session.chosen = [&session] { return list(session); }; });

  const auto name = std::make_shared<std::string>();
  CLI::App* show_command =
      problems->add_subcommand("show", "One problem: parameters, sizes, inputs and outputs");
  add_common_options(*show_command, session);
  show_command->add_option("NAME", *name, "A problem's name or directory")->required();
  show_command->callback(
      [&session, name] { session.chosen = [&session, name] { return show(session, *name); }; });

  const auto from = std::make_shared<std::string>();
  CLI::App* new_command =
      problems->add_subcommand("new", "Write a problem's skeleton that already passes lint");
  add_common_options(*new_command, session);
  new_command->add_option("DIR", *name, "The directory to make")->required();
  new_command->add_option("--from", *from, "script.py:function: start from a function of your own script");
  new_command->callback([&session, name, from] {
    session.chosen = [&session, name, from] { return make(session, *name, *from); };
  });

  CLI::App* lint_command = problems->add_subcommand("lint", "Say what is wrong with a problem");
  add_common_options(*lint_command, session);
  lint_command->add_option("DIR", *name, "The problem's directory")->required();
  lint_command->callback(
      [&session, name] { session.chosen = [&session, name] { return lint(session, *name); }; });
}

}  // namespace echolo::cli
