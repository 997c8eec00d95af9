#include "litmus/program.hpp"

#include <algorithm>
#include <limits>

namespace echolo::litmus {

int Thread::register_of(const std::string& name) const {
  const auto at = std::find(registers.begin(), registers.end(), name);
  return at == registers.end() ? -1 : static_cast<int>(at - registers.begin());
}

int Program::observe(int thread, int index) {
  for (std::size_t i = 0; i < observed.size(); ++i) {
    if (observed[i].thread == thread && observed[i].index == index) return static_cast<int>(i);
  }
  const std::string label =
      thread < 0 ? locations[index].name
                 : "P" + std::to_string(threads[thread].id) + ":" + threads[thread].registers[index];
  observed.push_back({thread, index, label});
  return static_cast<int>(observed.size()) - 1;
}

bool compare(Compare how, std::int64_t a, std::int64_t b) {
  switch (how) {
    case Compare::kEq:
      return a == b;
    case Compare::kNe:
      return a != b;
    case Compare::kLt:
      return a < b;
    case Compare::kLe:
      return a <= b;
    case Compare::kGt:
      return a > b;
    case Compare::kGe:
      return a >= b;
  }
  return false;
}

std::int64_t apply(Arithmetic how, std::int64_t old, std::int64_t operand) {
  const auto a = static_cast<std::uint64_t>(old), b = static_cast<std::uint64_t>(operand);
  switch (how) {
    case Arithmetic::kAdd:
      return static_cast<std::int64_t>(a + b);
    case Arithmetic::kSub:
      return static_cast<std::int64_t>(a - b);
    case Arithmetic::kMul:
      return static_cast<std::int64_t>(a * b);
    case Arithmetic::kDiv:
      if (operand == 0) return 0;
      return operand == -1 ? static_cast<std::int64_t>(0 - a) : old / operand;
    case Arithmetic::kAnd:
      return static_cast<std::int64_t>(a & b);
    case Arithmetic::kOr:
      return static_cast<std::int64_t>(a | b);
    case Arithmetic::kXor:
      return static_cast<std::int64_t>(a ^ b);
    case Arithmetic::kMin:
      return std::min(old, operand);
    case Arithmetic::kMax:
      return std::max(old, operand);
    case Arithmetic::kInc:
      return a >= b ? 0 : static_cast<std::int64_t>(a + 1);
    case Arithmetic::kDec:
      return a == 0 || a > b ? operand : static_cast<std::int64_t>(a - 1);
    case Arithmetic::kExch:
    case Arithmetic::kCas:
      return operand;
  }
  return 0;
}

namespace {

std::int64_t value(const Term& term, const std::vector<std::int64_t>& values) {
  return term.kind == Term::Kind::kConstant ? term.constant : values[term.observed];
}

}  // namespace

bool holds(const Condition& condition, const std::vector<std::int64_t>& values) {
  const auto part = [&](const Condition& each) { return holds(each, values); };
  switch (condition.kind) {
    case Condition::Kind::kTrue:
      return true;
    case Condition::Kind::kNot:
      return !part(condition.parts.front());
    case Condition::Kind::kAnd:
      return std::all_of(condition.parts.begin(), condition.parts.end(), part);
    case Condition::Kind::kOr:
      return std::any_of(condition.parts.begin(), condition.parts.end(), part);
    case Condition::Kind::kCompare:
      return compare(condition.compare, value(condition.left, values), value(condition.right, values));
  }
  return false;
}

std::string to_string(Quantifier quantifier) {
  switch (quantifier) {
    case Quantifier::kExists:
      return "exists";
    case Quantifier::kNotExists:
      return "~exists";
    case Quantifier::kForall:
      return "forall";
  }
  return "";
}

}  // namespace echolo::litmus
