// Runs every case of tests/corpus through the `echolo` binary and holds its verdict against the case's
// comments.
#include <gtest/gtest.h>

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "base/subprocess.hpp"
#include "case_file.hpp"
#include "judged.hpp"

namespace echolo::corpus {
namespace {

namespace fs = std::filesystem;

const fs::path kCorpus = fs::path(ECHOLO_SOURCE_DIR) / "tests" / "corpus";

class Corpus : public testing::TestWithParam<fs::path> {};

TEST_P(Corpus, GetsItsVerdict) {
  const Result<CaseFile> test = read_case(GetParam());
  ASSERT_TRUE(test.ok()) << test.error().render();
  const Result<Outcome> outcome = run_command(command_for(*test, test->fabric, {}));
  ASSERT_TRUE(outcome.ok()) << outcome.error().render();
  EXPECT_EQ(faults_of(*test, *outcome), "");
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
  EXPECT_EQ(marked->kinds, (std::set<std::string>{"deadlock", "leak"}));
  ASSERT_EQ(marked->marks.size(), 1U);
  EXPECT_EQ(marked->marks[0].second, 3);
  fs::remove(path);
}

}  // namespace
}  // namespace echolo::corpus
