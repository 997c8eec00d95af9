#include "problem/suite.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/text.hpp"

namespace echolo {
namespace {

namespace fs = std::filesystem;

bool is_home(const fs::path& folder) {
  std::error_code code;
  return fs::is_directory(folder / "problems", code) &&
         fs::is_regular_file(folder / "python" / "echolo" / "reference_runner.py", code);
}

}  // namespace

Result<std::string> echolo_home() {
  if (const char* given = std::getenv("ECHOLO_HOME"); given != nullptr && *given != '\0') {
    if (is_home(given)) return fs::absolute(given).lexically_normal().string();
    return machine_error(
        std::string("ECHOLO_HOME is ") + given + ", which holds no problems/ and python/echolo/",
        "set it to a checkout of EcholoKernel, or unset it");
  }
  std::error_code code;
  for (fs::path folder = fs::read_symlink("/proc/self/exe", code).parent_path(); !code && !folder.empty();
       folder = folder.parent_path()) {
    if (is_home(folder)) return folder.string();
    if (folder == folder.root_path()) break;
  }
  if (is_home(ECHOLO_SOURCE_DIR)) return std::string(ECHOLO_SOURCE_DIR);
  return machine_error("cannot find EcholoKernel's own files (problems/ and python/echolo/)",
                       "set ECHOLO_HOME to a checkout of EcholoKernel");
}

Result<std::vector<std::string>> suite_names() {
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  std::vector<std::string> names;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(*home) / "problems", code)) {
    if (fs::is_regular_file(entry.path() / "problem.toml", code))
      names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<Problem>> load_suite() {
  const Result<std::vector<std::string>> names = suite_names();
  if (!names) return names.error();
  std::vector<Problem> out;
  for (const std::string& name : *names) {
    Result<Problem> problem = find_problem(name);
    if (!problem) return problem.error();
    out.push_back(std::move(*problem));
  }
  return out;
}

Result<Problem> find_problem(const std::string& name_or_directory) {
  std::error_code code;
  if (name_or_directory.empty()) return usage_error("a problem's name is missing");
  if (name_or_directory.find('/') != std::string::npos || name_or_directory == "." ||
      name_or_directory == "..") {
    return load_problem(name_or_directory);
  }
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  const fs::path folder = fs::path(*home) / "problems" / name_or_directory;
  if (fs::is_regular_file(folder / "problem.toml", code)) return load_problem(folder.string());
  if (fs::is_regular_file(fs::path(name_or_directory) / "problem.toml", code))
    return load_problem(name_or_directory);
  const Result<std::vector<std::string>> names = suite_names();
  if (!names) return names.error();
  const std::string near = did_you_mean(name_or_directory, *names);
  return usage_error(
      "there is no problem '" + printable(name_or_directory) + "'",
      near.empty() ? "problems are " + join(*names, ", ") + "; a directory is written with a '/'" : near);
}

std::string lasting_name(const Problem& problem) {
  const Result<Problem> of_suite = find_problem(problem.name);
  if (of_suite && of_suite->directory == problem.directory) return problem.name;
  std::error_code code;
  const fs::path whole = fs::canonical(problem.directory, code);
  return code ? problem.directory : whole.string();
}

}  // namespace echolo
