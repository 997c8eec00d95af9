// What every command of `echolo` shares: global options, where output goes, and how errors end the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/check.hpp"
#include "judge/progress.hpp"
#include "store/store.hpp"

namespace CLI {
class App;
}

namespace echolo::cli {

inline constexpr int kGood = 0, kNo = 1, kBadUsage = 2, kMachineFault = 3, kInterruptedExit = 130;

struct Session {
  bool json = false;
  bool verbose = false;
  std::string store_directory;  // empty: the default one
  std::function<int()> chosen;  // set by the command that was given

  bool colour_out = false;  // standard output is a terminal that wants colour
  bool colour_err = false;

  Result<store::Store> open_store() const;
  Result<std::string> store_path() const;
  // Prints to standard output; an error there (disk full) is an exit code too.
  int print(const std::string& text, int exit_code = kGood) const;
  // A verdict, as JSON or for a terminal. Where it could not be kept in the store that is said after it.
  int print(const judge::Verdict& verdict, const Status& kept) const;
  int fail(const Error& error) const;  // prints to standard error
  std::unique_ptr<judge::Progress> progress() const;
};

// Which runs a judgement consists of; the numbers are the defaults.
struct ScheduleFlags {
  std::int64_t seed = 1;
  int n_seeds = 3;
  int n_schedules = 2;
  std::string policy = {};  // empty: spread over all
  std::string fabric = "nvlink";
  double timeout_s = 60;
};

// The options that several commands share (docs: "Common options").
struct CheckFlags {
  judge::CheckOptions options;
  ScheduleFlags schedule;
  std::string device = "virtual";
  double memory_gib = 0;  // 0: what the machine has
};
Status examine(const ScheduleFlags& flags);
void add_common_options(CLI::App& command, Session& session);
void add_schedule_options(CLI::App& command, ScheduleFlags& flags);
void add_check_options(CLI::App& command, CheckFlags& flags);
// Fills the fields that CheckOptions and SanitizeOptions share. Error (kUsage): a number out of its range.
template <typename Options>
Status take_schedule(const ScheduleFlags& flags, Options& options) {
  if (Status fits = examine(flags); !fits) return fits;
  options.seed = static_cast<std::uint64_t>(flags.seed);
  options.n_seeds = flags.n_seeds;
  options.n_schedules = flags.n_schedules;
  options.policy = flags.policy;
  options.fabric = flags.fabric;
  options.timeout = std::chrono::milliseconds(static_cast<std::int64_t>(flags.timeout_s * 1000));
  return {};
}
// The flags as the judge wants them, with the store's folders. Errors (kUsage): another device than virtual,
// a number out of its range.
Result<judge::CheckOptions> check_options(const CheckFlags& flags, store::Store& store);

// --trace and --topology: where modelled time goes, and on which machine.
struct TimeFlags {
  std::string trace, topology;
};
void add_time_options(CLI::App& command, TimeFlags& flags);
void take_times(const TimeFlags& flags, judge::TimeOptions& times);
// Writes the verdict's timeline, where one was asked for, and says so on standard error. Errors: it can't be
// written. A run that was not correct has none, which is said too.
Status write_timeline(const TimeFlags& flags, const judge::Verdict& verdict);

int exit_code_of(const Error& error);

// One a file; each registers its command with `app`.
void add_problems(CLI::App& app, Session& session);
void add_reference(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_sanitize(CLI::App& app, Session& session);
void add_replay(CLI::App& app, Session& session);
void add_optimize(CLI::App& app, Session& session);
void add_runs(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_litmus(CLI::App& app, Session& session);
void add_later(CLI::App& app, Session& session);

}  // namespace echolo::cli
