// echolo check PROBLEM CANDIDATE
#include <CLI/CLI.hpp>

#include "cli/session.hpp"
#include "judge/kept.hpp"
#include "judge/minimise.hpp"
#include "problem/suite.hpp"

namespace echolo::cli {
namespace {

struct Arguments {
  std::string problem, candidate;
  std::vector<std::string> knobs;
  bool as_found = false;
  CheckFlags flags;
  TimeFlags times;
};

int run(const Session& session, const Arguments& given) {
  Result<Problem> problem = find_problem(given.problem);
  if (!problem) return session.fail(problem.error());
  Result<judge::Candidate> candidate = judge::load_candidate(given.candidate, given.knobs);
  if (!candidate) return session.fail(candidate.error());
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<judge::CheckOptions> options = check_options(given.flags, store.value());
  if (!options) return session.fail(options.error());
  take_times(given.times, options->times);
  auto progress = session.progress();
  Result<judge::Verdict> verdict = judge::check_candidate(*problem, *candidate, *options, *progress);
  if (verdict && !given.as_found) {
    if (Status done = judge::minimise_check(*verdict, *problem, *candidate, *options, *progress); !done)
      verdict = done.error();
  }
  progress.reset();
  if (!verdict) return session.fail(verdict.error());
  if (Status written = write_timeline(given.times, *verdict); !written) return session.fail(written.error());
  return session.print(*verdict, judge::keep_check(store.value(), *problem, *candidate, *options, *verdict));
}

}  // namespace

void add_check(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("check", "Screen, compile and check a candidate on the virtual node");
  const auto given = std::make_shared<Arguments>();
  add_common_options(*command, session);
  add_check_options(*command, given->flags);
  add_time_options(*command, given->times);
  command->add_flag("--curve", given->flags.options.curve,
                    "Judge at the sizes of the problem's [curve]; large ones take long, see --timeout");
  command->add_option("PROBLEM", given->problem, "A problem's name or directory")->required();
  command->add_option("CANDIDATE", given->candidate, "A .cu file or a kernel directory")->required();
  command->add_option("--knob", given->knobs, "NAME=VALUE: a knob of the kernel; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  command->add_flag("--as-found", given->as_found,
                    "Show a finding as it was found, without looking for a smaller run that shows it");
  command->add_flag("--verbose", session.verbose, "Every wrong comparison and the whole log");
  command->callback(
      [&session, given] { session.chosen = [&session, given] { return run(session, *given); }; });
}

}  // namespace echolo::cli
