// Scheduling policies: results that do not depend on them, order that does, progress under each of them, and
// equal runs from equal seeds.
#include <gtest/gtest.h>

#include <set>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

std::string module_of(const std::string& body) {
  return ".version 9.0\n.target sm_90a\n.address_size 64\n" + body;
}

// Every thread 0 of a block draws a ticket and writes down who came: out[ticket] = pe * 1000 + block.
const std::string kTickets = module_of(R"(
.visible .entry tickets(.param .u64 counter, .param .u64 out, .param .u32 pe) {
  .reg .b64 %c, %o, %a; .reg .b32 %t, %p, %b, %v; .reg .pred %q;
  mov.u32 %t, %tid.x;
  setp.ne.u32 %q, %t, 0;
  @%q bra END;
  ld.param.u64 %c, [counter];
  ld.param.u64 %o, [out];
  ld.param.u32 %p, [pe];
  mov.u32 %b, %ctaid.x;
  mad.lo.u32 %v, %p, 1000, %b;
  atom.global.sys.add.u32 %t, [%c], 1;
  mul.wide.u32 %a, %t, 4;
  add.s64 %a, %a, %o;
  st.relaxed.sys.global.u32 [%a], %v;
END:
  ret;
}
)");

// Block 0 waits for a flag that the last block sets, in a loop that counts its turns in memory (so it never
// repeats exactly): whoever runs block 0 for ever starves.
const std::string kSpin = module_of(R"(
.visible .entry spin(.param .u64 flag, .param .u64 turns) {
  .reg .b64 %f, %n; .reg .b32 %b, %l, %v; .reg .pred %q;
  ld.param.u64 %f, [flag];
  ld.param.u64 %n, [turns];
  mov.u32 %b, %ctaid.x;
  mov.u32 %l, %nctaid.x;
  sub.u32 %l, %l, 1;
  setp.eq.u32 %q, %b, %l;
  @%q bra SET;
LOOP:
  atom.global.sys.add.u32 %v, [%n], 1;
  ld.acquire.sys.global.u32 %v, [%f];
  setp.eq.u32 %q, %v, 0;
  @%q bra LOOP;
  ret;
SET:
  st.release.sys.global.u32 [%f], 1;
  ret;
}
)");

// Words that every PE may reach.
std::uint64_t symmetric(Node& node, std::size_t n, int value) {
  const auto addresses = node.machine->memory().allocate_symmetric(
      n * sizeof(int), 256, "test", std::vector<std::string>(node.modules.size()));
  if (!addresses.ok()) throw std::runtime_error(addresses.error().render());
  const std::uint64_t address = addresses->front();
  const Site site = make_host_site(0, "copy");
  Memory::Accessor who;
  who.site = &site;
  who.pe = 0;
  who.what = "test";
  const std::vector<int> values(n, value);
  node.machine->memory().write(address, values.data(), n * sizeof(int), who);
  return address;
}

std::vector<int> order(Policy policy, std::uint64_t seed, int n_pes = 2) {
  Node node(kTickets, n_pes, policy, seed);
  const std::uint64_t counter = symmetric(node, 1, 0);
  const std::uint64_t out = symmetric(node, static_cast<std::size_t>(8 * n_pes), -1);
  for (int pe = 0; pe < n_pes; ++pe)
    node.launch("tickets", {8, 1, 1}, {64, 1, 1}, Params().add(counter).add(out).add(pe), pe);
  EXPECT_EQ(node.finish(), Progress::kIdle) << name_of(policy);
  return node.download<int>(out, static_cast<std::size_t>(8 * n_pes));
}

TEST(Policies, NamesAreReadBack) {
  std::set<std::string> names;
  for (const PolicyInfo& info : policies()) {
    EXPECT_TRUE(names.insert(info.name).second);
    EXPECT_EQ(name_of(info.policy), info.name);
    const Result<Policy> parsed = parse_policy(info.name);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, info.policy);
  }
  EXPECT_TRUE(names.contains("pct3") && names.contains("one-slow-pe") && names.contains("reversed"));
  const Result<Policy> none = parse_policy("pct4");
  ASSERT_FALSE(none.ok());
  EXPECT_NE(none.error().render().find("pct"), std::string::npos);
}

TEST(Policies, EveryPolicyRunsEveryBlockOnce) {
  for (const PolicyInfo& info : policies()) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      const std::vector<int> got = order(info.policy, seed);
      const std::set<int> all(got.begin(), got.end());
      EXPECT_EQ(all.size(), got.size()) << info.name;
      EXPECT_FALSE(all.contains(-1)) << info.name;
      EXPECT_EQ(got, order(info.policy, seed)) << info.name << " differs from itself under seed " << seed;
    }
  }
}

TEST(Policies, ReversedStartsWithTheLastBlock) {
  const std::vector<int> got = order(Policy::kReversed, 1);
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_EQ(got[i], i < 8 ? 1007 - static_cast<int>(i) : 15 - static_cast<int>(i));
}

TEST(Policies, OnePeIsSlowAndTheSeedSaysWhich) {
  std::set<int> slow;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const std::vector<int> got = order(Policy::kOneSlowPe, seed, 3);
    const int last = got.back() / 1000;
    slow.insert(last);
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i] / 1000 == last, i >= 16) << i;
  }
  EXPECT_EQ(slow.size(), 3U);
}

TEST(Policies, SeedsGiveOtherOrders) {
  for (const Policy policy : {Policy::kRandom, Policy::kPct1, Policy::kPct2, Policy::kPct3}) {
    std::set<std::vector<int>> orders;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) orders.insert(order(policy, seed));
    EXPECT_GE(orders.size(), 15U) << name_of(policy);
  }
}

TEST(Policies, SpinnersOfHighPriorityStarveNobody) {
  for (const PolicyInfo& info : policies()) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      Node node(kSpin, 1, info.policy, seed);
      const std::uint64_t flag = symmetric(node, 1, 0);
      const std::uint64_t turns = symmetric(node, 1, 0);
      node.launch("spin", {40, 1, 1}, {32, 1, 1}, Params().add(flag).add(turns));
      EXPECT_EQ(node.finish(), Progress::kIdle) << info.name << " seed " << seed;
      EXPECT_LT(node.machine->counters().warp_instructions, 2'000'000U) << info.name << " seed " << seed;
    }
  }
}

// The slow PE must be let on although the others never stop taking turns.
TEST(Policies, ASlowPeIsNotStarvedByThoseWhoWaitForIt) {
  for (const PolicyInfo& info : policies()) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      Node node(kSpin, 3, info.policy, seed);
      const std::uint64_t flag = symmetric(node, 1, 0);
      const std::uint64_t turns = symmetric(node, 1, 0);
      // All blocks of PE 0 wait; PE 2's only block sets the flag.
      node.launch("spin", {4, 1, 1}, {32, 1, 1}, Params().add(flag).add(turns), 0);
      node.launch("spin", {1, 1, 1}, {32, 1, 1}, Params().add(flag).add(turns), 2);
      EXPECT_EQ(node.finish(), Progress::kIdle) << info.name << " seed " << seed;
    }
  }
}

// The counter that the waiters count up has ever new values, and yet nothing comes of it.
TEST(Policies, CountingInMemoryForEverIsALivelock) {
  std::string never = kSpin;
  never.replace(never.find("[%f], 1"), 7, "[%f], 0");
  // Each run takes seconds; tests/corpus/livelock has every policy in its sweep.
  for (const Policy policy : {Policy::kFair, Policy::kRandom, Policy::kPct2}) {
    std::set<std::uint64_t> ends;
    const int runs = policy == Policy::kRandom ? 2 : 1;
    for (int run = 0; run < runs; ++run) {
      Node node(never, 1, policy, 3);
      const std::uint64_t flag = symmetric(node, 1, 0);
      const std::uint64_t turns = symmetric(node, 1, 0);
      node.launch("spin", {4, 1, 1}, {32, 1, 1}, Params().add(flag).add(turns));
      ASSERT_EQ(node.finish(), Progress::kLivelock) << name_of(policy);
      ends.insert(node.machine->counters().warp_instructions);
      EXPECT_NE(node.explain(Progress::kLivelock).find("the budget of 2,000,000 warp instructions"),
                std::string::npos);
    }
    EXPECT_EQ(ends.size(), 1U) << name_of(policy);
    EXPECT_LT(*ends.begin(), 6'000'000U) << name_of(policy);
  }
}

}  // namespace
}  // namespace echolo::vgpu
