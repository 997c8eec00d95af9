#include "problem/expression.hpp"

#include <algorithm>
#include <cctype>
#include <limits>

#include "base/text.hpp"

namespace echolo {
namespace {

constexpr int kMaxDepth = 64;
constexpr std::size_t kMaxLength = 4096;

bool starts_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool in_name(char c) { return starts_name(c) || std::isdigit(static_cast<unsigned char>(c)) != 0; }

}  // namespace

class ExpressionParser {
 public:
  using Op = Expression::Op;

  explicit ExpressionParser(std::string_view text) { out_.text_ = std::string(text); }

  Result<Expression> run() {
    if (text().size() > kMaxLength) return fault("the expression is too long");
    if (trim(text()).empty()) return fault("the expression is empty");
    Result<std::size_t> root = disjunction();
    if (!root) return root.error();
    skip_blanks();
    if (at_ < text().size()) return fault("cannot read on at '" + text().substr(at_, 12) + "'");
    return std::move(out_);
  }

 private:
  const std::string& text() const { return out_.text_; }

  Error fault(std::string message, std::string hint = {}) const {
    Error error =
        usage_error(std::move(message) + " in '" + printable(text().substr(0, 120)) + "'", std::move(hint));
    error.column = static_cast<int>(at_) + 1;
    return error;
  }

  void skip_blanks() {
    while (at_ < text().size() && (text()[at_] == ' ' || text()[at_] == '\t')) ++at_;
  }

  bool take(std::string_view token) {
    skip_blanks();
    if (text().compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  // `token`, but not where it is only the start of `longer`.
  bool take(std::string_view token, std::string_view longer) {
    skip_blanks();
    if (text().compare(at_, longer.size(), longer) == 0) return false;
    return take(token);
  }

  std::size_t add(Op op, bool condition, std::size_t left, std::size_t right, std::int64_t value = 0) {
    out_.nodes_.push_back({op, condition, value, left, right});
    return out_.nodes_.size() - 1;
  }

  bool condition(std::size_t node) const { return out_.nodes_[node].condition; }

  Result<std::size_t> binary(Op op, bool wants_condition, bool gives_condition, std::size_t left,
                             Result<std::size_t> right) {
    if (!right) return right;
    if (condition(left) != wants_condition || condition(*right) != wants_condition) {
      return wants_condition ? fault("'&&' and '||' join conditions, not numbers")
                             : fault("a condition is not a number");
    }
    return add(op, gives_condition, left, *right);
  }

  Result<std::size_t> disjunction() {
    Result<std::size_t> left = conjunction();
    while (left && take("||")) left = binary(Op::kOr, true, true, *left, conjunction());
    return left;
  }

  Result<std::size_t> conjunction() {
    Result<std::size_t> left = comparison();
    while (left && take("&&")) left = binary(Op::kAnd, true, true, *left, comparison());
    return left;
  }

  Result<std::size_t> comparison() {
    Result<std::size_t> left = sum();
    if (!left) return left;
    static constexpr std::pair<std::string_view, Op> kComparisons[] = {
        {"==", Op::kEqual},        {"!=", Op::kNotEqual}, {"<=", Op::kLessEqual},
        {">=", Op::kGreaterEqual}, {"<", Op::kLess},      {">", Op::kGreater}};
    for (const auto& [token, op] : kComparisons) {
      if (take(token)) return binary(op, false, true, *left, sum());
    }
    return left;
  }

  Result<std::size_t> sum() {
    Result<std::size_t> left = product();
    while (left) {
      if (take("+")) {
        left = binary(Op::kAdd, false, false, *left, product());
      } else if (take("-")) {
        left = binary(Op::kSubtract, false, false, *left, product());
      } else {
        break;
      }
    }
    return left;
  }

  Result<std::size_t> product() {
    Result<std::size_t> left = unary();
    while (left) {
      if (take("*")) {
        left = binary(Op::kMultiply, false, false, *left, unary());
      } else if (take("//")) {
        left = binary(Op::kFloorDivide, false, false, *left, unary());
      } else if (take("/")) {
        left = binary(Op::kDivide, false, false, *left, unary());
      } else if (take("%")) {
        left = binary(Op::kModulo, false, false, *left, unary());
      } else {
        break;
      }
    }
    return left;
  }

  Result<std::size_t> unary() {
    if (++depth_ > kMaxDepth) return fault("the expression nests too deeply");
    Result<std::size_t> out = unary_at_depth();
    --depth_;
    return out;
  }

  Result<std::size_t> unary_at_depth() {
    if (take("-")) {
      Result<std::size_t> operand = unary();
      if (!operand) return operand;
      if (condition(*operand)) return fault("a condition is not a number");
      return add(Op::kNegate, false, *operand, *operand);
    }
    if (take("!", "!=")) {
      Result<std::size_t> operand = unary();
      if (!operand) return operand;
      if (!condition(*operand)) return fault("'!' negates a condition, not a number");
      return add(Op::kNot, true, *operand, *operand);
    }
    if (take("(")) {
      Result<std::size_t> inner = disjunction();
      if (inner && !take(")")) return fault("a ')' is missing");
      return inner;
    }
    skip_blanks();
    if (at_ >= text().size()) return fault("the expression ends too early");
    if (std::isdigit(static_cast<unsigned char>(text()[at_])) != 0) return number();
    if (starts_name(text()[at_])) return name();
    return fault("unexpected '" + text().substr(at_, 1) + "'");
  }

  Result<std::size_t> number() {
    std::int64_t value = 0;
    while (at_ < text().size() && std::isdigit(static_cast<unsigned char>(text()[at_])) != 0) {
      if (__builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, text()[at_] - '0', &value)) {
        return fault("a number is beyond 64 bits");
      }
      ++at_;
    }
    if (at_ < text().size() && (in_name(text()[at_]) || text()[at_] == '.'))
      return fault("only whole numbers are allowed");
    return add(Op::kConstant, false, 0, 0, value);
  }

  Result<std::size_t> name() {
    const std::size_t begin = at_;
    while (at_ < text().size() && in_name(text()[at_])) ++at_;
    const std::string word = text().substr(begin, at_ - begin);
    skip_blanks();
    if (at_ < text().size() && text()[at_] == '(') return call(word, begin);
    auto known = std::find(out_.names_.begin(), out_.names_.end(), word);
    if (known == out_.names_.end()) known = out_.names_.insert(known, word);
    return add(Op::kName, false, 0, 0, known - out_.names_.begin());
  }

  Result<std::size_t> call(const std::string& function, std::size_t begin) {
    static const std::vector<std::string> kFunctions = {"min", "max", "ceil_div"};
    if (std::find(kFunctions.begin(), kFunctions.end(), function) == kFunctions.end()) {
      at_ = begin;
      const std::string near = did_you_mean(function, kFunctions);
      return fault("there is no function '" + function + "'",
                   near.empty() ? "functions are min, max and ceil_div" : near);
    }
    take("(");
    const Op op = function == "min" ? Op::kMin : function == "max" ? Op::kMax : Op::kCeilDivide;
    Result<std::size_t> left = sum();
    if (!left) return left;
    if (condition(*left)) return fault("a condition is not a number");
    int n_arguments = 1;
    while (take(",")) {
      left = binary(op, false, false, *left, sum());
      if (!left) return left;
      ++n_arguments;
    }
    if (!take(")")) return fault("a ')' is missing after " + function + "'s arguments");
    if (n_arguments < 2 || (op == Op::kCeilDivide && n_arguments != 2)) {
      return fault(function +
                   (op == Op::kCeilDivide ? " takes two arguments" : " takes two arguments or more"));
    }
    return left;
  }

  Expression out_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

Result<Expression> Expression::parse(std::string_view text) { return ExpressionParser(text).run(); }

Expression Expression::constant(std::int64_t value) {
  Expression out;
  out.text_ = std::to_string(value);
  out.nodes_.push_back({Op::kConstant, false, value, 0, 0});
  return out;
}

Result<std::int64_t> Expression::evaluate(const Bindings& bindings) const {
  return value_of(nodes_.size() - 1, bindings);
}

Result<std::int64_t> Expression::value_of(std::size_t index, const Bindings& bindings) const {
  const Node& node = nodes_[index];
  if (node.op == Op::kConstant) return node.value;
  if (node.op == Op::kName) {
    const std::string& name = names_[static_cast<std::size_t>(node.value)];
    const auto found = bindings.find(name);
    if (found != bindings.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& [key, value] : bindings) known.push_back(key);
    const std::string near = did_you_mean(name, known);
    return usage_error("'" + text_ + "' uses '" + name + "', which is not known here",
                       near.empty() ? "known are " + join(known, ", ") : near);
  }
  Result<std::int64_t> left = value_of(node.left, bindings);
  if (!left) return left;
  const std::int64_t a = *left;
  if (node.op == Op::kNot) return static_cast<std::int64_t>(a == 0);
  if (node.op == Op::kAnd && a == 0) return std::int64_t{0};
  if (node.op == Op::kOr && a != 0) return std::int64_t{1};
  std::int64_t out = 0;
  const auto overflow = [&] { return usage_error("'" + text_ + "' overflows 64 bits"); };
  if (node.op == Op::kNegate) {
    if (__builtin_sub_overflow(std::int64_t{0}, a, &out)) return overflow();
    return out;
  }
  Result<std::int64_t> right = value_of(node.right, bindings);
  if (!right) return right;
  const std::int64_t b = *right;
  const bool divides = node.op == Op::kDivide || node.op == Op::kFloorDivide || node.op == Op::kModulo ||
                       node.op == Op::kCeilDivide;
  if (divides && b == 0) return usage_error("'" + text_ + "' divides by zero");
  if (divides && b == -1 && a == std::numeric_limits<std::int64_t>::min()) return overflow();
  const bool uneven = divides && a % b != 0;
  const bool signs_differ = (a < 0) != (b < 0);
  switch (node.op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &out)) return overflow();
      return out;
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &out)) return overflow();
      return out;
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &out)) return overflow();
      return out;
    case Op::kDivide:
      if (uneven) {
        return usage_error(
            "'" + text_ + "' does not come out even: " + std::to_string(a) + " / " + std::to_string(b),
            "choose a value that divides, or write // to round down or ceil_div() to round up");
      }
      return a / b;
    case Op::kFloorDivide:
      return a / b - (uneven && signs_differ ? 1 : 0);
    case Op::kCeilDivide:
      return a / b + (uneven && !signs_differ ? 1 : 0);
    case Op::kModulo:
      return a % b + (uneven && signs_differ ? b : 0);
    case Op::kMin:
      return std::min(a, b);
    case Op::kMax:
      return std::max(a, b);
    case Op::kEqual:
      return static_cast<std::int64_t>(a == b);
    case Op::kNotEqual:
      return static_cast<std::int64_t>(a != b);
    case Op::kLess:
      return static_cast<std::int64_t>(a < b);
    case Op::kLessEqual:
      return static_cast<std::int64_t>(a <= b);
    case Op::kGreater:
      return static_cast<std::int64_t>(a > b);
    case Op::kGreaterEqual:
      return static_cast<std::int64_t>(a >= b);
    case Op::kAnd:
    case Op::kOr:
      return static_cast<std::int64_t>(b != 0);
    default:
      return usage_error("'" + text_ + "' cannot be evaluated");
  }
}

}  // namespace echolo
