#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "agent/cost.hpp"
#include "agent/optimize.hpp"
#include "agent/options.hpp"
#include "agent/search.hpp"
#include "problem/suite.hpp"

namespace echolo::agent {
namespace {

judge::CheckPlan plan_of(const Problem& problem, int world) {
  judge::CheckOptions options;
  options.world = world;
  Result<judge::CheckPlan> plan = judge::plan_check(problem, judge::Candidate{}, options);
  EXPECT_TRUE(plan.ok()) << (plan.ok() ? "" : plan.error().render());
  return std::move(plan).value();
}

TEST(Cost, IsTheLargerOfLinkAndIssuePlusWhatCannotBeHidden) {
  const Result<judge::KernelLibrary> library = judge::parse_kernel(R"(name = "k"
problem = "p"
summary = "s"
dtypes = ["f32"]
worlds = [2]
[cost]
link_bytes = "900000 * B"
issue_slots = "7020 * I"
messages = 50
waits = 2
)",
                                                                   "kernels/k");
  ASSERT_TRUE(library.ok()) << library.error().render();
  const auto cost = [&](std::int64_t b, std::int64_t i) {
    return modelled_cost(*library, {{"B", b}, {"I", i}}, {}, DType::kF32, "nvlink")->microseconds;
  };
  // 450 GB/s, 4 instructions a cycle at 1755 MHz, 1.5 us a wait, 0.02 us a message.
  EXPECT_NEAR(cost(1, 0), 2 + 3 + 1, 1e-9);
  EXPECT_NEAR(cost(1, 5), 5 + 3 + 1, 1e-9);
  EXPECT_GT(modelled_cost(*library, {{"B", 1}, {"I", 0}}, {}, DType::kF32, "rdma")->microseconds, cost(1, 0));
  const Result<ModelledCost> unknown = modelled_cost(*library, {}, {}, DType::kF32, "nvlink");
  ASSERT_FALSE(unknown.ok());
  EXPECT_EQ(unknown.error().line, 7);
}

TEST(Search, EveryProposalHoldsItsConstraints) {
  const Result<Problem> problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  const judge::CheckPlan plan = plan_of(*problem, 4);
  const Result<Proposals> proposals = search_proposals(*problem, plan, "nvlink");
  ASSERT_TRUE(proposals.ok()) << proposals.error().render();
  EXPECT_EQ(proposals->n_settings, proposals->ranked.size() + proposals->n_dropped);
  EXPECT_GT(proposals->n_dropped, 0U);
  EXPECT_GT(proposals->ranked.size(), 10U);
  for (std::size_t i = 0; i < proposals->ranked.size(); ++i) {
    const Proposal& one = proposals->ranked[i];
    for (const judge::PlannedSize& size : plan.sizes) {
      EXPECT_EQ(
          *one.library.broken_constraint(one.knobs, judge::problem_bindings(size.params, 4, plan.dtype)), "");
    }
    if (i > 0) {
      EXPECT_LE(proposals->ranked[i - 1].cost.microseconds, one.cost.microseconds);
    }
  }
}

TEST(Search, ChoiceIsDeterministicAndPrefersWhatDiffers) {
  const Result<Problem> problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  const judge::CheckPlan plan = plan_of(*problem, 4);
  const auto names = [&] {
    std::vector<std::string> out;
    for (const Proposal& one : choose(*search_proposals(*problem, plan, "nvlink"), 4)) {
      out.push_back(one.library.name + " " + judge::knobs_text(one.knobs));
    }
    return out;
  };
  const std::vector<std::string> chosen = names();
  ASSERT_EQ(chosen.size(), 4U);
  EXPECT_EQ(chosen, names());
  std::set<std::pair<std::string, double>> costs;
  for (const Proposal& one : choose(*search_proposals(*problem, plan, "nvlink"), 4))
    costs.emplace(one.library.name, one.cost.microseconds);
  EXPECT_EQ(costs.size(), 4U);
}

TEST(Search, FillsUpWithWhatTheModelCannotTellApart) {
  Proposals proposals;
  for (int i = 0; i < 5; ++i) {
    Proposal one;
    one.library.name = "k";
    one.knobs = {{"X", i}};
    one.cost.microseconds = i < 4 ? 1.0 : 2.0;
    proposals.ranked.push_back(one);
  }
  const std::vector<Proposal> chosen = choose(proposals, 3);
  ASSERT_EQ(chosen.size(), 3U);
  EXPECT_EQ(chosen[0].knobs[0].value, 0);
  EXPECT_EQ(chosen[1].knobs[0].value, 4);
  EXPECT_EQ(chosen[2].knobs[0].value, 1);
  EXPECT_EQ(choose(proposals, 9).size(), 5U);
}

TEST(Search, SaysWhenNoKernelFits) {
  Result<Problem> problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  const judge::CheckPlan plan = plan_of(*problem, 4);
  problem->name = "something_else";
  const Result<Proposals> none = search_proposals(*problem, plan, "nvlink");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kUsage);
}

TEST(Options, SurviveTheStore) {
  OptimizeOptions options;
  options.budget = 7;
  options.start = "x.cu";
  options.check.world = 8;
  options.check.dtype = "f32";
  options.check.sizes = {"smoke", "drawn"};
  options.check.settings = {"M=64"};
  options.check.seed = 18'446'744'073'709'551'615ULL;
  options.check.fabric = "rdma";
  options.check.timeout = std::chrono::milliseconds(1234);
  const std::string text = options_to_text(options);
  const Result<OptimizeOptions> back = options_from_text(text);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(options_to_text(*back), text);
  EXPECT_EQ(back->check.seed, options.check.seed);
  EXPECT_EQ(options_from_text("{").error().kind, ErrorKind::kMachine);
  EXPECT_EQ(options_from_text("{\"budget\": \"x\"}").error().kind, ErrorKind::kMachine);
}

TEST(Plan, DefaultIsThreeSizesThreeSeedsTwoSchedules) {
  const Result<Problem> problem = find_problem("ag_gemm");
  ASSERT_TRUE(problem.ok());
  const judge::CheckPlan plan = plan_of(*problem, 2);
  ASSERT_EQ(plan.sizes.size(), 3U);
  EXPECT_EQ(plan.sizes[0].name, "smoke");
  EXPECT_EQ(plan.sizes[1].name, "small");
  EXPECT_EQ(plan.sizes[2].name, "drawn");
  EXPECT_EQ(plan.seeds, (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_EQ(plan.schedules, (std::vector<judge::Schedule>{{"fair", 1},
                                                          {"random", 1},
                                                          {"lazy-delivery", 1},
                                                          {"pct2", 1},
                                                          {"one-slow-pe", 1},
                                                          {"reversed", 1}}));
  EXPECT_EQ(plan.n_jobs(), 18U);
}

TEST(Report, SaysWhyTheOthersFell) {
  OptimizeReport report;
  report.run = "12345678";
  report.problem = "ag_gemm";
  report.world = 4;
  Attempt best;
  best.iteration = 1;
  best.label = "k X=1";
  best.source = "kernels/k";
  best.knobs = {{"X", 1}};
  best.status = "correct";
  best.modelled_us = 2;
  Attempt slow = best;
  slow.iteration = 2;
  slow.modelled_us = 3;
  Attempt wrong = best;
  wrong.iteration = 3;
  wrong.status = "deadlock";
  wrong.message = "no PE can go on \x1b[31m";
  report.attempts = {best, slow, wrong};
  report.winner = 0;
  report.winner_verdict = R"({"status": "correct"})";
  const std::string text = render(report, false);
  EXPECT_NE(text.find("1.50 times the winner's modelled time"), std::string::npos) << text;
  EXPECT_NE(text.find("deadlock: no PE can go on"), std::string::npos);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("check ag_gemm kernels/k --world 4 --knob X=1"), std::string::npos);
  const nlohmann::json document = to_json(report);
  EXPECT_EQ(document.at("winner").at("verdict").at("status"), "correct");
  EXPECT_EQ(document.at("attempts").size(), 3U);
  report.winner.reset();
  EXPECT_TRUE(to_json(report).at("winner").is_null());
  EXPECT_NE(render(report, false).find("no winner"), std::string::npos);
}

}  // namespace
}  // namespace echolo::agent
