#include "litmus/lexer.hpp"

#include <cctype>

#include "base/text.hpp"

namespace echolo::litmus {
namespace {

bool word_start(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool word_part(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

Result<std::vector<Token>> tokenize(const std::string& text, const std::string& file, std::size_t start,
                                    int line) {
  std::vector<Token> tokens;
  std::size_t line_start = text.rfind('\n', start);
  line_start = line_start == std::string::npos ? 0 : line_start + 1;
  const auto next_is = [&](std::size_t at, const char* what) { return text.compare(at, 2, what) == 0; };
  std::size_t at = start;
  while (at < text.size()) {
    const char c = text[at];
    const int column = static_cast<int>(at - line_start) + 1;
    if (c == '\n') {
      ++line;
      line_start = ++at;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
      continue;
    }
    if (next_is(at, "//")) {
      while (at < text.size() && text[at] != '\n') ++at;
      continue;
    }
    if (next_is(at, "(*")) {
      const std::size_t end = text.find("*)", at + 2);
      if (end == std::string::npos) {
        return input_error(file, line, "a comment begins here and never ends", "close it with *)", column);
      }
      for (; at < end + 2; ++at) {
        if (text[at] == '\n') {
          ++line;
          line_start = at + 1;
        }
      }
      continue;
    }
    Token token{TokenKind::kSymbol, "", line, column};
    std::size_t end = at + 1;
    if (word_start(c)) {
      token.kind = TokenKind::kWord;
      while (end < text.size() && (word_part(text[end]) ||
                                   (text[end] == '.' && end + 1 < text.size() && word_part(text[end + 1])))) {
        ++end;
      }
    } else if (digit(c)) {
      token.kind = TokenKind::kNumber;
      while (end < text.size() && word_part(text[end])) ++end;
    } else if (next_is(at, "/\\") || next_is(at, "\\/") || next_is(at, "==") || next_is(at, "!=") ||
               next_is(at, "<=") || next_is(at, ">=")) {
      end = at + 2;
    } else if (std::string("{}()[];:,|=<>@~-&").find(c) == std::string::npos) {
      return input_error(file, line, "unexpected character '" + printable(std::string(1, c)) + "'", {},
                         column);
    }
    token.text = text.substr(at, end - at);
    tokens.push_back(token);
    at = end;
  }
  tokens.push_back({TokenKind::kEnd, "end of file", line, static_cast<int>(at - line_start) + 1});
  return tokens;
}

}  // namespace echolo::litmus
