// The commands at work: verdicts, JSON, interruption at every stage, resuming.
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

// One store for the whole suite, so that compilations and references are made once.
class Commands : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { shared_ = new Folder; }
  static void TearDownTestSuite() {
    delete shared_;
    shared_ = nullptr;
  }
  static std::string store() { return shared_->path("store"); }
  static Ran check(std::vector<std::string> more, const How& how = {}) {
    std::vector<std::string> words = {"check", "all_reduce", "--store", store(), "--size", "smoke"};
    words.insert(words.end(), more.begin(), more.end());
    return echolo(words, how);
  }
  static Folder* shared_;
};
Folder* Commands::shared_ = nullptr;

TEST_F(Commands, CorrectKernelTwiceTheSame) {
  const Ran first = check({"kernels/all_reduce_one_shot", "--json"});
  ASSERT_EQ(first.code, 0) << first.out << first.err;
  const nlohmann::json verdict = first.json();
  ASSERT_TRUE(verdict.is_object());
  EXPECT_EQ(verdict.at("status"), "correct");
  EXPECT_EQ(verdict.at("problem"), "all_reduce");
  EXPECT_EQ(verdict.at("device"), "virtual");
  // 3 seeds x 2 schedules x (3 calls + 3 replays) x 2 ranks of one output.
  EXPECT_EQ(verdict.at("checks").size(), 72U);
  for (const auto& row : verdict.at("checks")) EXPECT_TRUE(row.at("ok").get<bool>());
  for (const char* key :
       {"candidate", "world", "findings", "gates", "suppressed", "stages", "times", "modelled", "speedup"}) {
    EXPECT_TRUE(verdict.contains(key)) << key;
  }
  EXPECT_EQ(verdict.at("modelled").at("provenance"), "modelled");
  const Ran second = check({"kernels/all_reduce_one_shot", "--json", "--jobs", "1"});
  EXPECT_EQ(without_times(first.json()), without_times(second.json()));
  EXPECT_TRUE(leftovers(store()).empty());
  // Kept under an id that the same question has again.
  const std::string id = verdict.at("id");
  EXPECT_EQ(id.size(), 12U);
  EXPECT_NE(check({"kernels/all_reduce_one_shot"}).out.find("  kept as " + id + "\n"), std::string::npos);
  const Ran other = check({"kernels/all_reduce_one_shot", "--seeds", "2", "--json"});
  EXPECT_NE(other.json().at("id"), id);
}

TEST_F(Commands, TextForPeople) {
  const Ran ran = check({"kernels/all_reduce_one_shot", "--seeds", "1"});
  EXPECT_EQ(ran.code, 0);
  EXPECT_EQ(ran.out.find('\x1b'), std::string::npos);  // no colour, because this is no terminal
  EXPECT_TRUE(ran.out.starts_with("correct: all_reduce_one_shot")) << ran.out;
  EXPECT_NE(ran.out.find("modelled"), std::string::npos);
}

TEST_F(Commands, WhatDoesNotCompileHasItsLine) {
  const std::string source = shared_->write("broken.cu", idle_candidate("int y = undefined_name;"));
  Ran ran = check({source, "--json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json().at("status"), "compile_error");
  EXPECT_NE(ran.json().at("stages").back().at("log").get<std::string>().find(source + "(9): error"),
            std::string::npos)
      << ran.out;
  ran = check({source});
  EXPECT_NE(ran.out.find(source + "(9): error"), std::string::npos) << ran.out;
}

TEST_F(Commands, FunctionsThatAreNotThereAreNamed) {
  const std::string source =
      shared_->write("missing.cu", idle_candidate("cudaStreamAttachMemAsync(stream, (void*)0);"));
  const Ran ran = check({source});
  EXPECT_EQ(ran.code, 1);
  EXPECT_NE(ran.out.find("the virtual node has no cudaStreamAttachMemAsync"), std::string::npos) << ran.out;
}

TEST_F(Commands, RefusedBeforeItIsCompiled) {
  const std::string source = shared_->write("refused.cu", idle_candidate("asm(\"nop\");"));
  const Ran ran = check({source, "--json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json().at("status"), "refused");
  EXPECT_EQ(ran.json().at("stages").size(), 1U);
}

TEST_F(Commands, RefusedForWhatItCalls) {
  const std::string source =
      shared_->write("calls.cu", "#include <cstdlib>\n" + idle_candidate("getenv(\"HOME\");"));
  const Ran ran = check({source, "--json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json().at("status"), "refused");
  EXPECT_NE(ran.json().at("message").get<std::string>().find("getenv"), std::string::npos);
}

// The sandbox: a compilation cannot read the machine's files.
TEST_F(Commands, TheCompilerSeesNoFilesOfTheMachine) {
  const std::string secret = shared_->write("secret.h", "int secret_value;\n");
  const std::string program =
      shared_->write("programs/reads.cu", "#include \"../secret.h\"\nint main() { return secret_value; }\n");
  EXPECT_EQ(echolo({"sanitize", program, "--store", store()}).code, 1);
  const std::string sly =
      shared_->write("programs/sly.cu", "#define Q(x) #x\n#define P(x) Q(x)\n#include P(" + secret +
                                            ")\nint main() { return 0; }\n");
  const Ran ran = echolo({"sanitize", sly, "--store", store(), "--json"});
  EXPECT_EQ(ran.code, 1);
}

TEST_F(Commands, OutputsThatAreNeverWrittenAreWrong) {
  const std::string source = shared_->write("idle.cu", idle_candidate());
  const Ran ran = check({source, "--json"});
  EXPECT_EQ(ran.code, 1);
  EXPECT_EQ(ran.json().at("status"), "wrong_result");
  // The first bad job ends the check: 6 calls x 2 ranks.
  EXPECT_EQ(ran.json().at("checks").size(), 12U);
  EXPECT_NE(ran.json().at("message").get<std::string>().find("never"), std::string::npos)
      << ran.json().at("message");
}

TEST_F(Commands, ReferenceThatRaisesShowsItsTraceback) {
  shared_->write("raises/problem.toml",
                 *read_file(std::string(ECHOLO_SOURCE_DIR) + "/problems/all_reduce/problem.toml"));
  shared_->write("raises/reference.py", "def solution(x):\n    raise ValueError('not today')\n");
  const std::string source = shared_->write("idle.cu", idle_candidate());
  const Ran ran =
      echolo({"check", shared_->path("raises"), source, "--store", store(), "--size", "smoke", "--json"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_NE(ran.err.find("not today"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("reference.py"), std::string::npos) << ran.err;
  EXPECT_EQ(ran.out, "");
}

TEST_F(Commands, ProblemsAreListedAndShown) {
  const Ran list = echolo({"problems", "--json"});
  ASSERT_EQ(list.code, 0);
  EXPECT_GE(list.json().at("problems").size(), 4U);
  EXPECT_EQ(echolo({"problems", "show", "ag_gemm", "--json"}).json().at("name"), "ag_gemm");
  EXPECT_NE(echolo({"problems", "list"}).out.find("ag_gemm"), std::string::npos);
}

TEST_F(Commands, InterruptedInEachStage) {
  const std::string fresh = shared_->path("interrupted");
  const std::vector<std::string> words = {"check", "ag_gemm", "kernels/ag_gemm", "--store", fresh, "--json"};
  const auto interrupted_after = [&](int milliseconds) {
    How how;
    how.interrupt_after = std::chrono::milliseconds(milliseconds);
    const Ran ran = echolo(words, how);
    EXPECT_EQ(ran.code, 130) << ran.out << ran.err;
    EXPECT_EQ(ran.out, "");
    EXPECT_NE(ran.err.find("interrupted"), std::string::npos) << ran.err;
    EXPECT_TRUE(leftovers(fresh).empty());
  };
  const auto n_compiled = [&] {
    std::error_code code;
    return std::distance(fs::directory_iterator(fresh + "/cache/compile", code), fs::directory_iterator());
  };
  interrupted_after(400);  // nvcc runs
  EXPECT_EQ(n_compiled(), 0);
  // A kernel that compiles and then waits for its reference: with the compilation cached, PyTorch's import
  // takes seconds.
  How no_python;
  no_python.env["ECHOLO_PYTHON"] = "/bin/false";
  EXPECT_NE(echolo(words, no_python).code, 0);
  EXPECT_EQ(n_compiled(), 1);
  interrupted_after(900);  // the reference runs
  const Ran reference = echolo({"check", "ag_gemm", "kernels/ag_gemm", "--store", fresh, "--json", "--seeds",
                                "1", "--size", "small", "--schedules", "1"});
  ASSERT_EQ(reference.code, 0) << reference.out << reference.err;
  // Many schedules on what is cached: the jobs themselves run.
  How how;
  how.interrupt_after = std::chrono::milliseconds(2500);
  const Ran jobs = echolo({"check", "ag_gemm", "kernels/ag_gemm", "--store", fresh, "--json", "--seeds", "1",
                           "--size", "small", "--schedules", "400"},
                          how);
  EXPECT_EQ(jobs.code, 130) << jobs.err;
  EXPECT_EQ(jobs.out, "");
  EXPECT_TRUE(leftovers(fresh).empty());
}

TEST_F(Commands, OptimizeKilledAndResumed) {
  const std::string fresh = shared_->path("killed");
  const std::vector<std::string> words = {"optimize", "all_reduce", "--store", fresh,         "--size",
                                          "smoke",    "--seeds",    "2",       "--schedules", "2",
                                          "--budget", "3",          "--json"};
  // Killed as soon as a candidate is judged.
  const pid_t child = ::fork();
  if (child == 0) {
    const int null = ::open("/dev/null", O_RDWR);
    for (int fd : {0, 1, 2}) ::dup2(null, fd);
    ::setpgid(0, 0);
    std::vector<std::string> all = words;
    all.insert(all.begin(), std::string(ECHOLO_BINARY_DIR) + "/echolo");
    std::vector<char*> argv;
    for (std::string& word : all) argv.push_back(word.data());
    argv.push_back(nullptr);
    ::execv(argv[0], argv.data());
    ::_exit(127);
  }
  int judged = 0;
  for (int i = 0; i < 1200 && judged == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    const nlohmann::json list = echolo({"runs", "list", "--json", "--store", fresh}).json();
    if (list.is_object() && !list.at("runs").empty()) {
      judged = list.at("runs")[0].at("judged");
      EXPECT_EQ(list.at("runs")[0].at("status"), "running");
    }
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  ASSERT_GT(judged, 0);
  nlohmann::json run = echolo({"runs", "list", "--json", "--store", fresh}).json().at("runs")[0];
  EXPECT_EQ(run.at("status"), "interrupted");
  const int before = run.at("judged");
  const Ran resumed = echolo({"runs", "resume", run.at("id"), "--json", "--store", fresh});
  ASSERT_EQ(resumed.code, 0) << resumed.out << resumed.err;
  const nlohmann::json report = resumed.json();
  EXPECT_EQ(report.at("run"), run.at("id"));
  EXPECT_EQ(report.at("attempts").size(), 3U);
  int n_reused = 0;
  for (const auto& attempt : report.at("attempts")) n_reused += attempt.at("reused").get<bool>() ? 1 : 0;
  EXPECT_GE(n_reused, before);
  EXPECT_EQ(report.at("winner").at("verdict").at("status"), "correct");
  run = echolo({"runs", "show", run.at("id"), "--json", "--store", fresh}).json();
  EXPECT_EQ(run.at("status"), "done");
  int n_judged_events = 0;
  for (const auto& event : run.at("events")) n_judged_events += event.at("kind") == "judged" ? 1 : 0;
  EXPECT_EQ(n_judged_events, 3);
  // Finished: nothing to resume.
  EXPECT_EQ(echolo({"runs", "resume", run.at("id"), "--store", fresh}).code, 2);
}

TEST_F(Commands, RunsStopEndsALiveRun) {
  const std::string fresh = shared_->path("stopped");
  std::thread stopper([&] {
    for (int i = 0; i < 1200; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      const nlohmann::json list = echolo({"runs", "list", "--json", "--store", fresh}).json();
      if (!list.is_object() || list.at("runs").empty()) continue;
      EXPECT_EQ(echolo({"runs", "stop", list.at("runs")[0].at("id"), "--store", fresh}).code, 0);
      return;
    }
  });
  const Ran ran = echolo({"optimize", "ag_gemm", "--store", fresh, "--json"});
  stopper.join();
  EXPECT_EQ(ran.code, 130) << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(echolo({"runs", "list", "--json", "--store", fresh}).json().at("runs")[0].at("status"),
            "stopped");
}

TEST_F(Commands, WholePrograms) {
  const Ran right = echolo({"sanitize", "-n", "4", "tests/programs/ring.cu", "--json", "--store", store()});
  EXPECT_EQ(right.code, 0) << right.out << right.err;
  EXPECT_EQ(right.json().at("status"), "correct");
  const Ran hangs =
      echolo({"sanitize", "-n", "4", "tests/programs/ring_hang.cu", "--json", "--store", store()});
  EXPECT_EQ(hangs.code, 1);
  EXPECT_EQ(hangs.json().at("status"), "deadlock");
  const std::string failing = shared_->write("fails.cu",
                                             "#include <cstdio>\nint main(int argc, char** argv) { "
                                             "std::printf(\"got %s\\n\", argv[1]); return argc + 5; }\n");
  const Ran crashed = echolo({"sanitize", "-n", "1", failing, "--json", "--store", store(), "--", "word"});
  EXPECT_EQ(crashed.code, 1);
  EXPECT_EQ(crashed.json().at("status"), "crashed");
  EXPECT_NE(crashed.out.find("got word"), std::string::npos) << crashed.out;
  EXPECT_NE(crashed.out.find("7"), std::string::npos);
}

}  // namespace
}  // namespace echolo::cli_tests
