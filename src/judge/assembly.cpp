#include "judge/assembly.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/text.hpp"

namespace echolo::judge {
namespace {

constexpr std::array kParenthesised = {"alignas",           "__align__", "__attribute__",
                                       "__launch_bounds__", "decltype",  "noexcept"};

// A branch of an #if group; `group` and `branch` together name it.
struct Condition {
  int group = 0;
  int branch = 0;
  bool operator==(const Condition&) const = default;
};
using Conditions = std::vector<Condition>;

bool within(const Conditions& outer, const Conditions& inner) {
  return outer.size() <= inner.size() && std::equal(outer.begin(), outer.end(), inner.begin());
}

// Whether what stands in `a` is surely not compiled where `b` is: another branch of the same #if.
bool excluded(const Conditions& a, const Conditions& b) {
  for (std::size_t i = 0; i < std::min(a.size(), b.size()) && a[i].group == b[i].group; ++i) {
    if (a[i].branch != b[i].branch) return true;
  }
  return false;
}

struct Scope {
  enum class Kind { kTransparent, kFunction, kOther } kind = Kind::kTransparent;
  bool device = false;
  Conditions qualified_in;  // where the __device__ stood
};

struct State {
  std::vector<Scope> scopes;
  std::vector<char> brackets;   // '(', '[' and '{' that are open
  std::size_t declaration = 0;  // index of the first token of the current declaration
};

class Scanner {
 public:
  Scanner(const std::vector<Token>& tokens, const MacroTable& macros, const std::string& name)
      : tokens_(tokens), macros_(macros), name_(name), conditions_of_(tokens.size()) {}

  std::string run() {
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      std::string fault = tokens_[i].in_directive ? directive(i) : plain(i);
      if (!fault.empty()) return fault;
    }
    if (!state_.brackets.empty()) return name_ + ": a bracket is never closed";
    return {};
  }

 private:
  std::string at(const Token& token) const {
    return name_ + ":" + std::to_string(token.line) + ":" + std::to_string(token.column) + ": ";
  }

  std::string directive(std::size_t i) {
    if (!tokens_[i].starts_line || i + 1 >= tokens_.size() || !tokens_[i + 1].in_directive ||
        tokens_[i + 1].starts_line) {
      return {};
    }
    const std::string& word = tokens_[i + 1].text;
    if (word == "if" || word == "ifdef" || word == "ifndef") {
      groups_.push_back({state_, {}, false});
      conditions_.push_back({++n_groups_, 0});
    } else if ((word == "elif" || word == "else") && !groups_.empty()) {
      groups_.back().ends.push_back(branch_end());
      groups_.back().has_else = word == "else";
      state_ = groups_.back().before;
      ++conditions_.back().branch;
    } else if (word == "endif" && !groups_.empty()) {
      Group group = std::move(groups_.back());
      groups_.pop_back();
      group.ends.push_back(branch_end());
      conditions_.pop_back();
      if (!group.has_else) group.ends.push_back(group.before);
      for (const State& end : group.ends) {
        if (end.brackets != group.ends.front().brackets) {
          return at(tokens_[i]) + "the branches of this #if leave different brackets open";
        }
      }
      merge(group.ends);
    }
    return {};
  }

  // The state with which a branch ends: what is device code only in a part of the branch is none behind it.
  State branch_end() const {
    State end = state_;
    for (Scope& scope : end.scopes) scope.device = scope.device && within(scope.qualified_in, conditions_);
    return end;
  }

  // Behind an #if, a scope is device code where it is in every branch.
  void merge(const std::vector<State>& ends) {
    for (std::size_t k = 0; k < state_.scopes.size(); ++k) {
      const bool everywhere = std::all_of(ends.begin(), ends.end(), [k](const State& end) {
        return k < end.scopes.size() && end.scopes[k].kind == Scope::Kind::kFunction && end.scopes[k].device;
      });
      Scope& scope = state_.scopes[k];
      if (scope.kind != Scope::Kind::kFunction) continue;
      scope.device = everywhere;
      if (everywhere && !within(scope.qualified_in, conditions_)) scope.qualified_in = conditions_;
    }
  }

  std::string plain(std::size_t i) {
    const Token& token = tokens_[i];
    conditions_of_[i] = conditions_;
    if (token.kind == TokenKind::kIdentifier &&
        (is_assembly_word(token.text) || macros_.bearing_assembly.contains(token.text))) {
      return in_device_code() ? std::string() : assembly_fault(token);
    }
    if (token.kind != TokenKind::kPunctuator) return {};
    const char c = token.text.size() == 1 ? token.text[0] : '\0';
    if (c == '(' || c == '[') {
      state_.brackets.push_back(c);
    } else if (c == '{') {
      state_.scopes.push_back(open_scope(i));
      state_.brackets.push_back(c);
      if (state_.scopes.back().kind == Scope::Kind::kTransparent) state_.declaration = i + 1;
    } else if (c == ')' || c == ']' || c == '}') {
      const char opening = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (state_.brackets.empty() || state_.brackets.back() != opening) {
        return at(token) + "brackets do not match here";
      }
      state_.brackets.pop_back();
      if (c == '}') {
        const Scope closed = std::move(state_.scopes.back());
        state_.scopes.pop_back();
        if (closed.kind != Scope::Kind::kOther && !in_function()) state_.declaration = i + 1;
      }
    } else if (c == ';' && !in_function() && !in_parentheses()) {
      state_.declaration = i + 1;
    } else if (c == ':' && !in_function() && i > 0 &&
               (tokens_[i - 1].text == "public" || tokens_[i - 1].text == "private" ||
                tokens_[i - 1].text == "protected")) {
      state_.declaration = i + 1;
    }
    return {};
  }

  bool in_function() const {
    return std::any_of(state_.scopes.begin(), state_.scopes.end(),
                       [](const Scope& scope) { return scope.kind == Scope::Kind::kFunction; });
  }
  bool in_parentheses() const { return !state_.brackets.empty() && state_.brackets.back() != '{'; }

  bool in_device_code() const {
    for (const Scope& scope : state_.scopes) {
      if (scope.kind != Scope::Kind::kFunction) continue;
      return scope.device && within(scope.qualified_in, conditions_);
    }
    return false;
  }

  // What the brace at `brace` opens, from the declaration before it.
  Scope open_scope(std::size_t brace) const {
    Scope scope;
    if (in_function() || in_parentheses()) {
      scope.kind = Scope::Kind::kOther;
      return scope;
    }
    bool has_namespace = false;
    bool has_class = false;
    bool has_call = false;
    bool has_linkage = false;
    bool device = false;
    bool spoiled = false;
    int depth = 0;
    std::size_t n_words = 0;
    for (std::size_t i = state_.declaration; i < brace; ++i) {
      const Token& token = tokens_[i];
      if (token.in_directive || excluded(conditions_of_[i], conditions_)) continue;
      ++n_words;
      if (token.text == ";") spoiled = true;
      if (token.kind == TokenKind::kPunctuator && (token.text == "(" || token.text == "[")) {
        const bool named = i > state_.declaration && tokens_[i - 1].kind == TokenKind::kIdentifier &&
                           std::find(kParenthesised.begin(), kParenthesised.end(), tokens_[i - 1].text) ==
                               kParenthesised.end();
        const bool overloaded = i > state_.declaration + 1 && !named &&
                                std::any_of(tokens_.begin() + static_cast<std::ptrdiff_t>(state_.declaration),
                                            tokens_.begin() + static_cast<std::ptrdiff_t>(i),
                                            [](const Token& one) { return one.text == "operator"; });
        if (depth == 0 && token.text == "(" && (named || overloaded)) has_call = true;
        ++depth;
      } else if (token.kind == TokenKind::kPunctuator && (token.text == ")" || token.text == "]")) {
        --depth;
      }
      if (token.kind == TokenKind::kString && i > 0 && tokens_[i - 1].text == "extern") has_linkage = true;
      if (token.kind != TokenKind::kIdentifier) continue;
      if (macros_.opaque.contains(token.text) || token.text == "__host__") spoiled = true;
      if (depth > 0) continue;
      has_namespace = has_namespace || token.text == "namespace";
      has_class = has_class || token.text == "class" || token.text == "struct" || token.text == "union" ||
                  token.text == "enum";
      if (token.text == "__device__" || token.text == "__global__" ||
          macros_.device_qualifiers.contains(token.text)) {
        if (!device || conditions_of_[i].size() < scope.qualified_in.size())
          scope.qualified_in = conditions_of_[i];
        device = true;
      }
    }
    const bool linkage_block = has_linkage && n_words == 2;
    if (has_namespace || linkage_block || (has_class && !has_call)) return scope;
    scope.kind = has_call ? Scope::Kind::kFunction : Scope::Kind::kOther;
    scope.device = device && !spoiled;
    return scope;
  }

  std::string assembly_fault(const Token& token) const {
    const bool macro = !is_assembly_word(token.text);
    return at(token) + "inline assembly" + (macro ? " (through macro " + token.text + ")" : "") +
           " outside of a function that is __device__ or __global__ only";
  }

  struct Group {
    State before;
    std::vector<State> ends;
    bool has_else = false;
  };

  const std::vector<Token>& tokens_;
  const MacroTable& macros_;
  const std::string& name_;
  std::vector<Conditions> conditions_of_;
  State state_;
  std::vector<Group> groups_;
  Conditions conditions_;
  int n_groups_ = 0;
};

}  // namespace

std::string host_assembly(const std::vector<Token>& tokens, const MacroTable& macros,
                          const std::string& name) {
  return Scanner(tokens, macros, name).run();
}

int assembly_line_in_host_code(const std::string& host_code, const std::string& source_name) {
  int hidden = 0;  // depth of #if 0
  int line = 0;
  bool ours = false;
  for (const std::string& text : split(host_code, '\n')) {
    const std::string_view trimmed = trim(text);
    if (trimmed.starts_with("#if") && hidden > 0) {
      ++hidden;
    } else if (trimmed == "#if 0") {
      hidden = 1;
    } else if (trimmed.starts_with("#endif") && hidden > 0) {
      --hidden;
    } else if (trimmed.starts_with("# ") || trimmed.starts_with("#line ")) {
      const std::string_view rest = trim(trimmed.substr(trimmed.find(' ')));
      line = std::atoi(std::string(rest).c_str()) - 1;
      if (const std::size_t quote = rest.find('"'); quote != std::string_view::npos) {
        const std::string_view file = rest.substr(quote + 1, rest.rfind('"') - quote - 1);
        ours = file == source_name || file.ends_with("/" + source_name);
      }
      continue;
    }
    ++line;
    if (hidden > 0 || !ours) continue;
    if (text.find("asm") == std::string::npos) continue;
    for (const Token& token : tokenize(text).tokens) {
      if (token.kind == TokenKind::kIdentifier && is_assembly_word(token.text)) return line;
    }
  }
  return 0;
}

}  // namespace echolo::judge
