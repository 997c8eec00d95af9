// From a failing verdict back to the run that failed.
#include <set>

#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

const std::string kStuck = "tests/corpus/deadlock/round_off_by_one.cu";

TEST(ReplayCommand, RepeatsAProgramsDeadlockWithItsTrace) {
  const Folder folder;
  const std::string store = folder.path("store");
  const Ran found =
      echolo({"sanitize", "-n", "3", kStuck, "--policy", "pct2", "--seed", "4", "--json", "--store", store});
  ASSERT_EQ(found.code, 1) << found.err;
  const nlohmann::json verdict = found.json();
  ASSERT_EQ(verdict.at("status"), "deadlock");
  EXPECT_EQ(verdict.at("schedules").size(), 1U);
  EXPECT_EQ(verdict.at("schedules")[0].at("policy"), "pct2");
  // Two PEs under a fair schedule are enough for this one.
  EXPECT_FALSE(verdict.at("minimised").empty());
  EXPECT_LT(verdict.at("findings")[0].at("replay").at("world").get<int>(), 3);
  const std::string path = folder.write("verdict.json", found.out);

  const Ran again = echolo({"replay", path, "--trace", "--json", "--store", store});
  EXPECT_EQ(again.code, 1) << again.err;
  const nlohmann::json report = again.json();
  EXPECT_TRUE(report.at("same").get<bool>()) << report.at("difference");
  EXPECT_EQ(report.at("verdict").at("findings")[0].at("id"), verdict.at("findings")[0].at("id"));
  EXPECT_FALSE(report.at("trace").empty());
  EXPECT_EQ(echolo({"replay", path, "--trace", "--json", "--store", store}).json().at("trace"),
            report.at("trace"));
  const Ran text = echolo({"replay", path, "--trace", "--store", store});
  EXPECT_NE(text.out.find("replay: as it was"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("trace: "), std::string::npos);
}

TEST(ReplayCommand, ASourceThatHasChangedIsRefused) {
  const Folder folder;
  const std::string store = folder.path("store");
  const Result<std::string> source = read_file(std::string(ECHOLO_SOURCE_DIR) + "/" + kStuck);
  ASSERT_TRUE(source.ok());
  const std::string program = folder.write("stuck.cu", *source);
  const Ran found = echolo({"sanitize", "-n", "2", program, "--json", "--as-found", "--store", store});
  ASSERT_EQ(found.code, 1) << found.err;
  EXPECT_FALSE(found.json().contains("minimised"));
  const std::string path = folder.write("verdict.json", found.out);
  folder.write("stuck.cu", *source + "\n");
  const Ran again = echolo({"replay", path, "--store", store});
  EXPECT_EQ(again.code, 2);
  EXPECT_NE(again.err.find("has changed"), std::string::npos) << again.err;
}

TEST(ReplayCommand, WrongUse) {
  const Folder folder;
  const std::string store = folder.path("store");
  EXPECT_EQ(echolo({"replay", "no-such-file", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"replay", folder.write("a.json", "{"), "--store", store}).code, 2);
  EXPECT_EQ(echolo({"replay", folder.write("b.json", "{}"), "--store", store}).code, 2);
  const Ran policy = echolo({"sanitize", "-n", "2", kStuck, "--policy", "pct9", "--store", store});
  EXPECT_EQ(policy.code, 2);
  EXPECT_NE(policy.err.find("pct"), std::string::npos) << policy.err;
}

}  // namespace
}  // namespace echolo::cli_tests
