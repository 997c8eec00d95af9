#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <set>

#include "judge/jobs.hpp"
#include "judge/library.hpp"
#include "judge/outcome.hpp"
#include "judge/sanitize.hpp"

namespace echolo::judge {
namespace {

TEST(Jobs, AllGood) {
  std::atomic<int> n{0};
  const auto first_bad = run_until_bad(20, 3, [&](std::size_t) -> Result<bool> {
    ++n;
    return true;
  });
  EXPECT_EQ(*first_bad, 20U);
  EXPECT_EQ(n, 20);
}

// Whatever the timing, the answer is the first bad job, and all before it have run.
TEST(Jobs, FirstBadOneIsTheSameWithAnyTiming) {
  for (int round = 0; round < 30; ++round) {
    std::array<std::atomic<bool>, 16> ran{};
    const auto first_bad = run_until_bad(16, 4, [&](std::size_t i) -> Result<bool> {
      ::usleep(static_cast<useconds_t>((i * 7919 + static_cast<std::size_t>(round) * 104'729) % 3000));
      ran[i] = true;
      return i != 5 && i != 7 && i != 12;
    });
    ASSERT_EQ(*first_bad, 5U);
    for (std::size_t i = 0; i <= 5; ++i) EXPECT_TRUE(ran[i]);
  }
}

TEST(Jobs, AnErrorAfterABadJobDoesNotShow) {
  const auto result = run_until_bad(4, 4, [&](std::size_t i) -> Result<bool> {
    if (i == 0) {
      ::usleep(20'000);
      return false;
    }
    return machine_error("job " + std::to_string(i));
  });
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(*result, 0U);
}

TEST(Jobs, AnInterruptionAlwaysShows) {
  const auto result = run_until_bad(4, 2, [&](std::size_t i) -> Result<bool> {
    if (i == 0) {
      ::usleep(20'000);
      return false;
    }
    Error error = machine_error("interrupted");
    error.kind = ErrorKind::kInterrupted;
    return error;
  });
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kInterrupted);
}

vgpu::Finding finding_of(vgpu::FindingKind kind) {
  vgpu::Finding finding;
  finding.kind = kind;
  finding.message = "m";
  return finding;
}

TEST(Settle, FindingsOutrankWrongResultsAndALeakAloneIsCorrect) {
  runtime::JobResult job;
  job.status = "leak";
  JobOutcome outcome;
  outcome.findings.push_back({finding_of(vgpu::FindingKind::kLeak), {}});
  settle(job, outcome);
  EXPECT_EQ(outcome.status, "correct");

  CheckRow wrong;
  wrong.detail = "off by one";
  outcome.rows.push_back(wrong);
  settle(job, outcome);
  EXPECT_EQ(outcome.status, "wrong_result");
  EXPECT_NE(outcome.message.find("off by one"), std::string::npos);

  outcome.findings.push_back({finding_of(vgpu::FindingKind::kUninitialisedRead), {}});
  settle(job, outcome);
  EXPECT_EQ(outcome.status, "uninitialised_read");

  JobOutcome crashed;
  job.status = "crashed";
  job.message = "PE 1: SIGSEGV";
  settle(job, crashed);
  EXPECT_EQ(crashed.status, "crashed");
  EXPECT_EQ(crashed.message, "PE 1: SIGSEGV");
}

TEST(Benign, NeedsAReason) {
  const auto lines =
      benign_lines("a\nx = 1;  // echolo: benign(statistics only)\n// echolo: benign()\n// echolo: benign\n");
  EXPECT_EQ(lines, (std::map<int, std::string>{{2, "statistics only"}}));
}

const char* kToml = R"(name = "k"
problem = "all_reduce"
summary = "s"
dtypes = ["bf16", "f32"]
worlds = [2, 4]
constraints = ["TILE <= 8 * world"]
[knobs.TILE]
values = [8, 16, 32]
default = 16
[knobs.MODE]
values = [0, 1]
default = 0
about = "a"
[cost]
link_bytes = "N * bytes"
waits = 2
[cost.f32]
link_bytes = "2 * N * bytes"
)";

TEST(KernelToml, IsRead) {
  const Result<KernelLibrary> library = parse_kernel(kToml, "kernels/k");
  ASSERT_TRUE(library.ok()) << library.error().render();
  EXPECT_EQ(knobs_text(library->default_knobs()), "TILE=16 MODE=0");
  EXPECT_EQ(knobs_text(*library->with_settings({"MODE=1", "TILE=8"})), "TILE=8 MODE=1");
  const Bindings small = problem_bindings({{"N", 100}}, 2, DType::kBf16);
  EXPECT_EQ(*library->broken_constraint({{"TILE", 16}, {"MODE", 0}}, small), "");
  EXPECT_NE(library->broken_constraint({{"TILE", 32}, {"MODE", 0}}, small)->find("kernel.toml:6"),
            std::string::npos);
  EXPECT_EQ(*library->cost_entry("link_bytes", DType::kBf16)->expression.evaluate(small), 200);
  EXPECT_EQ(library->cost_entry("link_bytes", DType::kF32)->expression.text(), "2 * N * bytes");
  EXPECT_EQ(*library->cost_entry("waits", DType::kF32)->expression.evaluate(small), 2);
  EXPECT_EQ(library->cost_entry("messages", DType::kF32), nullptr);
}

struct Fault {
  const char* from;
  const char* to;
  int line;
  const char* message;
};
class KernelTomlFaults : public ::testing::TestWithParam<Fault> {};
TEST_P(KernelTomlFaults, HaveTheirLine) {
  std::string text = kToml;
  const Fault& fault = GetParam();
  const std::size_t at = text.find(fault.from);
  ASSERT_NE(at, std::string::npos);
  text.replace(at, std::string(fault.from).size(), fault.to);
  const Result<KernelLibrary> library = parse_kernel(text, "kernels/k");
  ASSERT_FALSE(library.ok());
  EXPECT_EQ(library.error().line, fault.line) << library.error().render();
  EXPECT_NE(library.error().render().find(fault.message), std::string::npos) << library.error().render();
}
INSTANTIATE_TEST_SUITE_P(All, KernelTomlFaults,
                         ::testing::Values(Fault{"summary", "sumary", 3, "did you mean 'summary'"},
                                           Fault{"\"bf16\"", "\"bf17\"", 4, "bf17"},
                                           Fault{"[2, 4]", "[2, \"4\"]", 5, "whole number"},
                                           Fault{"8 * world", "8 * (world", 6, ""},
                                           Fault{"default = 16", "default = 17", 9, "not among"},
                                           Fault{"about", "abuot", 13, "did you mean 'about'"},
                                           Fault{"waits", "wait", 16, "did you mean 'waits'"},
                                           Fault{"cost.f32", "cost.f33", 17, "f33"},
                                           Fault{"name = \"k\"", "name = \"q\"", 1, "'k'"},
                                           Fault{"values = [0, 1]", "values = 3", 11, "array"},
                                           Fault{"worlds =", "worlds", 5, "TOML"}));

TEST(KernelToml, SettingsAreChecked) {
  const Result<KernelLibrary> library = parse_kernel(kToml, "kernels/k");
  ASSERT_TRUE(library.ok());
  EXPECT_NE(library->with_settings({"TIEL=8"}).error().hint.find("TILE"), std::string::npos);
  EXPECT_NE(library->with_settings({"TILE=9"}).error().hint.find("8, 16, 32"), std::string::npos);
  EXPECT_FALSE(library->with_settings({"TILE"}).ok());
  EXPECT_FALSE(library->with_settings({"TILE=8x"}).ok());
}

TEST(KernelLibrary, EveryDirectoryIsRead) {
  const Result<std::vector<KernelLibrary>> all = kernel_library("");
  ASSERT_TRUE(all.ok()) << all.error().render();
  EXPECT_GE(all->size(), 5U);
  const Result<std::vector<KernelLibrary>> some = kernel_library("all_reduce");
  ASSERT_TRUE(some.ok());
  EXPECT_EQ(some->size(), 3U);
}

}  // namespace
}  // namespace echolo::judge
