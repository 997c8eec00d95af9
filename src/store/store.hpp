// The store: everything that a run was, did and found, in one folder.
//   echolo.db       SQLite (WAL): runs, iterations, verdicts (of runs, and of single checks by id) and an
//   append-only table of events artifacts/      files by the SHA-256 of their content (candidate sources,
//   verdicts, logs) cache/          what can be computed again (compiled candidates, reference outputs); safe
//   to delete locks/          one file a run, locked while its process lives
// A run needs no clean exit: whether it is alive is asked of the kernel (its lock), so a run that was killed
// is listed as interrupted and can be resumed. Errors are kMachine (disk full, read-only, damaged) unless
// they say otherwise; what failed has left nothing half-written.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"

namespace echolo::store {

// $XDG_DATA_HOME/echolo, else ~/.local/share/echolo. Error: neither variable is set.
Result<std::string> default_directory();

struct NewRun {
  std::string command;  // "optimize", "check", ...
  std::string problem;
  int world = 0;
  std::string options;  // a JSON object: everything needed to go on with the run
};

struct RunInfo {
  std::string id;  // 8 hex digits
  std::string command;
  std::string problem;
  int world = 0;
  std::string options;
  // "running" (its process lives), "interrupted" (it does not, and the run is not finished), "done", "failed"
  // (nothing correct was found) or "stopped" (a person asked for it).
  std::string status;
  std::string created, finished;  // UTC, ISO 8601; finished may be empty
  std::string summary;            // a JSON object, empty until finished
  int n_iterations = 0;
  int n_judged = 0;
  int pid = 0;  // of the process that last worked on it
  bool stop_requested = false;
};

struct Iteration {
  int number = 0;         // from 1
  std::string candidate;  // "sha256:..."
  std::string label;      // for people: "ag_gemm_push TILE_M=64"
  std::string detail;     // a JSON object: knobs, modelled cost
  std::string status;     // "proposed" until judged, then the verdict's status
  std::string verdict;    // artifact hash of the verdict's JSON; empty until judged
};

// A verdict by its id, with everything needed to come to it again.
struct KeptVerdict {
  std::string id;         // hex digits; the same question about the same source has the same id
  std::string command;    // "check" or "sanitize"
  std::string subject;    // the problem's name or directory; the program's path for sanitize
  std::string candidate;  // "sha256:..."
  std::string source;     // artifact hash of the source's text
  std::string options;    // a JSON object
  std::string status;
  std::string verdict;  // artifact hash of the verdict's JSON
  std::string created;  // UTC, ISO 8601; set by the store
};

struct Event {
  std::int64_t id = 0;
  std::string time;
  std::string kind;
  std::string data;  // a JSON object
};

// Held while a process works on a run; released when it ends, however it ends.
class RunLock {
 public:
  explicit RunLock(int fd) : fd_(fd) {}
  RunLock(RunLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  RunLock& operator=(RunLock&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;
  ~RunLock();

 private:
  int fd_ = -1;
};

struct OpenRun {
  std::string id;
  RunLock lock;
};

// Safe to use from several threads and from several processes at once.
class Store {
 public:
  // Makes the folder and the database where missing and brings an older schema up to date. Error (kUsage): a
  // newer echolo wrote it.
  static Result<Store> open(const std::string& directory);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  const std::string& directory() const;
  Result<std::string> cache_directory(std::string_view name);  // made where missing

  Result<std::string> put_artifact(std::string_view bytes);  // gives the content hash, 64 hex digits
  Result<std::string> artifact(std::string_view hash) const;

  Result<OpenRun> create_run(const NewRun& run);
  // Takes an interrupted or stopped run up again. Errors (kUsage): its process still lives, it is finished.
  Result<OpenRun> resume_run(const std::string& id);
  Status finish_run(const std::string& id, std::string_view status, std::string_view summary);
  // Asks the process that works on the run to end; `stop_requested` tells it why it was interrupted. Error
  // (kUsage): the run is not running.
  Status stop_run(const std::string& id);

  Result<std::vector<RunInfo>> runs() const;  // newest first
  // By id or a unique beginning of one. Error (kUsage): none, or several.
  Result<RunInfo> run(std::string_view id) const;

  Status add_iteration(const std::string& run, const Iteration& iteration);
  // Records a judged iteration, its verdict and the event in one transaction.
  Status record_verdict(const std::string& run, int iteration, const std::string& options_key,
                        const std::string& candidate, const std::string& status,
                        const std::string& verdict_artifact);
  Result<std::vector<Iteration>> iterations(const std::string& run) const;

  // The artifact of the verdict of this candidate under these options within a run, where it was judged
  // already.
  Result<std::optional<std::string>> find_verdict(const std::string& run, std::string_view candidate,
                                                  std::string_view options_key) const;

  // Replaces what an earlier asking of the same question has left.
  Status keep_verdict(const KeptVerdict& verdict);
  // By id or a unique beginning of one. Error (kUsage): none, or several.
  Result<KeptVerdict> kept_verdict(std::string_view id) const;
  Result<std::vector<KeptVerdict>> kept_verdicts(int most) const;  // newest first

  Status append_event(const std::string& run, std::string_view kind, std::string_view data);
  Result<std::vector<Event>> events(const std::string& run, std::int64_t after = 0) const;

 private:
  struct Impl;
  explicit Store(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace echolo::store
