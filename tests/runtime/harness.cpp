#include "harness.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "../venv_nvcc.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo::runtime::test {
namespace {

namespace fs = std::filesystem;

std::string programs() { return std::string(ECHOLO_SOURCE_DIR) + "/tests/runtime/programs/"; }

// A folder of this test run, removed when it ends.
struct Folder {
  fs::path path;
  Folder() {
    std::string name = (fs::temp_directory_path() / "echolo-runtime-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (!path.empty()) fs::remove_all(path, ignored);
  }
};

}  // namespace

std::string nvcc() { return echolo::test::venv_nvcc(); }

namespace {

std::map<std::string, Result<std::string>>& done() {
  static std::map<std::string, Result<std::string>> all;
  return all;
}

std::string output_path(const std::string& name) {
  static const Folder folder;
  return (folder.path / name).string();
}

Result<std::string> compile(const std::string& key, Command command, const std::string& out) {
  command.timeout = std::chrono::minutes(5);
  const Result<Outcome> outcome = run_command(command);
  Result<std::string> result = out;
  if (!outcome.ok()) {
    result = outcome.error();
  } else if (!outcome->ok()) {
    result = machine_error(outcome->standard_output + outcome->standard_error);
  }
  return done().emplace(key, result).first->second;
}

}  // namespace

Result<std::string> compiled(const std::string& source, bool shared_library) {
  const auto it = done().find(source);
  if (it != done().end()) return it->second;
  const std::string out = output_path(source + (shared_library ? ".so" : ".exe"));
  const std::string root(ECHOLO_SOURCE_DIR), build(ECHOLO_BINARY_DIR);
  Command command;
  command.argv = {nvcc(),
                  "-std=c++17",
                  "-gencode",
                  "arch=compute_90a,code=compute_90a",
                  "-lineinfo",
                  "-cudart",
                  "none",
                  "--no-compress",
                  "-Xcompiler",
                  "-g",
                  "-I" + root + "/include",
                  "-I" + root + "/include/nvshmem",
                  programs() + source,
                  "-o",
                  out,
                  "-L" + build + "/lib/pe",
                  "-lnvshmem_host",
                  "-lcudart",
                  "-Xlinker",
                  "-rpath-link," + build + "/lib"};
  if (shared_library) command.argv.insert(command.argv.end(), {"-shared", "-Xcompiler", "-fPIC"});
  return compile(source, std::move(command), out);
}

Result<std::string> compiled_host(const std::string& source) {
  const auto it = done().find(source);
  if (it != done().end()) return it->second;
  const std::string out = output_path(source + ".exe");
  Command command;
  command.argv = {
      "c++", "-std=c++20", "-O1", "-I" + std::string(ECHOLO_SOURCE_DIR) + "/src", programs() + source,
      "-o",  out};
  return compile(source, std::move(command), out);
}

JobSpec program_job(const std::string& executable, int world, std::vector<std::string> arguments) {
  JobSpec spec;
  spec.world = world;
  spec.is_candidate = false;
  spec.program.executable = executable;
  spec.program.arguments = std::move(arguments);
  spec.timeout = std::chrono::seconds(60);
  spec.host_timeout = std::chrono::seconds(5);
  return spec;
}

std::string without_seconds(const JobResult& result) {
  nlohmann::json json = result;
  for (const char* key : {"seconds", "device_seconds"}) json.erase(key);
  return json.dump(1);
}

std::string render_all(const JobResult& result) {
  std::string out = result.status + ": " + result.message + "\n";
  for (const vgpu::Finding& finding : result.findings) out += vgpu::render(finding, {});
  for (std::size_t pe = 0; pe < result.pes.size(); ++pe) {
    out += "PE " + std::to_string(pe) + ": " + result.pes[pe].detail + "\n" +
           result.pes[pe].output.substr(0, 2000);
  }
  return out;
}

const vgpu::Finding* find(const JobResult& result, vgpu::FindingKind kind) {
  for (const vgpu::Finding& finding : result.findings) {
    if (finding.kind == kind) return &finding;
  }
  return nullptr;
}

int line_of(const std::string& source, const std::string& text) {
  const Result<std::string> file = read_file(programs() + source);
  if (!file.ok()) return 0;
  int line = 0;
  for (const std::string& content : split(*file, '\n')) {
    ++line;
    if (content.find(text) != std::string::npos) return line;
  }
  return 0;
}

}  // namespace echolo::runtime::test
