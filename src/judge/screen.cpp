#include "judge/screen.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"
#include "judge/assembly.hpp"
#include "judge/macros.hpp"
#include "judge/tokens.hpp"

namespace echolo::judge {
namespace {

constexpr std::array kDirectives = {"include", "define", "undef", "if",     "ifdef",   "ifndef", "elif",
                                    "else",    "endif",  "error", "pragma", "warning", ""};
constexpr std::array kPragmas = {"unroll",
                                 "nounroll",
                                 "once",
                                 "nv_diag_suppress",
                                 "nv_diag_default",
                                 "nv_diagnostic",
                                 "nv_diag_warning",
                                 "nv_exec_check_disable",
                                 "nv_diag_once"};
// Attributes that only advise the compiler; those that name sections, aliases or start-up code are not among
// them.
constexpr std::array kAttributes = {"aligned",
                                    "always_inline",
                                    "noinline",
                                    "unused",
                                    "packed",
                                    "const",
                                    "pure",
                                    "hot",
                                    "cold",
                                    "flatten",
                                    "optimize",
                                    "gnu",
                                    "nv",
                                    "nodiscard",
                                    "maybe_unused",
                                    "likely",
                                    "unlikely",
                                    "fallthrough",
                                    "noreturn",
                                    "deprecated",
                                    "carries_dependency",
                                    "no_unique_address",
                                    "may_alias",
                                    "visibility",
                                    "sizeof",
                                    "alignof"};

constexpr std::array kKeywords = {"alignas",
                                  "alignof",
                                  "auto",
                                  "bool",
                                  "break",
                                  "case",
                                  "catch",
                                  "char",
                                  "class",
                                  "const",
                                  "constexpr",
                                  "const_cast",
                                  "continue",
                                  "decltype",
                                  "default",
                                  "delete",
                                  "do",
                                  "double",
                                  "dynamic_cast",
                                  "else",
                                  "enum",
                                  "explicit",
                                  "extern",
                                  "false",
                                  "float",
                                  "for",
                                  "friend",
                                  "goto",
                                  "if",
                                  "inline",
                                  "int",
                                  "long",
                                  "mutable",
                                  "namespace",
                                  "new",
                                  "noexcept",
                                  "nullptr",
                                  "operator",
                                  "private",
                                  "protected",
                                  "public",
                                  "register",
                                  "reinterpret_cast",
                                  "return",
                                  "short",
                                  "signed",
                                  "sizeof",
                                  "static",
                                  "static_assert",
                                  "static_cast",
                                  "struct",
                                  "switch",
                                  "template",
                                  "this",
                                  "throw",
                                  "true",
                                  "try",
                                  "typedef",
                                  "typeid",
                                  "typename",
                                  "union",
                                  "unsigned",
                                  "using",
                                  "virtual",
                                  "void",
                                  "volatile",
                                  "while",
                                  "asm",
                                  "thread_local"};

template <std::size_t N>
bool one_of(const std::array<const char*, N>& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

std::string without_underscores(std::string_view word) {
  while (word.starts_with('_')) word.remove_prefix(1);
  while (word.ends_with('_')) word.remove_suffix(1);
  return std::string(word);
}

class Screen {
 public:
  Screen(std::string_view text, const std::string& name, SourceKind kind)
      : text_(text), name_(name), kind_(kind) {}

  std::vector<Gate> run() {
    readable();
    if (gates_.back().result == "refused") {
      for (const char* name :
           {"includes", "preprocessor", "embedding", "attributes", "host_assembly", "interface"}) {
        gates_.push_back({name, "not_applicable", "the file could not be read"});
      }
      return std::move(gates_);
    }
    stream_ = tokenize(text_);
    directives_ = directives_of(stream_.tokens);
    macros_ = read_macros(directives_);
    gate(
        "includes", [&] { return includes(); }, "only headers that it may include");
    only_candidates(
        "preprocessor", [&] { return preprocessor(); }, "nothing hidden in macros or pragmas");
    only_candidates(
        "embedding", [&] { return embedding(); }, "no file is embedded");
    only_candidates(
        "attributes", [&] { return attributes(); }, "no attribute that reaches the linker");
    only_candidates(
        "host_assembly", [&] { return host_assembly(stream_.tokens, macros_, name_); },
        "no inline assembly outside of device code");
    gate(
        "interface", [&] { return interface(); },
        kind_ == SourceKind::kCandidate ? "defines candidate_create, candidate_run and candidate_destroy"
                                        : "defines main");
    return std::move(gates_);
  }

 private:
  std::string at(int line, int column) const {
    return name_ + ":" + std::to_string(line) + ":" + std::to_string(column) + ": ";
  }
  std::string at(const Token& token) const { return at(token.line, token.column); }

  template <typename Check>
  void gate(const char* name, Check check, const char* good) {
    const std::string fault = check();
    gates_.push_back({name, fault.empty() ? "passed" : "refused", fault.empty() ? good : fault});
  }
  template <typename Check>
  void only_candidates(const char* name, Check check, const char* good) {
    if (kind_ == SourceKind::kProgram) {
      gates_.push_back({name, "not_applicable", "a whole program of the user's own, run in a sandbox"});
    } else {
      gate(name, check, good);
    }
  }

  void readable() {
    std::string fault;
    if (text_.size() > kMaxSourceBytes) {
      fault =
          name_ + ": " + human_bytes(text_.size()) + "; a source may have " + human_bytes(kMaxSourceBytes);
    } else if (const std::size_t bad = first_invalid_utf8(text_); bad != std::string_view::npos) {
      const auto line = 1 + std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(bad), '\n');
      fault = name_ + ":" + std::to_string(line) + ": not UTF-8 text (byte " + std::to_string(bad) + ")";
    }
    gates_.push_back({"readable", fault.empty() ? "passed" : "refused",
                      fault.empty() ? "UTF-8 text, " + human_bytes(text_.size()) : fault});
  }

  std::string includes() {
    for (const Directive& directive : directives_) {
      if (directive.name == "include_next" || directive.name == "import") {
        return at(directive.line, directive.column) + "#" + directive.name + " is not allowed; use #include";
      }
      if (directive.name == "include") {
        if (directive.words.size() != 1 || directive.words[0].kind != TokenKind::kHeader) {
          return at(directive.line, directive.column) +
                 "an #include whose name comes from a macro: write the name itself";
        }
        if (std::string fault = include_fault(directive.words[0], directive.words[0].text); !fault.empty()) {
          return fault;
        }
      }
    }
    return asked_headers();
  }

  // __has_include tells whether a file is there; it may ask only about what may be included.
  std::string asked_headers() {
    const std::vector<Token>& tokens = stream_.tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != TokenKind::kIdentifier) continue;
      if (tokens[i].text == "__has_include_next" || tokens[i].text == "__has_embed") {
        return at(tokens[i]) + tokens[i].text + " is not allowed";
      }
      if (tokens[i].text != "__has_include") continue;
      std::string header;
      std::size_t k = i + 2;
      if (k < tokens.size() && tokens[k].kind == TokenKind::kString) {
        header = "\"" + tokens[k].text + "\"";
      } else {
        for (; k < tokens.size() && tokens[k].text != ")" && tokens[k].line == tokens[i].line; ++k) {
          header += tokens[k].text;
        }
      }
      if (std::string fault = include_fault(tokens[i], header); !fault.empty()) return fault;
    }
    return {};
  }

  std::string include_fault(const Token& place, const std::string& written) {
    if (written.size() < 3) return at(place) + "an #include without a name";
    const std::string header = written.substr(1, written.size() - 2);
    if (header.starts_with('/') || header.starts_with('~')) {
      return at(place) + written + " is an absolute path";
    }
    if (header_allowed(header)) return {};
    if (kind_ == SourceKind::kProgram) {
      if (header.find("..") == std::string::npos) return {};
      return at(place) + written + " leaves the program's folder";
    }
    return at(place) + written + " is not among the headers that a candidate may include (NVSHMEM's, " +
           "echolo/candidate.hpp, CUDA's and the standard ones)";
  }

  std::string preprocessor() {
    if (!stream_.faults.empty()) {
      const TokenFault& fault = stream_.faults.front();
      return at(fault.line, fault.column) + fault.message;
    }
    std::set<std::string, std::less<>> known;
    for (const Directive& directive : directives_) {
      const std::string place = at(directive.line, directive.column);
      if (directive.name == "embed") continue;  // has a gate of its own
      if (!one_of(kDirectives, directive.name) && directive.name != "include_next" &&
          directive.name != "import") {
        return place + "#" + directive.name + " is not allowed in a candidate";
      }
      if ((directive.name == "define" || directive.name == "undef") && !directive.words.empty()) {
        const std::string& word = directive.words[0].text;
        if (one_of(kKeywords, word) || word.starts_with("__")) {
          return place + "#" + directive.name + " of the reserved name " + word;
        }
        if (directive.name == "undef" && macros_.device_qualifiers.contains(word)) {
          return place + "#undef of " + word + ", which stands for __device__ elsewhere";
        }
      }
      if (directive.name == "pragma") {
        const std::string word = directive.words.empty() ? "" : directive.words[0].text;
        const bool diagnostic =
            word == "GCC" && directive.words.size() > 1 && directive.words[1].text == "diagnostic";
        if (!one_of(kPragmas, word) && !diagnostic) return place + "#pragma " + word + " is not allowed";
      }
    }
    for (const Macro& macro : macros_.macros) {
      const std::string place = at(macro.directive.line, macro.directive.column);
      if (const std::string word = dangerous_paste(macro); !word.empty()) {
        return place + "macro " + macro.name + " pastes with ## what may become " + word;
      }
      int depth = 0;
      for (const Token& token : macro.body) {
        if (token.kind != TokenKind::kPunctuator) continue;
        depth += token.text == "{" ? 1 : token.text == "}" ? -1 : 0;
        if (depth < 0) break;
      }
      if (depth != 0)
        return place + "macro " + macro.name + " opens or closes a brace that it does not match";
    }
    for (const Token& token : stream_.tokens) {
      if (token.kind == TokenKind::kIdentifier && (token.text == "_Pragma" || token.text == "__pragma")) {
        return at(token) + token.text + " is not allowed; write #pragma";
      }
    }
    return {};
  }

  std::string embedding() {
    for (const Directive& directive : directives_) {
      if (directive.name == "embed") return at(directive.line, directive.column) + "#embed";
    }
    // Neighbouring literals are one string to the compiler.
    const std::vector<Token>& tokens = stream_.tokens;
    std::string joined;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (tokens[i].kind != TokenKind::kString) {
        joined.clear();
        continue;
      }
      joined += tokens[i].text;
      for (const char* word : {".incbin", ".include"}) {
        if (joined.find(word) != std::string::npos) return at(tokens[i]) + word + " in a string";
      }
    }
    return {};
  }

  std::string attributes() {
    const std::vector<Token>& tokens = stream_.tokens;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const std::string& text = tokens[i].text;
      const bool gnu =
          tokens[i].kind == TokenKind::kIdentifier && (text == "__attribute__" || text == "__attribute");
      const bool standard = text == "[" && i + 1 < tokens.size() && tokens[i + 1].text == "[";
      if (!gnu && !standard) continue;
      int depth = 0;
      for (std::size_t k = gnu ? i + 1 : i; k < tokens.size(); ++k) {
        const Token& token = tokens[k];
        if (token.kind == TokenKind::kPunctuator) {
          depth += token.text == "(" || token.text == "["   ? 1
                   : token.text == ")" || token.text == "]" ? -1
                                                            : 0;
          if (depth == 0) break;
        }
        if (token.kind == TokenKind::kIdentifier && !one_of(kAttributes, without_underscores(token.text))) {
          return at(token) + "the attribute " + token.text + " is not among those that a candidate may use";
        }
      }
    }
    return {};
  }

  std::string interface() {
    std::vector<std::string> wanted = {"candidate_create", "candidate_run", "candidate_destroy"};
    if (kind_ == SourceKind::kProgram) wanted = {"main"};
    for (const std::string& word : wanted) {
      const auto found = std::find_if(stream_.tokens.begin(), stream_.tokens.end(), [&](const Token& token) {
        return token.kind == TokenKind::kIdentifier && token.text == word;
      });
      if (found == stream_.tokens.end()) return name_ + ": does not define " + word;
    }
    return {};
  }

  std::string_view text_;
  const std::string& name_;
  SourceKind kind_;
  TokenStream stream_;
  std::vector<Directive> directives_;
  MacroTable macros_;
  std::vector<Gate> gates_;
};

}  // namespace

std::vector<Gate> screen(std::string_view text, const std::string& name, SourceKind kind) {
  return Screen(text, name, kind).run();
}

const Gate* refusal(const std::vector<Gate>& gates) {
  const auto found =
      std::find_if(gates.begin(), gates.end(), [](const Gate& gate) { return gate.result == "refused"; });
  return found == gates.end() ? nullptr : &*found;
}

void to_json(nlohmann::json& out, const Gate& gate) {
  out = {{"name", gate.name}, {"result", gate.result}, {"evidence", gate.evidence}};
}
void from_json(const nlohmann::json& in, Gate& gate) {
  in.at("name").get_to(gate.name);
  in.at("result").get_to(gate.result);
  in.at("evidence").get_to(gate.evidence);
}

}  // namespace echolo::judge
