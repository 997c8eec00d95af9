// Constant expressions (PTX ISA section 4.5.3): C's operators on 64-bit integers; of floating literals only
// the sign may change.
#include <bit>

#include "base/text.hpp"
#include "ptx/parser.hpp"

namespace echolo::ptx {
namespace {

// Two-character operators are coded as first * 256 + second.
constexpr int pair(char first, char second) { return first * 256 + second; }

int precedence(int op) {
  switch (op) {
    case pair('|', '|'):
      return 1;
    case pair('&', '&'):
      return 2;
    case '|':
      return 3;
    case '^':
      return 4;
    case '&':
      return 5;
    case pair('=', '='):
    case pair('!', '='):
      return 6;
    case '<':
    case '>':
    case pair('<', '='):
    case pair('>', '='):
      return 7;
    case pair('<', '<'):
    case pair('>', '>'):
      return 8;
    case '+':
    case '-':
      return 9;
    case '*':
    case '/':
    case '%':
      return 10;
    default:
      return 0;
  }
}

}  // namespace

bool Parser::parse_constant(Constant& constant) { return parse_conditional(constant, 0); }

bool Parser::parse_conditional(Constant& constant, int depth) {
  if (!parse_binary(constant, 1, depth)) return false;
  if (!lexer_.peek().is('?')) return true;
  const Token at = lexer_.next();
  if (constant.is_float) return fail(at, "a condition must be an integer");
  Constant if_true, if_false;
  if (depth >= kMaxExpressionDepth) return fail(at, "this expression is nested too deeply");
  if (!parse_conditional(if_true, depth + 1) || !expect(':') || !parse_conditional(if_false, depth + 1))
    return false;
  constant = constant.value != 0 ? if_true : if_false;
  return true;
}

// Reads operators only as far as they bind tighter than `lowest`; a '|' or '>' that no constant follows is
// never met, since p|q pairs and %r<20> do not come here.
bool Parser::parse_binary(Constant& constant, int lowest, int depth) {
  if (!parse_unary(constant, depth)) return false;
  while (lexer_.peek().kind == TokenKind::kPunct) {
    const Token at = lexer_.peek();
    const std::string_view text = lexer_.text();
    int op = static_cast<unsigned char>(at.text[0]);
    const char second = at.end < text.size() ? text[at.end] : '\0';
    const int both = pair(at.text[0], second);
    const bool is_pair = precedence(both) > 0;
    if (is_pair) op = both;
    const int level = precedence(op);
    if (level == 0 || level < lowest) return true;
    lexer_.next();
    if (is_pair) lexer_.next();
    if (depth >= kMaxExpressionDepth) return fail(at, "this expression is nested too deeply");
    Constant right;
    if (!parse_binary(right, level + 1, depth + 1) || !apply_binary(at, op, constant, right)) return false;
  }
  return true;
}

bool Parser::apply_binary(const Token& at, int op, Constant& left, const Constant& right) {
  if (left.is_float || right.is_float)
    return fail(at, "arithmetic on floating-point constants is not supported here");
  const auto a = static_cast<std::uint64_t>(left.value);
  const auto b = static_cast<std::uint64_t>(right.value);
  const std::int64_t x = left.value, y = right.value;
  std::uint64_t result = 0;
  switch (op) {
    case pair('|', '|'):
      result = a != 0 || b != 0;
      break;
    case pair('&', '&'):
      result = a != 0 && b != 0;
      break;
    case '|':
      result = a | b;
      break;
    case '^':
      result = a ^ b;
      break;
    case '&':
      result = a & b;
      break;
    case pair('=', '='):
      result = a == b;
      break;
    case pair('!', '='):
      result = a != b;
      break;
    case '<':
      result = x < y;
      break;
    case '>':
      result = x > y;
      break;
    case pair('<', '='):
      result = x <= y;
      break;
    case pair('>', '='):
      result = x >= y;
      break;
    case pair('<', '<'):
      result = b < 64 ? a << b : 0;
      break;
    case pair('>', '>'):
      result = static_cast<std::uint64_t>(x >> (b < 64 ? b : 63));
      break;
    case '+':
      result = a + b;
      break;
    case '-':
      result = a - b;
      break;
    case '*':
      result = a * b;
      break;
    default:
      if (y == 0) return fail(at, "division by zero in a constant expression");
      // The one quotient that does not fit wraps, as the other operators do.
      if (y == -1) {
        result = op == '/' ? 0 - a : 0;
      } else {
        result = static_cast<std::uint64_t>(op == '/' ? x / y : x % y);
      }
  }
  left.value = static_cast<std::int64_t>(result);
  return true;
}

bool Parser::parse_unary(Constant& constant, int depth) {
  const Token at = lexer_.peek();
  if (!at.is('-') && !at.is('+') && !at.is('~') && !at.is('!')) return parse_primary(constant, depth);
  lexer_.next();
  if (depth >= kMaxExpressionDepth) return fail(at, "this expression is nested too deeply");
  if (!parse_unary(constant, depth + 1)) return false;
  if (at.is('+')) return true;
  auto bits = static_cast<std::uint64_t>(constant.value);
  if (constant.is_float) {
    if (!at.is('-')) return fail(at, "this operator needs an integer");
    bits ^= std::uint64_t{1} << (constant.float_bits - 1);
  } else {
    bits = at.is('-') ? 0 - bits : at.is('~') ? ~bits : bits == 0 ? 1 : 0;
  }
  constant.value = static_cast<std::int64_t>(bits);
  return true;
}

bool Parser::parse_primary(Constant& constant, int depth) {
  const Token token = lexer_.next();
  if (token.kind == TokenKind::kNumber) {
    const std::optional<Literal> literal = parse_literal(token.text);
    if (!literal) return fail(token, shown(token) + " is no number that fits in 64 bits");
    constant = {static_cast<std::int64_t>(literal->bits), literal->is_float, literal->float_bits};
    return true;
  }
  if (token.kind == TokenKind::kIdent && token.text == "WARP_SZ") {
    constant = {32, false, 0};
    return true;
  }
  if (!token.is('(')) return unexpected(token, "a constant");
  if (depth >= kMaxExpressionDepth) return fail(token, "this expression is nested too deeply");
  // (.s64) and (.u64) are casts.
  if (accept_dotted("s64") || accept_dotted("u64")) return expect(')') && parse_unary(constant, depth + 1);
  return parse_conditional(constant, depth + 1) && expect(')');
}

bool Parser::parse_unsigned(std::uint64_t& value, std::uint64_t most, std::string_view what) {
  const Token token = lexer_.next();
  const std::optional<Literal> literal =
      token.kind == TokenKind::kNumber ? parse_literal(token.text) : std::nullopt;
  if (!literal || literal->is_float) return unexpected(token, std::string(what) + " (a number)");
  if (literal->bits > most) return fail(token, std::string(what) + " is too large: " + shown(token));
  value = literal->bits;
  return true;
}

}  // namespace echolo::ptx
