#include "ptx/lexer.hpp"

#include <array>
#include <bit>
#include <charconv>

namespace echolo::ptx {
namespace {

constexpr std::uint8_t kIdentStart = 1, kIdentPart = 2, kDigit = 4, kBlank = 8;

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kIdentStart | kIdentPart;
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kIdentStart | kIdentPart;
  for (int c = '0'; c <= '9'; ++c) classes[c] = kDigit | kIdentPart;
  classes['_'] = classes['$'] = kIdentStart | kIdentPart;
  for (const char c : {' ', '\t', '\r', '\n', '\f', '\v'}) classes[static_cast<unsigned char>(c)] = kBlank;
  return classes;
}
constexpr std::array<std::uint8_t, 256> kClasses = make_classes();

bool is(char c, std::uint8_t mask) { return (kClasses[static_cast<unsigned char>(c)] & mask) != 0; }

std::optional<std::uint64_t> parse_digits(std::string_view digits, int base) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

}  // namespace

int Lexer::column(const Token& token) const {
  const std::size_t line_start =
      token.begin == 0 ? std::string_view::npos : text_.rfind('\n', token.begin - 1);
  return static_cast<int>(token.begin - (line_start == std::string_view::npos ? 0 : line_start + 1)) + 1;
}

Token Lexer::make(TokenKind kind, std::size_t begin, std::size_t end, std::size_t text_begin,
                  std::size_t text_end) {
  at_ = end;
  return Token{kind, text_.substr(text_begin, text_end - text_begin), line_,
               static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
}

bool Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') ++line_;
    if (is(c, kBlank)) {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      at_ = text_.find('\n', at_);
      if (at_ == std::string_view::npos) at_ = text_.size();
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      const std::size_t close = text_.find("*/", at_ + 2);
      if (close == std::string_view::npos) return false;
      for (std::size_t i = at_; i < close; ++i) line_ += text_[i] == '\n';
      at_ = close + 2;
    } else {
      return true;
    }
  }
  return true;
}

std::size_t Lexer::scan_number(std::size_t at) const {
  const std::size_t begin = at;
  while (at < text_.size() && is(text_[at], kDigit)) ++at;
  const auto digit_at = [&](std::size_t i) { return i < text_.size() && is(text_[i], kDigit); };
  const bool prefixed = text_[begin] == '0' && at == begin + 1 && at < text_.size() &&
                        std::string_view("xXbBfFdD").find(text_[at]) != std::string_view::npos;
  if (!prefixed) {
    if (at < text_.size() && text_[at] == '.' && digit_at(at + 1)) {
      ++at;
      while (digit_at(at)) ++at;
    }
    if (at < text_.size() && (text_[at] == 'e' || text_[at] == 'E')) {
      std::size_t exponent = at + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (digit_at(exponent)) at = exponent;
    }
  }
  while (at < text_.size() && is(text_[at], kIdentPart)) ++at;
  return at;
}

Token Lexer::scan() {
  if (!skip_blanks()) return make(TokenKind::kInvalid, at_, text_.size(), at_, at_ + 2);
  const std::size_t begin = at_;
  if (begin >= text_.size())
    return make(TokenKind::kEnd, text_.size(), text_.size(), text_.size(), text_.size());
  const char c = text_[begin];
  std::size_t end = begin + 1;
  const auto part_at = [&](std::size_t i) { return i < text_.size() && is(text_[i], kIdentPart); };

  if (is(c, kIdentStart) || (c == '%' && end < text_.size() && is(text_[end], kIdentStart))) {
    while (part_at(end)) ++end;
    return make(TokenKind::kIdent, begin, end, begin, end);
  }
  if (c == '.' && part_at(end)) {
    while (part_at(end) ||
           (end + 2 < text_.size() && text_[end] == ':' && text_[end + 1] == ':' && part_at(end + 2))) {
      end += text_[end] == ':' ? 2 : 1;
    }
    return make(TokenKind::kDotted, begin, end, begin + 1, end);
  }
  if (is(c, kDigit)) {
    end = scan_number(begin);
    return make(TokenKind::kNumber, begin, end, begin, end);
  }
  if (c == '"') {
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') {
      end += text_[end] == '\\' && end + 1 < text_.size() && text_[end + 1] != '\n' ? 2 : 1;
    }
    if (end >= text_.size() || text_[end] != '"') return make(TokenKind::kInvalid, begin, end, begin, end);
    return make(TokenKind::kString, begin, end + 1, begin + 1, end);
  }
  static constexpr std::string_view kPunctuation = "{}()[]<>,;:+-*/%&|^~!=?@";
  const bool known = kPunctuation.find(c) != std::string_view::npos;
  return make(known ? TokenKind::kPunct : TokenKind::kInvalid, begin, end, begin, end);
}

std::optional<Literal> parse_literal(std::string_view text) {
  if (text.size() >= 2 && text[0] == '0') {
    const char kind = text[1];
    const bool single = kind == 'f' || kind == 'F';
    if (single || kind == 'd' || kind == 'D') {
      const auto bits = parse_digits(text.substr(2), 16);
      if (!bits || text.size() != (single ? 10U : 18U)) return std::nullopt;
      return Literal{*bits, true, static_cast<std::uint8_t>(single ? 32 : 64)};
    }
  }
  if (text.find('.') != std::string_view::npos || (text.substr(0, 2) != "0x" && text.substr(0, 2) != "0X" &&
                                                   text.find_first_of("eE") != std::string_view::npos)) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return Literal{std::bit_cast<std::uint64_t>(value), true, 64};
  }
  if (!text.empty() && text.back() == 'U') text.remove_suffix(1);
  std::optional<std::uint64_t> bits;
  if (text.size() > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
    bits = parse_digits(text.substr(2), 16);
  } else if (text.size() > 2 && text[0] == '0' && (text[1] == 'b' || text[1] == 'B')) {
    bits = parse_digits(text.substr(2), 2);
  } else if (text.size() > 1 && text[0] == '0') {
    bits = parse_digits(text.substr(1), 8);
  } else {
    bits = parse_digits(text, 10);
  }
  if (!bits) return std::nullopt;
  return Literal{*bits, false, 0};
}

}  // namespace echolo::ptx
