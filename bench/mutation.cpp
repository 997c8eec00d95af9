// How many weakened synchronisations the judge notices. Every library kernel and every right corpus case is
// mutated, one synchronisation at a time (mutation/mutate.hpp), and each mutant is judged at default
// settings, with no search for a smaller run that shows the finding.
//
// - killed: a finding names the mutated line, or is of a kind that names the accesses which nothing orders
// now
// - wrong only: outputs were wrong or a job ran out of time, with no such finding
// - equivalent: argued in mutation/equivalent.txt, the mutant is as right as the original
// - survived: none of these
//
// Results are kept in build/bench/mutation.jsonl by content of mutant and binaries: an interrupted run goes
// on. With --keep, what another build has judged counts too, so that a mended checker is tried on what it
// missed (--retry) and not on all again; the table says how many such results it holds.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "case_file.hpp"
#include "mutation/mutate.hpp"

namespace echolo::mutation {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

const fs::path kSource = ECHOLO_SOURCE_DIR;
const fs::path kBinary = ECHOLO_BINARY_DIR;

// A source to mutate, and how it is judged: each entry of `runs` until one of them notices the mutant.
struct Subject {
  std::string name;
  fs::path source;
  fs::path directory;  // of a library kernel; empty for a corpus case
  std::vector<std::vector<std::string>> runs;
};

// Knobs and fabrics that between them execute every branch of the library's kernels.
std::vector<Subject> library() {
  struct Entry {
    const char* name;
    const char* problem;
    std::vector<std::vector<std::string>> runs;
  };
  // More tiles than multiprocessors, so that blocks use their shared memory for one after another.
  const std::vector<std::string> several_tiles = {"--knob", "TILE_N=32", "--knob", "GROUPS=1", "--set",
                                                  "M=512",  "--set",     "N=576",  "--set",    "K=64"};
  const std::vector<Entry> entries = {
      {"all_reduce_one_shot",
       "all_reduce",
       {{}, {"--knob", "PULL=1"}, {"--fabric", "rdma"}, {"--fabric", "rdma", "--knob", "PULL=1"}}},
      {"all_reduce_two_shot", "all_reduce", {{}, {"--fabric", "rdma"}}},
      {"all_to_all", "all_to_all", {{}, {"--fabric", "rdma"}}},
      {"all_reduce_push", "all_reduce", {{}, {"--knob", "WORDS_MAX=0", "--knob", "CHUNK=4096"}}},
      {"ulysses_push", "ulysses_combine", {{}, {"--knob", "WORDS_MAX=0", "--knob", "CHUNK=4096"}}},
      {"ag_gemm", "ag_gemm", {{}, {"--knob", "PULL=1"}, {"--dtype", "f32"}}},
      {"gemm_rs", "gemm_rs", {{}, {"--knob", "PULL=1"}, {"--dtype", "f32"}}},
      {"ag_gemm_wgmma", "ag_gemm", {{}, several_tiles}},
      {"gemm_rs_wgmma", "gemm_rs", {{}, several_tiles}}};
  std::vector<Subject> result;
  for (const Entry& entry : entries) {
    Subject subject;
    subject.name = entry.name;
    subject.directory = kSource / "kernels" / entry.name;
    subject.source = subject.directory / "kernel.cu";
    for (const std::vector<std::string>& options : entry.runs) {
      std::vector<std::string> run = {"check", entry.problem, "@", "--world", "2"};
      run.insert(run.end(), options.begin(), options.end());
      subject.runs.push_back(std::move(run));
    }
    result.push_back(std::move(subject));
  }
  return result;
}

Result<std::vector<Subject>> corpus() {
  std::vector<Subject> result;
  for (const fs::path& path : corpus::find_cases(kSource / "tests" / "corpus")) {
    const Result<corpus::CaseFile> test = corpus::read_case(path);
    if (!test.ok()) return test.error();
    if (test->status != "correct" || !test->kinds.empty()) continue;
    Subject subject;
    subject.name = fs::relative(path, kSource / "tests").string();
    subject.source = path;
    std::vector<std::string> run;
    if (test->check) {
      run = {"check", test->problem, "@", "--world", std::to_string(test->world)};
    } else {
      run = {"sanitize", "-n", std::to_string(test->world), "@"};
    }
    run.insert(run.end(), {"--fabric", test->fabric});
    if (!test->arguments.empty()) {
      run.emplace_back("--");
      std::istringstream in(test->arguments);
      for (std::string word; in >> word;) run.push_back(word);
    }
    subject.runs.push_back(std::move(run));
    result.push_back(std::move(subject));
  }
  return result;
}

// Findings that name accesses, or waits, which the removed synchronisation would have ordered.
bool is_about_order(const std::string& kind) {
  static const std::set<std::string> kinds = {
      "data-race",          "scope-too-narrow", "missing-order",      "source-reuse", "wrong-wait",
      "stale-state",        "early-exit",       "deadlock",           "livelock",     "uninitialised-read",
      "barrier-divergence", "residency",        "collective-mismatch"};
  return kinds.contains(kind);
}

struct Fate {
  std::string outcome;  // "killed", "wrong", "survived", "invalid", "equivalent"
  std::string by;       // finding kind and lines, or status
  bool kept = false;    // judged by another build
};

struct Options {
  std::string only, binaries;
  bool list = false, fresh = false, kernels_only = false, corpus_only = false, keep = false, retry = false;
  bool known_only = false;
  int jobs = 1;
};

Fate fate_of(const json& verdict, int line) {
  const std::string status = verdict.value("status", "infra");
  if (status == "correct" && verdict.at("findings").empty()) return {"survived", ""};
  if (status == "compile_error" || status == "refused" || status == "infra") return {"invalid", status};
  for (const json& finding : verdict.at("findings")) {
    const std::string kind = finding.at("kind");
    std::string lines;
    bool names = false;
    for (const json& site : finding.at("sites")) {
      lines += (lines.empty() ? " " : ",") + std::to_string(site.value("line", 0));
      names = names || site.value("line", 0) == line;
    }
    if (names || is_about_order(kind)) return {"killed", kind + lines};
  }
  return {"wrong", status};
}

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options),
        results_(kBinary / "bench" / "mutation.jsonl"),
        folder_(options.binaries.empty() ? kBinary : fs::absolute(options.binaries)) {
    std::string all;
    for (const char* name : {"echolo", "echolo-node", "echolo-pe"})
      if (const Result<std::string> bytes = read_file((folder_ / name).string())) all += sha256_hex(*bytes);
    binaries_ = sha256_hex(all);
    read_arguments_for_equivalence();
    if (options_.fresh) fs::remove(results_);
    std::ifstream in(results_);
    for (std::string text; std::getline(in, text);) {
      const json row = json::parse(text, nullptr, false);
      // What did not compile may have been short of time.
      if (row.is_discarded() || row.at("outcome") == "invalid") continue;
      const bool kept = row.at("binaries") != binaries_;
      const bool killed = row.at("outcome") == "killed";
      if (kept && (!options_.keep || (options_.retry && !killed))) continue;
      const auto known = known_.find(row.at("key"));
      if (known != known_.end() && !known->second.kept && kept) continue;
      known_[row.at("key")] = {row.at("outcome"), row.at("by"), kept};
    }
    scratch_ = fs::temp_directory_path() / ("echolo_mutation_" + std::to_string(::getpid()));
    fs::create_directories(scratch_);
  }
  ~Bench() {
    std::error_code ignored;
    fs::remove_all(scratch_, ignored);
  }

  // The unmutated source must be correct; then its mutants. Returns false when interrupted.
  bool run(const Subject& subject) {
    const Result<std::string> text = read_file(subject.source.string());
    if (!text) {
      std::printf("%s\n", text.error().render().c_str());
      dirty_ = true;
      return true;
    }
    const std::vector<Mutant> mutants = mutants_of(*text);
    if (options_.list) {
      for (const Mutant& mutant : mutants) print(subject, mutant, {"", ""});
      return true;
    }
    if (mutants.empty()) return true;
    Mutant original;
    original.text = *text;
    original.operation = "none";
    // The original is the first task.
    Fate clean;
    std::size_t next = 0;
    std::vector<Fate> fates(mutants.size());
    std::mutex lock;
    std::vector<std::thread> workers;
    for (int worker = 0; worker < options_.jobs; ++worker) {
      workers.emplace_back([&, worker] {
        for (;;) {
          std::size_t i = 0;
          {
            const std::scoped_lock hold(lock);
            if (next == mutants.size() + 1 || interrupt_flag()) return;
            i = next++;
          }
          if (i == 0) {
            clean = judge(subject, original, worker);
            continue;
          }
          --i;
          Fate fate = judge(subject, mutants[i], worker);
          const bool judged = fate.outcome != "unknown" && fate.outcome != "invalid";
          if (judged && fate.outcome != "killed" && equivalent(subject, mutants[i]))
            fate.outcome = "equivalent";
          const std::scoped_lock hold(lock);
          print(subject, mutants[i], fate);
          fates[i] = std::move(fate);
        }
      });
    }
    for (std::thread& worker : workers) worker.join();
    if (interrupt_flag()) return false;
    if (clean.outcome == "unknown") ++unknown_originals_;
    if (clean.outcome != "survived" && clean.outcome != "unknown") {
      std::printf("%s: the unmutated source is not clean: %s %s\n", subject.name.c_str(),
                  clean.outcome.c_str(), clean.by.c_str());
      dirty_ = true;
    }
    for (const Fate& fate : fates) {
      ++table_[subject.name][fate.outcome];
      if (fate.kept) ++kept_;
    }
    return true;
  }

  int finish() const {
    std::map<std::string, int> sum;
    const auto row = [](const std::string& name, const std::map<std::string, int>& counts) {
      const auto count = [&](const char* key) { return counts.contains(key) ? counts.at(key) : 0; };
      const int valid = count("killed") + count("wrong") + count("survived");
      std::printf("%-52s %7d %7d %7d %9d %9d %8d", name.c_str(), valid + count("equivalent"), count("killed"),
                  count("wrong"), count("survived"), count("equivalent"), count("invalid"));
      if (valid > 0) std::printf(" %7.1f %%", 100.0 * count("killed") / valid);
      std::printf("\n");
    };
    std::printf("\n%-52s %7s %7s %7s %9s %9s %8s %9s\n", "source", "mutants", "killed", "wrong", "survived",
                "equivalent", "invalid", "killed");
    for (const auto& [name, counts] : table_) {
      row(name, counts);
      for (const auto& [key, n] : counts) sum[key] += n;
    }
    row("all", sum);
    std::printf(
        "Killed: by a finding, of all that are not equivalent. Invalid: did not compile; not counted.\n");
    if (kept_ > 0) std::printf("%d of them were judged by another build.\n", kept_);
    if (sum["unknown"] > 0)
      std::printf("%d mutants were not judged, and %d sources themselves.\n", sum["unknown"],
                  unknown_originals_);
    return dirty_ || sum["survived"] > 0 ? 1 : 0;
  }

 private:
  Fate judge(const Subject& subject, const Mutant& mutant, int worker) {
    std::string key_text = mutant.text;
    for (const auto& run : subject.runs) {
      for (const std::string& word : run) key_text += '\0' + word;
    }
    const std::string key = sha256_hex(key_text);
    {
      const std::scoped_lock hold(results_lock_);
      if (const auto known = known_.find(key); known != known_.end()) return known->second;
    }
    if (options_.known_only) return {"unknown", ""};
    const fs::path folder = scratch_ / std::to_string(worker);
    fs::remove_all(folder);
    fs::path what;
    if (subject.directory.empty()) {
      fs::create_directories(folder);
      what = folder / subject.source.filename();
      std::ofstream(what, std::ios::binary) << mutant.text;
    } else {
      what = folder / subject.directory.filename();
      fs::create_directories(folder);
      fs::copy(subject.directory, what);
      std::ofstream(what / "kernel.cu", std::ios::binary | std::ios::trunc) << mutant.text;
    }
    Fate best{"survived", ""};
    // What was argued to be right needs no more than one run to show that nothing is said against it.
    const std::size_t n_runs = equivalent(subject, mutant) ? 1 : subject.runs.size();
    for (std::size_t i = 0; i < n_runs; ++i) {
      const std::vector<std::string>& words = subject.runs[i];
      Fate fate = judge_once(words, what, mutant.line);
      if (interrupt_flag()) return fate;
      if (fate.outcome != "survived" && best.outcome != "wrong") best = fate;
      if (fate.outcome == "killed" || fate.outcome == "invalid") {
        best = std::move(fate);
        break;
      }
    }
    if (best.outcome == "invalid") return best;
    const std::scoped_lock hold(results_lock_);
    known_[key] = best;
    std::ofstream(results_, std::ios::app)
        << json{{"key", key}, {"binaries", binaries_}, {"outcome", best.outcome}, {"by", best.by}}.dump()
        << "\n";
    return best;
  }

  Fate judge_once(const std::vector<std::string>& words, const fs::path& what, int line) const {
    std::vector<std::string> quiet = {"--json",    "--as-found",
                                      "--timeout", "300",
                                      "--store",   (kBinary / "bench" / "mutation_store").string()};
    if (words.front() == "check" && options_.jobs > 1) quiet.insert(quiet.end(), {"--jobs", "1"});
    Command command;
    command.argv = {(folder_ / "echolo").string()};
    for (const std::string& word : words) {
      if (word == "--") command.argv.insert(command.argv.end(), quiet.begin(), quiet.end());
      command.argv.push_back(word == "@" ? what.string() : word);
    }
    if (std::find(words.begin(), words.end(), "--") == words.end()) {
      command.argv.insert(command.argv.end(), quiet.begin(), quiet.end());
    }
    command.timeout = std::chrono::seconds(3600);
    command.capture_limit = 64U << 20U;
    const Result<Outcome> outcome = run_command(command);
    if (!outcome.ok()) return {"invalid", outcome.error().render()};
    const json verdict = json::parse(outcome->standard_output, nullptr, false);
    if (verdict.is_discarded()) return {"invalid", "no verdict: " + outcome->standard_error.substr(0, 200)};
    return fate_of(verdict, line);
  }

  void print(const Subject& subject, const Mutant& mutant, const Fate& fate) const {
    std::printf("%-10s %s:%d %s: %s -> %s%s\n", fate.outcome.c_str(), subject.name.c_str(), mutant.line,
                mutant.operation.c_str(), mutant.before.substr(0, 90).c_str(),
                mutant.after.substr(0, 60).c_str(), fate.by.empty() ? "" : ("  [" + fate.by + "]").c_str());
    std::fflush(stdout);
  }

  // Blocks of lines: "NAME:LINE | OPERATION | TEXT BEFORE", then the argument, then an empty line.
  void read_arguments_for_equivalence() {
    std::ifstream in(kSource / "bench" / "mutation" / "equivalent.txt");
    for (std::string line; std::getline(in, line);) {
      if (!line.starts_with("#") && std::count(line.begin(), line.end(), '|') >= 2) equivalent_.insert(line);
    }
  }
  bool equivalent(const Subject& subject, const Mutant& mutant) const {
    return equivalent_.contains(subject.name + ":" + std::to_string(mutant.line) + " | " + mutant.operation +
                                " | " + mutant.before);
  }

  Options options_;
  fs::path results_, folder_, scratch_;
  std::string binaries_;
  std::set<std::string> equivalent_;
  std::mutex results_lock_;
  std::map<std::string, Fate> known_;
  std::map<std::string, std::map<std::string, int>> table_;
  bool dirty_ = false;
  int kept_ = 0, unknown_originals_ = 0;
};

int run(int argc, char** argv) {
  CLI::App app{
      "Judges weakened kernels: every library kernel and right corpus case, one synchronisation less at a "
      "time"};
  Options options;
  options.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  app.add_option("--only", options.only, "Sources whose name contains this");
  app.add_flag("--kernels", options.kernels_only, "Only the kernel library");
  app.add_flag("--corpus", options.corpus_only, "Only the corpus");
  app.add_flag("--list", options.list, "Print the mutants; judge nothing");
  app.add_flag("--fresh", options.fresh, "Forget earlier results");
  app.add_flag("--keep", options.keep, "Results of other builds count");
  app.add_flag("--retry", options.retry, "With --keep: of those only the kills");
  app.add_flag("--known", options.known_only, "Judge nothing; print what is known");
  app.add_option("--binaries", options.binaries,
                 "A folder with the echolo that judges (default: this build)");
  app.add_option("--jobs", options.jobs, "Mutants judged at once")->check(CLI::Range(1, 64));
  CLI11_PARSE(app, argc, argv);
  install_interrupt_handler();
  std::vector<Subject> subjects;
  if (!options.corpus_only) subjects = library();
  if (!options.kernels_only) {
    Result<std::vector<Subject>> cases = corpus();
    if (!cases.ok()) {
      std::fprintf(stderr, "%s\n", cases.error().render().c_str());
      return 3;
    }
    subjects.insert(subjects.end(), cases->begin(), cases->end());
  }
  Bench bench(options);
  for (const Subject& subject : subjects) {
    if (subject.name.find(options.only) == std::string::npos) continue;
    if (!bench.run(subject)) {
      std::fprintf(stderr, "interrupted; what was judged is kept, the same command goes on\n");
      return 130;
    }
  }
  return options.list ? 0 : bench.finish();
}

}  // namespace
}  // namespace echolo::mutation

int main(int argc, char** argv) { return echolo::mutation::run(argc, argv); }
