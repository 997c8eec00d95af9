#include "timing/model.hpp"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace echolo::timing {
namespace {

using vgpu::JobWork;
using vgpu::Pipe;

// One SM at 1 GHz that issues one instruction a cycle; a link of 1 GB/s with 2 us of latency.
Topology small() {
  Topology t;
  t.name = "small";
  t.max_pes = 2;
  t.issue_per_cycle = 1;
  t.issue_per_warp = 1;
  t.link_latency_us = 2;
  return t;
}

class Job {
 public:
  explicit Job(int n_pes) { work.n_pes = n_pes; }

  std::uint32_t launch(int pe, int blocks_per_sm = 1, std::vector<std::uint32_t> after = {}) {
    vgpu::LaunchWork launch;
    launch.pe = pe;
    launch.kernel = "k";
    launch.blocks_per_sm = blocks_per_sm;
    launch.after = std::move(after);
    work.launches.push_back(launch);
    return static_cast<std::uint32_t>(work.launches.size() - 1);
  }
  std::uint32_t block(std::uint32_t launch) {
    vgpu::BlockWork block;
    block.launch = launch;
    block.index = static_cast<std::uint32_t>(work.launches[launch].blocks.size());
    work.blocks.push_back(block);
    work.launches[launch].blocks.push_back(static_cast<std::uint32_t>(work.blocks.size() - 1));
    return static_cast<std::uint32_t>(work.blocks.size() - 1);
  }
  // `us` microseconds of issue slots.
  std::uint32_t stretch(std::uint32_t block, std::uint64_t us, std::vector<std::uint32_t> causes = {}) {
    vgpu::Stretch stretch;
    stretch.block = block;
    stretch.work.issued[static_cast<std::size_t>(Pipe::kControl)] = us * 1000;
    if (!causes.empty()) stretch.waited_at = "k.cu:7";
    stretch.causes = std::move(causes);
    work.stretches.push_back(stretch);
    const auto id = static_cast<std::uint32_t>(work.stretches.size() - 1);
    work.blocks[block].stretches.push_back(id);
    return id;
  }
  JobWork work;
};

TEST(TimeModel, OneBlockTakesItsSlots) {
  Job job(1);
  job.stretch(job.block(job.launch(0)), 10);
  const Result<Timeline> timeline = simulate(job.work, small());
  ASSERT_TRUE(timeline.ok()) << timeline.error().render();
  EXPECT_NEAR(timeline->total_us, 10, 1e-6);
  EXPECT_EQ(timeline->roofline, Resource::kIssue);
  EXPECT_NEAR(timeline->roofline_us, 10, 1e-6);
}

TEST(TimeModel, BlocksOfOneSmShareItOrQueue) {
  for (const int resident : {1, 2}) {
    Job job(1);
    const std::uint32_t launch = job.launch(0, resident);
    job.stretch(job.block(launch), 10);
    job.stretch(job.block(launch), 20);
    const Result<Timeline> timeline = simulate(job.work, small());
    ASSERT_TRUE(timeline.ok());
    EXPECT_NEAR(timeline->total_us, 30, 1e-6);
    // Together both run at half speed until the short one ends, at 20.
    double first_end = 1e9;
    for (const Span& span : timeline->spans) first_end = std::min(first_end, span.end_us);
    EXPECT_NEAR(first_end, resident == 1 ? 10 : 20, 1e-6);
  }
}

TEST(TimeModel, ASignalOfAnotherPeArrivesALatencyLater) {
  Job job(2);
  const std::uint32_t sender = job.block(job.launch(0));
  const std::uint32_t receiver = job.block(job.launch(1));
  const std::uint32_t sends = job.stretch(sender, 5);
  job.stretch(receiver, 1);
  job.stretch(receiver, 3, {sends});
  const Result<Timeline> timeline = simulate(job.work, small());
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->total_us, 5 + 2 + 3, 1e-6);
  EXPECT_EQ(timeline->longest_wait_at, "k.cu:7");
  EXPECT_NEAR(timeline->longest_wait_us, 6, 1e-6);  // from 1 to 7
  EXPECT_NEAR(timeline->pes[1].exposed_us, 6, 1e-6);
}

TEST(TimeModel, ALinkIsSharedAndBoundsTheTime) {
  Job job(2);
  Topology topology = small();
  topology.sms = 2;
  const std::uint32_t launch = job.launch(0);
  for (int i = 0; i < 2; ++i) {
    const std::uint32_t id = job.stretch(job.block(launch), 1);
    job.work.stretches[id].work.peers.push_back({1, 4000, 0, 0});  // 4 us at 1 GB/s
  }
  const Result<Timeline> timeline = simulate(job.work, topology);
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->total_us, 8, 1e-6);
  EXPECT_EQ(timeline->roofline, Resource::kLinkOut);
  EXPECT_NEAR(timeline->roofline_us, 8, 1e-6);
  EXPECT_NE(in_words(*timeline).find("the link out"), std::string::npos);
  EXPECT_NE(in_words(*timeline).find("modelled"), std::string::npos);
}

TEST(TimeModel, LaunchesOfAStreamFollowEachOther) {
  Job job(1);
  Topology topology = small();
  topology.launch_us = 3;
  const std::uint32_t first = job.launch(0);
  job.stretch(job.block(first), 4);
  job.stretch(job.block(job.launch(0, 1, {first})), 5);
  const Result<Timeline> timeline = simulate(job.work, topology);
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->total_us, 3 + 4 + 3 + 5, 1e-6);
}

TEST(TimeModel, CirclesAndTooManyPesAreErrors) {
  Job job(1);
  const std::uint32_t block = job.block(job.launch(0));
  job.stretch(block, 1, {0});
  EXPECT_FALSE(simulate(job.work, small()).ok());
  job.work.n_pes = 3;
  const Result<Timeline> timeline = simulate(job.work, small());
  ASSERT_FALSE(timeline.ok());
  EXPECT_NE(timeline.error().message.find("has 2 PEs"), std::string::npos);
}

TEST(TimeModel, PerfettoGetsSpansWaitsAndLinks) {
  Job job(2);
  const std::uint32_t sends = job.stretch(job.block(job.launch(0)), 5);
  job.work.stretches[sends].work.peers.push_back({1, 1000, 0, 1});
  const std::uint32_t receiver = job.block(job.launch(1));
  job.stretch(receiver, 1);
  job.stretch(receiver, 1, {sends});
  const Result<Timeline> timeline = simulate(job.work, small());
  ASSERT_TRUE(timeline.ok());
  const nlohmann::json trace = nlohmann::json::parse(to_perfetto(*timeline, job.work));
  std::map<std::string, int> slices;
  int counters = 0, arrows = 0;
  double bytes = 0;
  for (const nlohmann::json& event : trace.at("traceEvents")) {
    const std::string kind = event.at("ph");
    if (kind == "C") ++counters;
    if (kind == "s" || kind == "f") ++arrows;
    if (kind != "X") continue;
    EXPECT_EQ(event.at("args").at("provenance"), "modelled");
    ++slices[event.at("cat")];
    if (event.at("cat") == "link") bytes += event.at("args").at("bytes").get<double>();
    if (event.at("cat") != "wait") continue;
    EXPECT_EQ(event.at("pid"), 1);
    EXPECT_NEAR(event.at("ts").get<double>(), 1, 1e-6);
    EXPECT_NEAR(event.at("dur").get<double>(), 6, 1e-6);
  }
  EXPECT_EQ(slices["compute"], 3);
  EXPECT_EQ(slices["wait"], 1);
  EXPECT_GE(slices["exposed"], 1);
  EXPECT_EQ(slices["link"], 1);
  EXPECT_NEAR(bytes, 1000, 1e-3);
  EXPECT_EQ(counters, 2);
  EXPECT_EQ(arrows, 2);
  EXPECT_EQ(trace.at("otherData").at("provenance"), "modelled");
}

TEST(TimeModel, AnAdapterCarriesPutsBesideTheirBlock) {
  for (const bool adapter : {false, true}) {
    Job job(2);
    Topology topology = small();
    topology.by_adapter = adapter;
    const std::uint32_t sender = job.block(job.launch(0));
    const std::uint32_t put = job.stretch(sender, 0);
    job.work.stretches[put].phase = vgpu::Phase::kPut;
    job.work.stretches[put].work.peers.push_back({1, 10000, 0, 1});  // 10 us
    const std::uint32_t signal = job.stretch(sender, 4);
    const std::uint32_t receiver = job.block(job.launch(1));
    job.stretch(receiver, 1);
    job.stretch(receiver, 1, {signal});
    const Result<Timeline> timeline = simulate(job.work, topology);
    ASSERT_TRUE(timeline.ok());
    // The signal is behind the data either way.
    EXPECT_NEAR(timeline->total_us, adapter ? 10 + 2 + 1 : 10 + 4 + 2 + 1, 1e-6);
    EXPECT_NEAR(timeline->pes[0].end_us, adapter ? 4 : 14, 1e-6);
  }
}

TEST(TimeModel, WhoStoresToOnePeSharesItsLink) {
  Job job(3);
  Topology topology = small();
  topology.max_pes = 3;
  for (const int from : {0, 1}) {
    const std::uint32_t id = job.stretch(job.block(job.launch(from)), 1);
    job.work.stretches[id].work.peers.push_back({2, 4000, 0, 0});
  }
  const Result<Timeline> timeline = simulate(job.work, topology);
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->total_us, 8, 1e-6);
}

TEST(TimeModel, OneCallIsTakenOutOfARun) {
  Job job(1);
  const std::uint32_t first = job.launch(0), second = job.launch(0, 1, {first});
  job.work.launches[first].call = 1;
  job.work.launches[second].call = 2;
  const std::uint32_t before = job.stretch(job.block(first), 4);
  job.stretch(job.block(second), 5, {before});
  const vgpu::JobWork one = only_call(job.work, 2);
  ASSERT_EQ(one.launches.size(), 1U);
  EXPECT_TRUE(one.launches[0].after.empty());
  ASSERT_EQ(one.stretches.size(), 1U);
  EXPECT_TRUE(one.stretches[0].causes.empty());
  const Result<Timeline> timeline = simulate(one, small());
  ASSERT_TRUE(timeline.ok());
  EXPECT_NEAR(timeline->total_us, 5, 1e-6);
  EXPECT_EQ(only_call(job.work, 0).stretches.size(), 2U);
}

}  // namespace
}  // namespace echolo::timing
