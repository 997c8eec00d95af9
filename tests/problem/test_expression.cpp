#include <gtest/gtest.h>

#include "problem/expression.hpp"

namespace echolo {
namespace {

std::int64_t value(const std::string& text,
                   const Bindings& bindings = {{"world", 4}, {"M", 96}, {"rank", 1}}) {
  const auto expression = Expression::parse(text);
  EXPECT_TRUE(expression.ok()) << text << ": " << expression.error().render();
  if (!expression) return -999;
  const auto result = expression->evaluate(bindings);
  EXPECT_TRUE(result.ok()) << text << ": " << result.error().render();
  return result.ok() ? *result : -999;
}

std::string fault(const std::string& text, const Bindings& bindings = {{"world", 4}, {"M", 97}}) {
  const auto expression = Expression::parse(text);
  if (!expression) return expression.error().message + " | " + expression.error().hint;
  const auto result = expression->evaluate(bindings);
  EXPECT_FALSE(result.ok()) << text;
  return result.ok() ? "" : result.error().message + " | " + result.error().hint;
}

TEST(Expression, ComputesAsPythonDoes) {
  EXPECT_EQ(value("1 + 2 * 3 - 4"), 3);
  EXPECT_EQ(value("(1 + 2) * -3"), -9);
  EXPECT_EQ(value("M / world * 2"), 48);
  EXPECT_EQ(value("7 // 2"), 3);
  EXPECT_EQ(value("-7 // 2"), -4);
  EXPECT_EQ(value("-7 % 3"), 2);
  EXPECT_EQ(value("7 % -3"), -2);
  EXPECT_EQ(value("ceil_div(7, 2) + ceil_div(-7, 2)"), 1);
  EXPECT_EQ(value("min(3, 1, 2) + max(3, M, 2)"), 97);
  EXPECT_EQ(value("10 - 3 - 2"), 5);
  EXPECT_EQ(value("--3"), 3);
}

TEST(Expression, ComparesAndJoinsConditions) {
  EXPECT_EQ(value("M % world == 0 && rank < world"), 1);
  EXPECT_EQ(value("M != 96 || !(rank >= 1)"), 0);
  EXPECT_EQ(value("M <= 96 && M > 95"), 1);
  EXPECT_TRUE(Expression::parse("M == 1")->is_condition());
  EXPECT_FALSE(Expression::parse("M + 1")->is_condition());
  // What doesn't matter isn't evaluated.
  EXPECT_EQ(value("world == 4 || M / 0 == 1"), 1);
  EXPECT_EQ(value("world != 4 && M / 0 == 1"), 0);
}

TEST(Expression, RefusesWhatIsNotExact) {
  EXPECT_NE(fault("M / world").find("does not come out even: 97 / 4"), std::string::npos);
  EXPECT_NE(fault("M / (world - 4)").find("divides by zero"), std::string::npos);
  EXPECT_NE(fault("9223372036854775807 + 1").find("overflows"), std::string::npos);
  EXPECT_NE(fault("9223372036854775808").find("beyond 64 bits"), std::string::npos);
  EXPECT_NE(fault("(-9223372036854775807 - 1) / -1").find("overflows"), std::string::npos);
  EXPECT_NE(fault("-(-9223372036854775807 - 1)").find("overflows"), std::string::npos);
  EXPECT_NE(fault("1.5").find("whole numbers"), std::string::npos);
}

TEST(Expression, SaysWhatIsWrong) {
  EXPECT_NE(fault("wrld * 2").find("did you mean 'world'"), std::string::npos);
  EXPECT_NE(fault("ceildiv(1, 2)").find("did you mean 'ceil_div'"), std::string::npos);
  EXPECT_NE(fault("(1 + 2").find("a ')' is missing"), std::string::npos);
  EXPECT_NE(fault("1 +").find("ends too early"), std::string::npos);
  EXPECT_NE(fault("1 $ 2").find("cannot read on"), std::string::npos);
  EXPECT_NE(fault("").find("empty"), std::string::npos);
  EXPECT_NE(fault("1 && 2").find("join conditions"), std::string::npos);
  EXPECT_NE(fault("(1 == 1) + 1").find("a condition is not a number"), std::string::npos);
  EXPECT_NE(fault("!3").find("negates a condition"), std::string::npos);
  EXPECT_NE(fault("min(1)").find("two arguments"), std::string::npos);
  EXPECT_NE(fault("ceil_div(1, 2, 3)").find("takes two arguments"), std::string::npos);
  EXPECT_NE(fault(std::string(200, '(') + "1" + std::string(200, ')')).find("too deeply"), std::string::npos);
  EXPECT_NE(fault(std::string(200, '-') + "1").find("too deeply"), std::string::npos);
  EXPECT_EQ(Expression::parse("12 +  * 3").error().column, 7);
}

TEST(Expression, KnowsItsNames) {
  const auto expression = Expression::parse("M * world + M");
  EXPECT_EQ(expression->names(), (std::vector<std::string>{"M", "world"}));
}

}  // namespace
}  // namespace echolo
