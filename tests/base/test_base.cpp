#include <gtest/gtest.h>

#include <thread>

#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo {
namespace {

TEST(Hash, MatchesTheStandardsTestVectors) {  // FIPS 180-4 examples
  EXPECT_EQ(sha256_hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(sha256_hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Hash, FieldsDoNotRunTogether) {
  EXPECT_NE(Sha256().field("ab").field("c").hex(), Sha256().field("a").field("bc").hex());
}

TEST(Text, OffersTheNearestNames) {
  const std::vector<std::string> names = {"all_reduce", "all_to_all", "ag_gemm", "gemm_rs"};
  EXPECT_EQ(did_you_mean("ag_gem", names), "did you mean 'ag_gemm'?");
  EXPECT_EQ(did_you_mean("completely_else", names), "");
}

TEST(Text, SaysSizesAsPeopleDo) {
  EXPECT_EQ(human_bytes(65536), "64 KiB");
  EXPECT_EQ(human_bytes(4164), "4,164 bytes");
  EXPECT_EQ(human_bytes(1), "1 byte");
}

TEST(Text, MakesControlSequencesHarmless) { EXPECT_EQ(printable("a\x1b[31mb"), "a\\x1b[31mb"); }

TEST(Subprocess, ReportsOutputAndExitCode) {
  Command command;
  command.argv = {"sh", "-c", "cat; echo err >&2; exit 3"};
  command.standard_input = "hello";
  const auto outcome = run_command(command);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->exit_code, 3);
  EXPECT_EQ(outcome->standard_output, "hello");
  EXPECT_EQ(outcome->standard_error, "err\n");
}

TEST(Subprocess, KillsTheWholeGroupAtTheLimit) {
  Command command;
  command.argv = {"sh", "-c", "sleep 100 & sleep 100"};
  command.timeout = std::chrono::milliseconds(200);
  const auto outcome = run_command(command);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->timed_out);
}

TEST(Subprocess, EndsWhenItsCallerNoLongerWantsIt) {
  Command command;
  command.argv = {"sh", "-c", "sleep 100"};
  int n_ticks = 0;
  command.on_tick = [&n_ticks] { return ++n_ticks < 3; };
  const auto outcome = run_command(command);
  ASSERT_TRUE(outcome.ok());
  EXPECT_TRUE(outcome->cancelled);
  EXPECT_FALSE(outcome->ok());
  EXPECT_LT(outcome->seconds, 50);
}

// Two at once, from threads: a program that does not read its input must not end this process.
TEST(Subprocess, AProgramThatReadsNothingIsNoTrouble) {
  const auto run = [] {
    Command command;
    command.argv = {"true"};
    command.standard_input = std::string(4U << 20U, 'x');
    for (int i = 0; i < 20; ++i) {
      const auto outcome = run_command(command);
      ASSERT_TRUE(outcome.ok());
      EXPECT_TRUE(outcome->ok());
    }
  };
  std::thread other(run);
  run();
  other.join();
}

TEST(Subprocess, BoundsWhatItKeeps) {
  Command command;
  command.argv = {"sh", "-c", "yes | head -c 1000000"};
  command.capture_limit = 1000;
  const auto outcome = run_command(command);
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->standard_output.size(), 1000U);
  EXPECT_TRUE(outcome->truncated);
}

TEST(Subprocess, NamesAProgramThatIsNotThere) {
  Command command;
  command.argv = {"no-such-program-here"};
  const auto outcome = run_command(command);
  ASSERT_FALSE(outcome.ok());
  EXPECT_EQ(outcome.error().kind, ErrorKind::kMachine);
}

}  // namespace
}  // namespace echolo
