#include "reference/runner.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "problem/suite.hpp"

namespace echolo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kScratchPrefix = "tmp-";

// The last lines of what a program said, for an error that has nothing better to show.
std::string tail(const std::string& text, std::size_t n_lines) {
  std::vector<std::string> lines = split(trim(text), '\n');
  if (lines.size() > n_lines) lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(n_lines));
  return printable(join(lines, "\n"));
}

// A child must not outlive this process, not even one that was killed with SIGKILL.
void die_with_parent() { ::prctl(PR_SET_PDEATHSIG, SIGKILL); }

Error error_from(const Json& json) {
  Error error;
  const std::string kind = json.value("kind", "machine");
  error.kind = kind == "usage" ? ErrorKind::kUsage : ErrorKind::kMachine;
  error.message = printable(json.value("message", ""));
  error.hint = printable(json.value("hint", ""));
  error.file = json.value("file", "");
  error.line = json.value("line", 0);
  return error;
}

// Every file of the problem that its reference may be made of.
std::vector<fs::path> sources(const fs::path& directory) {
  std::vector<fs::path> out;
  std::error_code code;
  for (auto it = fs::recursive_directory_iterator(directory, code);
       !code && it != fs::recursive_directory_iterator(); it.increment(code)) {
    const std::string name = it->path().filename().string();
    if (name == "__pycache__" || name.starts_with(".")) it.disable_recursion_pending();
    if (it->is_regular_file(code) && (it->path().extension() == ".py" || name == "problem.toml")) {
      out.push_back(it->path());
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Status hash_files(Sha256& hash, const fs::path& directory) {
  for (const fs::path& path : sources(directory)) {
    const Result<std::string> text = read_file(path.string());
    if (!text) return text.error();
    hash.field(path.lexically_relative(directory).string()).field(*text);
  }
  return {};
}

}  // namespace

Result<std::string> reference_python() {
  if (const char* given = std::getenv("ECHOLO_PYTHON"); given != nullptr && *given != '\0') {
    if (::access(given, X_OK) == 0) return std::string(given);
    return machine_error(std::string("ECHOLO_PYTHON is ") + given + ", which cannot be run",
                         "set it to a Python with torch");
  }
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  const std::string path = (fs::path(*home) / ".venv" / "bin" / "python").string();
  if (::access(path.c_str(), X_OK) == 0) return path;
  return machine_error("there is no Python with PyTorch: " + path + " is missing",
                       "./run.sh makes it, or set ECHOLO_PYTHON to a Python that has torch and safetensors");
}

Result<PackageVersions> package_versions(const std::string& python) {
  static std::mutex mutex;
  static std::map<std::string, PackageVersions> known;
  const std::lock_guard lock(mutex);
  if (const auto found = known.find(python); found != known.end()) return found->second;
  Command command;
  command.argv = {python, "-s", "-c",
                  "import sys, importlib.metadata as m\n"
                  "print(sys.version.split()[0])\n"
                  "for name in ('torch', 'safetensors', 'numpy'):\n"
                  "    try: print(m.version(name))\n"
                  "    except m.PackageNotFoundError: print('missing ' + name)\n"};
  command.timeout = std::chrono::seconds(60);
  command.in_child = die_with_parent;
  const Result<Outcome> outcome = run_command(command);
  if (!outcome) return outcome.error();
  if (outcome->interrupted) return Error{ErrorKind::kInterrupted, "interrupted", {}, {}, 0, 0};
  const std::vector<std::string> lines = split(trim(outcome->standard_output), '\n');
  if (!outcome->ok() || lines.size() != 4) {
    return machine_error(python + " does not work: " + tail(outcome->standard_error, 3));
  }
  for (const std::string& line : lines) {
    if (line.starts_with("missing ")) {
      return machine_error(python + " lacks the package " + line.substr(8),
                           "./run.sh makes the environment anew");
    }
  }
  return known[python] = PackageVersions{lines[0], lines[1], lines[2], lines[3]};
}

Result<Json> run_python(const std::string& script, const Json& request, std::chrono::milliseconds limit,
                        const std::function<bool()>& on_tick) {
  const Result<std::string> python = reference_python();
  if (!python) return python.error();
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  Command command;
  command.argv = {*python, "-s", (fs::path(*home) / "python" / "echolo" / script).string()};
  // Installers may leave packages without compiled bytecode; importing torch takes twice as long without it.
  command.env = {{"PYTHONDONTWRITEBYTECODE", ""}, {"PYTHONPATH", ""}};
  command.standard_input = request.dump();
  command.timeout = limit;
  command.on_tick = on_tick;
  command.in_child = die_with_parent;
  const Result<Outcome> outcome = run_command(command);
  if (!outcome) return outcome.error();
  if (outcome->interrupted || outcome->cancelled)
    return Error{ErrorKind::kInterrupted, "interrupted", {}, {}, 0, 0};
  const std::string result_path = request.at("result").get<std::string>();
  std::error_code code;
  if (!outcome->timed_out && fs::exists(result_path, code)) {
    const Result<std::string> text = read_file(result_path);
    if (!text) return text.error();
    Json answer = Json::parse(*text, nullptr, false);
    if (answer.is_object() && answer.contains("error")) return error_from(answer["error"]);
    if (answer.is_object() && outcome->ok()) return answer;
  }
  std::string how = "ended with exit code " + std::to_string(outcome->exit_code);
  if (outcome->signal != 0) how = "was killed by signal " + std::to_string(outcome->signal);
  if (outcome->timed_out) how = "did not end within " + std::to_string(limit.count() / 1000) + " s";
  const std::string said = tail(outcome->standard_error, 15);
  if (said.find("No space left on device") != std::string::npos) {
    return machine_error("the disk is full: results of the reference cannot be written to " +
                             fs::path(result_path).parent_path().string(),
                         "free some disk space, or give another folder with --store");
  }
  return machine_error("the reference runner " + how + (said.empty() ? "" : "\n" + said));
}

Result<std::string> problem_hash(const Problem& problem, const PackageVersions& versions) {
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  Sha256 hash;
  hash.field("reference 1").field(versions.text());
  if (Status status = hash_files(hash, problem.directory); !status) return status.error();
  if (Status status = hash_files(hash, fs::path(*home) / "python" / "echolo"); !status) return status.error();
  return hash.hex();
}

Result<ScratchFolder> ScratchFolder::make(const std::string& parent) {
  static std::atomic<int> counter{0};
  std::error_code code;
  fs::create_directories(parent, code);
  if (code) return machine_error("cannot make the folder " + parent + ": " + code.message());
  for (const fs::directory_entry& entry : fs::directory_iterator(parent, code)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kScratchPrefix)) continue;
    const pid_t owner =
        static_cast<pid_t>(std::strtol(name.c_str() + std::string_view(kScratchPrefix).size(), nullptr, 10));
    std::error_code ignored;
    if (owner > 0 && ::kill(owner, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
  const std::string path = (fs::path(parent) / (kScratchPrefix + std::to_string(::getpid()) + "-" +
                                                std::to_string(counter.fetch_add(1))))
                               .string();
  fs::remove_all(path, code);
  if (!fs::create_directory(path, code))
    return machine_error("cannot make the folder " + path + ": " + code.message());
  return ScratchFolder(path);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

}  // namespace echolo
