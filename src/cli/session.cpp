#include "cli/session.hpp"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "agent/options.hpp"

namespace echolo::cli {

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
  command.add_option("--seeds", options.n_seeds, "How many seeds (default: 3)");
  command.add_option("--schedules", options.n_schedules,
                     "How many schedules: one fair, the others random (default: 2)");
  command.add_option("--seed", options.seed, "The first seed (default: 1)");
  command.add_option("--fabric", options.fabric, "nvlink or rdma (default: nvlink)");
  command.add_option("--timeout", flags.timeout_s, "Seconds that one job may take (default: 60)");
  command.add_option("--jobs", options.n_parallel, "Jobs at once (default: one a core)");
  command.add_option("--device", flags.device, "Where candidates run: virtual");
}

Result<judge::CheckOptions> check_options(const CheckFlags& flags, store::Store& store) {
  judge::CheckOptions options = flags.options;
  if (flags.device != "virtual") {
    return usage_error("--device " + flags.device + " is not built yet",
                       "this version judges on --device virtual");
  }
  if (!(flags.timeout_s > 0) || flags.timeout_s > 86'400)
    return usage_error("--timeout must be between 0 and 86400 seconds");
  if (options.world < 0) return usage_error("--world must be positive");
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout_s * 1000));
  if (Status used = agent::use_store(store, options); !used) return used.error();
  return options;
}

}  // namespace echolo::cli
