#include <gtest/gtest.h>

#include <set>

#include "judge/schedules.hpp"
#include "vgpu/core/policy.hpp"

namespace echolo::judge {
namespace {

TEST(Schedules, SpreadOverThePoliciesSeedBySeed) {
  const auto spread = spread_schedules(3, 2, "");
  ASSERT_TRUE(spread.ok());
  ASSERT_EQ(spread->size(), 6U);
  EXPECT_EQ(spread->front(), (Schedule{"fair", 1}));
  EXPECT_EQ((*spread)[1], (Schedule{"random", 1}));
  std::set<std::string> names;
  for (const Schedule& schedule : *spread) names.insert(schedule.policy);
  EXPECT_EQ(names.size(), 6U);
}

TEST(Schedules, PoliciesBeginAgainWithOtherSeeds) {
  const int n = static_cast<int>(vgpu::policies().size());
  const auto spread = spread_schedules(1, 2 * n + 1, "");
  ASSERT_TRUE(spread.ok());
  EXPECT_EQ((*spread)[static_cast<std::size_t>(n)], (Schedule{"fair", 2}));
  EXPECT_EQ(spread->back(), (Schedule{"fair", 3}));
  std::set<std::pair<std::string, std::uint64_t>> all;
  for (const Schedule& schedule : *spread) all.insert({schedule.policy, schedule.seed});
  EXPECT_EQ(all.size(), spread->size());
}

TEST(Schedules, OnePolicyOnly) {
  const auto spread = spread_schedules(2, 2, "reversed");
  ASSERT_TRUE(spread.ok());
  EXPECT_EQ(*spread,
            (std::vector<Schedule>{{"reversed", 1}, {"reversed", 2}, {"reversed", 1}, {"reversed", 2}}));
  EXPECT_EQ(schedules_text({4, 5}, *spread),
            "seed 4: reversed 1, reversed 2; seed 5: reversed 1, reversed 2");
}

TEST(Schedules, BadUseIsNamed) {
  const auto unknown = spread_schedules(1, 1, "randon");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().kind, ErrorKind::kUsage);
  EXPECT_NE(unknown.error().render().find("random"), std::string::npos);
  EXPECT_FALSE(spread_schedules(0, 1, "").ok());
  EXPECT_FALSE(spread_schedules(1, 0, "").ok());
}

}  // namespace
}  // namespace echolo::judge
