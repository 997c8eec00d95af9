#include <gtest/gtest.h>

#include "judge/minimise.hpp"

namespace echolo::judge {
namespace {

JudgedFinding finding_of(const std::string& id, const Attempt& attempt) {
  JudgedFinding out;
  out.finding.kind = vgpu::FindingKind::kDeadlock;
  out.finding.id = id;
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
  Minimise() { verdict_.findings = {finding_of("aa", {8, kSmall, {"random", 2}})}; }

  Smaller smaller() const {
    return {{2, 4, 8}, [](int) -> Result<std::vector<PlannedSize>> { return std::vector{kSmoke}; }};
  }
  Verdict verdict_;
  Progress progress_;
  std::vector<Attempt> tried_;
};

TEST_F(Minimise, KeepsTheSmallestThatShowsTheSame) {
  const RunAgain run = [&](const Attempt& attempt) -> Result<Verdict> {
    tried_.push_back(attempt);
    Verdict verdict;
    // Two PEs show something else; the small size and a fair schedule still show it.
    verdict.findings = {finding_of(attempt.world == 2 ? "bb" : "aa", attempt)};
    return verdict;
  };
  ASSERT_TRUE(minimise(verdict_, smaller(), run, progress_).ok());
  EXPECT_EQ(verdict_.findings.size(), 1U);
  const Replay& replay = verdict_.findings.front().replay;
  EXPECT_EQ(replay.world, 4);
  EXPECT_EQ(replay.size, "smoke");
  EXPECT_EQ(replay.schedule, (Schedule{"fair", 1}));
  EXPECT_EQ(verdict_.minimised.size(), 3U);
  EXPECT_EQ(verdict_.minimised.front(), "4 PEs instead of 8");
  EXPECT_EQ(tried_.size(), 4U);
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
