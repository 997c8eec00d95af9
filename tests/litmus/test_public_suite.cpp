// Dat3M's PTX litmus tests with their expected results, where they lie beside the source tree
// (../shared/corpora/ptx-litmus, or the folder that ECHOLO_PTX_LITMUS names).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "litmus/suite.hpp"

namespace echolo::litmus {
namespace {

namespace fs = std::filesystem;

// The suite's folder, looked for in the folders above the source tree too; empty where there is none.
std::string suite_folder() {
  if (const char* given = std::getenv("ECHOLO_PTX_LITMUS"); given != nullptr) return given;
  std::error_code error;
  for (fs::path at = fs::path(ECHOLO_SOURCE_DIR); at.has_relative_path(); at = at.parent_path()) {
    const fs::path candidate = at.parent_path() / "shared/corpora/ptx-litmus";
    if (fs::is_directory(candidate, error)) return candidate.string();
  }
  return {};
}

struct Tally {
  int agree = 0, of = 0;
  double slowest = 0;
};

Tally compare_with(const std::string& folder, const std::string& table, Model model, bool liveness) {
  Tally tally;
  const Result<Expected> expected = load_expected(folder + "/" + table);
  EXPECT_TRUE(expected.ok());
  SuiteOptions options;
  options.model = model;
  for (const auto& [name, wanted] : expected->by_file) {
    const Result<Judged> judged = judge_file(folder + "/" + name, options);
    EXPECT_TRUE(judged.ok()) << judged.error().render();
    if (!judged.ok()) continue;
    EXPECT_TRUE(judged->answer.complete) << name << ": " << judged->answer.why_incomplete;
    ++tally.of;
    const bool says = liveness ? judged->answer.terminates : judged->answer.holds;
    EXPECT_EQ(says, wanted) << name;
    if (says == wanted) ++tally.agree;
    tally.slowest = std::max(tally.slowest, judged->seconds);
  }
  return tally;
}

class PublicSuite : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = suite_folder();
    if (folder_.empty()) {
      GTEST_SKIP()
          << "no shared/corpora/ptx-litmus beside the source tree; ECHOLO_PTX_LITMUS=FOLDER names another";
    }
  }
  std::string folder_;
};

TEST_F(PublicSuite, MachineReachesWhatIsExpected) {
  const Tally tally = compare_with(folder_, "expected-ptx-v7.5.csv", Model::kMachine, false);
  EXPECT_GE(tally.agree * 100, tally.of * 98) << tally.agree << " of " << tally.of;
  EXPECT_LE(tally.slowest, 10.0);
}

TEST_F(PublicSuite, AxiomsAllowWhatIsExpected) {
  const Tally tally = compare_with(folder_, "expected-ptx-v7.5.csv", Model::kAxioms, false);
  EXPECT_GE(tally.agree * 100, tally.of * 98) << tally.agree << " of " << tally.of;
}

TEST_F(PublicSuite, Liveness) {
  const Tally tally = compare_with(folder_, "expected-liveness.csv", Model::kMachine, true);
  EXPECT_EQ(tally.agree, tally.of);
}

}  // namespace
}  // namespace echolo::litmus
