// echolo sanitize -n N PROGRAM.cu [-- args]
#include <CLI/CLI.hpp>

#include "cli/session.hpp"
#include "judge/kept.hpp"
#include "judge/minimise.hpp"
#include "judge/sanitize.hpp"

namespace echolo::cli {
namespace {

struct Arguments {
  std::string program;
  judge::SanitizeOptions options;
  ScheduleFlags schedule{.n_seeds = 1, .n_schedules = 1};
  bool as_found = false;
  TimeFlags times;
};

int run(const Session& session, Arguments given) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<std::string> cache = store.value().cache_directory("compile");
  if (!cache) return session.fail(cache.error());
  given.options.compile_cache = *cache;
  Result<std::string> work = store.value().cache_directory("work");
  if (!work) return session.fail(work.error());
  given.options.times.work_folder = *work;
  take_times(given.times, given.options.times);
  if (Status fits = take_schedule(given.schedule, given.options); !fits) return session.fail(fits.error());
  auto progress = session.progress();
  Result<judge::Verdict> verdict = judge::sanitize_program(given.program, given.options, *progress);
  if (verdict && !given.as_found) {
    if (Status done = judge::minimise_program(*verdict, given.program, given.options, *progress); !done)
      verdict = done.error();
  }
  progress.reset();
  if (!verdict) return session.fail(verdict.error());
  if (Status written = write_timeline(given.times, *verdict); !written) return session.fail(written.error());
  return session.print(*verdict, judge::keep_sanitize(store.value(), given.program, given.options, *verdict));
}

}  // namespace

void add_sanitize(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("sanitize", "Run a whole CUDA + NVSHMEM program on the virtual node");
  const auto given = std::make_shared<Arguments>();
  judge::SanitizeOptions& options = given->options;
  add_common_options(*command, session);
  command->add_option("-n,--world", options.world, "Number of PEs (default: 2)");
  add_schedule_options(*command, given->schedule);
  add_time_options(*command, given->times);
  command->add_flag("--as-found", given->as_found,
                    "Show a finding as it was found, without looking for a smaller run that shows it");
  command->add_flag("--verbose", session.verbose, "The whole log");
  command->add_option("PROGRAM", given->program, "A .cu file with main")->required();
  command->add_option("ARGS", options.arguments, "Arguments of the program, after --");
  command->callback(
      [&session, given] { session.chosen = [&session, given] { return run(session, *given); }; });
}

}  // namespace echolo::cli
