// echolo replay VERDICT
#include <CLI/CLI.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "agent/options.hpp"
#include "base/text.hpp"
#include "cli/session.hpp"
#include "judge/replay.hpp"

namespace echolo::cli {
namespace {

// Verdicts that are looked through for a finding's id, and digits of it that are worth that.
constexpr int kMostSearched = 200;
constexpr std::size_t kLeastDigits = 4;

struct Arguments {
  std::string verdict, finding;
  bool trace = false;
};

struct Found {
  nlohmann::json verdict;
  std::optional<std::string> source;  // as the store has kept it
  std::string finding;
};

Result<Found> in_file(const Arguments& given) {
  const Result<std::string> text = read_file(given.verdict);
  if (!text) return text.error();
  Found found{nlohmann::json::parse(*text, nullptr, false), {}, given.finding};
  if (found.verdict.is_discarded()) return usage_error(given.verdict + " is not JSON");
  return found;
}

Result<Found> kept(const store::Store& store, const store::KeptVerdict& verdict, const std::string& finding) {
  const Result<std::string> text = store.artifact(verdict.verdict);
  if (!text) return text.error();
  Result<std::string> source = store.artifact(verdict.source);
  if (!source) return source.error();
  Found found{nlohmann::json::parse(*text, nullptr, false), std::move(*source), finding};
  if (found.verdict.is_discarded())
    return machine_error("verdict " + verdict.id + " in the store is damaged");
  return found;
}

// Of a verdict, or else of a finding in a verdict of the last ones.
Result<Found> by_id(const store::Store& store, const Arguments& given) {
  const Result<store::KeptVerdict> verdict = store.kept_verdict(given.verdict);
  if (verdict) return kept(store, *verdict, given.finding);
  const Result<std::vector<store::KeptVerdict>> last = store.kept_verdicts(kMostSearched);
  if (!last) return last.error();
  for (const store::KeptVerdict& one : *last) {
    if (one.status == "correct" || given.verdict.size() < kLeastDigits) continue;
    Result<Found> found = kept(store, one, given.verdict);
    if (found && judge::replay_request(found->verdict, given.verdict)) return found;
  }
  return usage_error(verdict.error().message,
                     "give a file that `check --json` or `sanitize --json` wrote, or the id of a verdict or "
                     "of a finding");
}

int run(const Session& session, const Arguments& given) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  std::error_code code;
  const Result<Found> found =
      std::filesystem::is_regular_file(given.verdict, code) ? in_file(given) : by_id(store.value(), given);
  if (!found) return session.fail(found.error());
  Result<judge::ReplayRequest> request = judge::replay_request(found->verdict, found->finding);
  if (!request) return session.fail(request.error());
  request->source = found->source;
  judge::CheckOptions folders;
  if (Status used = agent::use_store(store.value(), folders); !used) return session.fail(used.error());
  auto progress = session.progress();
  const Result<judge::ReplayReport> report = judge::replay(*request, folders, given.trace, *progress);
  progress.reset();
  if (!report) return session.fail(report.error());
  const std::string out =
      session.json ? judge::to_json(*report).dump(2) + "\n"
                   : judge::render(*report, {session.colour_out, session.verbose, {}}, given.trace);
  return session.print(out, report->same ? judge::exit_code_of(report->verdict) : kNo);
}

}  // namespace

void add_replay(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("replay", "Repeat a failing run of a verdict exactly");
  const auto given = std::make_shared<Arguments>();
  add_common_options(*command, session);
  command
      ->add_option("VERDICT", given->verdict,
                   "The id of a verdict or of a finding in the store, or a file that check --json or "
                   "sanitize --json has written")
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
