// C++ source as the preprocessor first sees it: tokens with their places, comments gone, line splices undone,
// digraphs read as what they stand for. Written to be hard to deceive, not to be a compiler: what has no
// honest use in a candidate (trigraphs, universal character names outside of literals) is a fault with its
// place. References: C++17 [lex.phases], [lex.trigraph], [lex.digraph], [lex.string].
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace echolo::judge {

enum class TokenKind {
  kIdentifier,
  kNumber,
  kString,      // text is the content, without prefix and quotes, escapes as written
  kCharacter,   // likewise
  kPunctuator,  // digraphs as their plain form; "#" and "##" included
  kHeader,      // <name> or "name" after #include, with its delimiters
};

struct Token {
  TokenKind kind = TokenKind::kPunctuator;
  std::string text;
  int line = 0, column = 0;   // 1-based, in the file as it is
  bool starts_line = false;   // first of its logical line
  bool after_space = false;   // white space or a comment before it
  bool in_directive = false;  // part of a preprocessing directive
};

struct TokenFault {
  std::string message;
  int line = 0, column = 0;
};

struct TokenStream {
  std::vector<Token> tokens;
  std::vector<TokenFault> faults;  // in order of place
};

TokenStream tokenize(std::string_view text);

// The first byte that is no valid UTF-8 (or a NUL), or npos.
std::size_t first_invalid_utf8(std::string_view text);

}  // namespace echolo::judge
