// The same question has the same answer: again, beside other work, and with other widths of SIMD.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <thread>

#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

// Processes that keep every core busy, at this one's priority, until this goes out of scope.
class Burners {
 public:
  Burners() {
    for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        // Not for longer than any check of these lasts, whatever becomes of the parent.
        ::alarm(600);
        for (volatile unsigned n = 0;;) n = n + 1;
      }
      if (child > 0) children_.push_back(child);
    }
  }
  Burners(const Burners&) = delete;
  Burners& operator=(const Burners&) = delete;
  ~Burners() {
    for (const pid_t child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }
  std::size_t count() const { return children_.size(); }

 private:
  std::vector<pid_t> children_;
};

// The widest target of this machine, and the narrowest that every x86-64 server has.
How held_to_avx2() {
  How how;
  how.env["ECHOLO_SIMD"] = "avx2";
  return how;
}

void expect_the_same_everywhere(std::vector<std::string> words, const std::string& status) {
  const Folder folder;
  words.insert(words.end(), {"--json", "--store", folder.path("store")});
  const Ran first = echolo(words);
  ASSERT_TRUE(first.json().is_object()) << first.out << first.err;
  EXPECT_EQ(first.json().at("status"), status);
  const nlohmann::json expected = without_times(first.json());

  const Ran again = echolo(words);
  EXPECT_EQ(without_times(again.json()), expected) << "a second time";
  {
    const Burners burners;
    ASSERT_GE(burners.count(), 1U);
    // With a store of its own, so that nothing comes from a cache either.
    words.back() = folder.path("fresh");
    const Ran loaded = echolo(words);
    EXPECT_EQ(without_times(loaded.json()), expected) << "on a loaded machine";
  }
  const Ran narrow = echolo(words, held_to_avx2());
  if (narrow.err.find("no SIMD target") != std::string::npos) GTEST_SKIP() << "this machine lacks AVX2";
  EXPECT_EQ(without_times(narrow.json()), expected) << "with AVX2 against the widest target";
}

TEST(Determinism, OfAFusedKernel) {
  expect_the_same_everywhere({"check", "ag_gemm", "kernels/ag_gemm", "--world", "4", "--seeds", "2"},
                             "correct");
}

TEST(Determinism, OfAKernelInFloat32) {
  expect_the_same_everywhere({"check", "gemm_rs", "kernels/gemm_rs", "--dtype", "f32", "--seeds", "1"},
                             "correct");
}

TEST(Determinism, OfAFinding) {
  expect_the_same_everywhere({"sanitize", "-n", "4", "tests/programs/ring_hang.cu", "--schedules", "2"},
                             "deadlock");
}

// A verdict that is wrong everywhere at once: which rank, call and element speaks must not depend on who was
// quicker.
TEST(Determinism, OfAWrongResult) {
  const Folder folder;
  const std::string idle = folder.write("idle.cu", idle_candidate());
  expect_the_same_everywhere({"check", "all_reduce", idle, "--world", "4"}, "wrong_result");
}

}  // namespace
}  // namespace echolo::cli_tests
