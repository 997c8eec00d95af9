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

// The line that a finding prints, given to a shell as it stands.
TEST(ReplayCommand, TheLineThatAFindingPrintsRepeatsIt) {
  const Folder folder;
  const std::string store = folder.path("a store");
  const Result<std::string> source = read_file(std::string(ECHOLO_SOURCE_DIR) + "/" + kStuck);
  ASSERT_TRUE(source.ok());
  const std::string program = folder.write("stuck.cu", *source);
  const Ran found = echolo({"sanitize", "-n", "2", program, "--policy", "random", "--store", store});
  ASSERT_EQ(found.code, 1) << found.err;
  const std::size_t at = found.out.find("   again: ");
  ASSERT_NE(at, std::string::npos) << found.out;
  EXPECT_NE(found.out.find("further runs; at most"), std::string::npos) << found.out;
  const std::string line = found.out.substr(at + 10, found.out.find('\n', at) - at - 10);
  Command command;
  command.argv = {"/bin/sh", "-c", line};
  command.directory = ECHOLO_SOURCE_DIR;
  command.timeout = std::chrono::seconds(120);
  const Result<Outcome> again = run_command(command);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->exit_code, 1) << line << again->standard_error;
  EXPECT_NE(again->standard_output.find("replay: as it was"), std::string::npos) << again->standard_output;
}

TEST(ReplayCommand, TheStoreHasTheSourceOfAVerdict) {
  const Folder folder;
  const std::string store = folder.path("store");
  const Result<std::string> source = read_file(std::string(ECHOLO_SOURCE_DIR) + "/" + kStuck);
  ASSERT_TRUE(source.ok());
  const std::string program = folder.write("stuck.cu", *source);
  const Ran found = echolo({"sanitize", "-n", "2", program, "--json", "--as-found", "--store", store});
  ASSERT_EQ(found.code, 1) << found.err;
  const nlohmann::json verdict = found.json();
  const std::string id = verdict.at("id"), finding = verdict.at("findings")[0].at("id");
  const Ran same = echolo({"replay", id, "--json", "--store", store});
  EXPECT_TRUE(same.json().value("same", false)) << same.out << same.err;
  EXPECT_EQ(same.json().at("note"), "");
  folder.write("stuck.cu", "int main() { return 0; }\n");
  const Ran changed = echolo({"replay", id, "--json", "--store", store});
  EXPECT_TRUE(changed.json().value("same", false)) << changed.out << changed.err;
  EXPECT_NE(changed.json().at("note").get<std::string>().find("has changed"), std::string::npos);
  fs::remove(program);
  const Ran gone = echolo({"replay", finding.substr(0, 8), "--json", "--store", store});
  EXPECT_TRUE(gone.json().value("same", false)) << gone.out << gone.err;
  EXPECT_NE(gone.json().at("note").get<std::string>().find("is gone"), std::string::npos);
}

TEST(ReplayCommand, ACandidatesFindingByTheVerdictsId) {
  const Folder folder;
  const std::string store = folder.path("store");
  const Ran found = echolo({"check", "all_to_all", "tests/corpus/deadlock/signal_never_sent.cu", "--world",
                            "2", "--json", "--store", store});
  ASSERT_EQ(found.code, 1) << found.err;
  const nlohmann::json verdict = found.json();
  ASSERT_FALSE(verdict.at("findings").empty()) << found.out.substr(0, 2000);
  const Ran again = echolo({"replay", verdict.at("id"), "--json", "--trace", "--store", store});
  EXPECT_TRUE(again.json().value("same", false)) << again.out.substr(0, 2000) << again.err;
  EXPECT_FALSE(again.json().at("trace").empty());
}

TEST(ReplayCommand, WrongUse) {
  const Folder folder;
  const std::string store = folder.path("store");
  EXPECT_EQ(echolo({"replay", "no-such-file", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"replay", "0123456789ab", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"replay", folder.write("a.json", "{"), "--store", store}).code, 2);
  EXPECT_EQ(echolo({"replay", folder.write("b.json", "{}"), "--store", store}).code, 2);
  const Ran policy = echolo({"sanitize", "-n", "2", kStuck, "--policy", "pct9", "--store", store});
  EXPECT_EQ(policy.code, 2);
  EXPECT_NE(policy.err.find("pct"), std::string::npos) << policy.err;
}

}  // namespace
}  // namespace echolo::cli_tests
