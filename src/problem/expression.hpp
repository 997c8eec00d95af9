// The small exact-integer language of problem.toml and kernel.toml:
//   + - * / // % ( )  min(a, b, ...)  max(a, b, ...)  ceil_div(a, b)       integers
//   == != < <= > >=  && || !                                              conditions
// `/` is division that must come out even; `//` rounds towards minus infinity and `%` is its remainder, as in
// Python. Values are 64-bit; overflow, division by zero, an uneven `/` and an unknown name are errors, never
// a wrapped value.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"

namespace echolo {

using Bindings = std::map<std::string, std::int64_t, std::less<>>;

class Expression {
 public:
  // Error: what is wrong and at which character of `text` (1-based, in `column`).
  static Result<Expression> parse(std::string_view text);
  static Expression constant(std::int64_t value);

  // Conditions give 1 or 0; && and || evaluate their right side only where it matters.
  // Error: names the operation with its values, or the unknown name with near ones.
  Result<std::int64_t> evaluate(const Bindings& bindings) const;

  const std::string& text() const { return text_; }
  const std::vector<std::string>& names() const { return names_; }  // each once, in order of appearance
  bool is_condition() const { return nodes_.back().condition; }     // a truth value rather than a number

 private:
  friend class ExpressionParser;
  enum class Op : std::uint8_t {
    kConstant,
    kName,
    kNegate,
    kNot,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kFloorDivide,
    kModulo,
    kMin,
    kMax,
    kCeilDivide,
    kEqual,
    kNotEqual,
    kLess,
    kLessEqual,
    kGreater,
    kGreaterEqual,
    kAnd,
    kOr
  };
  struct Node {
    Op op = Op::kConstant;
    bool condition = false;
    std::int64_t value = 0;  // the constant, or the index into names_
    std::size_t left = 0;    // indices into nodes_
    std::size_t right = 0;
  };
  Result<std::int64_t> value_of(std::size_t node, const Bindings& bindings) const;

  std::string text_;
  std::vector<std::string> names_;
  std::vector<Node> nodes_;  // the root is last
};

}  // namespace echolo
