// echolo replay VERDICT
#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "agent/options.hpp"
#include "base/text.hpp"
#include "cli/session.hpp"
#include "judge/replay.hpp"

namespace echolo::cli {
namespace {

struct Arguments {
  std::string verdict, finding;
  bool trace = false;
};

int run(const Session& session, const Arguments& given) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  std::error_code code;
  if (!std::filesystem::is_regular_file(given.verdict, code)) {
    return session.fail(usage_error("there is no verdict file '" + given.verdict + "'",
                                    "write one: echolo check ... --json > verdict.json"));
  }
  const Result<std::string> text = read_file(given.verdict);
  if (!text) return session.fail(text.error());
  const nlohmann::json verdict = nlohmann::json::parse(*text, nullptr, false);
  if (verdict.is_discarded()) return session.fail(usage_error(given.verdict + " is not JSON"));
  const Result<judge::ReplayRequest> request = judge::replay_request(verdict, given.finding);
  if (!request) return session.fail(request.error());
  judge::CheckOptions folders;
  if (Status used = agent::use_store(store.value(), folders); !used) return session.fail(used.error());
  auto progress = session.progress();
  const Result<judge::ReplayReport> report = judge::replay(*request, folders, given.trace, *progress);
  progress.reset();
  if (!report) return session.fail(report.error());
  const std::string out = session.json
                              ? judge::to_json(*report).dump(2) + "\n"
                              : judge::render(*report, {session.colour_out, session.verbose}, given.trace);
  return session.print(out, report->same ? judge::exit_code_of(report->verdict) : kNo);
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("replay", "Repeat a failing run of a verdict exactly");
  const auto given = std::make_shared<Arguments>();
  add_common_options(*command, session);
  command->add_option("VERDICT", given->verdict, "A file that check --json or sanitize --json has written")
      ->required();
  command->add_option("--finding", given->finding,
                      "The beginning of a finding's id (default: the first one)");
  command->add_flag("--trace", given->trace,
                    "What the finding's threads did, and who touched the memory that it names, in order");
  command->add_flag("--verbose", session.verbose, "Every wrong comparison and the whole log");
  command->callback(
      [&session, given] { session.chosen = [&session, given] { return run(session, *given); }; });
}

}  // namespace echolo::cli
