#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "reference/authoring.hpp"
#include "reference/runner.hpp"

namespace echolo {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kToml = R"(name = "@NAME@"
summary = "Scale each row block and sum it over all ranks."
family = "own"
worlds = [2, 4, 8]
dtypes = ["bf16", "f32"]        # the first is the default
# constraints = ["M % world == 0"]

# Parameters are whole numbers that shapes are made of. A check also runs a size drawn from these ranges.
[params.M]
about = "rows"
default = 64
draw = { min = 16, max = 96, multiple_of = 8 }

[params.N]
about = "columns"
default = 64
draw = { min = 16, max = 96, multiple_of = 16 }

# Expressions: + - * / // % ( ) min max ceil_div, over parameters, world and, in shapes, rank. "/" must come out even.
[sizes]
smoke = { M = "4 * world", N = 32 }
small = { M = 128, N = 128 }

[curve]
m256 = { M = 256, N = 256 }
m512 = { M = 512, N = 512 }
m1024 = { M = 1024, N = 1024 }
m2048 = { M = 2048, N = 2048 }
m4096 = { M = 4096, N = 4096 }
m8192 = { M = 8192, N = 8192 }

# One for each tensor argument of solution(). fill: normal, uniform (both with scale), integers (with low and high),
# zeros, ones, arange. dtype: left out, it is the dtype that the problem runs in.
[[inputs]]
name = "x"
shape = ["M", "N"]
fill = "normal"

[[inputs]]
name = "scale"
shape = ["N"]
fill = "uniform"
replicated = true               # the same on every rank

# One for each tensor that solution() returns.
[[outputs]]
name = "y"
shape = ["M", "N"]
)";

constexpr const char* kReference = R"(import torch.distributed as dist


def solution(x, scale):
    y = x * scale
    dist.all_reduce(y)
    return y
)";

std::string problem_name(const fs::path& directory) {
  fs::path path = directory.lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  std::string name;
  for (const char c : path.filename().string()) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 && byte < 0x80 ? static_cast<char>(std::tolower(byte)) : '_';
  }
  if (name.empty() || name.find_first_not_of('_') == std::string::npos) name = "problem";
  if (std::isdigit(static_cast<unsigned char>(name[0])) != 0) name = "p_" + name;
  return name.substr(0, 64);
}

Status write_plain(const fs::path& folder, const std::string& name) {
  std::string toml = kToml;
  const std::string mark = "@NAME@";
  toml.replace(toml.find(mark), mark.size(), name);
  if (Status status = write_file_atomically((folder / "problem.toml").string(), toml); !status) return status;
  return write_file_atomically((folder / "reference.py").string(), kReference);
}

Result<Json> write_from(const std::string& from, const fs::path& folder, const fs::path& scratch,
                        const std::string& name, const std::vector<std::string>& dtypes) {
  const std::size_t colon = from.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == from.size()) {
    return usage_error("'" + printable(from) + "' does not name a function",
                       "write it as script.py:function");
  }
  const std::string script = from.substr(0, colon);
  std::error_code code;
  if (!fs::is_regular_file(script, code)) return usage_error("there is no file " + script);
  const Json request = {{"script", fs::absolute(script).string()},
                        {"function", from.substr(colon + 1)},
                        {"name", name},
                        {"directory", folder.string()},
                        {"scratch", scratch.string()},
                        {"result", (scratch / "answer.json").string()},
                        {"limit_s", 30.0},
                        {"dtypes", dtypes}};
  return run_python("skeleton.py", request, std::chrono::minutes(10));
}

// Moves the finished files; what was moved is taken back where a later one fails.
Result<std::vector<std::string>> move_files(const fs::path& from, const fs::path& to) {
  std::error_code code;
  const bool existed = fs::exists(to, code);
  fs::create_directories(to, code);
  if (code) return machine_error("cannot make the folder " + to.string() + ": " + code.message());
  std::vector<std::string> written;
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(from, code)) {
    if (entry.is_regular_file(code)) names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    const std::string target = (to / name).string();
    Status status;
    if (fs::exists(target, code)) {
      status = usage_error(target + " exists already", "give another folder");
    } else if (const Result<std::string> text = read_file((from / name).string()); text) {
      status = write_file_atomically(target, *text);
    } else {
      status = text.error();
    }
    if (!status) {
      for (const std::string& each : written) fs::remove(each, code);
      if (!existed) fs::remove(to, code);
      return status.error();
    }
    written.push_back(target);
  }
  return written;
}

}  // namespace

Result<std::vector<std::string>> problem_new(const std::string& directory, const std::string& from,
                                             const std::string& cache_directory) {
  std::error_code code;
  for (const char* name : {"problem.toml", "reference.py"}) {
    const fs::path path = fs::path(directory) / name;
    if (fs::exists(path, code)) return usage_error(path.string() + " exists already", "give another folder");
  }
  if (fs::exists(directory, code) && !fs::is_directory(directory, code)) {
    return usage_error(directory + " is not a folder");
  }
  const std::string name = problem_name(fs::absolute(directory));
  const std::string cache = fs::absolute(cache_directory).lexically_normal().string();
  const Result<ScratchFolder> scratch = ScratchFolder::make((fs::path(cache) / "reference").string());
  if (!scratch) return scratch.error();

  if (from.empty()) {
    const fs::path folder = fs::path(scratch->path()) / "plain";
    fs::create_directory(folder, code);
    if (Status status = write_plain(folder, name); !status) return status.error();
    return move_files(folder, directory);
  }
  // Not every function works in bf16; one that doesn't is a problem in f32.
  Error fault;
  for (const std::vector<std::string>& dtypes : {std::vector<std::string>{"bf16", "f32"}, {"f32"}}) {
    const fs::path attempt = fs::path(scratch->path()) / dtypes.front();
    const fs::path folder = attempt / name;
    fs::create_directories(folder, code);
    if (code) return machine_error("cannot make the folder " + folder.string() + ": " + code.message());
    const Result<Json> made = write_from(from, folder, attempt, name, dtypes);
    if (!made) return made.error();
    const Result<LintReport> lint = problem_lint(folder.string(), cache);
    if (!lint) return lint.error();
    if (lint->faults.empty()) return move_files(folder, directory);
    fault = lint->faults.front();
  }
  fault.message = "the problem made of " + from + " does not pass lint: " + fault.message;
  fault.file.clear();
  fault.line = 0;
  return fault;
}

}  // namespace echolo
