// echolo runs [list | show | resume | stop]
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "agent/history.hpp"
#include "agent/optimize.hpp"
#include "cli/session.hpp"

namespace echolo::cli {
namespace {

int list(const Session& session) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<std::vector<store::RunInfo>> runs = store.value().runs();
  if (!runs) return session.fail(runs.error());
  return session.print(session.json ? agent::runs_json(*runs).dump(2) + "\n" : agent::render_runs(*runs));
}

int show(const Session& session, const std::string& id) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<agent::RunHistory> history = agent::history_of(store.value(), id);
  if (!history) return session.fail(history.error());
  return session.print(session.json ? agent::to_json(*history).dump(2) + "\n" : agent::render(*history));
}

int resume(const Session& session, const std::string& id) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  auto progress = session.progress();
  Result<agent::OptimizeReport> report = agent::resume(id, store.value(), *progress);
  progress.reset();
  if (!report) return session.fail(report.error());
  return session.print(
      session.json ? agent::to_json(*report).dump(2) + "\n" : agent::render(*report, session.colour_out),
      report->winner ? kGood : kNo);
}

int stop(const Session& session, const std::string& id) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  if (Status stopped = store.value().stop_run(id); !stopped) return session.fail(stopped.error());
  return session.print(session.json ? nlohmann::json{{"stopped", id}}.dump() + "\n"
                                    : "asked run " + id + " to stop\n");
}

}  // namespace

void add_runs(CLI::App& app, Session& session) {
  CLI::App* runs = app.add_subcommand("runs", "Past and live runs");
  add_common_options(*runs, session);
  runs->require_subcommand(0, 1);
  runs->callback([&session, runs] {
    if (runs->get_subcommands().empty()) session.chosen = [&session] { return list(session); };
  });
  CLI::App* list_command = runs->add_subcommand("list", "All runs, newest first");
  add_common_options(*list_command, session);
  list_command->callback([&session] { session.chosen = [&session] { return list(session); }; });
  struct Verb {
    const char* name;
    const char* about;
    int (*act)(const Session&, const std::string&);
  };
  for (const Verb& verb : {Verb{"show", "One run: its candidates and what happened", show},
                           Verb{"resume", "Go on with an interrupted run", resume},
                           Verb{"stop", "Ask a live run to end", stop}}) {
    const auto id = std::make_shared<std::string>();
    CLI::App* command = runs->add_subcommand(verb.name, verb.about);
    add_common_options(*command, session);
    command->add_option("RUN", *id, "A run's id or its beginning")->required();
    command->callback([&session, id, act = verb.act] {
      session.chosen = [&session, id, act] { return act(session, *id); };
    });
  }
}

}  // namespace echolo::cli
