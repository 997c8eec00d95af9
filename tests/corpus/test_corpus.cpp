// Runs every case of tests/corpus through the `echolo` binary and holds its verdict against the case's
// comments.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>

#include "base/subprocess.hpp"
#include "case_file.hpp"

namespace echolo::corpus {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(ECHOLO_SOURCE_DIR) / "tests" / "corpus";

std::string words(const std::set<std::string>& set) {
  std::string text;
  for (const std::string& word : set) text += (text.empty() ? "" : ", ") + word;
  return text.empty() ? "none" : text;
}

Command command_for(const CaseFile& test) {
  Command command;
  const std::string echolo = std::string(ECHOLO_BINARY_DIR) + "/echolo";
  if (test.check) {
    command.argv = {echolo, "check", test.problem, test.path.string(), "--world", std::to_string(test.world)};
  } else {
    command.argv = {echolo, "sanitize", "-n", std::to_string(test.world), test.path.string()};
  }
  for (const std::string& word : {std::string("--json"), std::string("--fabric"), test.fabric,
                                  std::string("--timeout"), std::to_string(test.timeout.count())}) {
    command.argv.push_back(word);
  }
  if (!test.arguments.empty()) {
    command.argv.emplace_back("--");
    std::istringstream in(test.arguments);
    for (std::string word; in >> word;) command.argv.push_back(word);
  }
  command.timeout = test.timeout + std::chrono::seconds(120);  // the compiler's time, and a busy machine's
  command.capture_limit = 64U << 20U;
  return command;
}

bool names_line(const json& finding, const std::string& file, int line) {
  for (const json& site : finding.at("sites")) {
    const std::string where = site.value("file", "");
    if (fs::path(where).filename() == file && site.value("line", 0) == line) return true;
    for (const json& frame : site.value("inlined_at", json::array())) {
      if (fs::path(frame.value("file", "")).filename() == file && frame.value("line", 0) == line) return true;
    }
  }
  return false;
}

class Corpus : public testing::TestWithParam<fs::path> {};

TEST_P(Corpus, GetsItsVerdict) {
  const Result<CaseFile> test = read_case(GetParam());
  ASSERT_TRUE(test.ok()) << test.error().render();
  const Result<Outcome> outcome = run_command(command_for(*test));
  ASSERT_TRUE(outcome.ok()) << outcome.error().render();
  ASSERT_FALSE(outcome->timed_out);
  const json verdict = json::parse(outcome->standard_output, nullptr, false);
  ASSERT_FALSE(verdict.is_discarded()) << outcome->standard_output.substr(0, 2000) << outcome->standard_error;

  EXPECT_EQ(verdict.value("status", ""), test->status) << verdict.dump(1).substr(0, 6000);
  EXPECT_EQ(outcome->exit_code, test->status == "correct" ? 0 : 1);
  std::set<std::string> kinds;
  for (const json& finding : verdict.at("findings")) kinds.insert(finding.at("kind").get<std::string>());
  EXPECT_EQ(words(kinds), words(test->kinds)) << verdict.at("findings").dump(1).substr(0, 6000);

  const std::string file = GetParam().filename().string();
  for (const auto& [kind, line] : test->marks) {
    bool named = false;
    for (const json& finding : verdict.at("findings")) {
      named = named || (finding.at("kind") == kind && names_line(finding, file, line));
    }
    EXPECT_TRUE(named) << "no " << kind << " names line " << line << "\n"
                       << verdict.at("findings").dump(1).substr(0, 6000);
  }
  if (!test->output.empty()) {
    EXPECT_NE(verdict.dump().find(json(test->output).dump().substr(1, test->output.size())),
              std::string::npos)
        << verdict.dump(1).substr(0, 6000);
  }
}

std::string test_name(const testing::TestParamInfo<fs::path>& test) {
  std::string name = fs::relative(test.param, kCorpus).replace_extension().string();
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(Cases, Corpus, testing::ValuesIn(find_cases(kCorpus)), test_name);

// The reader is a check too: it must refuse what it does not understand.
TEST(CaseFileTest, RefusesUnknownWords) {
  const fs::path path = fs::temp_directory_path() / ("echolo_case_" + std::to_string(::getpid()) + ".cu");
  const auto read = [&](const std::string& text) {
    std::ofstream(path) << text;
    return read_case(path);
  };
  EXPECT_TRUE(read("// echolo-test: mode=sanitize n=3 args=\"1 2\"\n// expect: correct\n").ok());
  EXPECT_FALSE(read("// echolo-test: mode=sanitise n=3\n// expect: correct\n").ok());
  EXPECT_FALSE(read("// echolo-test: mode=sanitize worlds=3\n// expect: correct\n").ok());
  EXPECT_FALSE(read("// echolo-test: mode=sanitize n=x\n// expect: correct\n").ok());
  EXPECT_FALSE(read("// echolo-test: mode=sanitize n=2\n").ok());
  EXPECT_FALSE(read("// echolo-test: mode=check world=2\n// expect: correct\n").ok());
  const Result<CaseFile> marked = read(
      "// echolo-test: mode=sanitize n=4\n// expect: deadlock\nint x;  // <-- deadlock\n// expect-finding: "
      "leak\n");
  ASSERT_TRUE(marked.ok());
  EXPECT_EQ(marked->world, 4);
  EXPECT_EQ(words(marked->kinds), "deadlock, leak");
  ASSERT_EQ(marked->marks.size(), 1U);
  EXPECT_EQ(marked->marks[0].second, 3);
  fs::remove(path);
}

}  // namespace
}  // namespace echolo::corpus
