#include "runtime/job.hpp"

#include <unistd.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo::runtime {
namespace {

// The node's own start and end, beside the job's limit.
constexpr std::chrono::milliseconds kGrace{20'000};
constexpr std::size_t kMaxResult = 256U << 20U;
constexpr int kMachineFault = 3;  // the node's exit code beside {"error": ...}

std::string node_binary() {
  if (const char* folder = std::getenv("ECHOLO_BIN_DIR")) return std::string(folder) + "/echolo-node";
  char path[4096];
  const ssize_t n = ::readlink("/proc/self/exe", path, sizeof path - 1);
  std::string self(path, n > 0 ? static_cast<std::size_t>(n) : 0);
  self.resize(self.find_last_of('/') == std::string::npos ? 0 : self.find_last_of('/'));
  // Tests and benchmarks lie one folder below the binaries.
  for (const std::string& folder : {self, self + "/.."}) {
    if (::access((folder + "/echolo-node").c_str(), X_OK) == 0) return folder + "/echolo-node";
  }
  return self + "/echolo-node";
}

}  // namespace

Result<JobResult> run_job(const JobSpec& spec) {
  Command command;
  command.argv = {node_binary()};
  command.standard_input = nlohmann::json(spec).dump();
  command.timeout = spec.timeout + kGrace;
  command.capture_limit = kMaxResult;
  Result<Outcome> outcome = run_command(command);
  if (!outcome.ok()) return outcome.error();
  if (outcome->interrupted) return Error{ErrorKind::kInterrupted, "interrupted", "", "", 0, 0};
  if (outcome->timed_out) return machine_error("the virtual node did not end within its time limit");
  if (outcome->signal != 0) {
    return machine_error("the virtual node ended with signal " + std::to_string(outcome->signal) + ": " +
                         printable(trim(outcome->standard_error)));
  }
  const nlohmann::json answer = nlohmann::json::parse(outcome->standard_output, nullptr, false);
  if (answer.is_discarded()) {
    return machine_error("the virtual node gave no result: " + printable(trim(outcome->standard_error)));
  }
  // Under a sanitizer a node may find its own fault after the answer: then the answer is worth nothing.
  if (outcome->exit_code != 0 && outcome->exit_code != kMachineFault) {
    return machine_error("the virtual node ended with code " + std::to_string(outcome->exit_code) + ": " +
                         printable(trim(outcome->standard_error)));
  }
  try {
    if (answer.contains("error")) {
      const nlohmann::json& e = answer["error"];
      Error error;
      error.kind = static_cast<ErrorKind>(e.at("kind").get<int>());
      error.message = e.at("message").get<std::string>();
      error.hint = e.at("hint").get<std::string>();
      error.file = e.at("file").get<std::string>();
      error.line = e.at("line").get<int>();
      return error;
    }
    return answer.get<JobResult>();
  } catch (const std::exception& e) {
    return machine_error(std::string("the virtual node's result makes no sense: ") + e.what());
  }
}

}  // namespace echolo::runtime
