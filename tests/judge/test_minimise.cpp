#include <gtest/gtest.h>

#include "judge/minimise.hpp"

namespace echolo::judge {
namespace {

JudgedFinding finding_of(const std::string& id, const Attempt& attempt) {
  JudgedFinding out;
  out.finding.kind = vgpu::FindingKind::kDeadlock;
  out.finding.id = id;
  vgpu::Site site;
  site.where.file = id;
  out.finding.sites = {site};
  out.replay.world = attempt.world;
  out.replay.seed = 3;
  out.replay.schedule = attempt.schedule;
  out.replay.size = attempt.size.name;
  out.replay.params = attempt.size.params;
  return out;
}

const PlannedSize kSmoke{"smoke", {{"N", 8}}};
const PlannedSize kSmall{"small", {{"N", 64}}};

class Minimise : public testing::Test {
 protected:
  Minimise() {
    verdict_.findings = {finding_of("aa", {8, kSmall, {"random", 2}})};
    verdict_.findings.front().switches = 1000;
  }

  Smaller smaller() const {
    return {{2, 4, 8},
            [](int) -> Result<std::vector<PlannedSize>> { return std::vector{kSmoke}; },
            [](const PlannedSize&, int) { return std::vector<ParamValue>(); }};
  }
  Verdict verdict_;
  Progress progress_;
  std::vector<Attempt> tried_;
};

TEST_F(Minimise, KeepsTheSmallestThatShowsTheSame) {
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    tried_.push_back(attempt);
    Verdict verdict;
    // Two PEs show something else; four, the small size and these schedules still show it.
    const std::string& policy = attempt.schedule.policy;
    const bool lost = attempt.world == 2 || policy == "reversed";
    verdict.findings = {finding_of(lost ? "bb" : "aa", attempt)};
    verdict.findings.front().switches = policy == "random" ? 900 : policy == "pct2" ? 7 : 40;
    return verdict;
  };
  ASSERT_TRUE(minimise(verdict_, smaller(), run, progress_).ok());
  EXPECT_EQ(verdict_.findings.size(), 1U);
  const Replay& replay = verdict_.findings.front().replay;
  EXPECT_EQ(replay.world, 4);
  EXPECT_EQ(replay.size, "smoke");
  EXPECT_EQ(replay.schedule, (Schedule{"pct2", 1}));
  EXPECT_EQ(verdict_.findings.front().switches, 7U);
  ASSERT_EQ(verdict_.minimised.size(), 3U);
  EXPECT_EQ(verdict_.minimised.front(), "4 PEs instead of 8");
  EXPECT_EQ(verdict_.minimised.back(),
            "policy pct2 instead of random, 7 switches between warps instead of 900");
  EXPECT_EQ(verdict_.minimise_runs, static_cast<int>(tried_.size()));
  EXPECT_FALSE(verdict_.minimise_cut);
}

TEST_F(Minimise, ParametersShrinkOneByOne) {
  const Params drawn{{"N", 96}, {"K", 48}};
  verdict_.findings = {finding_of("aa", {2, {"drawn", drawn}, {"fair", 1}})};
  Smaller least{{},
                [](int) -> Result<std::vector<PlannedSize>> { return std::vector<PlannedSize>(); },
                [](const PlannedSize&, int) {
                  return std::vector<ParamValue>{{"N", 16}, {"K", 16}};
                }};
  // The fault needs a wide N.
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    Verdict verdict;
    verdict.findings = {finding_of(attempt.size.params[0].value < 96 ? "bb" : "aa", attempt)};
    return verdict;
  };
  ASSERT_TRUE(minimise(verdict_, least, run, progress_).ok());
  EXPECT_EQ(verdict_.findings.front().replay.params, (Params{{"N", 96}, {"K", 16}}));
  ASSERT_EQ(verdict_.minimised.size(), 1U);
  EXPECT_EQ(verdict_.minimised.front(), "K=16 instead of 48");
}

TEST_F(Minimise, NoRunBeginsAfterTheBudget) {
  Smaller none = smaller();
  none.budget = std::chrono::milliseconds(0);
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    tried_.push_back(attempt);
    return Verdict();
  };
  ASSERT_TRUE(minimise(verdict_, none, run, progress_).ok());
  EXPECT_TRUE(tried_.empty());
  EXPECT_TRUE(verdict_.minimise_cut);
}

TEST_F(Minimise, LeavesTheFindingAloneWhereNothingSmallerShowsIt) {
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    tried_.push_back(attempt);
    if (attempt.world == 2) return usage_error("not for two");
    return Verdict();
  };
  ASSERT_TRUE(minimise(verdict_, smaller(), run, progress_).ok());
  EXPECT_TRUE(verdict_.minimised.empty());
  EXPECT_EQ(verdict_.findings.front().replay.world, 8);
  EXPECT_LE(tried_.size(), static_cast<std::size_t>(kMostTrials));
}

TEST_F(Minimise, AnInterruptionEndsIt) {
  const RunAgain run = [&](const Attempt&) -> Result<Verdict> {
    Error error = machine_error("interrupted");
    error.kind = ErrorKind::kInterrupted;
    return error;
  };
  EXPECT_FALSE(minimise(verdict_, smaller(), run, progress_).ok());
}

}  // namespace
}  // namespace echolo::judge
