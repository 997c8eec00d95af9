// A PE that speaks the protocol wrongly, or rightly with senseless arguments, never harms the node.
#include "base/subprocess.hpp"
#include "harness.hpp"

namespace echolo::runtime::test {
namespace {

TEST(Hostile, NothingThatAPeSaysHarmsTheNode) {
  const Result<std::string> program = compiled_host("hostile.cc");
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (int seed = 1; seed <= 24; ++seed) {
    JobSpec spec = program_job(*program, seed % 3 == 0 ? 2 : 1, {std::to_string(seed)});
    spec.sandbox = false;  // for speed; what is tested is the node's side
    spec.host_timeout = std::chrono::milliseconds(1500);
    spec.timeout = std::chrono::seconds(3);
    const Result<JobResult> result = run_job(spec);
    ASSERT_TRUE(result.ok()) << "seed " << seed << ": " << result.error().render();
    EXPECT_FALSE(result->status.empty()) << seed;
  }
}

}  // namespace
}  // namespace echolo::runtime::test
