// Modelled times as the commands show them: --trace, --topology, --curve, --memory, and `modelled` in
// verdicts.
#include <cmath>
#include <map>
#include <set>

#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

using nlohmann::json;

// PE 0 works for a while, then sends 64 KiB and a signal; PE 1 waits for it at line 12.
constexpr const char* kOneWay = R"(#include <cuda_runtime.h>
#include <nvshmem.h>
#include <nvshmemx.h>

__global__ void one_way(float* box, const float* from, uint64_t* signal, int pe) {
  if (pe == 0) {
    float x = threadIdx.x;
    for (int i = 0; i < 2000; ++i) x = x * 1.0001f + 0.5f;
    if (x == 1.0f) box[0] = x;
    nvshmemx_float_put_signal_block(box, from, 16384, signal, 1, NVSHMEM_SIGNAL_SET, 1);
  } else if (threadIdx.x == 0) {
    nvshmem_signal_wait_until(signal, NVSHMEM_CMP_EQ, 1);
  }
}

int main() {
  nvshmem_init();
  float* box = static_cast<float*>(nvshmem_calloc(16384, sizeof(float)));
  float* from = static_cast<float*>(nvshmem_calloc(16384, sizeof(float)));
  uint64_t* signal = static_cast<uint64_t*>(nvshmem_calloc(1, sizeof(uint64_t)));
  nvshmem_barrier_all();
  one_way<<<1, 128>>>(box, from, signal, nvshmem_my_pe());
  cudaDeviceSynchronize();
  nvshmem_barrier_all();
  nvshmem_free(signal);
  nvshmem_free(from);
  nvshmem_free(box);
  nvshmem_finalize();
  return 0;
}
)";

class ModelTime : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { shared_ = new Folder; }
  static void TearDownTestSuite() {
    delete shared_;
    shared_ = nullptr;
  }
  static std::string store() { return shared_->path("store"); }
  static json trace(const std::string& name) {
    const Result<std::string> text = read_file(shared_->path(name));
    return text ? json::parse(*text, nullptr, false) : json();
  }
  static Folder* shared_;
};
Folder* ModelTime::shared_ = nullptr;

TEST_F(ModelTime, AProgramsTimelineShowsWhoWaitsForWhom) {
  const std::string program = shared_->write("one_way.cu", kOneWay);
  const Ran ran = echolo({"sanitize", "-n", "2", program, "--json", "--store", store(), "--trace",
                          shared_->path("one_way.json")});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const json modelled = ran.json().at("modelled");
  EXPECT_EQ(modelled.at("provenance"), "modelled");
  const json& whole = modelled.at("sizes").at(0);
  EXPECT_EQ(whole.at("topology"), "h200-nvlink-x2");
  EXPECT_EQ(whole.at("link_bytes"), 65536);
  EXPECT_EQ(whole.at("longest_wait_at"), "one_way.cu:12");
  EXPECT_GE(whole.at("us_median").get<double>(), whole.at("roofline_us").get<double>());

  const json all = trace("one_way.json");
  ASSERT_TRUE(all.is_object());
  EXPECT_EQ(all.at("otherData").at("provenance"), "modelled");
  double bytes = 0;
  std::map<int, double> waited;
  std::map<int, json> starts;
  int ends = 0;
  std::set<std::string> phases;
  for (const json& event : all.at("traceEvents")) {
    const std::string kind = event.at("ph");
    ASSERT_TRUE(event.contains("pid"));
    if (kind == "M") continue;
    ASSERT_TRUE(event.at("ts").is_number() && event.at("tid").is_number()) << event;
    if (kind == "s") starts[event.at("id").get<int>()] = event;
    if (kind == "f") {
      ++ends;
      const json& start = starts.at(event.at("id").get<int>());
      EXPECT_EQ(start.at("pid"), 0);
      EXPECT_EQ(event.at("pid"), 1);
      EXPECT_LT(start.at("ts").get<double>(), event.at("ts").get<double>());
    }
    if (kind != "X") continue;
    ASSERT_GE(event.at("dur").get<double>(), 0) << event;
    EXPECT_EQ(event.at("args").at("provenance"), "modelled");
    const std::string category = event.at("cat");
    phases.insert(category);
    if (category == "link") bytes += event.at("args").at("bytes").get<double>();
    if (category != "wait") continue;
    EXPECT_EQ(event.at("name"), "wait at one_way.cu:12");
    waited[event.at("pid").get<int>()] += event.at("dur").get<double>();
  }
  EXPECT_NEAR(bytes, 65536, 1);
  EXPECT_EQ(waited.count(0), 0U);
  // 2,000 multiplications that depend on each other, at four cycles each at 1.98 GHz.
  EXPECT_GT(waited[1], 2000 * 4 / 1980.0);
  EXPECT_EQ(ends, 1);
  EXPECT_TRUE(phases.contains("put") && phases.contains("compute") && phases.contains("exposed"));
}

TEST_F(ModelTime, BytesOverLinksAreTheBytesPut) {
  const Ran ran = echolo({"sanitize", "-n", "4", "tests/programs/ring.cu", "--json", "--store", store(),
                          "--trace", shared_->path("ring.json")});
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  double bytes = 0;
  std::set<int> waits;
  const json all = trace("ring.json");
  for (const json& event : all.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    if (event.at("cat") == "link") bytes += event.at("args").at("bytes").get<double>();
    if (event.at("cat") == "wait") waits.insert(event.at("pid").get<int>());
  }
  EXPECT_NEAR(bytes, 4 * 3 * 256 * 4, 1);  // each of 4 PEs passes 256 floats on three times
  EXPECT_EQ(waits.size(), 4U);
}

TEST_F(ModelTime, VerdictsSayWhatBindsACall) {
  const std::vector<std::string> words = {
      "check", "all_reduce", "kernels/all_reduce_one_shot", "--size", "smoke", "--seeds", "1", "--store",
      store(), "--trace",    shared_->path("call.json")};
  std::vector<std::string> as_json = words;
  as_json.emplace_back("--json");
  const Ran ran = echolo(as_json);
  ASSERT_EQ(ran.code, 0) << ran.out << ran.err;
  const json smoke = ran.json().at("modelled").at("sizes").at(0);
  EXPECT_EQ(smoke.at("calls_us").size(), 3U);
  for (const char* key : {"roofline", "bottleneck", "words"})
    EXPECT_FALSE(smoke.at(key).get<std::string>().empty());
  EXPECT_GT(smoke.at("link_bytes").get<int>(), 0);
  EXPECT_GE(smoke.at("exposed_share").get<double>(), 0);
  EXPECT_LE(smoke.at("exposed_share").get<double>(), 1);
  EXPECT_TRUE(trace("call.json").is_object());
  const Ran text = echolo(words);
  EXPECT_NE(text.out.find("exposed communication"), std::string::npos) << text.out;
  const Ran slower = echolo({"check", "all_reduce", "kernels/all_reduce_one_shot", "--size", "smoke",
                             "--seeds", "1", "--store", store(), "--topology", "h100-pcie-x4", "--json"});
  ASSERT_EQ(slower.code, 0) << slower.err;
  EXPECT_GT(slower.json().at("modelled").at("sizes").at(0).at("us_median").get<double>(),
            smoke.at("us_median").get<double>());
}

TEST_F(ModelTime, WhatCannotBeAskedForSaysSo) {
  const Ran topology = echolo({"check", "all_reduce", "kernels/all_reduce_one_shot", "--topology",
                               "h200-nvlink-x3", "--store", store()});
  EXPECT_EQ(topology.code, 2);
  EXPECT_NE(topology.err.find("h200-nvlink-x2"), std::string::npos) << topology.err;
  const Ran small = echolo({"check", "all_reduce", "kernels/all_reduce_one_shot", "--world", "4",
                            "--topology", "h200-nvlink-x2", "--store", store()});
  EXPECT_EQ(small.code, 2);
  const Ran both = echolo({"check", "all_reduce", "kernels/all_reduce_one_shot", "--curve", "--size", "smoke",
                           "--store", store()});
  EXPECT_EQ(both.code, 2);
}

TEST_F(ModelTime, MoreMemoryThanAllowedIsRefusedBeforeItStarts) {
  const Ran ran = echolo({"check", "ag_gemm", "kernels/ag_gemm", "--world", "8", "--size", "m8192",
                          "--memory", "1", "--store", store()});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_NE(ran.err.find("m8192"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("1.0 GiB are allowed"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("the reference in PyTorch"), std::string::npos) << ran.err;
}

}  // namespace
}  // namespace echolo::cli_tests
