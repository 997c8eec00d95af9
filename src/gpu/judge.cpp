// The judge of the GPU lane. It holds no GPU itself: the reference's ranks (PyTorch, NCCL, cuBLAS) and the
// candidate's PEs are processes of their own, which it asks in turn.
//
//   echolo-gpu-judge WORLD N_GPUS PE_PROGRAM PYTHON PYTHON_FOLDER PROBLEMS FOLDER PLAN JSON
//
// PLAN has one line a case; the words are separated by blanks:
//   LABEL CANDIDATE.so PROBLEM DTYPE KEY=VALUE,... SETS REPEATS ROUNDS [faulty]
// REPEATS calls are compared with the oracle, half of them replays of a captured graph, each after a random
// delay on each PE. ROUNDS batches of kCalls calls are timed for each of reference and candidate by turns, in
// a graph and eager; none are where ranks share a GPU. One JSON object a case goes to JSON, the table to
// stdout. Exit code: 0 when every case not marked as faulty is correct, 1 otherwise, 3 when the reference
// does not work.
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "process.hpp"

namespace {

using namespace echolo::gpu;  // NOLINT(google-build-using-namespace)
using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr int kCalls = 22, kSkipped = 2;  // of a timed batch; the first ones still wait for the other rank
constexpr int kDelayUs = 60;
constexpr milliseconds kReferenceLimit{120'000};

milliseconds candidate_limit() {
  const char* set = std::getenv("ECHOLO_GPU_LIMIT_MS");
  return milliseconds{set != nullptr ? std::max(100, std::atoi(set)) : 20'000};
}
const milliseconds kCandidateLimit = candidate_limit();

// Ways in which calls are timed. Cold: caches are flushed before each call.
struct Mode {
  const char* name;
  const char* how;
  bool cold;
};
constexpr Mode kModes[] = {{"graph", "graph", true}, {"warm", "graph", false}, {"eager", "eager", true}};

constexpr const char* kReference = "reference rank ";

using Group = std::vector<std::unique_ptr<Process>>;

std::vector<std::string> ask(Group& group, const std::vector<std::string>& lines, const std::string& word,
                             milliseconds limit, const char* who = "PE ") {
  for (std::size_t r = 0; r < group.size(); ++r) group[r]->send(lines[r]);
  std::vector<std::string> out;
  std::string fault;
  bool hung = false;
  for (std::size_t r = 0; r < group.size(); ++r) {
    try {
      out.push_back(group[r]->receive(word, limit));
    } catch (const ChildFault& one) {
      if (fault.empty() || (hung && !one.hung)) {  // a crash explains the others' waiting
        fault = who + std::to_string(r) + ": " + one.what();
        hung = one.hung;
      }
      limit = milliseconds{500};
    }
  }
  if (!fault.empty()) throw ChildFault(fault, hung);
  return out;
}

std::vector<std::string> ask_all(Group& group, const std::string& line, const std::string& word,
                                 milliseconds limit, const char* who = "PE ") {
  return ask(group, std::vector<std::string>(group.size(), line), word, limit, who);
}

double quantile(std::vector<double> values, double q) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(std::llround(q * static_cast<double>(values.size() - 1)))];
}

// Times of calls, each the maximum over ranks.
struct Series {
  std::vector<double> all;
  std::vector<double> halves[2];  // of even and of odd batches: how far the same thing differs from itself
  double median() const { return quantile(all, 0.5); }
  double noise() const {
    const double a = quantile(halves[0], 0.5), b = quantile(halves[1], 0.5);
    return a > 0 && b > 0 ? std::max(a, b) / std::min(a, b) - 1 : 0;
  }
};

struct Line {
  std::string label, object, problem, dtype, settings;
  int sets = 0, repeats = 0, rounds = 0;
  bool faulty = false;  // known to be: what it comes to is printed, and fails nothing
};

struct Row {
  Line line;
  std::string status = "correct", detail;
  int compared = 0;
  double worst = 0;
  std::map<std::string, Series> times;  // "candidate graph", "nccl eager", ...
};

class Judge {
 public:
  explicit Judge(char** argv)
      : world_(std::stoi(argv[1])),
        n_gpus_(std::stoi(argv[2])),
        pe_(argv[3]),
        python_(argv[4]),
        python_folder_(argv[5]),
        problems_(argv[6]),
        folder_(argv[7]) {}

  bool shared() const { return world_ > n_gpus_; }

  void start_reference() {
    const std::string rendezvous = folder_ + "/rendezvous." + std::to_string(world_);
    std::remove(rendezvous.c_str());
    for (int r = 0; r < world_; ++r) {
      // The reference stays outside of MPS: a candidate's fault there ends every client of the server.
      std::map<std::string, std::string> environment{
          {"PYTHONPATH", python_folder_}, {"PYTHONUNBUFFERED", "1"}, {"CUDA_MPS_PIPE_DIRECTORY", ""}};
      if (shared()) environment["NCCL_HOSTID"] = "rank" + std::to_string(r);
      reference_.push_back(std::make_unique<Process>(
          std::vector<std::string>{python_, python_folder_ + "/echolo/gpu_reference.py", std::to_string(r),
                                   std::to_string(world_), std::to_string(r % n_gpus_), rendezvous, problems_,
                                   folder_},
          environment, folder_ + "/reference.log"));
    }
    for (auto& rank : reference_) versions_ = rank->receive("ready", kReferenceLimit);
    std::fprintf(stderr, "reference: %s, %d ranks on %d GPUs%s\n", versions_.c_str(), world_, n_gpus_,
                 shared() ? " (shared-gpu)" : "");
  }

  Row judge(const Line& line) {
    Row row{line, "correct", "", 0, 0, {}};
    const std::string key =
        line.problem + " " + line.dtype + " " + std::to_string(line.sets) + " " + line.settings;
    if (key != case_) {
      case_.clear();
      noise_ = ask_all(reference_, "case " + key, "ok", kReferenceLimit, kReference)[0];
      variants_ = words(ask_all(reference_, "variants", "variants", kReferenceLimit, kReference)[0]);
      case_ = key;
    }
    try {
      ensure_candidate(line.object);
      std::vector<std::string> cases;
      for (int r = 0; r < world_; ++r) cases.push_back("case " + folder_ + "/case." + std::to_string(r));
      ask(candidate_, cases, "ok", kCandidateLimit);
      for (int round = 0; row.compared < line.repeats && row.status == "correct"; ++round) {
        const int shift = round % line.sets;
        ask_all(candidate_,
                std::string("calls ") + (round % 2 != 0 ? "graph " : "eager ") + std::to_string(shift) + " " +
                    std::to_string(kDelayUs) + " " + std::to_string(round + 1),
                "ok", kCandidateLimit);
        compare(row, shift, round % 2 != 0 ? "replay" : "call");
      }
      if (row.status == "correct" && line.rounds > 0 && !shared()) time(row);
    } catch (const ChildFault& fault) {
      row.detail = fault.what();
      if (row.detail.rfind(kReference, 0) == 0) throw;
      row.status = fault.hung ? "timeout" : "crashed";
      candidate_.clear();
      object_.clear();
    }
    return row;
  }

  const std::string& versions() const { return versions_; }
  const std::string& noise() const { return noise_; }

  void finish() {
    end_candidate();
    for (auto& rank : reference_) rank->send("quit");
    for (auto& rank : reference_) rank->await_end(milliseconds{5000});
  }

 private:
  static std::vector<std::string> words(const std::string& text) {
    std::istringstream in(text);
    std::vector<std::string> out;
    for (std::string word; in >> word;) out.push_back(word);
    return out;
  }

  void ensure_candidate(const std::string& object) {
    if (object == object_ && !candidate_.empty()) return;
    end_candidate();
    const auto began = Clock::now();
    for (int r = 0; r < world_; ++r) {
      std::map<std::string, std::string> environment{{"NVSHMEM_BOOTSTRAP", "UID"},
                                                     {"NVSHMEM_REMOTE_TRANSPORT", "none"},
                                                     {"NVSHMEM_DISABLE_NVLS", "1"},
                                                     {"NVSHMEM_BOOTSTRAP_UID_SOCK_IFNAME", "lo"},
                                                     {"NVSHMEM_BOOTSTRAP_UID_SOCK_FAMILY", "AF_INET"},
                                                     {"NVSHMEM_SYMMETRIC_SIZE", "4G"}};
      if (shared()) environment["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"] = std::to_string(100 / world_);
      candidate_.push_back(std::make_unique<Process>(
          std::vector<std::string>{pe_, object, std::to_string(r), std::to_string(world_),
                                   std::to_string(r % n_gpus_)},
          environment, folder_ + "/candidate.log"));
    }
    object_ = object;
    candidate_[0]->send("make-id");
    const std::string id = candidate_[0]->receive("id", kCandidateLimit);
    ask_all(candidate_, "start " + id, "ok", kCandidateLimit);
    start_seconds_ = std::chrono::duration<double>(Clock::now() - began).count();
    std::fprintf(stderr, "%s: %d PEs up in %.2f s\n", object.c_str(), world_, start_seconds_);
  }

  void end_candidate() {
    for (auto& pe : candidate_) pe->send("quit");
    for (auto& pe : candidate_) pe->await_end(milliseconds{5000});
    candidate_.clear();
  }

  void compare(Row& row, int shift, const char* what) {
    const auto answers =
        ask_all(reference_, "verify " + std::to_string(shift), "ok", kReferenceLimit, kReference);
    row.compared += row.line.sets;
    for (std::size_t r = 0; r < answers.size(); ++r) {
      std::istringstream in(answers[r]);
      std::string ratio;
      long long wrong = 0, unwritten = 0;
      in >> ratio >> wrong >> unwritten;
      row.worst = std::max(row.worst, std::strtod(ratio.c_str(), nullptr));
      if (wrong == 0 || row.status != "correct") continue;
      row.status = "wrong_result";
      row.detail = "rank " + std::to_string(r) + ", " + what + " " + std::to_string(row.compared) + ": " +
                   std::to_string(wrong) + " elements wrong, " + std::to_string(unwritten) + " never written";
    }
  }

  void batch(Row& row, Group& group, const std::string& name, const std::string& command, int round) {
    const auto began = Clock::now();
    const auto answers = &group == &reference_ ? ask_all(group, command, "times", kReferenceLimit, kReference)
                                               : ask_all(group, command, "times", kCandidateLimit);
    const double outside = std::chrono::duration<double, std::micro>(Clock::now() - began).count();
    std::vector<double> slowest;
    for (const std::string& answer : answers) {
      std::istringstream in(answer);
      double t = 0, sum = 0;
      for (std::size_t i = 0; in >> t; ++i) {
        if (i >= slowest.size()) slowest.push_back(0);
        slowest[i] = std::max(slowest[i], t);
        sum += t;
      }
      // Our own clock bounds what a process says about itself.
      if (sum > outside) throw ChildFault("its times add up to more than the batch took", false);
    }
    if (round < 0) return;  // warm-up
    Series& series = row.times[name];
    for (std::size_t i = kSkipped; i < slowest.size(); ++i) {
      series.all.push_back(slowest[i]);
      series.halves[round % 2].push_back(slowest[i]);
    }
  }

  void time(Row& row) {
    int shift = 0;
    for (int round = -1; round < row.line.rounds; ++round) {
      shift = (round + 1) % row.line.sets;
      for (const Mode& mode : kModes) {
        const std::string how = std::string(mode.how) + " " + std::to_string(kCalls);
        const std::string flush = mode.cold ? " 1" : " 0", name = std::string(" ") + mode.name;
        for (const std::string& variant : variants_) {
          const bool eager_only = variant.find("/eager") != std::string::npos;  // it cannot be captured
          if (eager_only && std::string(mode.how) != "eager") continue;
          batch(row, reference_, variant + name, "time " + variant + " " + how + flush, round);
        }
        const std::string ours = "time " + how + " " + std::to_string(shift) + flush;
        batch(row, candidate_, "candidate" + name, ours, round);
        batch(row, candidate_, "nothing" + name, ours + " nothing", round);
      }
    }
    // The last batches launched nothing: one more of calls, for its outputs.
    batch(row, candidate_, "", "time graph " + std::to_string(kCalls) + " " + std::to_string(shift) + " 1",
          -1);
    ask_all(candidate_, "write", "ok", kCandidateLimit);
    compare(row, shift, "timed call");
  }

  int world_, n_gpus_;
  std::string pe_, python_, python_folder_, problems_, folder_;
  Group reference_, candidate_;
  std::string object_, case_, noise_, versions_;
  std::vector<std::string> variants_;
  double start_seconds_ = 0;
};

void print_row(const Row& row, const Judge& judge, int world) {
  std::printf("%-26s w%d %-4s %-28s %-12s %4d worst %.2f", row.line.label.c_str(), world,
              row.line.dtype.c_str(), row.line.settings.c_str(), row.status.c_str(), row.compared, row.worst);
  if (judge.shared()) std::printf(" shared-gpu");
  for (const Mode& one : kModes) {
    const std::string mode = one.name;
    const auto candidate = row.times.find("candidate " + mode);
    if (candidate == row.times.end()) continue;
    const Series& ours = candidate->second;
    double best = 0, noise = 0;
    std::string name;
    for (const auto& [key, series] : row.times) {
      if (key.rfind("candidate", 0) == 0 || key.rfind("nothing", 0) == 0) continue;
      if (key.substr(key.find(' ') + 1) != mode) continue;
      if (best == 0 || series.median() < best) best = series.median(), name = key.substr(0, key.find(' '));
      if (key.rfind("nccl", 0) == 0) noise = series.noise();
    }
    std::printf(" | %s %.1f [%.1f %.1f] vs %s %.1f (noise %.1f%%) = %.2fx", mode.c_str(), ours.median(),
                quantile(ours.all, 0.1), quantile(ours.all, 0.9), name.c_str(), best, 100 * noise,
                best / ours.median());
  }
  if (row.line.faulty) std::printf(" | known to be faulty");
  if (!row.detail.empty()) std::printf(" | %s", row.detail.c_str());
  std::printf("\n");
  std::fflush(stdout);
}

void write_json(std::ostream& out, const Row& row, const Judge& judge, int world) {
  const auto text = [](const std::string& s) {
    std::string quoted = "\"";
    for (const char c : s) {
      if (c == '"' || c == '\\') quoted += '\\';
      quoted += static_cast<unsigned char>(c) < 32 ? ' ' : c;
    }
    return quoted + "\"";
  };
  out << "{\"candidate\": " << text(row.line.label) << ", \"problem\": " << text(row.line.problem)
      << ", \"world\": " << world << ", \"dtype\": " << text(row.line.dtype)
      << ", \"params\": " << text(row.line.settings) << ", \"status\": " << text(row.status)
      << ", \"detail\": " << text(row.detail) << ", \"compared\": " << row.compared
      << ", \"worst\": " << row.worst << ", \"shared_gpu\": " << (judge.shared() ? "true" : "false")
      << ", \"versions\": " << text(judge.versions()) << ", \"times\": [";
  bool first = true;
  for (const auto& [key, series] : row.times) {
    out << (first ? "" : ", ") << "{\"what\": " << text(key) << ", \"us_median\": " << series.median()
        << ", \"us_p10\": " << quantile(series.all, 0.1) << ", \"us_p90\": " << quantile(series.all, 0.9)
        << ", \"noise\": " << series.noise() << ", \"calls\": " << series.all.size()
        << ", \"provenance\": \"measured\"}";
    first = false;
  }
  out << "]}\n";
  out.flush();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 10) {
    std::cerr << "usage: echolo-gpu-judge WORLD N_GPUS PE PYTHON PYTHON_FOLDER PROBLEMS FOLDER PLAN JSON\n";
    return 2;
  }
  signal(SIGPIPE, SIG_IGN);
  std::ifstream plan(argv[8]);
  std::ofstream json(argv[9], std::ios::app);
  if (!plan || !json) {
    std::cerr << "cannot open the plan or the results\n";
    return 2;
  }
  bool good = true;
  try {
    Judge judge(argv);
    judge.start_reference();
    std::string text;
    while (std::getline(plan, text)) {
      std::istringstream in(text);
      Line line;
      in >> line.label >> line.object >> line.problem >> line.dtype >> line.settings >> line.sets >>
          line.repeats >> line.rounds;
      if (!in || line.sets < 1) continue;
      std::string expect;
      line.faulty = (in >> expect) && expect == "faulty";
      const Row row = judge.judge(line);
      good = good && (row.status == "correct" || line.faulty);
      print_row(row, judge, std::stoi(argv[1]));
      write_json(json, row, judge, std::stoi(argv[1]));
    }
    judge.finish();
  } catch (const std::exception& fault) {
    std::cerr << "the reference or the judge failed: " << fault.what() << "\n";
    return 3;
  }
  return good ? 0 : 1;
}
