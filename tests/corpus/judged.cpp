#include "judged.hpp"

#include <cstdlib>
#include <sstream>

namespace echolo::corpus {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::size_t kShown = 6000;  // characters of a verdict

std::string words(const std::set<std::string>& set) {
  std::string text;
  for (const std::string& word : set) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

bool names_line(const json& finding, const std::string& file, int line) {
  for (const json& site : finding.at("sites")) {
    const std::string where = site.value("file", "");
    if (fs::path(where).filename() == file && site.value("line", 0) == line) return true;
    for (const json& frame : site.value("inlined_at", json::array())) {
      if (fs::path(frame.value("file", "")).filename() == file && frame.value("line", 0) == line) return true;
    }
  }
  return false;
}

}  // namespace

Command command_for(const CaseFile& test, const std::string& fabric,
                    const std::vector<std::string>& further) {
  Command command;
  const std::string echolo = std::string(ECHOLO_BINARY_DIR) + "/echolo";
  if (test.check) {
    command.argv = {echolo, "check", test.problem, test.path.string(), "--world", std::to_string(test.world)};
  } else {
    command.argv = {echolo, "sanitize", "-n", std::to_string(test.world), test.path.string()};
  }
  for (const std::string& word : {std::string("--json"), std::string("--fabric"), fabric,
                                  std::string("--timeout"), std::to_string(test.timeout.count())}) {
    command.argv.push_back(word);
  }
  command.argv.insert(command.argv.end(), further.begin(), further.end());
  if (!test.arguments.empty()) {
    command.argv.emplace_back("--");
    std::istringstream in(test.arguments);
    for (std::string word; in >> word;) command.argv.push_back(word);
  }
  command.timeout = test.timeout + std::chrono::seconds(120);  // the compiler's time, and a busy machine's
  command.capture_limit = 64U << 20U;
  return command;
}

std::string faults_of(const CaseFile& test, const Outcome& outcome) {
  if (outcome.timed_out) return "echolo did not come to an end\n";
  const json verdict = json::parse(outcome.standard_output, nullptr, false);
  if (verdict.is_discarded() || !verdict.is_object() || !verdict.contains("findings"))
    return "no verdict: " + outcome.standard_output.substr(0, 2000) + outcome.standard_error + "\n";
  std::string out;
  if (const std::string status = verdict.value("status", ""); status != test.status)
    out += "the status is " + status + ", not " + test.status + "\n";
  if (outcome.exit_code != (test.status == "correct" ? 0 : 1))
    out += "the exit code is " + std::to_string(outcome.exit_code) + "\n";
  const json& findings = verdict.at("findings");
  std::set<std::string> kinds;
  for (const json& finding : findings) kinds.insert(finding.at("kind").get<std::string>());
  if (kinds != test.kinds) out += "the findings are " + words(kinds) + ", not " + words(test.kinds) + "\n";
  const std::string file = test.path.filename().string();
  for (const auto& [kind, line] : test.marks) {
    bool named = false;
    for (const json& finding : findings)
      named = named || (finding.at("kind") == kind && names_line(finding, file, line));
    if (!named) out += "no " + kind + " names line " + std::to_string(line) + "\n";
  }
  if (!test.output.empty()) {
    const std::string wanted = json(test.output).dump();
    if (verdict.dump().find(wanted.substr(1, wanted.size() - 2)) == std::string::npos)
      out += "nothing printed `" + test.output + "`\n";
  }
  if (!out.empty()) out += (findings.empty() ? verdict : findings).dump(1).substr(0, kShown) + "\n";
  return out;
}

json without_times(json verdict) {
  if (verdict.is_object()) verdict.erase("stages");
  return verdict;
}

std::string short_name(const fs::path& path) {
  return (path.parent_path().filename() / path.filename()).string();
}

int number_from(const char* variable, int otherwise) {
  const char* text = std::getenv(variable);
  const int number = text == nullptr ? 0 : std::atoi(text);
  return number > 0 ? number : otherwise;
}

}  // namespace echolo::corpus
