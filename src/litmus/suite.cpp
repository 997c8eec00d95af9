#include "litmus/suite.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.hpp"
#include "litmus/axioms.hpp"

namespace echolo::litmus {
namespace fs = std::filesystem;

Result<std::vector<std::string>> litmus_files(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (fs::is_directory(path, error)) {
      std::vector<std::string> inside;
      fs::recursive_directory_iterator at(path, fs::directory_options::skip_permission_denied, error), end;
      for (; !error && at != end; at.increment(error)) {
        if (at->path().extension() == ".litmus") inside.push_back(at->path().string());
      }
      if (error) return usage_error("cannot read directory " + printable(path) + ": " + error.message());
      if (inside.empty()) return usage_error("no .litmus files in " + printable(path));
      std::sort(inside.begin(), inside.end());
      files.insert(files.end(), inside.begin(), inside.end());
    } else if (fs::exists(path, error)) {
      files.push_back(path);
    } else {
      return usage_error("there is no file " + printable(path));
    }
  }
  return files;
}

Result<Judged> judge_file(const std::string& file, const SuiteOptions& options) {
  Result<std::string> text = read_file(file);
  if (!text) return text.error();
  Result<Program> program = parse_litmus(*text, file);
  if (!program) return program.error();
  const auto start = std::chrono::steady_clock::now();
  Judged judged;
  judged.file = file;
  judged.program = std::move(program).value();
  judged.answer = options.model == Model::kMachine ? explore(judged.program, options.limits)
                                                   : enumerate(judged.program, options.limits);
  judged.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return judged;
}

const bool* Expected::find(const std::string& file) const {
  std::string_view rest = file;
  for (;;) {
    if (const auto at = by_file.find(std::string(rest)); at != by_file.end()) return &at->second;
    const std::size_t slash = rest.find('/');
    if (slash == std::string_view::npos) return nullptr;
    rest = rest.substr(slash + 1);
  }
}

Result<Expected> load_expected(const std::string& file) {
  Result<std::string> text = read_file(file);
  if (!text) return text.error();
  Expected expected;
  int line = 0;
  for (const std::string& row : split(*text, '\n')) {
    ++line;
    const std::string_view trimmed = trim(row);
    if (trimmed.empty()) continue;
    const std::size_t comma = trimmed.rfind(',');
    const std::string_view value = comma == std::string_view::npos ? "" : trim(trimmed.substr(comma + 1));
    if (value != "0" && value != "1") return input_error(file, line, "expected a line 'file,0' or 'file,1'");
    expected.by_file[std::string(trim(trimmed.substr(0, comma)))] = value == "1";
  }
  return expected;
}

nlohmann::json to_json(const Judged& test) {
  const Answer& answer = test.answer;
  nlohmann::json outcomes = nlohmann::json::array();
  for (const auto& [values, count] : answer.outcomes) {
    nlohmann::json state = nlohmann::json::object();
    for (std::size_t i = 0; i < values.size(); ++i) state[test.program.observed[i].name] = values[i];
    outcomes.push_back(
        {{"state", state}, {"count", count}, {"satisfies", holds(test.program.condition, values)}});
  }
  nlohmann::json json = {{"file", test.file},           {"name", test.program.name},
                         {"holds", answer.holds},       {"terminates", answer.terminates},
                         {"complete", answer.complete}, {"outcomes", outcomes},
                         {"steps", answer.steps},       {"seconds", test.seconds}};
  if (test.program.has_condition) json["quantifier"] = to_string(test.program.quantifier);
  if (!answer.stuck.empty()) json["stuck"] = answer.stuck;
  if (!answer.complete) json["why_incomplete"] = answer.why_incomplete;
  return json;
}

std::string render(const Judged& test) {
  const Answer& answer = test.answer;
  std::string text = test.file + ": " + printable(test.program.name) + "\n";
  for (const auto& [values, count] : answer.outcomes) {
    std::string state;
    for (std::size_t i = 0; i < values.size(); ++i) {
      state += (i == 0 ? "" : "  ") + test.program.observed[i].name + "=" + std::to_string(values[i]);
    }
    const bool marked = test.program.has_condition && holds(test.program.condition, values);
    std::string times = with_commas(count);
    times.insert(0, times.size() < 8 ? 8 - times.size() : 0, ' ');
    text += std::string(marked ? " *" : "  ") + times + "  " +
            (state.empty() ? "(nothing observed)" : state) + "\n";
  }
  if (answer.outcomes.empty()) text += "  no run finishes\n";
  if (test.program.has_condition) {
    text += "  condition (" + to_string(test.program.quantifier) +
            "): " + (answer.holds ? "holds" : "does not hold") +
            (answer.complete ? "" : ", as far as was explored") + "\n";
  }
  text += answer.terminates ? "  every run ends\n" : "  can hang: " + answer.stuck + "\n";
  if (!answer.complete) text += "  not everything was explored: " + answer.why_incomplete + "\n";
  return text;
}

}  // namespace echolo::litmus
