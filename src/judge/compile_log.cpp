#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <set>
#include <string_view>

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

// By hand rather than with std::regex, which recurses once a character: a line of a compiler can be as long
// as a candidate likes.
bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}
bool take_spaces(std::string_view& text) {
  const std::size_t n = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(n);
  return n > 0;
}
// False also where the number fits nothing.
bool take_number(std::string_view& text, std::uint32_t& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// .loc FILE LINE COLUMN
bool read_loc(std::string_view text, std::uint32_t (&out)[3]) {
  take_spaces(text);
  if (!take(text, ".loc")) return false;
  for (std::uint32_t& number : out) {
    if (!take_spaces(text) || !take_number(text, number)) return false;
  }
  return true;
}

// .file INDEX "NAME"
bool read_file_name(std::string_view text, std::uint32_t index, std::string& out) {
  std::uint32_t found = 0;
  take_spaces(text);
  if (!take(text, ".file") || !take_spaces(text) || !take_number(text, found) || found != index ||
      !take_spaces(text) || !take(text, "\"")) {
    return false;
  }
  const std::size_t end = text.find('"');
  if (end == std::string_view::npos) return false;
  out = text.substr(0, end);
  return true;
}

// The source line that a line of PTX was made from: the nearest .loc above it.
std::string place_of_ptx_line(const std::vector<std::string>& ptx, std::size_t line) {
  for (std::size_t i = std::min(line, ptx.size()); i-- > 0;) {
    std::uint32_t loc[3];
    if (!read_loc(ptx[i], loc)) continue;
    for (const std::string& text : ptx) {
      std::string name;
      if (read_file_name(text, loc[0], name))
        return name + ":" + std::to_string(loc[1]) + ":" + std::to_string(loc[2]);
    }
    return {};
  }
  return {};
}

// "ptxas NAME.ptx, line N; error   : MESSAGE"
struct PtxasMessage {
  std::uint32_t line = 0;
  std::string_view kind, message;
};
bool read_ptxas_message(std::string_view text, PtxasMessage& out) {
  constexpr std::string_view kTool = "ptxas ";
  for (std::size_t at = text.find(kTool); at != std::string_view::npos; at = text.find(kTool, at + 1)) {
    std::string_view rest = text.substr(at + kTool.size());
    const std::string_view name = rest.substr(0, rest.find(' '));
    rest.remove_prefix(name.size());
    if (!name.ends_with(".ptx,") || !take(rest, " line ") || !take_number(rest, out.line) ||
        !take(rest, "; ")) {
      continue;
    }
    for (const std::string_view kind : {"error", "warning", "info"}) {
      if (!take(rest, kind)) continue;
      out.kind = kind;
      take_spaces(rest);
      if (!take(rest, ": ")) break;
      out.message = rest;
      return true;
    }
  }
  return false;
}

// "undefined reference to `f'" says what it means for a candidate.
std::string explain_undefined(std::string_view line) {
  constexpr std::string_view kWords = "undefined reference to ";
  const std::size_t at = line.find(kWords);
  if (at == std::string_view::npos) return {};
  const std::string_view quoted = line.substr(at + kWords.size());
  if (quoted.empty() || std::string_view("`'\"").find(quoted[0]) == std::string_view::npos) return {};
  const std::size_t end = quoted.find_first_of("'\"", 1);
  if (end == std::string_view::npos || end == 1) return {};
  const std::string name(quoted.substr(1, end - 1));
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
  const std::vector<std::string> ptx_lines = split(ptx, '\n');
  std::string out;
  std::set<std::string> said;
  bool said_error = false;
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
    if (PtxasMessage said_of_ptx; read_ptxas_message(text, said_of_ptx)) {
      const std::string place = place_of_ptx_line(ptx_lines, said_of_ptx.line);
      const std::size_t colon = place.find(':');
      std::string where;
      if (colon != std::string::npos)
        where = user_path(place.substr(0, colon), request) + place.substr(colon) + ": ";
      text = where + std::string(said_of_ptx.kind) + ": " + std::string(said_of_ptx.message);
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
    // "ptxas fatal : ... aborted due to errors" repeats what the errors said; alone, or said twice, it is
    // one.
    if (text.starts_with("ptxas fatal") || text.starts_with("nvcc fatal")) {
      if (said_error || !said.insert(text).second) continue;
    }
    said_error = said_error || text.find(": error") != std::string::npos;
    if (!trim(text).empty()) out += text + "\n";
  }
  return out;
}

std::map<std::string, std::uint32_t> read_register_counts(const std::string& ptxas_output) {
  constexpr std::string_view kEntry = "Compiling entry function '";
  constexpr std::string_view kUsed = "Used ";
  std::map<std::string, std::uint32_t> counts;
  std::string current;
  for (const std::string& line : split(ptxas_output, '\n')) {
    std::string_view text = line;
    if (const std::size_t at = text.find(kEntry); at != std::string_view::npos) {
      const std::string_view name = text.substr(at + kEntry.size());
      if (const std::size_t end = name.find('\''); end != std::string_view::npos)
        current = name.substr(0, end);
    }
    const std::size_t at = text.find(kUsed);
    if (current.empty() || at == std::string_view::npos) continue;
    text.remove_prefix(at + kUsed.size());
    std::uint32_t n = 0;
    if (!take_number(text, n) || !take(text, " registers")) continue;
    counts[current] = n;
    current.clear();
  }
  return counts;
}

}  // namespace echolo::judge
