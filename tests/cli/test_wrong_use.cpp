// Wrong use and a machine that lacks something: a clear message, the right exit code, nothing half-written.
#include "cli_fixture.hpp"

namespace echolo::cli_tests {
namespace {

bool says(const Ran& ran, const std::string& text) { return ran.err.find(text) != std::string::npos; }

TEST(WrongUse, UnknownCommandsAndOptionsOfferNearOnes) {
  Ran ran = echolo({"chekc"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "check")) << ran.err;
  EXPECT_EQ(ran.out, "");
  ran = echolo({"check", "ag_gemm", "kernels/ag_gemm", "--wrold", "4"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "--world")) << ran.err;
  EXPECT_EQ(echolo({}).code, 2);
  EXPECT_EQ(echolo({"check"}).code, 2);
  EXPECT_EQ(echolo({"problems", "lsit"}).code, 2);
  EXPECT_EQ(echolo({"check", "ag_gemm", "kernels/ag_gemm", "--world", "four"}).code, 2);
  EXPECT_EQ(echolo({"--help"}).code, 0);
  EXPECT_EQ(echolo({"check", "--help"}).code, 0);
  EXPECT_EQ(echolo({"--version"}).code, 0);
}

TEST(WrongUse, CommandsOfLaterNameThemselves) {
  for (const char* name : {"measure", "experiment", "docs", "serve", "demo"}) {
    const Ran ran = echolo({name, "x", "--json"});
    EXPECT_EQ(ran.code, 2) << name;
    EXPECT_TRUE(says(ran, std::string(name) + " is not built yet")) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  EXPECT_EQ(echolo({"runs", "pause", "x"}).code, 2);
}

TEST(WrongUse, UnknownProblemOffersNearNames) {
  const Folder folder;
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"check", "ag_gem", "kernels/ag_gemm"},
        {"optimize", "ag_gem"},
        {"reference", "ag_gem"},
        {"problems", "show", "ag_gem"}}) {
    std::vector<std::string> all = words;
    all.insert(all.end(), {"--store", folder.path("store")});
    const Ran ran = echolo(all);
    EXPECT_EQ(ran.code, 2);
    EXPECT_TRUE(says(ran, "ag_gemm")) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
}

TEST(WrongUse, MissingFiles) {
  const Folder folder;
  Ran ran = echolo({"check", "ag_gemm", "kernels/ag_gem", "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "kernels/ag_gemm")) << ran.err;
  ran = echolo({"check", "ag_gemm", folder.path("none.cu"), "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  ran = echolo({"sanitize", "-n", "2", folder.path("none.cu"), "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "none.cu")) << ran.err;
}

TEST(WrongUse, BrokenTomlHasItsLine) {
  const Folder folder;
  folder.write("p/problem.toml", "name = \"p\"\nworlds = [2\n");
  folder.write("p/reference.py", "def solution(x):\n    return x\n");
  Ran ran = echolo({"check", folder.path("p"), "kernels/ag_gemm", "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "problem.toml:")) << ran.err;
  folder.write("k/kernel.toml",
               "name = \"k\"\nproblem = \"ag_gemm\"\nsummary = \"s\"\ndtypes = [\"bf17\"]\nworlds = [2]\n");
  folder.write("k/kernel.cu", idle_candidate());
  ran = echolo({"check", "ag_gemm", folder.path("k"), "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "kernel.toml:4")) << ran.err;
}

TEST(WrongUse, WorldThatIsNotAllowed) {
  const Folder folder;
  Ran ran = echolo({"check", "ag_gemm", "kernels/ag_gemm", "--world", "3", "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  EXPECT_TRUE(says(ran, "2, 4")) << ran.err;
  ran = echolo({"optimize", "ag_gemm", "--world", "3", "--store", folder.path("store")});
  EXPECT_EQ(ran.code, 2);
  // Refused before a run was made of it.
  ran = echolo({"runs", "list", "--json", "--store", folder.path("store")});
  EXPECT_EQ(ran.json().at("runs").size(), 0U);
}

TEST(WrongUse, OptionsThatDoNotExist) {
  const Folder folder;
  const std::string store = folder.path("store");
  const auto check = [&](std::vector<std::string> more) {
    std::vector<std::string> words = {"check", "ag_gemm", "kernels/ag_gemm", "--store", store};
    words.insert(words.end(), more.begin(), more.end());
    return echolo(words);
  };
  EXPECT_TRUE(says(check({"--size", "smal"}), "small"));
  EXPECT_TRUE(says(check({"--dtype", "bf61"}), "bf16"));
  EXPECT_TRUE(says(check({"--knob", "TILEM=64"}), "TILE_M"));
  EXPECT_TRUE(says(check({"--fabric", "ether"}), "nvlink"));
  EXPECT_TRUE(says(check({"--device", "local"}), "not built yet"));
  for (const char* seeds : {"0", "-1", "100000000", "999999999999999999999", "many"})
    EXPECT_EQ(check({"--seeds", seeds}).code, 2) << seeds;
  EXPECT_TRUE(says(check({"--seeds", "100000000"}), "between 1 and 1000"));
  EXPECT_TRUE(says(check({"--seed", "-1"}), "--seed must not be negative"));
  for (const char* timeout : {"-1", "0", "nan", "inf", "1e9", "0.0001"})
    EXPECT_EQ(check({"--timeout", timeout}).code, 2) << timeout;
  EXPECT_EQ(check({"--jobs", "-3"}).code, 2);
  EXPECT_EQ(echolo({"optimize", "ag_gemm", "--proposer", "serach", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"optimize", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"check", "all_reduce", "kernels/ag_gemm", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"runs", "show", "feedbeef", "--store", store}).code, 2);
  EXPECT_EQ(echolo({"runs", "resume", "feedbeef", "--store", store}).code, 2);
}

TEST(Machine, NoCompiler) {
  const Folder folder;
  How how;
  how.env["ECHOLO_NVCC"] = folder.path("no-nvcc");
  for (const char* form : {"--json", "--verbose"}) {
    const Ran ran = echolo(
        {"check", "all_reduce", "kernels/all_reduce_one_shot", form, "--store", folder.path("store")}, how);
    EXPECT_EQ(ran.code, 3);
    EXPECT_TRUE(says(ran, "nvcc")) << ran.err;
    EXPECT_TRUE(says(ran, "run.sh")) << ran.err;
    EXPECT_EQ(ran.out, "");
  }
  const Ran doctor = echolo({"doctor", "--json", "--store", folder.path("store")}, how);
  EXPECT_EQ(doctor.code, 3);
  EXPECT_FALSE(doctor.json().at("ok").get<bool>());
}

TEST(Machine, StoreThatCannotBeWritten) {
  const Folder folder;
  folder.write("file", "x");
  const Ran ran = echolo({"runs", "list", "--store", folder.path("file/store")});
  EXPECT_EQ(ran.code, 3);
  EXPECT_TRUE(says(ran, "--store")) << ran.err;
}

// A quota that is used up: files can grow to a few KiB only, the database needs more.
TEST(Machine, FullDisk) {
  const Folder folder;
  How how;
  how.file_size = 4096;
  Ran ran = echolo({"runs", "list", "--store", folder.path("store")}, how);
  EXPECT_EQ(ran.code, 3) << ran.err;
  EXPECT_TRUE(says(ran, "store")) << ran.err;
  EXPECT_TRUE(leftovers(folder.path("store")).empty());
  // With a store that is there already, the compiler's output is what does not fit.
  ASSERT_EQ(echolo({"runs", "list", "--store", folder.path("store")}).code, 0);
  how.file_size = 40'960;
  const std::string source = folder.write("k.cu", idle_candidate() + "// " + std::string(60'000, 'x') + "\n");
  ran = echolo({"check", "all_reduce", source, "--store", folder.path("store")}, how);
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(leftovers(folder.path("store")).empty());
  EXPECT_EQ(echolo({"runs", "list", "--store", folder.path("store")}).code, 0);
}

TEST(Machine, AFullDiskIsNoFaultOfTheCandidate) {
  const Folder folder;
  const std::string source = folder.write("k.cu", idle_candidate());
  fs::create_directory(folder.path("disk"));
  How how;
  how.within = {"bwrap", "--dev-bind", "/", "/", "--size", "400000", "--tmpfs", folder.path("disk")};
  const Ran ran = echolo({"check", "all_reduce", source, "--store", folder.path("disk/store")}, how);
  EXPECT_EQ(ran.code, 3) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "");
  EXPECT_TRUE(says(ran, "the disk is full")) << ran.err;
}

TEST(Machine, DoctorSaysWhatIsThere) {
  const Folder folder;
  const Ran ran = echolo({"doctor", "--json", "--store", folder.path("store")});
  ASSERT_EQ(ran.code, 0) << ran.out;
  std::vector<std::string> names;
  const nlohmann::json report = ran.json();
  for (const auto& one : report.at("examined")) {
    names.push_back(one.at("name"));
    if (one.at("needed").get<bool>()) {
      EXPECT_TRUE(one.at("ok").get<bool>()) << one.dump();
    }
    if (!one.at("ok").get<bool>()) {
      EXPECT_NE(one.at("mend"), "");
    }
  }
  EXPECT_EQ(names, (std::vector<std::string>{"compiler", "torch", "gloo", "sandbox", "virtual node", "disk",
                                             "gpu", "nvshmem"}));
}

}  // namespace
}  // namespace echolo::cli_tests
