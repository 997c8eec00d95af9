// Host code that crashes, hangs, exits or shouts: contained, and named with place and PE. The last of two PEs
// is at fault.
#include "harness.hpp"

namespace echolo::runtime::test {
namespace {

struct Case {
  const char* name;
  const char* status;
  PeEnd end;
  const char* detail;  // of the PE at fault
  const char* at;      // text on the line that `detail` must name; empty: none
};

class Faults : public testing::TestWithParam<Case> {};

TEST_P(Faults, IsContainedAndNamed) {
  ECHOLO_NEED_NVCC();
  const Case& c = GetParam();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  JobSpec spec = program_job(*program, 2, {c.name});
  spec.host_timeout = std::chrono::seconds(2);
  spec.output_limit = 10'000;
  const Result<JobResult> result = run_job(spec);
  ASSERT_TRUE(result.ok()) << result.error().render();
  EXPECT_EQ(result->status, c.status) << render_all(*result);
  ASSERT_EQ(result->pes.size(), 2U);
  const PeReport& guilty = result->pes[1];
  EXPECT_EQ(guilty.end, c.end) << render_all(*result);
  EXPECT_NE(guilty.detail.find(c.detail), std::string::npos) << guilty.detail;
  EXPECT_NE(guilty.output.find("PE 1 begins"), std::string::npos) << guilty.output;
  EXPECT_LE(guilty.output.size(), spec.output_limit);
  if (*c.at != 0) {
    const std::string place = "faults.cu:" + std::to_string(line_of("faults.cu", c.at));
    EXPECT_NE(guilty.detail.find(place), std::string::npos) << guilty.detail << " should name " << place;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Runtime, Faults,
    testing::Values(
        Case{"dereference", "host_dereference", PeEnd::kSignal, "SIGSEGV at address 0x2",
             "// host-dereference"},
        Case{"strlen", "host_dereference", PeEnd::kSignal, "SIGSEGV", "std::strlen"},
        Case{"segv", "crashed", PeEnd::kSignal, "SIGSEGV at address 0x10", "// segmentation fault"},
        Case{"bad_source", "crashed", PeEnd::kSignal, "SIGSEGV at address 0x20", "\"bad_source\""},
        Case{"abort", "crashed", PeEnd::kSignal, "SIGABRT", "\"abort\""},
        Case{"throw", "crashed", PeEnd::kSignal, "SIGABRT", "\"throw\""},
        Case{"exit", "crashed", PeEnd::kExitCode, "exit(3)", ""},
        Case{"quick_exit", "crashed", PeEnd::kExitCode, "ended with code 4", ""},
        Case{"kill", "crashed", PeEnd::kSignal, "SIGKILL", ""},
        Case{"spin", "timeout", PeEnd::kTimeout, "makes no call for 2000 ms", "// endless"},
        Case{"sleep", "timeout", PeEnd::kTimeout, "makes no call", "\"sleep\""},
        Case{"output", "timeout", PeEnd::kTimeout, "makes no call", "and so on"},
        Case{"past_the_end", "out_of_bounds", PeEnd::kKilled, "", ""},
        Case{"control_bytes", "correct", PeEnd::kOk, "", ""},
        Case{"mismatch", "collective_mismatch", PeEnd::kKilled, "", ""}),
    [](const auto& the_case) { return std::string(the_case.param.name); });

TEST(Runtime, OutputIsPrintableAndCut) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  Result<JobResult> result = run_job(program_job(*program, 1, {"control_bytes"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->pes[0].output.find('\033'), std::string::npos);
  JobSpec spec = program_job(*program, 1, {"output"});
  spec.host_timeout = std::chrono::seconds(1);
  spec.output_limit = 1000;
  result = run_job(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_TRUE(result->pes[0].output_truncated);
  EXPECT_LE(result->pes[0].output.size(), 1000U);
}

TEST(Runtime, AHostDereferenceNamesAllocationAndLine) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> result = run_job(program_job(*program, 2, {"dereference"}));
  ASSERT_TRUE(result.ok());
  const vgpu::Finding* finding = find(*result, vgpu::FindingKind::kHostDereference);
  ASSERT_NE(finding, nullptr) << render_all(*result);
  EXPECT_EQ(finding->sites.at(0).where.line, line_of("faults.cu", "// host-dereference"));
  EXPECT_NE(finding->sites.at(0).where.file.find("faults.cu"), std::string::npos);
  EXPECT_EQ(finding->sites.at(0).where.function, "total");
  EXPECT_EQ(finding->address.pe, 1);
  const std::string place =
      "cudaMalloc at faults.cu:" + std::to_string(line_of("faults.cu", "// allocation"));
  EXPECT_NE(finding->address.object.find(place), std::string::npos) << finding->address.object;
}

TEST(Runtime, SeveralPesThatFailAtOnceGiveOneResult) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> first = run_job(program_job(*program, 3, {"everyone"}));
  const Result<JobResult> second = run_job(program_job(*program, 3, {"everyone"}));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(without_seconds(*first), without_seconds(*second));
  ASSERT_EQ(first->findings.size(), 1U) << render_all(*first);
  EXPECT_EQ(first->findings[0].count, 3U);
  for (const PeReport& pe : first->pes) EXPECT_EQ(pe.end, PeEnd::kSignal);
}

TEST(Runtime, APeThatLeavesWhileOthersWaitIsNamed) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> result = run_job(program_job(*program, 2, {"exit_in_good_faith"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->status, "deadlock") << render_all(*result);
  const vgpu::Finding* finding = find(*result, vgpu::FindingKind::kDeadlock);
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->why.find("PE 1"), std::string::npos) << finding->why;
  EXPECT_EQ(finding->sites.at(0).pe, 0);
}

TEST(Runtime, LeaksAreReportedAndLeaveTheStatusCorrect) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  const Result<JobResult> result = run_job(program_job(*program, 2, {"no_free"}));
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->status, "correct");
  const vgpu::Finding* finding = find(*result, vgpu::FindingKind::kLeak);
  ASSERT_NE(finding, nullptr) << render_all(*result);
  EXPECT_EQ(finding->sites.at(0).where.line, line_of("faults.cu", "// allocation"));
}

TEST(Runtime, TheSandboxHoldsAPeIn) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  Result<JobResult> result = run_job(program_job(*program, 1, {"sandbox"}));
  ASSERT_TRUE(result.ok());
  for (const char* line : {"socket refused", "shadow hidden", "write refused", "parent hidden"}) {
    EXPECT_NE(result->pes[0].output.find(line), std::string::npos) << line << "\n" << result->pes[0].output;
  }
  result = run_job(program_job(*program, 1, {"fork"}));
  ASSERT_TRUE(result.ok());
  EXPECT_NE(result->pes[0].output.find("fork refused"), std::string::npos) << result->pes[0].output;
}

// What a PE owes its end for counts from when it left, not from its start: jobs may take longer than that.
TEST(Runtime, APeThatTakesItsTimeToEndIsNotLost) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  JobSpec spec = program_job(*program, 2, {"slow_to_end"});
  spec.host_timeout = std::chrono::seconds(2);
  const Result<JobResult> result = run_job(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->status, "correct") << render_all(*result);
  EXPECT_GT(result->seconds, 2.0);
}

TEST(Runtime, TheJobsTimeLimitHolds) {
  ECHOLO_NEED_NVCC();
  const Result<std::string> program = compiled("faults.cu");
  ASSERT_TRUE(program.ok()) << program.error().message;
  JobSpec spec = program_job(*program, 2, {"spin"});
  spec.timeout = std::chrono::seconds(1);
  const Result<JobResult> result = run_job(spec);
  ASSERT_TRUE(result.ok());
  EXPECT_EQ(result->status, "timeout") << render_all(*result);
  EXPECT_LT(result->seconds, 5.0);
}

}  // namespace
}  // namespace echolo::runtime::test
