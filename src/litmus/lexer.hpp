// Tokens of a litmus file.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo::litmus {

enum class TokenKind { kWord, kNumber, kSymbol, kEnd };

// A word is a name with its dots ("ld.acquire.gpu", "P0", "x"); a number has its sign in a symbol of its own.
struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string text;
  int line = 0;
  int column = 0;
};

// The text from its `{` on; comments `(* *)` and `//` are gone. The last token is kEnd.
Result<std::vector<Token>> tokenize(const std::string& text, const std::string& file, std::size_t start,
                                    int line);

}  // namespace echolo::litmus
