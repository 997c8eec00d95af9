// echolo litmus FILE|DIR...: what PTX's memory model lets a test do
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "cli/session.hpp"
#include "litmus/suite.hpp"

namespace echolo::cli {
namespace {

struct Flags {
  std::vector<std::string> paths;
  std::string model = "machine";
  std::string expected;
  bool liveness = false;
  double seconds = 10;
  int unroll = 8;
};

std::string padded(std::string text, std::size_t width) {
  text.resize(std::max(text.size(), width), ' ');
  return text;
}

int litmus_command(const Session& session, const Flags& flags) {
  Result<std::vector<std::string>> files = litmus::litmus_files(flags.paths);
  if (!files) return session.fail(files.error());
  litmus::Expected expected;
  if (!flags.expected.empty()) {
    Result<litmus::Expected> loaded = litmus::load_expected(flags.expected);
    if (!loaded) return session.fail(loaded.error());
    expected = std::move(loaded).value();
  }
  litmus::SuiteOptions options;
  options.model = flags.model == "axioms" ? litmus::Model::kAxioms : litmus::Model::kMachine;
  options.limits.seconds = flags.seconds;
  options.limits.trace.iterations = flags.unroll;

  const bool table = files->size() > 1 || !flags.expected.empty();
  nlohmann::json tests = nlohmann::json::array();
  std::string text;
  std::size_t good = 0, compared = 0, agree = 0, unfinished = 0, malformed = 0, done = 0;
  auto progress = session.progress();
  progress->stage("litmus", "");
  for (const std::string& file : *files) {
    if (interrupt_flag()) {
      progress.reset();
      return session.fail({ErrorKind::kInterrupted, "interrupted", {}, {}, 0, 0});
    }
    progress->advance(done++, files->size(), file);
    Result<litmus::Judged> judged = litmus::judge_file(file, options);
    if (!judged) {
      if (files->size() == 1) {
        progress.reset();
        return session.fail(judged.error());
      }
      ++malformed;
      progress->note(judged.error().render());
      tests.push_back({{"file", file}, {"error", judged.error().render()}});
      continue;
    }
    const litmus::Answer& answer = judged->answer;
    const bool says = flags.liveness ? answer.terminates : answer.holds;
    if (says) ++good;
    if (!answer.complete) ++unfinished;
    nlohmann::json json = litmus::to_json(*judged);
    const bool* wanted = expected.find(file);
    if (wanted != nullptr) {
      ++compared;
      if (*wanted == says) ++agree;
      json["expected"] = *wanted;
    }
    tests.push_back(std::move(json));
    if (session.json) continue;
    if (!table) {
      text += litmus::render(*judged);
      continue;
    }
    char time[32];
    std::snprintf(time, sizeof time, "%7.2f s  ", judged->seconds);
    text += padded(flags.liveness ? (says ? "ends" : "can hang") : (says ? "holds" : "does not hold"), 15) +
            padded(std::to_string(answer.outcomes.size()) + " outcomes", 14) + time + file;
    if (wanted != nullptr && *wanted != says) text += "   EXPECTED OTHERWISE";
    if (!answer.complete) text += "   not everything explored: " + answer.why_incomplete;
    text += "\n";
  }
  progress.reset();
  if (table) {
    text += std::to_string(files->size()) + " tests: " + std::to_string(good) +
            (flags.liveness ? " always end" : " hold");
    if (compared > 0)
      text += ", " + std::to_string(agree) + " of " + std::to_string(compared) + " as expected";
    if (unfinished > 0) text += ", " + std::to_string(unfinished) + " not fully explored";
    if (malformed > 0) text += ", " + std::to_string(malformed) + " not understood";
    text += "\n";
  }
  const bool all_good = flags.expected.empty() ? good == files->size() : agree == compared && compared > 0;
  const int exit_code = malformed > 0 ? kBadUsage : all_good ? kGood : kNo;
  if (!session.json) return session.print(text, exit_code);
  nlohmann::json all = {{"tests", std::move(tests)}, {"model", flags.model}};
  if (compared > 0) all["as_expected"] = {{"agree", agree}, {"of", compared}};
  return session.print(all.dump(2) + "\n", exit_code);
}

}  // namespace

void add_litmus(CLI::App& app, Session& session) {
  const auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand(
      "litmus", "All outcomes that PTX's memory model allows a litmus test, and whether its condition holds");
  add_common_options(*command, session);
  command->add_option("FILE", flags->paths, "Litmus files, or directories of them")->required();
  command
      ->add_option("--model", flags->model,
                   "machine: executes the test; axioms: enumerates what the axioms allow")
      ->check(CLI::IsMember({"machine", "axioms"}));
  command->add_option("--expected", flags->expected, "A CSV of lines file,0|1 to compare with");
  command->add_flag("--liveness", flags->liveness, "Judge whether every run ends, instead of the condition");
  command->add_option("--timeout", flags->seconds, "Seconds a test, at most")->check(CLI::PositiveNumber);
  command
      ->add_option("--unroll", flags->unroll,
                   "How often a thread may jump back in a loop that changes something")
      ->check(CLI::Range(1, 40));
  command->callback(
      [&session, flags] { session.chosen = [&session, flags] { return litmus_command(session, *flags); }; });
}

}  // namespace echolo::cli
