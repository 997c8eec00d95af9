#include "cli/session.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "agent/options.hpp"
#include "base/text.hpp"
#include "judge/invocation.hpp"
#include "vgpu/core/policy.hpp"

namespace echolo::cli {
namespace {

// Of seeds and of schedules: more than anybody waits for, and what a typing error should not ask for.
constexpr int kMostSeeds = 1000;

}  // namespace

Result<std::string> Session::store_path() const {
  if (!store_directory.empty()) return store_directory;
  return store::default_directory();
}

Result<store::Store> Session::open_store() const {
  Result<std::string> path = store_path();
  if (!path) return path.error();
  return store::Store::open(*path);
}

int Session::print(const std::string& text, int exit_code) const {
  const bool written =
      std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (written) return exit_code;
  std::fputs("echolo: cannot write the result to standard output\n", stderr);
  return kMachineFault;
}

int Session::print(const judge::Verdict& verdict, const Status& kept) const {
  judge::TextOptions options{colour_out, verbose, {}};
  if (kept) {
    options.again = judge::echolo_command() + " replay " + verdict.id;
    if (!store_directory.empty()) options.again += " --store " + shell_word(store_directory);
  }
  const std::string text = json ? judge::to_json(verdict).dump(2) + "\n" : judge::render(verdict, options);
  const int code = print(text, judge::exit_code_of(verdict));
  return kept ? code : fail(kept.error());
}

int exit_code_of(const Error& error) {
  switch (error.kind) {
    case ErrorKind::kUsage:
      return kBadUsage;
    case ErrorKind::kJudgement:
      return kNo;
    case ErrorKind::kMachine:
      return kMachineFault;
    case ErrorKind::kInterrupted:
      return kInterruptedExit;
  }
  return kMachineFault;
}

int Session::fail(const Error& error) const {
  const char* colour = colour_err ? "\x1b[1;31m" : "";
  const char* plain = colour_err ? "\x1b[0m" : "";
  std::fprintf(stderr, "%serror:%s %s\n", colour, plain, error.render().c_str());
  return exit_code_of(error);
}

void add_common_options(CLI::App& command, Session& session) {
  command.add_flag("--json", session.json, "Print one JSON document and nothing else on standard output");
  command.add_option("--store", session.store_directory,
                     "Folder of the store (default: ~/.local/share/echolo)");
}

Status examine(const ScheduleFlags& flags) {
  if (flags.seed < 0) return usage_error("--seed must not be negative");
  if (flags.n_seeds < 1 || flags.n_seeds > kMostSeeds || flags.n_schedules < 1 ||
      flags.n_schedules > kMostSeeds) {
    return usage_error("--seeds and --schedules must be between 1 and " + std::to_string(kMostSeeds));
  }
  if (flags.fabric != "nvlink" && flags.fabric != "rdma") {
    return usage_error("unknown fabric '" + printable(flags.fabric) + "'", "nvlink or rdma");
  }
  // 1 ms is the least that the node can keep; a smaller one would be no limit at all.
  if (!(flags.timeout_s >= 0.001) || flags.timeout_s > 86'400)
    return usage_error("--timeout must be between 0.001 and 86400 seconds");
  return {};
}

void add_schedule_options(CLI::App& command, ScheduleFlags& flags) {
  const std::string seeds = std::to_string(flags.n_seeds), schedules = std::to_string(flags.n_schedules);
  command.add_option("--seeds", flags.n_seeds, "How many seeds (default: " + seeds + ")");
  command.add_option(
      "--schedules", flags.n_schedules,
      "How many schedules for each seed, spread over the policies (default: " + schedules + ")");
  command.add_option("--policy", flags.policy, "Only this scheduling policy: " + vgpu::policy_names());
  command.add_option("--seed", flags.seed, "The first seed (default: 1)");
  command.add_option("--fabric", flags.fabric, "nvlink or rdma (default: nvlink)");
  command.add_option("--timeout", flags.timeout_s, "Seconds that one job may take (default: 60)");
}

void add_time_options(CLI::App& command, TimeFlags& flags) {
  command.add_option(
      "--trace", flags.trace,
      "Write the modelled timeline to this file, in the trace event format that Perfetto opens");
  command.add_option("--topology", flags.topology,
                     "The machine that times are modelled for: a name or a .toml file (default: H200s)");
}

void take_times(const TimeFlags& flags, judge::TimeOptions& times) {
  times.wanted = times.wanted || !flags.trace.empty() || !flags.topology.empty();
  times.topology = flags.topology;
  times.timeline = !flags.trace.empty();
}

Status write_timeline(const TimeFlags& flags, const judge::Verdict& verdict) {
  if (flags.trace.empty()) return {};
  if (verdict.timeline.empty()) {
    std::fprintf(stderr, "echolo: no timeline is written: only a correct run has one\n");
    return {};
  }
  if (Status written = write_file_atomically(flags.trace, verdict.timeline); !written) return written;
  std::fprintf(stderr, "echolo: the modelled timeline of %s is in %s\n", verdict.timeline_of.c_str(),
               flags.trace.c_str());
  return {};
}

void add_check_options(CLI::App& command, CheckFlags& flags) {
  judge::CheckOptions& options = flags.options;
  command.add_option("--world", options.world, "Number of PEs (default: the problem's smallest)");
  command.add_option("--dtype", options.dtype, "Element type (default: the problem's first)");
  command.add_option("--size", options.sizes, "A size by name, or 'drawn'; may be given several times")
      ->take_all()
      ->allow_extra_args(false);
  command.add_option("--set", options.settings, "key=value: a parameter of the problem, in every size")
      ->take_all()
      ->allow_extra_args(false);
  add_schedule_options(command, flags.schedule);
  command.add_option("--jobs", options.n_parallel, "Jobs at once (default: one a core)");
  command.add_option("--memory", flags.memory_gib,
                     "GiB of memory that judging may take (default: what the machine has)");
  command.add_option("--device", flags.device, "Where candidates run: virtual");
}

Result<judge::CheckOptions> check_options(const CheckFlags& flags, store::Store& store) {
  judge::CheckOptions options = flags.options;
  if (flags.device != "virtual") {
    return usage_error("--device " + flags.device + " is not built yet",
                       "this version judges on --device virtual");
  }
  if (options.world < 0) return usage_error("--world must be positive");
  if (!(flags.memory_gib >= 0 && flags.memory_gib <= 1e6))
    return usage_error("--memory must be a number of GiB above 0");
  options.memory_limit = static_cast<std::uint64_t>(flags.memory_gib * static_cast<double>(1ULL << 30U));
  if (options.n_parallel < 0) return usage_error("--jobs must be positive");
  if (Status fits = take_schedule(flags.schedule, options); !fits) return fits.error();
  if (Status used = agent::use_store(store, options); !used) return used.error();
  return options;
}

}  // namespace echolo::cli
