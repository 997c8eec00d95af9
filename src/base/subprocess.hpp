// Runs a child in a process group of its own, with a time limit and bounded capture of its output.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo {

struct Command {
  std::vector<std::string> argv;  // argv[0] is looked up on PATH
  std::map<std::string, std::string>
      env;  // added to (or, with clear_env, instead of) this process's environment
  bool clear_env = false;
  std::string directory;  // working directory; empty: unchanged
  std::string standard_input;
  std::chrono::milliseconds timeout{0};             // 0: none
  std::size_t capture_limit = 4U << 20U;            // bytes kept of each stream; the rest is read and dropped
  bool merge_output = false;                        // standard error into standard output
  std::function<void(std::string_view)> on_output;  // called with standard output as it comes; may be empty
  std::function<bool()> on_tick;   // called while the child lives, at least every 50 ms; false kills it
  std::function<void()> in_child;  // runs between fork and exec; async-signal-safe code only
};

struct Outcome {
  int exit_code = -1;  // valid where signal == 0 and !timed_out
  int signal = 0;      // the signal that ended it, or 0
  bool timed_out = false;
  bool cancelled = false;    // on_tick said so
  bool interrupted = false;  // this process was asked to stop (see interrupt_flag)
  bool truncated = false;    // output beyond capture_limit was dropped
  std::string standard_output;
  std::string standard_error;
  double seconds = 0;
  bool ok() const { return !timed_out && !cancelled && !interrupted && signal == 0 && exit_code == 0; }
};

// Waits for the child and kills its whole process group at the limit, on interruption, or when this object's
// caller is done. Errors: the program does not exist (kMachine), fork failed (kMachine).
Result<Outcome> run_command(const Command& command);

// Set by the SIGINT/SIGTERM handler that install_interrupt_handler() installs; long loops poll it.
std::atomic<bool>& interrupt_flag();
void install_interrupt_handler();

}  // namespace echolo
