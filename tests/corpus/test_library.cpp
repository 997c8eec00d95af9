// Judges the kernel library through the `echolo` binary, with its default knobs and with others that take
// other paths.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/subprocess.hpp"

namespace echolo::corpus {
namespace {

struct LibraryCase {
  const char* name;
  const char* problem;
  const char* directory;
  std::vector<std::string> options;
};

class Library : public testing::TestWithParam<LibraryCase> {};

TEST_P(Library, IsCorrect) {
  const LibraryCase& test = GetParam();
  Command command;
  command.argv = {std::string(ECHOLO_BINARY_DIR) + "/echolo",
                  "check",
                  test.problem,
                  std::string(ECHOLO_SOURCE_DIR) + "/kernels/" + test.directory,
                  "--json",
                  "--seeds",
                  "1"};
  command.argv.insert(command.argv.end(), test.options.begin(), test.options.end());
  command.timeout = std::chrono::seconds(300);
  command.capture_limit = 64U << 20U;
  const Result<Outcome> outcome = run_command(command);
  ASSERT_TRUE(outcome.ok()) << outcome.error().render();
  const nlohmann::json verdict = nlohmann::json::parse(outcome->standard_output, nullptr, false);
  ASSERT_FALSE(verdict.is_discarded()) << outcome->standard_output.substr(0, 2000) << outcome->standard_error;
  EXPECT_EQ(verdict.value("status", ""), "correct") << verdict.dump(1).substr(0, 6000);
  EXPECT_TRUE(verdict.at("findings").empty());
  EXPECT_FALSE(verdict.at("checks").empty());
  EXPECT_EQ(outcome->exit_code, 0);
}

std::string case_name(const testing::TestParamInfo<LibraryCase>& test) { return test.param.name; }

INSTANTIATE_TEST_SUITE_P(
    Cases, Library,
    testing::Values(
        LibraryCase{"OneShot", "all_reduce", "all_reduce_one_shot", {"--world", "4"}},
        LibraryCase{"OneShotPull",
                    "all_reduce",
                    "all_reduce_one_shot",
                    {"--world", "2", "--dtype", "f32", "--knob", "PULL=1", "--knob", "CHUNK=4096"}},
        LibraryCase{"OneShotPullWithoutPeerPointers",
                    "all_reduce",
                    "all_reduce_one_shot",
                    {"--world", "2", "--fabric", "rdma", "--knob", "PULL=1"}},
        LibraryCase{"TwoShot", "all_reduce", "all_reduce_two_shot", {"--world", "8"}},
        LibraryCase{"TwoShotF32", "all_reduce", "all_reduce_two_shot", {"--world", "2", "--dtype", "f32"}},
        LibraryCase{"AllReducePushWords", "all_reduce", "all_reduce_push", {"--world", "4"}},
        LibraryCase{"AllReducePushChunks",
                    "all_reduce",
                    "all_reduce_push",
                    {"--world", "2", "--dtype", "f32", "--knob", "WORDS_MAX=0", "--knob", "CHUNK=4096"}},
        LibraryCase{"UlyssesPushWords", "ulysses_combine", "ulysses_push", {"--world", "4"}},
        LibraryCase{"UlyssesPushChunks",
                    "ulysses_combine",
                    "ulysses_push",
                    {"--world", "2", "--dtype", "f32", "--knob", "WORDS_MAX=0", "--knob", "CHUNK=4096"}},
        LibraryCase{"AllToAll", "all_to_all", "all_to_all", {"--world", "4"}},
        LibraryCase{"AgGemm", "ag_gemm", "ag_gemm", {"--world", "4"}},
        LibraryCase{"AgGemmPull",
                    "ag_gemm",
                    "ag_gemm",
                    {"--world", "8", "--knob", "PULL=1", "--knob", "TILE_M=16", "--knob", "TILE_N=32",
                     "--knob", "STAGES=2"}},
        LibraryCase{"AgGemmF32",
                    "ag_gemm",
                    "ag_gemm",
                    {"--world", "2", "--dtype", "f32", "--knob", "TILE_M=32", "--knob", "CHUNK=2"}},
        LibraryCase{"AgGemmWgmma", "ag_gemm", "ag_gemm_wgmma", {"--world", "4"}},
        LibraryCase{"AgGemmWgmmaNarrow",
                    "ag_gemm",
                    "ag_gemm_wgmma",
                    {"--world", "2", "--knob", "TILE_N=32", "--knob", "GROUPS=1", "--knob", "STAGES=6"}},
        LibraryCase{"AgGemmPush", "ag_gemm", "ag_gemm_push", {"--world", "4"}},
        LibraryCase{"AgGemmPushWide",
                    "ag_gemm",
                    "ag_gemm_push",
                    {"--world", "2", "--knob", "TILE_M=64", "--knob", "TILE_N=64", "--knob", "WARP_M=32",
                     "--knob", "AHEAD=2", "--knob", "PER_SM=2"}},
        LibraryCase{"GemmRsPush", "gemm_rs", "gemm_rs_push", {"--world", "4"}},
        LibraryCase{"GemmRsPushNarrow",
                    "gemm_rs",
                    "gemm_rs_push",
                    {"--world", "2", "--knob", "TILE_M=16", "--knob", "TILE_N=16", "--knob", "AHEAD=1"}},
        LibraryCase{"GemmRsWgmma", "gemm_rs", "gemm_rs_wgmma", {"--world", "4"}},
        LibraryCase{"GemmRsWgmmaNarrow",
                    "gemm_rs",
                    "gemm_rs_wgmma",
                    {"--world", "2", "--knob", "TILE_N=32", "--knob", "GROUPS=1", "--knob", "STAGES=6"}},
        LibraryCase{"GemmRs", "gemm_rs", "gemm_rs", {"--world", "4"}},
        LibraryCase{"GemmRsPull",
                    "gemm_rs",
                    "gemm_rs",
                    {"--world", "2", "--dtype", "f32", "--knob", "PULL=1", "--knob", "TILE_M=32"}}),
    case_name);

}  // namespace
}  // namespace echolo::corpus
