// A candidate through its whole life: calls without synchronisation between them, a captured graph replayed,
// outputs harvested by the node; and what becomes of one that misbehaves.
#include <cstring>
#include <filesystem>

#include "harness.hpp"
#include "runtime/tensor_file.hpp"

namespace echolo::runtime::test {
namespace {

namespace fs = std::filesystem;

constexpr int kWorld = 3, kN = 40, kCalls = 4, kReplays = 3;

float input_value(int call, int pe, int i) {
  return static_cast<float>(call * 100 + pe * 10) + static_cast<float>(i) * 0.5F;
}

class Candidate : public testing::Test {
 protected:
  void SetUp() override {
    ECHOLO_NEED_NVCC();
    folder_ = fs::temp_directory_path() / ("echolo-candidate-" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }

  JobSpec job(std::int64_t fault) {
    JobSpec spec;
    const Result<std::string> library = compiled("candidate.cu", true);
    EXPECT_TRUE(library.ok()) << library.error().message;
    if (!library.ok()) return spec;
    spec.world = kWorld;
    spec.host_timeout = std::chrono::seconds(2);
    CandidateJob& c = spec.candidate;
    c.library = *library;
    c.problem = "sum";
    c.dtype = DType::kF32;
    c.params = {{"n", kN}, {"fault", fault}};
    c.inputs = {"x"};
    c.outputs.assign(kWorld, {OutputSpec{"y", DType::kF32, {kN}}});
    c.output_dir = folder_.string();
    for (int call = 1; call <= kCalls + kReplays; ++call) {
      CallSpec one;
      for (int pe = 0; pe < kWorld; ++pe) {
        TensorData x{{"x", DType::kF32, {kN}}, std::vector<std::uint8_t>(kN * sizeof(float))};
        for (int i = 0; i < kN; ++i) {
          const float value = input_value(call, pe, i);
          std::memcpy(x.bytes.data() + static_cast<std::size_t>(i) * sizeof value, &value, sizeof value);
        }
        const std::string path =
            (folder_ / ("in" + std::to_string(call) + "." + std::to_string(pe))).string();
        EXPECT_TRUE(write_tensors(path, {x}).ok());
        one.input_files.push_back(path);
      }
      (call <= kCalls ? c.calls : c.replays).push_back(one);
    }
    return spec;
  }

  fs::path folder_;
};

TEST_F(Candidate, CallsAndReplaysGiveTheirOwnSums) {
  for (const char* policy : {"fair", "random"}) {
    JobSpec spec = job(0);
    spec.policy = policy;
    const Result<JobResult> result = run_job(spec);
    ASSERT_TRUE(result.ok()) << result.error().render();
    ASSERT_EQ(result->status, "correct") << render_all(*result);
    EXPECT_TRUE(result->findings.empty()) << render_all(*result);
    ASSERT_EQ(result->call_modelled_ns.size(), static_cast<std::size_t>(kCalls + kReplays));
    for (int call = 1; call <= kCalls + kReplays; ++call) {
      EXPECT_GT(result->call_modelled_ns[static_cast<std::size_t>(call - 1)], 0U) << call;
      for (int pe = 0; pe < kWorld; ++pe) {
        const std::string path =
            (folder_ / ("call" + std::to_string(call) + ".rank" + std::to_string(pe) + ".safetensors"))
                .string();
        const auto out = read_tensors(path);
        ASSERT_TRUE(out.ok()) << out.error().message;
        ASSERT_EQ(out->size(), 1U);
        EXPECT_EQ((*out)[0].spec.name, "y");
        for (int i = 0; i < kN; ++i) {
          float got = 0;
          float wanted = 0;
          std::memcpy(&got, (*out)[0].bytes.data() + static_cast<std::size_t>(i) * sizeof got, sizeof got);
          for (int p = 0; p < kWorld; ++p) wanted += input_value(call, p, i);
          ASSERT_EQ(got, wanted) << "call " << call << ", PE " << pe << ", element " << i;
        }
        fs::remove(path);
      }
    }
  }
}

struct Fault {
  int number;
  const char* status;
  const char* says;
};

TEST_F(Candidate, FaultsAreAttributed) {
  const Fault faults[] = {
      {1, "crashed", "std::runtime_error: no such luck in candidate_create"},
      {2, "crashed", "exit(0) inside candidate_run, call 2"},
      {3, "host_dereference", ""},
      {4, "launch_error", "cudaErrorInvalidConfiguration"},
      {5, "launch_error",
       "cudaErrorStreamCaptureUnsupported"},  // where the last error is ...CaptureInvalidated
      {6, "crashed", "exception of unknown type in candidate_run, call 3"},
      {7, "timeout", "in candidate_run, call 2"},
  };
  for (const Fault& fault : faults) {
    const Result<JobResult> result = run_job(job(fault.number));
    ASSERT_TRUE(result.ok()) << result.error().render();
    EXPECT_EQ(result->status, fault.status) << fault.number << "\n" << render_all(*result);
    EXPECT_NE(result->message.find(fault.says), std::string::npos) << fault.number << "\n"
                                                                   << render_all(*result);
  }
}

TEST_F(Candidate, ADereferenceNamesLineAndCall) {
  const Result<JobResult> result = run_job(job(3));
  ASSERT_TRUE(result.ok()) << result.error().render();
  const vgpu::Finding* finding = find(*result, vgpu::FindingKind::kHostDereference);
  ASSERT_NE(finding, nullptr) << render_all(*result);
  ASSERT_EQ(finding->sites.size(), 1U);
  EXPECT_EQ(finding->sites[0].where.line, line_of("candidate.cu", "// dereference"));
  EXPECT_EQ(finding->sites[0].pe, 1);
  EXPECT_EQ(finding->sites[0].call, 2);
  EXPECT_NE(finding->address.object.find("`y`"), std::string::npos) << finding->address.object;
}

TEST_F(Candidate, WithoutWritingItsOutputsStayPoisoned) {
  const Result<JobResult> result = run_job(job(8));
  ASSERT_TRUE(result.ok()) << result.error().render();
  EXPECT_EQ(result->status, "correct") << render_all(*result);
  const auto out = read_tensors((folder_ / "call1.rank0.safetensors").string());
  ASSERT_TRUE(out.ok());
  bool zero = true;
  for (const std::uint8_t byte : (*out)[0].bytes) zero = zero && byte == 0;
  EXPECT_FALSE(zero);
}

TEST_F(Candidate, SameSeedSameResult) {
  const Result<JobResult> first = run_job(job(0)), second = run_job(job(0));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(without_seconds(*first), without_seconds(*second));
}

TEST_F(Candidate, BrokenInputsAreTheMachinesFault) {
  JobSpec spec = job(0);
  spec.candidate.calls[0].input_files[1] = "/nonexistent/input";
  EXPECT_FALSE(run_job(spec).ok());
  spec = job(0);
  spec.candidate.inputs = {"z"};
  EXPECT_FALSE(run_job(spec).ok());
}

}  // namespace
}  // namespace echolo::runtime::test
