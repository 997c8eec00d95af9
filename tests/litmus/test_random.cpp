// The machine against the axioms on random programs: whatever it reaches they allow, and it reaches what they
// allow, by as many different runs.
#include <gtest/gtest.h>

#include "litmus/axioms.hpp"
#include "litmus/explore.hpp"
#include "random_program.hpp"

namespace echolo::litmus {
namespace {

TEST(Random, MachineAndAxiomsAgree) {
  std::size_t allowed = 0, reached = 0, programs = 0, several = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    const std::string text = testing::random_litmus(seed);
    const Result<Program> program = parse_litmus(text, "random.litmus");
    ASSERT_TRUE(program.ok()) << program.error().render() << "\n" << text;
    ExploreLimits limits;
    limits.seconds = 4;
    const Answer machine = explore(*program, limits);
    const Answer axioms = enumerate(*program, limits);
    if (!machine.complete || !axioms.complete) continue;
    ++programs;
    if (axioms.outcomes.size() > 1) ++several;
    for (const auto& [outcome, count] : machine.outcomes) {
      EXPECT_EQ(axioms.outcomes.count(outcome), 1) << "seed " << seed << ": not allowed by the axioms\n"
                                                   << text;
    }
    for (const auto& [outcome, count] : axioms.outcomes) {
      ++allowed;
      const auto found = machine.outcomes.find(outcome);
      if (found != machine.outcomes.end()) ++reached;
      EXPECT_TRUE(found != machine.outcomes.end()) << "seed " << seed << ": not reached by the machine\n"
                                                   << text;
      if (found != machine.outcomes.end()) {
        EXPECT_EQ(found->second, count) << "seed " << seed << "\n" << text;
      }
    }
    if (HasFailure()) return;
  }
  EXPECT_GE(programs, 380U);
  EXPECT_GE(several, 250U);
  RecordProperty("allowed", static_cast<int>(allowed));
  RecordProperty("reached", static_cast<int>(reached));
}

}  // namespace
}  // namespace echolo::litmus
