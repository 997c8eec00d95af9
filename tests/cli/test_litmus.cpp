// echolo litmus as a person or a script uses it.
#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

TEST(Litmus, JudgesAFile) {
  Ran ran = echolo({"litmus", "litmus/gpus/MP-sys.litmus", "--json"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  const nlohmann::json all = ran.json();
  ASSERT_TRUE(all.contains("tests"));
  const nlohmann::json& test = all["tests"][0];
  EXPECT_EQ(test["holds"], true);
  EXPECT_EQ(test["terminates"], true);
  EXPECT_EQ(test["outcomes"].size(), 3U);
  ran = echolo({"litmus", "litmus/gpus/MP-gpu-scope.litmus", "--model", "axioms"});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("condition (exists): holds"), std::string::npos) << ran.out;
}

TEST(Litmus, ExitCodes) {
  const Folder folder;
  const auto write = [&](const std::string& name, const std::string& text) {
    EXPECT_TRUE(write_file_atomically(folder.path(name), text).ok());
    return folder.path(name);
  };
  const std::string no =
      write("no.litmus", "PTX no\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\nexists (x == 2)\n");
  const std::string bad = write("bad.litmus", "PTX bad\n{ x=0; }\n P0@cta 0,gpu 0 ;\n st.wek x, 1 ;\n");
  EXPECT_EQ(echolo({"litmus", no}).code, 1);
  Ran ran = echolo({"litmus", bad});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("bad.litmus:4:2"), std::string::npos) << ran.err;
  EXPECT_EQ(echolo({"litmus", folder.path("none.litmus")}).code, 2);
  EXPECT_EQ(echolo({"litmus"}).code, 2);
  const std::string table = write("expected.csv", "no.litmus,0\n");
  ran = echolo({"litmus", no, "--expected", table});
  EXPECT_EQ(ran.code, 0) << ran.err;
  EXPECT_NE(ran.out.find("1 of 1 as expected"), std::string::npos) << ran.out;
  ran = echolo({"litmus", "litmus/liveness/spin-weak.litmus", "--liveness"});
  EXPECT_EQ(ran.code, 1);
}

}  // namespace
}  // namespace echolo::cli_tests
