// The process of one PE as the node sees it: how it is started and contained, its sockets, its output, how it
// ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/job.hpp"
#include "runtime/node/engine.hpp"
#include "runtime/protocol.hpp"

namespace echolo::runtime {

// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(other.release()) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      close();
      fd_ = other.release();
    }
    return *this;
  }
  ~Fd() { close(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }
  void close();

 private:
  int fd_ = -1;
};

struct Pending {  // the request that a host thread waits on
  wire::RequestHeader header;
  std::vector<std::uint8_t> payload;
  int stage = 0;                                     // 0: not attempted yet; the handler's own after that
  std::vector<OpId> wait;                            // what it waits for
  std::uint64_t token = 0;                           // a collective's
  std::shared_ptr<std::vector<std::uint8_t>> bytes;  // being read from the device
  std::string waits_for;                             // for the wait graph
  bool is_poll = false;                              // asks whether something is done; is answered either way
  wire::Op op() const { return static_cast<wire::Op>(header.op); }
};

struct HostThread {
  int index = 0;  // in order of connection
  Fd socket;
  bool greeted = false;
  bool in_call = false;
  bool is_service = false;
  bool is_main = false;  // of the process: it ends with this one
  Pending pending;
  std::vector<std::uint8_t> incoming;                     // bytes of a request that is not complete yet
  std::chrono::steady_clock::time_point running_since{};  // of the last reply
  std::chrono::steady_clock::duration heard_at{};         // Node::attended_ when it last sent or got anything
};

enum class ReadState : std::uint8_t { kOk, kClosed, kMalformed };

// Reads what is there; a complete request moves to `pending` and sets in_call.
ReadState read_request(HostThread& thread);
// Writes a whole reply; false where the PE does not take it.
bool write_reply(int socket, int error, std::uint32_t flags, const std::vector<std::uint8_t>& payload,
                 int fd);

// The note with which a process tells why it ends.
struct LastWords {
  wire::RequestHeader header;
  std::vector<std::uint8_t> payload;
  std::chrono::steady_clock::time_point seen = std::chrono::steady_clock::now();
};

struct PeProcess {
  int pe = 0;
  pid_t child = -1;    // what we started: bubblewrap or the program
  pid_t process = -1;  // the program itself, once it has connected
  Fd pid_fd, control, output;
  std::map<int, std::unique_ptr<HostThread>> threads;
  int next_thread = 0;
  std::chrono::steady_clock::time_point started{};
  std::chrono::steady_clock::duration heard_at{};       // Node::attended_ when a thread of it last went away
  std::chrono::steady_clock::time_point thread_left{};  // when the last of its threads to go away did so

  std::chrono::steady_clock::time_point watched_since{};  // what watched_from was taken for
  std::chrono::milliseconds watched_from{0};              // processor time used by then
  bool ending = false;                                    // its main thread is gone
  bool ended = false;
  PeReport report;
  bool good_end = false;  // said that it is done
  bool reported = false;  // report.end and detail are final
  bool exited = false;    // exit() was called, with exit_code
  int exit_code = 0;
  int wait_status = 0;  // valid once ended
  std::optional<LastWords> last_words;
  bool asked_where = false;  // was sent SIGXCPU, whose handler tells where it is

  void take_output();  // drains the pipe into report.output
  void append_output(std::string_view text);
  std::size_t output_limit = 1U << 20U;
};

struct LaunchPlan {
  std::vector<std::string> argv;  // the program; absolute path first
  std::map<std::string, std::string> env;
  std::string directory;              // made readable in the sandbox, and the working directory
  std::vector<std::string> readable;  // further folders
  bool sandbox = true;
  bool may_fork = false;
  std::chrono::seconds cpu_limit{600};
};

// Why a sandbox can't be made here; empty where it can. Tried once a process.
std::string sandbox_problem();
// Starts the process with its control socket at the descriptor that kControlFdVariable names.
Status start_pe(const LaunchPlan& plan, PeProcess& process);
// Waits for the end of a process that has ended, a second at most; its wait status.
void reap(PeProcess& process, int* status);
// Kills the process group and waits for the child, a second at most.
void kill_pe(PeProcess& process);
// Processor time of the process, all threads, user and system (/proc/PID/stat).
std::chrono::milliseconds processor_time(pid_t process);
// Is every task of the process asleep (/proc/PID/task/*/stat)? `n_tasks` how many there are.
bool all_asleep(pid_t process, int* n_tasks);

}  // namespace echolo::runtime
