#include "judge/macros.hpp"

#include <algorithm>
#include <array>

namespace echolo::judge {
namespace {

// Words that gates look for, so that nobody may assemble one out of sight.
constexpr std::array kGuardedWords = {"asm",        "__asm",         "__asm__",     "_Pragma",  "__pragma",
                                      "__device__", "__attribute__", "__attribute", "__host__", "__global__"};

constexpr char kAnything = '*';

// Whether `pattern`, in which * stands for any text, can be `word`. In time of their product however many
// stars there are: a candidate writes the pattern.
bool can_be(std::string_view pattern, std::string_view word) {
  std::size_t p = 0;
  std::size_t w = 0;
  std::size_t star = std::string_view::npos;  // the last one, which has taken the word up to `taken`
  std::size_t taken = 0;
  while (w < word.size()) {
    if (p < pattern.size() && pattern[p] == kAnything) {
      star = p++;
      taken = w;
    } else if (p < pattern.size() && pattern[p] == word[w]) {
      ++p;
      ++w;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      w = ++taken;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of(kAnything, p) == std::string_view::npos;
}

bool ends_declaration(const Token& token) {
  return token.kind == TokenKind::kPunctuator &&
         (token.text == ";" || token.text == "{" || token.text == "}");
}

}  // namespace

bool is_assembly_word(std::string_view word) { return word == "asm" || word == "__asm" || word == "__asm__"; }

std::vector<Directive> directives_of(const std::vector<Token>& tokens) {
  std::vector<Directive> all;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    if (!tokens[i].in_directive || !tokens[i].starts_line) continue;
    Directive one;
    one.line = tokens[i].line;
    one.column = tokens[i].column;
    std::size_t next = i + 1;
    const auto inside = [&] {
      return next < tokens.size() && tokens[next].in_directive && !tokens[next].starts_line;
    };
    if (inside()) one.name = tokens[next++].text;
    while (inside()) one.words.push_back(tokens[next++]);
    all.push_back(std::move(one));
    i = next - 1;
  }
  return all;
}

MacroTable read_macros(const std::vector<Directive>& directives) {
  MacroTable table;
  for (const Directive& directive : directives) {
    if (directive.name != "define" || directive.words.empty()) continue;
    Macro macro;
    macro.directive = directive;
    macro.name = directive.words[0].text;
    std::size_t i = 1;
    const std::vector<Token>& words = directive.words;
    if (words.size() > 1 && words[1].text == "(" && !words[1].after_space) {
      macro.function_like = true;
      for (i = 2; i < words.size() && words[i].text != ")"; ++i) {
        if (words[i].kind == TokenKind::kIdentifier) macro.parameters.push_back(words[i].text);
        if (words[i].text == ".") macro.parameters.emplace_back("__VA_ARGS__");
      }
      ++i;
    }
    for (; i < words.size(); ++i) macro.body.push_back(words[i]);
    table.macros.push_back(std::move(macro));
  }

  std::map<std::string, bool, std::less<>> always_qualifies;
  for (const Macro& macro : table.macros) {
    bool qualifies = false;
    for (const Token& token : macro.body) {
      if (token.kind == TokenKind::kIdentifier &&
          (token.text == "__device__" || token.text == "__global__")) {
        qualifies = true;
      }
      if (ends_declaration(token) || token.text == "__host__") table.opaque.insert(macro.name);
    }
    const auto [at, fresh] = always_qualifies.emplace(macro.name, qualifies);
    if (!fresh) at->second = at->second && qualifies;
  }
  // Through other macros: what one expands to, its users expand to as well.
  for (bool grew = true; grew;) {
    grew = false;
    for (const Macro& macro : table.macros) {
      for (const Token& token : macro.body) {
        if (token.kind != TokenKind::kIdentifier) continue;
        if (is_assembly_word(token.text) || table.bearing_assembly.contains(token.text)) {
          grew = table.bearing_assembly.insert(macro.name).second || grew;
        }
        if (table.opaque.contains(token.text)) grew = table.opaque.insert(macro.name).second || grew;
      }
    }
  }
  for (const auto& [name, qualifies] : always_qualifies) {
    if (qualifies && !table.opaque.contains(name)) table.device_qualifiers.insert(name);
  }
  return table;
}

std::string dangerous_paste(const Macro& macro) {
  const std::vector<Token>& body = macro.body;
  for (std::size_t i = 0; i < body.size(); ++i) {
    const bool pastes = i + 1 < body.size() && body[i + 1].text == "##";
    if (!pastes) continue;
    std::string pattern;
    std::size_t k = i;
    while (true) {
      const Token& piece = body[k];
      const bool parameter =
          piece.kind == TokenKind::kIdentifier &&
          std::find(macro.parameters.begin(), macro.parameters.end(), piece.text) != macro.parameters.end();
      pattern += parameter || piece.text == "__VA_OPT__" || piece.text == ")" ? std::string(1, kAnything)
                                                                              : piece.text;
      if (k + 2 >= body.size() || body[k + 1].text != "##") break;
      k += 2;
    }
    // ", ## __VA_ARGS__" makes no word: it drops a comma.
    if (pattern == ",*") {
      i = k;
      continue;
    }
    for (const char* word : kGuardedWords) {
      if (can_be(pattern, word)) return word;
    }
    i = k;
  }
  return {};
}

}  // namespace echolo::judge
