#include "judge/tokens.hpp"

#include <array>
#include <cctype>
#include <cstdint>

namespace echolo::judge {
namespace {

bool is_identifier_start(unsigned char c) {
  return std::isalpha(c) != 0 || c == '_' || c == '$' || c >= 0x80;
}
bool is_identifier_part(unsigned char c) { return is_identifier_start(c) || std::isdigit(c) != 0; }

// Reads a file character by character with line splices taken out; knows the real place of each character.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) { skip_splices(); }

  bool done() const { return at_ >= text_.size(); }
  char peek() const { return done() ? '\0' : text_[at_]; }
  char peek(std::size_t ahead) const {
    Reader copy = *this;
    for (std::size_t i = 0; i < ahead && !copy.done(); ++i) copy.take();
    return copy.peek();
  }
  char take() {
    const char c = text_[at_];
    step(c);
    skip_splices();
    return c;
  }
  // As the file has it: raw strings undo the splices.
  char take_raw() {
    const char c = text_[at_];
    step(c);
    return c;
  }
  char peek_raw() const { return peek(); }
  bool starts_with(std::string_view word) const {
    Reader copy = *this;
    for (const char c : word) {
      if (copy.done() || copy.take() != c) return false;
    }
    return true;
  }
  void skip(std::size_t n) {
    for (std::size_t i = 0; i < n && !done(); ++i) take();
  }
  int line() const { return line_; }
  int column() const { return static_cast<int>(at_ - line_start_) + 1; }

 private:
  void step(char c) {
    ++at_;
    if (c == '\n') {
      ++line_;
      line_start_ = at_;
    }
  }
  // GCC takes white space between the backslash and the newline for a splice too.
  void skip_splices() {
    while (at_ < text_.size() && text_[at_] == '\\') {
      std::size_t end = at_ + 1;
      while (end < text_.size() && (text_[end] == ' ' || text_[end] == '\t' || text_[end] == '\r' ||
                                    text_[end] == '\v' || text_[end] == '\f')) {
        ++end;
      }
      if (end >= text_.size() || text_[end] != '\n') return;
      while (at_ <= end) step(text_[at_]);
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_start_ = 0;
  int line_ = 1;
};

struct Punctuator {
  std::string_view written, meant;
};
// Longest first. Only what the screen tells apart is joined; other operators may stay single characters.
constexpr std::array<Punctuator, 10> kPunctuators = {{{"%:%:", "##"},
                                                      {"##", "##"},
                                                      {"%:", "#"},
                                                      {"<%", "{"},
                                                      {"%>", "}"},
                                                      {":>", "]"},
                                                      {"<:", "["},
                                                      {"::", "::"},
                                                      {"->", "->"},
                                                      {"#", "#"}}};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : in_(text) {}

  TokenStream run() {
    while (!in_.done()) one();
    return std::move(out_);
  }

 private:
  void fault(std::string message) { out_.faults.push_back({std::move(message), in_.line(), in_.column()}); }

  Token begin(TokenKind kind) {
    Token token;
    token.kind = kind;
    token.line = in_.line();
    token.column = in_.column();
    token.starts_line = fresh_line_;
    token.after_space = space_;
    fresh_line_ = false;
    space_ = false;
    return token;
  }
  void push(Token token) {
    if (token.starts_line) {
      in_directive_ = token.kind == TokenKind::kPunctuator && token.text == "#";
      directive_.clear();
    } else if (in_directive_ && directive_.empty() && token.kind == TokenKind::kIdentifier) {
      directive_ = token.text;
    }
    token.in_directive = in_directive_;
    out_.tokens.push_back(std::move(token));
  }

  bool wants_header() const {
    return in_directive_ && !out_.tokens.empty() && out_.tokens.back().in_directive &&
           (directive_ == "include" || directive_ == "include_next" || directive_ == "import" ||
            directive_ == "embed") &&
           out_.tokens.back().kind == TokenKind::kIdentifier && out_.tokens.back().text == directive_;
  }

  void one() {
    const char c = in_.peek();
    if (c == '\n') {
      in_.take();
      fresh_line_ = true;
      space_ = false;
      in_directive_ = false;
      return;
    }
    if (c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f') {
      in_.take();
      space_ = true;
      return;
    }
    if (in_.starts_with("//")) {
      while (!in_.done() && in_.peek() != '\n') in_.take();
      space_ = true;
      return;
    }
    if (in_.starts_with("/*")) return block_comment();
    if (wants_header() && (c == '<' || c == '"')) return header(c == '<' ? '>' : '"');
    const auto u = static_cast<unsigned char>(c);
    if (c == '"') return quoted(begin(TokenKind::kString), '"');
    if (c == '\'') return quoted(begin(TokenKind::kCharacter), '\'');
    if (is_identifier_start(u)) return identifier();
    if (std::isdigit(u) != 0 || (c == '.' && std::isdigit(static_cast<unsigned char>(in_.peek(1))) != 0)) {
      return number();
    }
    if (c == '\\') fault("a stray backslash (universal character names have no place in a candidate's code)");
    if (trigraph()) fault("a trigraph");
    punctuator();
  }

  bool trigraph() const {
    return in_.starts_with("??") && std::string_view("=/'()!<>-").find(in_.peek(2)) != std::string_view::npos;
  }

  void block_comment() {
    in_.skip(2);
    while (!in_.done()) {
      if (in_.starts_with("*/")) {
        in_.skip(2);
        space_ = true;
        return;
      }
      in_.take();
    }
    fault("a comment that never ends");
  }

  void header(char closing) {
    Token token = begin(TokenKind::kHeader);
    token.text += in_.take();
    while (!in_.done() && in_.peek() != '\n' && in_.peek() != closing) token.text += in_.take();
    if (in_.done() || in_.peek() == '\n') {
      fault("an #include whose name does not end");
    } else {
      token.text += in_.take();
    }
    push(std::move(token));
  }

  void identifier() {
    Token token = begin(TokenKind::kIdentifier);
    while (!in_.done() && is_identifier_part(static_cast<unsigned char>(in_.peek())))
      token.text += in_.take();
    if (in_.peek() == '\\') fault("a universal character name inside a name");
    if (in_.peek() == '"' || in_.peek() == '\'') {
      const std::string& prefix = token.text;
      if (in_.peek() == '"' &&
          (prefix == "R" || prefix == "LR" || prefix == "uR" || prefix == "UR" || prefix == "u8R")) {
        token.kind = TokenKind::kString;
        token.text.clear();
        return raw_string(std::move(token));
      }
      if (prefix == "L" || prefix == "u" || prefix == "U" || prefix == "u8") {
        const bool is_string = in_.peek() == '"';
        token.kind = is_string ? TokenKind::kString : TokenKind::kCharacter;
        token.text.clear();
        return quoted(std::move(token), is_string ? '"' : '\'');
      }
    }
    push(std::move(token));
  }

  void quoted(Token token, char quote) {
    in_.take();
    while (!in_.done() && in_.peek() != quote && in_.peek() != '\n') {
      if (trigraph()) fault("a trigraph");
      const char c = in_.take();
      token.text += c;
      if (c == '\\' && !in_.done() && in_.peek() != '\n') token.text += in_.take();
    }
    // In text that #if 0 leaves out, a lone apostrophe is legal; elsewhere the compiler will say so itself.
    if (!in_.done() && in_.peek() == quote) {
      in_.take();
    } else {
      fault("a literal that does not end on its line");
    }
    push(std::move(token));
  }

  void raw_string(Token token) {
    in_.take_raw();
    std::string closing = ")";
    while (!in_.done() && in_.peek_raw() != '(' && in_.peek_raw() != '\n' && closing.size() < 18) {
      closing += in_.take_raw();
    }
    closing += '"';
    if (!in_.done()) in_.take_raw();
    while (!in_.done() && !token.text.ends_with(closing)) token.text += in_.take_raw();
    if (token.text.ends_with(closing)) {
      token.text.resize(token.text.size() - closing.size());
    } else {
      fault("a raw string that never ends");
    }
    push(std::move(token));
  }

  void number() {  // [lex.ppnumber]
    Token token = begin(TokenKind::kNumber);
    while (!in_.done()) {
      const char c = in_.peek();
      const auto u = static_cast<unsigned char>(c);
      const char last = token.text.empty() ? '\0' : token.text.back();
      const bool exponent = last == 'e' || last == 'E' || last == 'p' || last == 'P';
      const bool separator = c == '\'' && is_identifier_part(static_cast<unsigned char>(in_.peek(1)));
      if (!is_identifier_part(u) && c != '.' && !separator && !(exponent && (c == '+' || c == '-'))) break;
      token.text += in_.take();
    }
    push(std::move(token));
  }

  void punctuator() {
    Token token = begin(TokenKind::kPunctuator);
    for (const Punctuator& one : kPunctuators) {
      if (!in_.starts_with(one.written)) continue;
      // [lex.pptoken]: "<::" not followed by ":" or ">" is "<" and "::".
      if (one.written == "<:" && in_.peek(2) == ':' && in_.peek(3) != ':' && in_.peek(3) != '>') continue;
      in_.skip(one.written.size());
      token.text = one.meant;
      return push(std::move(token));
    }
    token.text = std::string(1, in_.take());
    push(std::move(token));
  }

  Reader in_;
  TokenStream out_;
  bool fresh_line_ = true;
  bool space_ = false;
  bool in_directive_ = false;
  std::string directive_;
};

}  // namespace

TokenStream tokenize(std::string_view text) { return Lexer(text).run(); }

std::size_t first_invalid_utf8(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    const auto lead = static_cast<unsigned char>(text[i]);
    std::size_t n = 0;
    std::uint32_t value = 0;
    if (lead == 0) return i;
    if (lead < 0x80) {
      ++i;
      continue;
    }
    if (lead >= 0xc2 && lead < 0xe0) {
      n = 1;
      value = lead & 0x1fU;
    } else if (lead >= 0xe0 && lead < 0xf0) {
      n = 2;
      value = lead & 0x0fU;
    } else if (lead >= 0xf0 && lead < 0xf5) {
      n = 3;
      value = lead & 0x07U;
    } else {
      return i;
    }
    if (i + n >= text.size()) return i;
    for (std::size_t k = 1; k <= n; ++k) {
      const auto next = static_cast<unsigned char>(text[i + k]);
      if ((next & 0xc0U) != 0x80U) return i;
      value = (value << 6U) | (next & 0x3fU);
    }
    const bool too_long = (n == 2 && value < 0x800) || (n == 3 && value < 0x10000);
    if (too_long || value > 0x10ffff || (value >= 0xd800 && value < 0xe000)) return i;
    i += n + 1;
  }
  return std::string_view::npos;
}

}  // namespace echolo::judge
