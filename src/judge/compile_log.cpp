#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <regex>
#include <set>

#include "base/text.hpp"
#include "judge/compile.hpp"
#include "judge/sandbox.hpp"

namespace echolo::judge {
namespace {

constexpr const char* kProgramFolder = "/program/";

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// The source line that a line of PTX was made from: the nearest .loc above it.
std::string place_of_ptx_line(const std::vector<std::string>& ptx, std::size_t line) {
  static const std::regex loc(R"(^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+))");
  static const std::regex file(R"re(^\s*\.file\s+(\d+)\s+"([^"]*)")re");
  std::smatch found;
  for (std::size_t i = std::min(line, ptx.size()); i-- > 0;) {
    if (!std::regex_search(ptx[i], found, loc)) continue;
    const std::string index = found[1];
    const std::string place = std::string(found[2]) + ":" + std::string(found[3]);
    for (const std::string& text : ptx) {
      std::smatch name;
      if (std::regex_search(text, name, file) && name[1] == index) return std::string(name[2]) + ":" + place;
    }
    return {};
  }
  return {};
}

// "undefined reference to `f'" says what it means for a candidate.
std::string explain_undefined(const std::string& line) {
  static const std::regex pattern("undefined reference to [`'\"]([^'\"]+)['\"]");
  std::smatch found;
  if (!std::regex_search(line, found, pattern)) return {};
  const std::string name = found[1];
  if (name.starts_with("cuda") || name.starts_with("__cuda") || name.starts_with("nvshmem") ||
      (name.starts_with("cu") && name.size() > 2 && std::isupper(static_cast<unsigned char>(name[2])) != 0)) {
    return "error: the virtual node has no " + name + "; use another call, or leave it out";
  }
  return "error: " + name + " is used but nowhere defined";
}

}  // namespace

std::string user_path(const std::string& file, const CompileRequest& request) {
  if (request.kind == SourceKind::kCandidate) {
    if (file == kSandboxSource || file == std::string(kScratch) + "/" + kSandboxSource) return request.path;
    return file;
  }
  if (file.starts_with(kProgramFolder)) {
    return (std::filesystem::path(request.folder) / file.substr(std::string(kProgramFolder).size())).string();
  }
  return file;
}

std::string explain_log(const std::string& log, const CompileRequest& request, const std::string& ptx) {
  static const std::regex ptxas_place(R"(ptxas \S*\.ptx, line (\d+); (error|warning|info)\s*: )");
  const std::vector<std::string> ptx_lines = split(ptx, '\n');
  std::string out;
  std::set<std::string> said;
  for (const std::string& line : split(log, '\n')) {
    std::string text = printable(line);
    // What the sandbox's names stand for.
    if (request.kind == SourceKind::kCandidate) {
      replace_all(text, std::string(kScratch) + "/" + kSandboxSource, kSandboxSource);
      const std::string name = kSandboxSource;
      for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at)) {
        const char next = at + name.size() < text.size() ? text[at + name.size()] : '\0';
        if (next == ':' || next == '(' || next == '\0' || next == ',' || next == '"' || next == ' ' ||
            next == '\'') {
          text.replace(at, name.size(), request.path);
          at += request.path.size();
        } else {
          at += name.size();
        }
      }
    } else {
      replace_all(text, kProgramFolder, request.folder.empty() ? "" : request.folder + "/");
    }
    std::smatch found;
    if (std::regex_search(text, found, ptxas_place)) {
      const std::string place = place_of_ptx_line(ptx_lines, static_cast<std::size_t>(std::stoul(found[1])));
      const std::size_t colon = place.find(':');
      std::string where;
      if (colon != std::string::npos)
        where = user_path(place.substr(0, colon), request) + place.substr(colon) + ": ";
      text = where + std::string(found[2]) + ": " + std::string(found.suffix());
    }
    if (const std::string meaning = explain_undefined(text); !meaning.empty()) {
      // The linker's own line only adds where; one explanation a name is enough.
      const std::size_t colon = text.find(": undefined reference");
      std::string where = text.substr(0, colon);
      if (where.find(request.path) == std::string::npos) where.clear();
      if (said.insert(meaning).second) out += (where.empty() ? "" : where + ": ") + meaning + "\n";
      continue;
    }
    if (text.find("in function `") != std::string::npos || text.find("collect2:") != std::string::npos)
      continue;
    if (!trim(text).empty()) out += text + "\n";
  }
  return out;
}

std::map<std::string, std::uint32_t> read_register_counts(const std::string& ptxas_output) {
  static const std::regex entry("Compiling entry function '([^']+)'");
  static const std::regex used(R"(Used (\d+) registers)");
  std::map<std::string, std::uint32_t> counts;
  std::string current;
  std::smatch found;
  for (const std::string& line : split(ptxas_output, '\n')) {
    if (std::regex_search(line, found, entry)) current = found[1];
    if (!current.empty() && std::regex_search(line, found, used)) {
      counts[current] = static_cast<std::uint32_t>(std::stoul(found[1]));
      current.clear();
    }
  }
  return counts;
}

}  // namespace echolo::judge
