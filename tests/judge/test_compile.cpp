#include <gtest/gtest.h>

#include "base/text.hpp"
#include "judge/compile.hpp"
#include "judge/elf.hpp"

namespace echolo::judge {
namespace {

CompileRequest request_for(const std::string& path) {
  CompileRequest request;
  request.path = path;
  return request;
}

TEST(CompileLog, PlacesAreTheUsers) {
  const CompileRequest request = request_for("my/kernel.cu");
  EXPECT_EQ(explain_log("candidate.cu(4): error: identifier \"x\" is undefined\n", request, ""),
            "my/kernel.cu(4): error: identifier \"x\" is undefined\n");
  EXPECT_EQ(explain_log("/scratch/candidate.cu:12:3: warning: y\n", request, ""),
            "my/kernel.cu:12:3: warning: y\n");
  EXPECT_EQ(explain_log("not_candidate.cuda\n", request, ""), "not_candidate.cuda\n");
}

TEST(CompileLog, UndefinedReferencesSayWhatIsMissing) {
  const CompileRequest request = request_for("k.cu");
  const std::string log =
      "/usr/bin/ld: /scratch/keep/candidate.o: in function `candidate_run':\n"
      "/scratch/candidate.cu:7: undefined reference to `cudaMallocArray'\n"
      "/usr/bin/ld: /scratch/candidate.cu:9: undefined reference to `cudaMallocArray'\n"
      "/usr/bin/ld: /scratch/candidate.cu:10: undefined reference to `helper(int)'\n"
      "collect2: error: ld returned 1 exit status\n";
  const std::string said = explain_log(log, request, "");
  EXPECT_NE(said.find("k.cu:7: error: the virtual node has no cudaMallocArray"), std::string::npos) << said;
  EXPECT_NE(said.find("helper(int) is used but nowhere defined"), std::string::npos) << said;
  EXPECT_EQ(said.find("collect2"), std::string::npos);
  EXPECT_EQ(said.find("ld:"), said.rfind("ld:"));
}

TEST(CompileLog, AssemblerErrorsNameTheSourceLine) {
  const std::string ptx =
      ".version 9.2\n.visible .entry k()\n{\n\t.loc\t1 4 0\n\t.loc\t1 6 30\n\tld.bogus.u32 %r1, [%rd1];\n}\n"
      "\t.file\t1 \"/scratch/candidate.cu\"\n";
  const std::string said = explain_log(
      "ptxas /scratch/keep/candidate.ptx, line 6; error   : Unknown modifier '.bogus'\n"
      "ptxas fatal   : Ptx assembly aborted due to errors\n",
      request_for("k.cu"), ptx);
  EXPECT_NE(said.find("k.cu:6:30: error: Unknown modifier '.bogus'"), std::string::npos) << said;
  EXPECT_EQ(said.find("fatal"), std::string::npos) << said;
  // Where nothing else was said it is the message.
  EXPECT_EQ(explain_log("nvcc fatal   : Unknown option '-x'\nnvcc fatal   : Unknown option '-x'\n",
                        request_for("k.cu"), ""),
            "nvcc fatal   : Unknown option '-x'\n");
}

// A candidate decides how long the compiler's lines are, and what stands in them.
TEST(CompileLog, EndlessLinesAndNumbersAreOnlyText) {
  const CompileRequest request = request_for("k.cu");
  const std::string many(2'000'000, 'x');
  EXPECT_EQ(explain_log("ptxas " + many + "\n", request, "").size(), many.size() + 7);
  const std::string undefined = explain_log("ld: undefined reference to `" + many + "'\n", request, "");
  EXPECT_NE(undefined.find("x is used but nowhere defined"), std::string::npos);
  const std::string forged = "ptxas a.ptx, line 99999999999999999999999; error   : no\n";
  EXPECT_EQ(explain_log(forged, request, "\t.loc\t1 4 0\n"), forged);
  EXPECT_EQ(explain_log("ptxas a.ptx, line 1; error   : no\n", request,
                        "\t.loc\t99999999999999999999 4 0\n.file 1 \"" + many + "\"\n"),
            "error: no\n");
  EXPECT_TRUE(
      read_register_counts("Compiling entry function 'k'\nUsed 99999999999999999999 registers\n").empty());
}

TEST(CompileLog, TerminalEscapesAreShownNotSent) {
  EXPECT_EQ(explain_log("candidate.cu:1: \x1b[31mred\n", request_for("k.cu"), "").find('\x1b'),
            std::string::npos);
}

TEST(Registers, AreReadAsPtxasPrintsThem) {
  const auto counts = read_register_counts(
      "ptxas info    : 3 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1kPi' for 'sm_90a'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 24 registers, used 0 barriers\n"
      "ptxas info    : Compiling entry function '_Z1mPi' for 'sm_90a'\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 16 bytes smem\n");
  EXPECT_EQ(counts, (std::map<std::string, std::uint32_t>{{"_Z1kPi", 24}, {"_Z1mPi", 168}}));
}

TEST(UserPath, LeadsBackFromTheSandbox) {
  CompileRequest request = request_for("some/where/k.cu");
  EXPECT_EQ(user_path("/scratch/candidate.cu", request), "some/where/k.cu");
  EXPECT_EQ(user_path("candidate.cu", request), "some/where/k.cu");
  EXPECT_EQ(user_path("/echolo/include/echolo/candidate.hpp", request),
            "/echolo/include/echolo/candidate.hpp");
  request.kind = SourceKind::kProgram;
  request.folder = "some/where";
  EXPECT_EQ(user_path("/program/sub/x.cuh", request), "some/where/sub/x.cuh");
}

TEST(Imports, OnlyTheInterfaceAndPlainRuntimeFunctions) {
  EXPECT_EQ(forbidden_import(
                {"cudaMalloc", "nvshmem_malloc", "memcpy", "printf", "sqrtf", "_ZNSt6vectorIiE", "_Znwm"}),
            "");
  for (const char* name :
       {"getenv", "dlopen", "fopen", "open", "socket", "system", "fork", "execve", "syscall", "kill",
        "pthread_create", "_ZNSt6thread15_M_start_threadE", "_ZNSt10filesystem6statusE",
        "_ZNSt14basic_ifstreamIcE", "mmap", "mprotect", "signal", "sigaction", "environ"}) {
    EXPECT_EQ(forbidden_import({"cudaMalloc", name}), name);
  }
}

TEST(Elf, DamagedFilesAreRefused) {
  const std::string path = ::testing::TempDir() + "damaged.so";
  std::string bytes = *read_file("/proc/self/exe");
  ASSERT_TRUE(write_file_atomically(path, bytes).ok());
  EXPECT_TRUE(read_dynamic_symbols(path).ok());
  std::uint32_t state = 7;
  for (int round = 0; round < 200; ++round) {
    std::string broken = bytes.substr(0, 4096);
    for (int k = 0; k < 8; ++k) {
      state = state * 1664525U + 1013904223U;
      broken[(state >> 8U) % 64] = static_cast<char>(state >> 24U);
    }
    ASSERT_TRUE(write_file_atomically(path, broken).ok());
    (void)read_dynamic_symbols(path).ok();
  }
  ASSERT_TRUE(write_file_atomically(path, "not an ELF file").ok());
  EXPECT_FALSE(read_dynamic_symbols(path).ok());
}

}  // namespace
}  // namespace echolo::judge
