// The corpus again and again, and under other seeds, policies and fabrics. By default a small cut of both;
// all of it in hours:
//   ECHOLO_CORPUS_REPEATS=100   every case that often, none of its verdicts may differ from the first
//   ECHOLO_CORPUS_SEEDS=20      every case under seeds 1 to 20, each with every policy and both fabrics
//   ECHOLO_CORPUS_EVERY=K       each K-th case only
//   ECHOLO_CORPUS_ROTATE=1      each seed with one policy, the next seed with the next one
#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "judged.hpp"

namespace echolo::corpus {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

// In the order in which `--schedules` spreads over them.
const std::vector<std::string> kPolicies = {
    "fair", "random", "lazy-delivery", "pct2", "one-slow-pe", "reversed", "eager-delivery", "pct3", "pct1"};
constexpr int kDefaultEvery = 20;  // of the cut that runs by default

std::vector<CaseFile> chosen_cases(const char* variable) {
  const bool all = number_from(variable, 0) > 0;
  const int every = number_from("ECHOLO_CORPUS_EVERY", all ? 1 : kDefaultEvery);
  std::vector<CaseFile> out;
  int n = 0;
  for (const fs::path& path : find_cases(fs::path(ECHOLO_SOURCE_DIR) / "tests" / "corpus")) {
    const Result<CaseFile> test = read_case(path);
    EXPECT_TRUE(test.ok()) << test.error().render();
    if (test.ok() && n++ % every == 0) out.push_back(*test);
  }
  return out;
}

// A store of its own, gone afterwards.
class OwnStore {
 public:
  OwnStore() : path_(fs::temp_directory_path() / ("echolo_sweep_" + std::to_string(::getpid()))) {}
  OwnStore(const OwnStore&) = delete;
  OwnStore& operator=(const OwnStore&) = delete;
  ~OwnStore() {
    std::error_code code;
    fs::remove_all(path_, code);
  }
  std::string path() const { return path_.string(); }

 private:
  fs::path path_;
};

void in_parallel(std::size_t n, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1U, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back([&] {
      for (std::size_t k = next++; k < n; k = next++) work(k);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(CorpusAgain, NoVerdictDiffers) {
  const int repeats = number_from("ECHOLO_CORPUS_REPEATS", 3);
  const OwnStore store;
  for (const CaseFile& test : chosen_cases("ECHOLO_CORPUS_REPEATS")) {
    std::vector<std::string> verdicts(static_cast<std::size_t>(repeats));
    in_parallel(verdicts.size(), [&](std::size_t i) {
      const Result<Outcome> outcome =
          run_command(command_for(test, test.fabric, {"--as-found", "--store", store.path()}));
      if (outcome.ok())
        verdicts[i] = without_times(json::parse(outcome->standard_output, nullptr, false)).dump();
    });
    int different = 0;
    for (const std::string& verdict : verdicts) different += verdict == verdicts.front() ? 0 : 1;
    EXPECT_TRUE(json::parse(verdicts.front(), nullptr, false).is_object()) << short_name(test.path);
    EXPECT_EQ(different, 0) << short_name(test.path);
    std::printf("%-58s %d times: %s\n", short_name(test.path).c_str(), repeats,
                different == 0 ? "the same" : (std::to_string(different) + " DIFFER").c_str());
    std::fflush(stdout);
  }
}

struct Circumstances {
  std::string policy, fabric;
  int seed = 1;
};

std::vector<Circumstances> runs_of(const CaseFile& test, int seeds, bool rotate) {
  std::vector<Circumstances> out;
  for (const std::string fabric : {"nvlink", "rdma"}) {
    // A case that names its fabric is about that one.
    if (!test.any_fabric && fabric != test.fabric) continue;
    for (int seed = 1; seed <= seeds; ++seed) {
      for (std::size_t k = 0; k < kPolicies.size(); ++k) {
        if (!rotate || k == static_cast<std::size_t>(seed - 1) % kPolicies.size())
          out.push_back({kPolicies[k], fabric, seed});
      }
    }
  }
  return out;
}

TEST(CorpusSweep, EverySeedPolicyAndFabric) {
  const bool all = number_from("ECHOLO_CORPUS_SEEDS", 0) > 0;
  const int seeds = number_from("ECHOLO_CORPUS_SEEDS", 2);
  const bool rotate = number_from("ECHOLO_CORPUS_ROTATE", all ? 0 : 1) > 0;
  const OwnStore store;
  std::size_t n_runs = 0, n_missed = 0;
  for (const CaseFile& test : chosen_cases("ECHOLO_CORPUS_SEEDS")) {
    const std::vector<Circumstances> runs = runs_of(test, seeds, rotate);
    std::vector<std::string> faults(runs.size());
    in_parallel(runs.size(), [&](std::size_t i) {
      const Circumstances& run = runs[i];
      const std::vector<std::string> further = {
          "--as-found", "--store",  store.path(),  "--seed", std::to_string(run.seed), "--seeds", "1",
          "--policy",   run.policy, "--schedules", "1"};
      const Result<Outcome> outcome = run_command(command_for(test, run.fabric, further));
      faults[i] = outcome.ok() ? faults_of(test, *outcome) : outcome.error().render();
    });
    std::map<std::string, std::string> missed;  // fabric and policy -> seeds
    std::string first;
    for (std::size_t i = 0; i < runs.size(); ++i) {
      if (faults[i].empty()) continue;
      ++n_missed;
      missed[runs[i].fabric + " " + runs[i].policy] += " " + std::to_string(runs[i].seed);
      if (first.empty()) first = faults[i];
    }
    n_runs += runs.size();
    std::printf("%-58s %4zu runs: %s\n", short_name(test.path).c_str(), runs.size(),
                missed.empty() ? "all as expected" : "MISSED");
    std::string table;
    for (const auto& [where, which] : missed) table += "    " + where + ": seeds" + which + "\n";
    std::printf("%s", table.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(missed.empty()) << short_name(test.path) << "\n" << table << first.substr(0, 2000);
  }
  std::printf("%zu runs, %zu not as expected\n", n_runs, n_missed);
  EXPECT_GT(n_runs, 0U);
}

}  // namespace
}  // namespace echolo::corpus
