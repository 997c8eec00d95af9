#include "judge/sandbox.hpp"

#include <sys/resource.h>

#include <filesystem>

#include "base/text.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

// Reported by bubblewrap itself, before the tool starts.
constexpr const char* kBwrapPrefix = "bwrap: ";

void limit(int resource, rlim_t value) {
  const rlimit both{value, value};
  ::setrlimit(static_cast<__rlimit_resource_t>(resource), &both);
}

}  // namespace

Result<Outcome> run_sandboxed(const SandboxedTool& tool) {
  Command command;
  command.argv = {"bwrap",  "--unshare-all", "--die-with-parent", "--new-session", "--clearenv", "--setenv",
                  "PATH",   "/usr/bin:/bin", "--setenv",          "HOME",          kScratch,     "--setenv",
                  "TMPDIR", kScratch,        "--setenv",          "LC_ALL",        "C"};
  const auto add = [&](std::initializer_list<std::string> words) {
    command.argv.insert(command.argv.end(), words.begin(), words.end());
  };
  for (const char* folder : {"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}) {
    std::error_code code;
    if (fs::is_symlink(folder, code)) {
      add({"--symlink", fs::read_symlink(folder, code).string(), folder});
    } else if (fs::is_directory(folder, code)) {
      add({"--ro-bind", folder, folder});
    }
  }
  add({"--ro-bind-try", "/etc/alternatives", "/etc/alternatives", "--ro-bind-try", "/etc/ld.so.cache",
       "/etc/ld.so.cache"});
  for (const auto& [outside, inside] : tool.read_only) add({"--ro-bind", outside, inside});
  add({"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", tool.scratch, kScratch, "--chdir",
       kScratch, "--"});
  command.argv.insert(command.argv.end(), tool.argv.begin(), tool.argv.end());
  command.timeout = tool.timeout;
  command.in_child = [&tool] {
    limit(RLIMIT_AS, tool.memory);
    limit(RLIMIT_FSIZE, tool.file_size);
    limit(RLIMIT_CORE, 0);
  };
  Result<Outcome> outcome = run_command(command);
  if (!outcome) {
    return machine_error("the sandbox cannot start: " + outcome.error().message,
                         "install bubblewrap: sudo apt-get install bubblewrap");
  }
  if (outcome->interrupted) {
    Error error = machine_error("interrupted");
    error.kind = ErrorKind::kInterrupted;
    return error;
  }
  if (!outcome->timed_out && !outcome->ok() && outcome->standard_error.starts_with(kBwrapPrefix)) {
    return machine_error("the sandbox cannot be made: " + std::string(trim(outcome->standard_error)),
                         "echolo doctor says what is missing");
  }
  return outcome;
}

}  // namespace echolo::judge
