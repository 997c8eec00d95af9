// Splits PTX text into tokens (PTX ISA section 4.2 "Comments", 4.4 "Identifiers", 4.5 "Constants").
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace echolo::ptx {

enum class TokenKind : std::uint8_t {
  kEnd,
  kIdent,    // names and mnemonics: "ld", "%r1", "$L__BB0_2", "_"
  kDotted,   // ".u32", ".L2::cache_hint": `text` is without the dot
  kNumber,   // any literal that starts with a digit; see parse_literal
  kString,   // `text` is without the quotes, escapes as written
  kPunct,    // one character
  kInvalid,  // `text` is the offending piece
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  std::int32_t line = 1;    // 1-based
  std::uint32_t begin = 0;  // byte offsets into the text; a kDotted's includes its dot
  std::uint32_t end = 0;

  bool is(char c) const { return kind == TokenKind::kPunct && text[0] == c; }
  bool is_dotted(std::string_view word) const { return kind == TokenKind::kDotted && text == word; }
};

// Texts of 4 GiB and more are the caller's to refuse.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { current_ = scan(); }

  const Token& peek() const { return current_; }
  Token next() {
    const Token token = current_;
    if (token.kind != TokenKind::kEnd) current_ = scan();
    return token;
  }
  std::string_view text() const { return text_; }
  // The 1-based column at which the token starts.
  int column(const Token& token) const;

 private:
  Token scan();
  bool skip_blanks();  // false: a comment is never closed
  Token make(TokenKind kind, std::size_t begin, std::size_t end, std::size_t text_begin,
             std::size_t text_end);
  std::size_t scan_number(std::size_t at) const;

  std::string_view text_;
  std::size_t at_ = 0;
  std::int32_t line_ = 1;
  Token current_;
};

struct Literal {
  std::uint64_t bits = 0;  // two's complement, or the bits of the float
  bool is_float = false;
  std::uint8_t float_bits = 0;  // 32 for 0f..., 64 for 0d... and decimal floating literals
};
// Decimal, octal (leading 0), 0x, 0b, each with an optional U; 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX; 1.5e-3.
// Nothing where the text is no literal or does not fit in 64 bits.
std::optional<Literal> parse_literal(std::string_view text);

}  // namespace echolo::ptx
