// The executor against the memory model's machine: no value that a kernel reads is outside of what the model
// allows, and those that only a weak memory gives do occur.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "core_harness.hpp"
#include "litmus/suite.hpp"
#include "litmus_kernel.hpp"

namespace echolo::vgpu {
namespace {

namespace fs = std::filesystem;

using Outcome = std::vector<std::int64_t>;

std::set<Outcome> outcomes_of(const litmus::Program& program, const std::string& ptx, Policy policy,
                              std::uint64_t seeds) {
  std::set<Outcome> seen;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    if (const auto outcome = run_litmus(program, ptx, policy, seed)) seen.insert(*outcome);
  }
  return seen;
}

struct Shape {
  const char* name;
  const char* text;
  std::vector<Outcome> outcomes;  // weak ones: no interleaving of whole instructions gives them
};

// `observed` is in the order in which the condition names its parts.
const Shape kShapes[] = {
    {"store buffering",
     R"(PTX SB
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 ;
 ld.relaxed.gpu r0, y | ld.relaxed.gpu r1, x ;
exists (P0:r0 == 0 /\ P1:r1 == 0))",
     {{0, 0}}},
    {"message passing without order",
     R"(PTX MP
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 st.relaxed.gpu x, 1 | ld.relaxed.gpu r0, y ;
 st.relaxed.gpu y, 1 | ld.relaxed.gpu r1, x ;
exists (P1:r0 == 1 /\ P1:r1 == 0))",
     {{1, 0}}},
    {"independent reads of independent writes",
     R"(PTX IRIW
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 | P2@cta 2,gpu 0 | P3@cta 3,gpu 0 ;
 st.relaxed.gpu x, 1 | st.relaxed.gpu y, 1 | ld.acquire.gpu r0, x | ld.acquire.gpu r2, y ;
 | | ld.acquire.gpu r1, y | ld.acquire.gpu r3, x ;
exists (P2:r0 == 1 /\ P2:r1 == 0 /\ P3:r2 == 1 /\ P3:r3 == 0))",
     {{1, 0, 1, 0}}},
    {"store buffering over two GPUs",
     R"(PTX SB
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 1 ;
 st.relaxed.sys x, 1 | st.relaxed.sys y, 1 ;
 ld.acquire.sys r0, y | ld.acquire.sys r1, x ;
exists (P0:r0 == 0 /\ P1:r1 == 0))",
     {{0, 0}}},
    {"load buffering",
     R"(PTX LB
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r1, y ;
 st.relaxed.gpu y, 1 | st.relaxed.gpu x, 1 ;
exists (P0:r0 == 1 /\ P1:r1 == 1))",
     {{1, 1}}},
    {"load buffering over three GPUs",
     R"(PTX LB3
{ x = 0; y = 0; z = 0; }
 P0@cta 0,gpu 0 | P1@cta 0,gpu 1 | P2@cta 0,gpu 2 ;
 ld.relaxed.sys r0, x | ld.relaxed.sys r1, y | ld.relaxed.sys r2, z ;
 st.relaxed.sys y, 1 | st.relaxed.sys z, 1 | st.relaxed.sys x, 1 ;
exists (P0:r0 == 1 /\ P1:r1 == 1 /\ P2:r2 == 1))",
     {{1, 1, 1}}},
};

TEST(LitmusOnTheExecutor, WeakOutcomesOccur) {
  for (const Shape& shape : kShapes) {
    const auto program = litmus::parse_litmus(shape.text, shape.name);
    ASSERT_TRUE(program.ok()) << program.error().render();
    const auto ptx = litmus_ptx(*program);
    ASSERT_TRUE(ptx.has_value()) << shape.name;
    const std::set<Outcome> seen = outcomes_of(*program, *ptx, Policy::kRandom, 400);
    for (const Outcome& outcome : shape.outcomes) EXPECT_TRUE(seen.contains(outcome)) << shape.name;
    const std::set<Outcome> fair = outcomes_of(*program, *ptx, Policy::kFair, 20);
    for (const Outcome& outcome : shape.outcomes) EXPECT_FALSE(fair.contains(outcome)) << shape.name;
  }
}

// What keeps a load before a store of its thread: the store needs the value, both are of one place, or an
// order lies between.
const Shape kNever[] = {
    {"the stores need the values",
     R"(PTX LB+data
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.relaxed.gpu r0, x | ld.relaxed.gpu r1, y ;
 st.relaxed.gpu y, r0 | st.relaxed.gpu x, r1 ;
exists (P0:r0 == 1 /\ P1:r1 == 1))",
     {{1, 1}}},
    {"the stores are releases",
     R"(PTX LB+rel
{ x = 0; y = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.acquire.gpu r0, x | ld.acquire.gpu r1, y ;
 st.release.gpu y, 1 | st.release.gpu x, 1 ;
exists (P0:r0 == 1 /\ P1:r1 == 1))",
     {{1, 1}}},
    {"load and store are of one place",
     R"(PTX CoRW
{ x = 0; }
 P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;
 ld.relaxed.gpu r0, x | st.relaxed.gpu x, 2 ;
 st.relaxed.gpu x, 1 | ;
exists (P0:r0 == 1))",
     {{1}}},
};

TEST(LitmusOnTheExecutor, NoLoadIsBoundAfterWhatNeedsIt) {
  for (const Shape& shape : kNever) {
    const auto program = litmus::parse_litmus(shape.text, shape.name);
    ASSERT_TRUE(program.ok()) << program.error().render();
    const auto ptx = litmus_ptx(*program);
    ASSERT_TRUE(ptx.has_value()) << shape.name;
    const std::set<Outcome> seen = outcomes_of(*program, *ptx, Policy::kRandom, 400);
    EXPECT_FALSE(seen.empty()) << shape.name;
    for (const Outcome& outcome : shape.outcomes) EXPECT_FALSE(seen.contains(outcome)) << shape.name;
  }
}

struct Tally {
  int tests = 0, left_out = 0;
  std::size_t allowed = 0, seen = 0;
};

void compare(const std::string& folder, std::uint64_t seeds, Tally& tally) {
  const auto files = litmus::litmus_files({folder});
  ASSERT_TRUE(files.ok()) << files.error().render();
  for (const std::string& file : *files) {
    const auto judged = litmus::judge_file(file, {});
    ASSERT_TRUE(judged.ok()) << judged.error().render();
    const auto ptx = litmus_ptx(judged->program);
    if (!ptx || !judged->answer.complete) {
      ++tally.left_out;
      continue;
    }
    ++tally.tests;
    std::set<Outcome> seen = outcomes_of(judged->program, *ptx, Policy::kRandom, seeds);
    seen.merge(outcomes_of(judged->program, *ptx, Policy::kLazyDelivery, seeds / 4));
    for (const Outcome& outcome : seen) {
      std::string values;
      for (const std::int64_t value : outcome) values += " " + std::to_string(value);
      EXPECT_TRUE(judged->answer.outcomes.contains(outcome)) << file << ":" << values;
    }
    tally.allowed += judged->answer.outcomes.size();
    tally.seen += seen.size();
  }
}

TEST(LitmusOnTheExecutor, GivesOnlyWhatTheModelAllows) {
  Tally tally;
  compare(std::string(ECHOLO_SOURCE_DIR) + "/litmus", 40, tally);
  fs::path at = fs::path(ECHOLO_SOURCE_DIR);
  for (; at.has_relative_path(); at = at.parent_path()) {
    const fs::path candidate = at.parent_path() / "shared/corpora/ptx-litmus";
    if (fs::is_directory(candidate)) {
      compare(candidate.string(), 40, tally);
      break;
    }
  }
  EXPECT_GE(tally.tests, 20);
  RecordProperty("tests", tally.tests);
  std::printf("%d tests as kernels, %d left out; %zu of %zu allowed outcomes seen\n", tally.tests,
              tally.left_out, tally.seen, tally.allowed);
}

}  // namespace
}  // namespace echolo::vgpu
