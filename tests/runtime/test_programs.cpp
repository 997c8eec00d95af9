// Ordinary CUDA programs on one PE, and NVSHMEM programs on several: each case is one run of a compiled
// program.
#include <fstream>

#include "base/text.hpp"
#include "harness.hpp"

namespace echolo::runtime::test {
namespace {

class Features : public testing::TestWithParam<const char*> {};

TEST_P(Features, Holds) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("features.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> result = run_job(program_job(*program, 1, {GetParam()}));
  ASSERT_TRUE(result.ok()) << result.error().render();
  EXPECT_EQ(result->status, "correct") << render_all(*result);
  EXPECT_EQ(result->findings.size(), 0U) << render_all(*result);
}

INSTANTIATE_TEST_SUITE_P(Runtime, Features,
                         testing::Values("memory", "pinned", "symbols", "streams", "events", "host_functions",
                                         "graphs", "launches", "device", "mapped_polling", "threads"),
                         [](const auto& the_case) { return std::string(the_case.param); });

class Shmem : public testing::TestWithParam<const char*> {};

TEST_P(Shmem, Holds) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("shmem.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (const int world : {1, 3, 4}) {
    const Result<JobResult> result = run_job(program_job(*program, world, {GetParam()}));
    ASSERT_TRUE(result.ok()) << result.error().render();
    EXPECT_EQ(result->status, "correct") << world << " PEs\n" << render_all(*result);
    EXPECT_EQ(result->findings.size(), 0U) << render_all(*result);
  }
}

INSTANTIATE_TEST_SUITE_P(Runtime, Shmem,
                         testing::Values("query", "ring", "rma", "on_stream", "collectives", "uniqueid",
                                         "graph_ring", "collective_launch", "atomics"),
                         [](const auto& the_case) { return std::string(the_case.param); });

TEST(Runtime, SameSeedSameResult) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("shmem.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  for (const char* policy : {"fair", "random"}) {
    JobSpec spec = program_job(*program, 4, {"ring"});
    spec.policy = policy;
    spec.seed = 11;
    const Result<JobResult> first = run_job(spec), second = run_job(spec);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(without_seconds(*first), without_seconds(*second));
    spec.seed = 12;
    const Result<JobResult> other = run_job(spec);
    ASSERT_TRUE(other.ok());
    EXPECT_EQ(other->status, "correct");
  }
}

TEST(Runtime, KernelOutputAndHostOutputComeInOrder) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("shmem.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> result = run_job(program_job(*program, 2, {"printing"}));
  ASSERT_TRUE(result.ok()) << result.error().render();
  ASSERT_EQ(result->pes.size(), 2U);
  EXPECT_EQ(result->pes[1].output, "host 1 before\nkernel of 1: 7\nhost 1 after\n") << render_all(*result);
}

TEST(Runtime, NoSandboxRunsToo) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("features.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  JobSpec spec = program_job(*program, 1, {"streams"});
  spec.sandbox = false;
  const Result<JobResult> result = run_job(spec);
  ASSERT_TRUE(result.ok()) << result.error().render();
  EXPECT_EQ(result->status, "correct") << render_all(*result);
}

TEST(Runtime, MissingProgramIsAUsageError) {
  const Result<JobResult> result = run_job(program_job("/nonexistent/program", 1, {}));
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::kUsage);
  EXPECT_NE(result.error().message.find("/nonexistent/program"), std::string::npos);
}

TEST(Runtime, BadWorldPolicyAndFabricAreRefused) {
  for (const int what : {0, 1, 2}) {
    JobSpec spec = program_job("/bin/true", 1, {});
    if (what == 0) spec.world = 1000;
    if (what == 1) spec.policy = "unheard-of";
    if (what == 2) spec.fabric = "carrier pigeon";
    EXPECT_FALSE(run_job(spec).ok()) << what;
  }
}

}  // namespace
}  // namespace echolo::runtime::test
