#include <gtest/gtest.h>

#include <set>

#include "base/text.hpp"
#include "problem/problem.hpp"
#include "problem/suite.hpp"

namespace echolo {
namespace {

// Lines are counted below: keep each on its own.
const std::vector<std::string> kGood = {
    "name = \"p\"",                                                  // 1
    "summary = \"A problem.\"",                                      // 2
    "family = \"test\"",                                             // 3
    "worlds = [2, 4]",                                               // 4
    "dtypes = [\"bf16\", \"f32\"]",                                  // 5
    "constraints = [\"M % world == 0\"]",                            // 6
    "[params.M]",                                                    // 7
    "default = 64",                                                  // 8
    "draw = { min = \"16 * world\", max = 192, multiple_of = 16 }",  // 9
    "[params]",                                                      // 10
    "N = 32",                                                        // 11
    "[sizes]",                                                       // 12
    "smoke = { M = \"8 * world\" }",                                 // 13
    "small = { M = 128, N = 64 }",                                   // 14
    "[curve]",                                                       // 15
    "m256 = { M = 256 }",                                            // 16
    "m1024 = { M = 1024 }",                                          // 17
    "[[inputs]]",                                                    // 18
    "name = \"a\"",                                                  // 19
    "shape = [\"M / world\", \"N + rank\"]",                         // 20
    "[[inputs]]",                                                    // 21
    "name = \"index\"",                                              // 22
    "shape = [\"M\"]",                                               // 23
    "dtype = \"i32\"",                                               // 24
    "high = \"N\"",                                                  // 25
    "[[outputs]]",                                                   // 26
    "name = \"c\"",                                                  // 27
    "shape = [\"M\", \"N\"]",                                        // 28
};

std::string text_of(const std::vector<std::string>& lines) { return join(lines, "\n") + "\n"; }

std::string with(std::size_t line, const std::string& replacement) {
  std::vector<std::string> lines = kGood;
  lines.at(line - 1) = replacement;
  return text_of(lines);
}

std::string fault(const std::string& toml) {
  const auto problem = parse_problem(toml, "dir");
  EXPECT_FALSE(problem.ok()) << toml;
  return problem.ok() ? "" : problem.error().render();
}

#define EXPECT_FAULT(toml, line, part)                                       \
  do {                                                                       \
    const std::string rendered = fault(toml);                                \
    EXPECT_EQ(rendered.find("dir/problem.toml:" #line ":"), 0U) << rendered; \
    EXPECT_NE(rendered.find(part), std::string::npos) << rendered;           \
  } while (false)

TEST(Problem, IsReadAsWritten) {
  const auto problem = parse_problem(text_of(kGood), "dir");
  ASSERT_TRUE(problem.ok()) << problem.error().render();
  EXPECT_EQ(problem->worlds, (std::vector<int>{2, 4}));
  EXPECT_EQ(problem->dtypes, (std::vector<DType>{DType::kBf16, DType::kF32}));
  ASSERT_EQ(problem->params.size(), 2U);
  EXPECT_EQ(problem->params[0].name, "M");
  ASSERT_EQ(problem->curve.size(), 2U);
  EXPECT_EQ(problem->curve[0].name, "m256");  // in the file's order, not the alphabet's
  const auto params = problem->size("smoke", 4);
  ASSERT_TRUE(params.ok());
  EXPECT_EQ(params_text(*params), "M=32 N=32");
  const auto inputs = problem->input_infos(*params, 4, 3, DType::kBf16);
  ASSERT_TRUE(inputs.ok());
  EXPECT_EQ((*inputs)[0], (TensorInfo{"a", DType::kBf16, {8, 35}}));
  EXPECT_EQ((*inputs)[1], (TensorInfo{"index", DType::kI32, {32}}));
  EXPECT_EQ(problem->inputs[1].fill, Fill::kIntegers);
  EXPECT_EQ((*problem->output_infos(*params, 4, 0, DType::kF32))[0].bytes(), 32U * 32U * 4U);
}

TEST(Problem, UnknownKeysAreRefusedWithTheNearestOne) {
  EXPECT_FAULT(with(3, "famly = \"test\""), 3, "did you mean 'family'?");
  EXPECT_FAULT(with(20, "shap = [\"M\"]"), 20, "unknown key 'shap' in an input");
  EXPECT_FAULT(with(8, "defualt = 64"), 8, "did you mean 'default'?");
  EXPECT_FAULT(with(9, "draw = { min = 1, max = 2, step = 1 }"), 9, "unknown key 'step'");
  EXPECT_FAULT(with(13, "smoke = { m = 8 }"), 13, "did you mean 'M' or 'N'?");
  EXPECT_FAULT(with(2, "summary = \"x\"\nzzz = 1"), 3, "known keys are name, summary");
  EXPECT_FAULT(text_of(kGood) + "[tolerance]\nkk = 2\n", 30, "unknown key 'kk' in tolerance");
}

TEST(Problem, WrongTypesAreRefused) {
  EXPECT_FAULT(with(1, "name = 3"), 1, "name must be a string, not a whole number");
  EXPECT_FAULT(with(4, "worlds = 4"), 4, "worlds must be an array of whole numbers");
  EXPECT_FAULT(with(4, "worlds = [2, \"4\"]"), 4, "a world must be a whole number, not a string");
  EXPECT_FAULT(with(4, "worlds = [0]"), 4, "1 to 64");
  EXPECT_FAULT(with(4, "worlds = [2, 2]"), 4, "listed twice");
  EXPECT_FAULT(with(5, "dtypes = [\"bf61\"]"), 5, "did you mean 'bf16'");
  EXPECT_FAULT(with(20, "shape = \"M\""), 20, "must be an array");
  EXPECT_FAULT(with(20, "shape = [true]"), 20,
               "must be a whole number or an expression in a string, not true or false");
  EXPECT_FAULT(with(24, "dtype = \"i32\"\nreplicated = \"yes\""), 25, "replicated must be true or false");
  EXPECT_FAULT(with(6, "constraints = [\"M\"]"), 6, "must be a condition");
  EXPECT_FAULT(with(20, "shape = [\"M == 1\"]"), 20, "must be a number, not the condition");
}

TEST(Problem, BrokenTomlIsNamedWithItsPlace) {
  EXPECT_FAULT(with(4, "worlds = [2, 4"), 5, "not valid TOML");
  EXPECT_FAULT(with(2, "name = \"twice\""), 2, "not valid TOML");
}

TEST(Problem, ShapesThatDoNotEvaluateAreRefused) {
  EXPECT_FAULT(with(20, "shape = [\"M / 7\"]"), 20, "does not evaluate with M=16 N=32 world=2 rank=0");
  EXPECT_FAULT(with(20, "shape = [\"M - 16\"]"), 20, "has extent 0");
  EXPECT_FAULT(with(20, "shape = [\"M * Q\"]"), 20, "uses 'Q', which is not known here");
  EXPECT_FAULT(with(20, "shape = [\"M *\"]"), 20, "ends too early");
  EXPECT_FAULT(with(20, "shape = [\"M\", \"1024 * 1024 * 1024 * 1024\"]"), 20, "beyond 2^40 elements");
  EXPECT_FAULT(with(13, "smoke = { M = \"8 * world + 1\" }"), 6,
               "the constraint 'M % world == 0' does not hold with M=17");
  EXPECT_FAULT(with(13, "smoke = { M = \"N\" }"), 13, "uses 'N', which is not known here");
  EXPECT_FAULT(with(9, "draw = { min = 100, max = 110, multiple_of = 64 }"), 9,
               "no multiple of 64 lies in M's range");
}

TEST(Problem, MissingPartsAreNamed) {
  EXPECT_FAULT(with(1, ""), 1, "problem.toml lacks 'name'");
  EXPECT_FAULT(with(19, ""), 18, "an input lacks 'name'");
  EXPECT_FAULT(with(14, ""), 12, "sizes lacks 'small'");
  EXPECT_FAULT(with(11, "N = { draw = { min = 1, max = 2 } }"), 13,
               "size 'smoke' does not set 'N', which has no default");
  EXPECT_FAULT(with(11, "N = { about = \"columns\" }"), 11,
               "parameter 'N' needs a default or a range to draw from");
}

TEST(Problem, NamesAreKeptApart) {
  EXPECT_FAULT(with(27, "name = \"a\""), 27, "has the name of another");
  EXPECT_FAULT(with(27, "name = \"rank\""), 27, "cannot name an output");
  EXPECT_FAULT(with(11, "world = 3"), 11, "has a name that is not free");
}

TEST(Problem, FillsFitTheirTypes) {
  EXPECT_FAULT(with(25, "fill = \"normal\""), 25, "holds integers, which 'normal' cannot fill");
  EXPECT_FAULT(with(25, "fill = \"integer\""), 25, "did you mean 'integers'");
  EXPECT_FAULT(with(25, ""), 21, "needs 'high'");
  EXPECT_FAULT(with(25, "high = \"N - 32\""), 21, "has no value in [0, 0)");
  EXPECT_FAULT(with(20, "shape = [\"M\"]\nscale = -1"), 21, "scale must be positive");
  EXPECT_FAULT(with(20, "shape = [\"M\"]\nlow = 1"), 21, "only go with fill = \"integers\"");
  EXPECT_FAULT(with(20, "shape = [\"N + rank\"]\nreplicated = true"), 20, "cannot depend on rank");
}

TEST(Problem, ToleranceCanOnlyBeTightened) {
  EXPECT_FAULT(text_of(kGood) + "[tolerance]\nk = 5\n", 30, "may only tighten");
  EXPECT_FAULT(text_of(kGood) + "[tolerance]\nfloor = 0.1\n", 30, "may only tighten");
  const auto problem = parse_problem(text_of(kGood) + "[tolerance]\nk = 2.5\nexact = true\n", "dir");
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(problem->tolerance.k, 2.5);
  EXPECT_TRUE(problem->tolerance.exact);
}

TEST(Problem, DataDependentOutputsHaveABoundAndACount) {
  const std::string counted = "shape = [\"?\", \"N\"]\nbound = \"M * world\"\ncount = \"n\"\n";
  const std::string n = "[[outputs]]\nname = \"n\"\ndtype = \"i64\"\nshape = [1]\n";
  const auto problem = parse_problem(with(28, counted + n), "dir");
  ASSERT_TRUE(problem.ok()) << problem.error().render();
  EXPECT_EQ(problem->outputs[0].count, "n");
  const auto infos = problem->output_infos(*problem->size("small", 2), 2, 0, DType::kF32);
  EXPECT_EQ((*infos)[0].shape, (std::vector<std::int64_t>{256, 64}));
  EXPECT_FAULT(with(28, counted), 26, "which is no output of an integer dtype");
  EXPECT_FAULT(with(28, "shape = [\"?\", \"N\"]\ncount = \"n\"\n" + n), 26, "lacks 'bound'");
  EXPECT_FAULT(with(28, "shape = [\"M\", \"N\"]\nbound = 3"), 29,
               "only goes with a shape whose first extent is \"?\"");
}

TEST(Problem, SizesAndSettingsOfferNearNames) {
  const auto problem = parse_problem(text_of(kGood), "dir");
  ASSERT_TRUE(problem.ok());
  EXPECT_EQ(problem->size("smok", 2).error().hint, "did you mean 'smoke'?");
  EXPECT_NE(problem->size("smoke", 3).error().message.find("p does not run on 3 ranks"), std::string::npos);
  EXPECT_EQ(problem->dtype("f16").error().hint, "it has bf16, f32");
  const Params base = *problem->size("smoke", 2);
  EXPECT_EQ(params_text(*problem->with_settings(base, {"N=48", "M = 4 * world"}, 2)), "M=8 N=48");
  EXPECT_FALSE(problem->with_settings(base, {"M=7"}, 2).ok());
  EXPECT_FALSE(problem->with_settings(base, {"M"}, 2).ok());
  EXPECT_FALSE(problem->with_settings(base, {"M=1.5"}, 2).ok());
  EXPECT_EQ(problem->with_settings(base, {"n=7"}, 2).error().hint, "did you mean 'M' or 'N'?");
}

TEST(Problem, DrawnSizesRepeatDifferAndMeetTheConstraints) {
  const auto problem = parse_problem(text_of(kGood), "dir");
  ASSERT_TRUE(problem.ok());
  std::set<std::int64_t> seen;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto drawn = problem->draw_size(seed, 4);
    ASSERT_TRUE(drawn.ok());
    EXPECT_EQ(*drawn, *problem->draw_size(seed, 4));
    const std::int64_t m = (*drawn)[0].value;
    EXPECT_TRUE(m >= 64 && m <= 192 && m % 16 == 0) << m;
    EXPECT_EQ((*drawn)[1].value, 32);
    seen.insert(m);
  }
  EXPECT_EQ(seen.size(), 9U);
}

TEST(Suite, HoldsItsProblemsWithTheirWorldsSizesAndCurve) {
  const auto suite = load_suite();
  ASSERT_TRUE(suite.ok()) << suite.error().render();
  std::vector<std::string> names;
  for (const Problem& problem : *suite) {
    names.push_back(problem.name);
    EXPECT_EQ(problem.worlds, (std::vector<int>{2, 4, 8}));
    EXPECT_EQ(problem.dtypes, (std::vector<DType>{DType::kBf16, DType::kF32}));
    EXPECT_EQ(problem.curve.size(), problem.name == "ulysses_combine" ? 7U : 6U) << problem.name;
    for (const int world : problem.worlds) {
      for (std::uint64_t seed = 0; seed < 50; ++seed) EXPECT_TRUE(problem.draw_size(seed, world).ok());
    }
  }
  for (const char* name : {"ag_gemm", "all_reduce", "all_to_all", "gemm_rs", "ulysses_combine"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(Suite, ItsHomeCanBeSetAndMustBeOne) {
  const std::string home = *echolo_home();
  ::setenv("ECHOLO_HOME", "/proc", 1);
  const auto wrong = echolo_home();
  ::setenv("ECHOLO_HOME", (home + "/problems/..").c_str(), 1);
  const auto right = echolo_home();
  ::unsetenv("ECHOLO_HOME");
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().kind, ErrorKind::kMachine);
  ASSERT_TRUE(right.ok()) << right.error().render();
}

TEST(Suite, OffersTheNearestNames) {
  EXPECT_EQ(find_problem("ag_gem").error().hint, "did you mean 'ag_gemm'?");
  EXPECT_EQ(find_problem("./nowhere").error().message, "there is no directory ./nowhere");
  EXPECT_TRUE(find_problem("ag_gemm").ok());
}

}  // namespace
}  // namespace echolo
