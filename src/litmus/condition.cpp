// filter, locations, and exists / ~exists / forall.
#include "base/text.hpp"
#include "litmus/parser.hpp"

namespace echolo::litmus {

Result<int> Parser::thread_reference() {
  const Token name = take();
  const std::string digits =
      name.kind == TokenKind::kWord && name.text.starts_with("P") ? name.text.substr(1) : name.text;
  for (std::size_t t = 0; t < program_.threads.size(); ++t) {
    if (std::to_string(program_.threads[t].id) == digits) return static_cast<int>(t);
  }
  return error_at(name, "there is no thread '" + printable(name.text) + "'");
}

Status Parser::observed_list() {
  while (is("locations")) {
    take();
    if (Status status = expect("[", "after 'locations'"); !status) return status;
    while (!accept("]")) {
      if (accept(";")) continue;
      Result<Term> part = term();
      if (!part) return part.error();
    }
  }
  return {};
}

Result<Term> Parser::term() {
  Term term;
  if ((peek().kind == TokenKind::kNumber || peek().kind == TokenKind::kWord) && is(":", 1)) {
    Result<int> thread = thread_reference();
    if (!thread) return thread.error();
    take();
    const Token name = take();
    if (!is_register_name(name.text)) {
      return error_at(name, "expected a register like r0, not '" + printable(name.text) + "'");
    }
    term.kind = Term::Kind::kRegister;
    term.observed = program_.observe(*thread, register_in(*thread, name.text));
    return term;
  }
  if (peek().kind == TokenKind::kNumber || is("-")) {
    Result<std::int64_t> value = number();
    if (!value) return value.error();
    term.constant = *value;
    return term;
  }
  const bool bracket = accept("[");
  const Token name = take();
  const int known = name.kind == TokenKind::kWord ? address(name.text) : -1;
  if (known < 0) {
    return error_at(
        name, "expected a location, a register (P0:r0) or a number, not '" + printable(name.text) + "'");
  }
  if (bracket) {
    if (Status status = expect("]", "after a location"); !status) return status.error();
  }
  term.kind = Term::Kind::kLocation;
  term.observed = program_.observe(-1, program_.addresses[known].location);
  return term;
}

Result<Compare> Parser::comparison() {
  const Token how = take();
  if (how.text == "=" || how.text == "==") return Compare::kEq;
  if (how.text == "!=") return Compare::kNe;
  if (how.text == "<") return Compare::kLt;
  if (how.text == "<=") return Compare::kLe;
  if (how.text == ">") return Compare::kGt;
  if (how.text == ">=") return Compare::kGe;
  return error_at(how, "expected a comparison, not '" + printable(how.text) + "'");
}

Result<Condition> Parser::unit(int depth) {
  if (depth > kMaxConditionDepth) return error_at(peek(), "the condition nests too deeply");
  if (accept("~") || accept("not")) {
    Result<Condition> inner = unit(depth + 1);
    if (!inner) return inner;
    Condition negation;
    negation.kind = Condition::Kind::kNot;
    negation.parts.push_back(std::move(inner).value());
    return negation;
  }
  if (accept("(")) {
    Result<Condition> inner = disjunction(depth + 1);
    if (!inner) return inner;
    if (Status status = expect(")", "after a condition"); !status) return status.error();
    return inner;
  }
  Condition comparison_of;
  comparison_of.kind = Condition::Kind::kCompare;
  Result<Term> left = term();
  if (!left) return left.error();
  Result<Compare> how = comparison();
  if (!how) return how.error();
  Result<Term> right = term();
  if (!right) return right.error();
  comparison_of.left = *left;
  comparison_of.compare = *how;
  comparison_of.right = *right;
  return comparison_of;
}

Result<Condition> Parser::conjunction(int depth) {
  Result<Condition> first = unit(depth);
  if (!first || !is("/\\")) return first;
  Condition all;
  all.kind = Condition::Kind::kAnd;
  all.parts.push_back(std::move(first).value());
  while (accept("/\\")) {
    Result<Condition> next = unit(depth);
    if (!next) return next;
    all.parts.push_back(std::move(next).value());
  }
  return all;
}

Result<Condition> Parser::disjunction(int depth) {
  Result<Condition> first = conjunction(depth);
  if (!first || !is("\\/")) return first;
  Condition any;
  any.kind = Condition::Kind::kOr;
  any.parts.push_back(std::move(first).value());
  while (accept("\\/")) {
    Result<Condition> next = conjunction(depth);
    if (!next) return next;
    any.parts.push_back(std::move(next).value());
  }
  return any;
}

Status Parser::question() {
  if (accept("filter")) {
    Result<Condition> filter = disjunction(0);
    if (!filter) return filter.error();
    program_.filter = std::move(filter).value();
    accept(";");
  }
  if (is("final")) return error_at(peek(), "'final' is not supported", "ask with exists, ~exists or forall");
  if (peek().kind == TokenKind::kEnd) return {};
  if (accept("exists")) {
    program_.quantifier = Quantifier::kExists;
  } else if (accept("forall")) {
    program_.quantifier = Quantifier::kForall;
  } else {
    if (!accept("~") && !accept("not")) {
      return error_at(peek(), "expected exists, ~exists or forall, not '" + printable(peek().text) + "'");
    }
    if (Status status = expect("exists", "after '~'"); !status) return status;
    program_.quantifier = Quantifier::kNotExists;
  }
  Result<Condition> condition = disjunction(0);
  if (!condition) return condition.error();
  program_.condition = std::move(condition).value();
  program_.has_condition = true;
  accept(";");
  if (peek().kind != TokenKind::kEnd) {
    return error_at(peek(), "expected the end of the file, not '" + printable(peek().text) + "'");
  }
  return {};
}

}  // namespace echolo::litmus
