#include "cli_fixture.hpp"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>

namespace echolo::cli_tests {
namespace {

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace

Folder::Folder() {
  std::string pattern = (fs::temp_directory_path() / "echolo-cli-XXXXXX").string();
  if (::mkdtemp(pattern.data()) != nullptr) path_ = pattern;
}

Folder::~Folder() {
  std::error_code code;
  if (!path_.empty()) fs::remove_all(path_, code);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  fs::create_directories(fs::path(path(name)).parent_path());
  std::ofstream(path(name), std::ios::binary) << text;
  return path(name);
}

Ran echolo(std::vector<std::string> words, const How& how) {
  const Folder streams;
  words.insert(words.begin(), std::string(ECHOLO_BINARY_DIR) + "/echolo");
  words.insert(words.begin(), how.within.begin(), how.within.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string out = streams.path("out");
  const std::string err = streams.path("err");
  const pid_t child = ::fork();
  if (child == 0) {
    ::setpgid(0, 0);
    for (const auto& [name, value] : how.env) ::setenv(name.c_str(), value.c_str(), 1);
    const int null = ::open("/dev/null", O_RDONLY);
    const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT, 0600);
    const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT, 0600);
    ::dup2(null, 0);
    ::dup2(out_fd, 1);
    ::dup2(err_fd, 2);
    if (::chdir(how.directory.c_str()) != 0) ::_exit(126);
    const rlimit limit{how.file_size, how.file_size};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  std::thread interrupter([&] {
    if (how.interrupt_after.count() == 0) return;
    std::this_thread::sleep_for(how.interrupt_after);
    ::kill(child, how.signal);
  });
  int status = 0;
  ::waitpid(child, &status, 0);
  interrupter.join();
  Ran ran;
  ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  ran.out = slurp(out);
  ran.err = slurp(err);
  return ran;
}

std::vector<std::string> leftovers(const std::string& store) {
  std::vector<std::string> out;
  std::error_code code;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(store), code)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("work.") || name.find(".tmp.") != std::string::npos)
      out.push_back(entry.path().string());
  }
  return out;
}

nlohmann::json without_times(nlohmann::json verdict) {
  for (auto& stage : verdict.at("stages")) {
    stage.erase("seconds");
    stage.erase("cached");
  }
  return verdict;
}

std::string idle_candidate(const std::string& statement_in_run) {
  return R"(#include <nvshmem.h>
#include <echolo/candidate.hpp>
struct State { int x; };
__global__ void idle() {}
extern "C" State* candidate_create(const echolo::Launch&) { return new State{0}; }
extern "C" void candidate_run(State*, const echolo::Launch&, echolo::TensorList in, echolo::TensorList out,
                              cudaStream_t stream) {
  idle<<<1, 32, 0, stream>>>();
  )" + statement_in_run +
         R"(
}
extern "C" void candidate_destroy(State* s) { delete s; }
)";
}

}  // namespace echolo::cli_tests
