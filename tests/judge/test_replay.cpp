#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "judge/replay.hpp"

namespace echolo::judge {
namespace {

using nlohmann::json;

json failing() {
  const json replay = {{"world", 2},       {"seed", 5},       {"policy", "pct3"},
                       {"policy_seed", 2}, {"size", "drawn"}, {"params", {{"N", 12}, {"M", 4}}}};
  return {{"status", "deadlock"},
          {"problem", "ag_gemm"},
          {"problem_folder", "/problems/ag_gemm"},
          {"origin", "/somewhere/a.cu"},
          {"candidate", "sha256:00"},
          {"world", 4},
          {"fabric", "rdma"},
          {"dtype", "bf16"},
          {"timeout_ms", 7000},
          {"replay", replay},
          {"findings",
           {{{"id", "7f3a00"},
             {"kind", "deadlock"},
             {"replay", replay},
             {"address", {{"pe", 1}, {"symbol_or_allocation", "`flag`, 4 B"}, {"offset", 4}}},
             {"sites",
              {{{"pe", 1}, {"block", {1, 0, 0}}, {"thread", {3, 0, 0}}, {"file", "a.cu"}, {"line", 12}}}}}}}};
}

TEST(Replay, EverythingThatDecidesTheRunIsRead) {
  const auto request = replay_request(failing(), "");
  ASSERT_TRUE(request.ok()) << request.error().render();
  EXPECT_FALSE(request->program);
  EXPECT_EQ(request->circumstances.world, 2);
  EXPECT_EQ(request->circumstances.seed, 5U);
  EXPECT_EQ(request->circumstances.schedule, (Schedule{"pct3", 2}));
  EXPECT_EQ(request->circumstances.size, "drawn");
  EXPECT_EQ(request->fabric, "rdma");
  EXPECT_EQ(request->timeout_ms, 7000);
  EXPECT_EQ(request->status, "deadlock");
  ASSERT_EQ(request->findings.size(), 1U);
  ASSERT_EQ(request->filter.threads.size(), 1U);
  EXPECT_EQ(request->filter.threads[0].block.x, 1U);
  ASSERT_EQ(request->filter.objects.size(), 1U);
  EXPECT_EQ(request->filter.objects[0].offset, 4);
  EXPECT_EQ(request->filter.lines.front(), (std::pair<std::string, int>{"a.cu", 12}));
}

TEST(Replay, AFindingIsChosenByTheBeginningOfItsId) {
  EXPECT_TRUE(replay_request(failing(), "7f").ok());
  const auto none = replay_request(failing(), "8");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().kind, ErrorKind::kUsage);
}

TEST(Replay, WhatCannotBeReplayedIsSaid) {
  json good = failing();
  good["findings"] = json::array();
  good.erase("replay");
  good["status"] = "correct";
  const auto request = replay_request(good, "");
  ASSERT_FALSE(request.ok());
  EXPECT_NE(request.error().render().find("nothing to replay"), std::string::npos);
  EXPECT_FALSE(replay_request(json::array(), "").ok());
  EXPECT_FALSE(replay_request(json::object(), "").ok());
  json broken = failing();
  broken["findings"][0]["replay"].erase("seed");
  EXPECT_FALSE(replay_request(broken, "").ok());
}

// A wrong result has no finding, but the run that decided it can be repeated.
TEST(Replay, AWrongResultIsReplayedToo) {
  json wrong = failing();
  wrong["findings"] = json::array();
  wrong["status"] = "wrong_result";
  const auto request = replay_request(wrong, "");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->status, "wrong_result");
  EXPECT_TRUE(request->filter.empty());
}

}  // namespace
}  // namespace echolo::judge
