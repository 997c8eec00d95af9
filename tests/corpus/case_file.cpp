#include "case_file.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>

namespace echolo::corpus {
namespace {

constexpr std::string_view kHeader = "// echolo-test: ";
constexpr std::string_view kExpect = "// expect: ";
constexpr std::string_view kExpectFinding = "// expect-finding: ";
constexpr std::string_view kMark = "// <-- ";

// Statuses that are no finding's.
const std::set<std::string, std::less<>> kPlainStatuses = {
    "correct", "wrong_result", "compile_error", "refused", "launch_error", "crashed", "timeout", "infra"};

std::string kind_of_status(std::string status) {
  std::replace(status.begin(), status.end(), '_', '-');
  return status;
}

// `key=value key="two words"` as a map; an Error says which word is neither.
Result<std::map<std::string, std::string>> read_words(std::string_view text, const std::string& file) {
  std::map<std::string, std::string> words;
  while (true) {
    const std::size_t start = text.find_first_not_of(' ');
    if (start == std::string_view::npos) return words;
    text.remove_prefix(start);
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos) {
      return input_error(file, 1, "expected key=value, found `" + std::string(text) + "`");
    }
    const std::string key(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    const bool quoted = !text.empty() && text.front() == '"';
    if (quoted) text.remove_prefix(1);
    const std::size_t end = std::min(text.find(quoted ? '"' : ' '), text.size());
    words[key] = std::string(text.substr(0, end));
    text.remove_prefix(std::min(text.size(), end + (quoted ? 1 : 0)));
  }
}

Result<int> read_number(const std::string& text, const std::string& file) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < 1) {
    return input_error(file, 1, "`" + text + "` is not a positive number");
  }
  return value;
}

Status apply_words(const std::map<std::string, std::string>& words, CaseFile& out) {
  const std::string file = out.path.string();
  for (const auto& [key, value] : words) {
    if (key == "mode" && (value == "check" || value == "sanitize")) {
      out.check = value == "check";
    } else if (key == "problem") {
      out.problem = value;
    } else if (key == "fabric") {
      out.fabric = value;
      out.any_fabric = false;
    } else if (key == "args") {
      out.arguments = value;
    } else if (key == "output") {
      out.output = value;
    } else if (key == "world" || key == "n" || key == "timeout") {
      const Result<int> number = read_number(value, file);
      if (!number.ok()) return number.error();
      if (key == "timeout") {
        out.timeout = std::chrono::seconds(*number);
      } else {
        out.world = *number;
      }
    } else {
      return input_error(file, 1, "`" + key + "=" + value + "` means nothing here");
    }
  }
  if (words.count("mode") == 0) return input_error(file, 1, "mode= is missing");
  if (out.check && out.problem.empty()) return input_error(file, 1, "a check needs problem=");
  return {};
}

}  // namespace

Result<CaseFile> read_case(const std::filesystem::path& path) {
  CaseFile out;
  out.path = path;
  std::ifstream in(path);
  std::string line;
  bool header = false;
  for (int number = 1; std::getline(in, line); ++number) {
    const std::string_view text = line;
    if (text.substr(0, kHeader.size()) == kHeader) {
      const auto words = read_words(text.substr(kHeader.size()), path.string());
      if (!words.ok()) return words.error();
      if (const Status status = apply_words(*words, out); !status.ok()) return status.error();
      header = true;
    } else if (text.substr(0, kExpect.size()) == kExpect) {
      out.status = std::string(text.substr(kExpect.size()));
    } else if (text.substr(0, kExpectFinding.size()) == kExpectFinding) {
      out.kinds.insert(std::string(text.substr(kExpectFinding.size())));
    } else if (const std::size_t mark = text.find(kMark); mark != std::string_view::npos) {
      out.marks.emplace_back(std::string(text.substr(mark + kMark.size())), number);
      out.kinds.insert(out.marks.back().first);
    }
  }
  if (!header) return input_error(path.string(), 1, "no `// echolo-test:` line");
  if (out.status.empty()) return input_error(path.string(), 1, "no `// expect:` line");
  if (kPlainStatuses.count(out.status) == 0) out.kinds.insert(kind_of_status(out.status));
  return out;
}

std::vector<std::filesystem::path> find_cases(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.path().extension() == ".cu") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace echolo::corpus
