// echolo sanitize -n N PROGRAM.cu [-- args]
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "cli/session.hpp"
#include "judge/sanitize.hpp"

namespace echolo::cli {
namespace {

struct Arguments {
  std::string program;
  judge::SanitizeOptions options;
  double timeout_s = 60;
};

int run(const Session& session, Arguments given) {
  Result<store::Store> store = session.open_store();
  if (!store) return session.fail(store.error());
  Result<std::string> cache = store.value().cache_directory("compile");
  if (!cache) return session.fail(cache.error());
  if (!(given.timeout_s > 0) || given.timeout_s > 86'400) {
    return session.fail(usage_error("--timeout must be between 0 and 86400 seconds"));
  }
  given.options.compile_cache = *cache;
  given.options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(given.timeout_s * 1000));
  auto progress = session.progress();
  Result<judge::Verdict> verdict = judge::sanitize_program(given.program, given.options, *progress);
  progress.reset();
  if (!verdict) return session.fail(verdict.error());
  const std::string text = session.json ? judge::to_json(*verdict).dump(2) + "\n"
                                        : judge::render(*verdict, {session.colour_out, session.verbose});
  return session.print(text, judge::exit_code_of(*verdict));
}

}  // namespace

void add_sanitize(CLI::App& app, Session& session) {
  CLI::App* command =
      app.add_subcommand("sanitize", "Run a whole CUDA + NVSHMEM program on the virtual node");
  const auto given = std::make_shared<Arguments>();
  judge::SanitizeOptions& options = given->options;
  add_common_options(*command, session);
  command->add_option("-n,--world", options.world, "Number of PEs (default: 2)");
  command->add_option("--seed", options.seed, "The first seed (default: 1)");
  command->add_option("--seeds", options.n_seeds, "How many seeds (default: 1)");
  command->add_option("--schedules", options.n_schedules,
                      "How many schedules: one fair, the others random (default: 1)");
  command->add_option("--fabric", options.fabric, "nvlink or rdma (default: nvlink)");
  command->add_option("--timeout", given->timeout_s, "Seconds that one run may take (default: 60)");
  command->add_flag("--verbose", session.verbose, "The whole log");
  command->add_option("PROGRAM", given->program, "A .cu file with main")->required();
  command->add_option("ARGS", options.arguments, "Arguments of the program, after --");
  command->callback(
      [&session, given] { session.chosen = [&session, given] { return run(session, *given); }; });
}

}  // namespace echolo::cli
