// What every command of `echolo` shares: global options, where output goes, and how errors end the process.
#pragma once

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
  int fail(const Error& error) const;  // prints to standard error
  std::unique_ptr<judge::Progress> progress() const;
};

// The options that several commands share (docs: "Common options").
struct CheckFlags {
  judge::CheckOptions options;
  double timeout_s = 60;
  bool curve = false;
  std::string device = "virtual";
  std::string trace;
};
void add_common_options(CLI::App& command, Session& session);
void add_check_options(CLI::App& command, CheckFlags& flags);
// The flags as the judge wants them, with the store's folders. Errors: --curve and the like, whose time has
// not come.
Result<judge::CheckOptions> check_options(const CheckFlags& flags, store::Store& store);

int exit_code_of(const Error& error);

// One a file; each registers its command with `app`.
void add_problems(CLI::App& app, Session& session);
void add_reference(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_sanitize(CLI::App& app, Session& session);
void add_optimize(CLI::App& app, Session& session);
void add_runs(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_litmus(CLI::App& app, Session& session);
void add_later(CLI::App& app, Session& session);

}  // namespace echolo::cli
