#include "base/subprocess.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

extern char** environ;

namespace echolo {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<bool> g_interrupted{false};

void on_interrupt(int) { g_interrupted.store(true); }

struct Pipe {
  int read = -1;
  int write = -1;
  bool open() {
    int fds[2];
    if (::pipe2(fds, O_CLOEXEC) != 0) return false;
    read = fds[0];
    write = fds[1];
    return true;
  }
  static void close_end(int& fd) {
    if (fd >= 0) ::close(fd);
    fd = -1;
  }
  ~Pipe() {
    close_end(read);
    close_end(write);
  }
};

// While it lives, this thread's writes to a closed pipe fail with EPIPE instead of ending the process.
class PipeSignalBlocked {
 public:
  PipeSignalBlocked() {
    sigemptyset(&pipe_);
    sigaddset(&pipe_, SIGPIPE);
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;
  ~PipeSignalBlocked() {
    // Where it was not blocked before, one that has come must be taken before it is let through.
    const timespec now{0, 0};
    if (sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t pipe_{}, before_{};
};

std::vector<std::string> build_environment(const Command& command) {
  std::map<std::string, std::string> merged;
  if (!command.clear_env) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text(*entry);
      const std::size_t equals = text.find('=');
      if (equals != std::string_view::npos)
        merged[std::string(text.substr(0, equals))] = text.substr(equals + 1);
    }
  }
  for (const auto& [key, value] : command.env) merged[key] = value;
  std::vector<std::string> out;
  out.reserve(merged.size());
  for (const auto& [key, value] : merged) out.push_back(key + "=" + value);
  return out;
}

// Reads what is there; false at end of file.
bool drain(int fd, std::string& into, std::size_t limit, bool& truncated,
           const std::function<void(std::string_view)>& sink) {
  char buffer[65536];
  const ssize_t n = ::read(fd, buffer, sizeof buffer);
  if (n < 0) return errno == EINTR || errno == EAGAIN;
  if (n == 0) return false;
  const std::string_view chunk(buffer, static_cast<std::size_t>(n));
  if (sink) sink(chunk);
  const std::size_t room = limit > into.size() ? limit - into.size() : 0;
  into.append(chunk.substr(0, room));
  if (chunk.size() > room) truncated = true;
  return true;
}

}  // namespace

std::atomic<bool>& interrupt_flag() { return g_interrupted; }

void install_interrupt_handler() {
  struct sigaction action {};
  action.sa_handler = on_interrupt;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

Result<Outcome> run_command(const Command& command) {
  if (command.argv.empty()) return machine_error("no program to run");
  Pipe in;
  Pipe out;
  Pipe err;
  Pipe failed;  // carries errno where exec did not happen
  if (!in.open() || !out.open() || !err.open() || !failed.open()) {
    return machine_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  }
  std::vector<char*> argv;
  for (const std::string& word : command.argv) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const std::vector<std::string> environment = build_environment(command);
  std::vector<char*> envp;
  for (const std::string& entry : environment) envp.push_back(const_cast<char*>(entry.c_str()));
  envp.push_back(nullptr);

  const auto start = Clock::now();
  const pid_t child = ::fork();
  if (child < 0) return machine_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) {
    ::setpgid(0, 0);
    ::dup2(in.read, 0);
    ::dup2(out.write, 1);
    ::dup2(command.merge_output ? out.write : err.write, 2);
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaction(signal, &plain, nullptr);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    int code = 0;
    if (!command.directory.empty() && ::chdir(command.directory.c_str()) != 0) code = errno;
    if (code == 0) {
      if (command.in_child) command.in_child();
      ::execvpe(argv[0], argv.data(), envp.data());
      code = errno;
    }
    if (::write(failed.write, &code, sizeof code) < 0) ::_exit(126);
    ::_exit(127);
  }
  ::setpgid(child, child);
  Pipe::close_end(in.read);
  Pipe::close_end(out.write);
  Pipe::close_end(err.write);
  Pipe::close_end(failed.write);
  ::fcntl(in.write, F_SETFL, O_NONBLOCK);

  int exec_error = 0;
  if (::read(failed.read, &exec_error, sizeof exec_error) == static_cast<ssize_t>(sizeof exec_error)) {
    ::waitpid(child, nullptr, 0);
    return machine_error("cannot run " + command.argv[0] + ": " + std::strerror(exec_error));
  }

  Outcome outcome;
  std::string_view to_write = command.standard_input;
  if (to_write.empty()) Pipe::close_end(in.write);
  // A child that does not read is its own affair. Of this thread only: others may run commands too.
  const PipeSignalBlocked blocked;
  bool killed = false;
  const auto kill_group = [&] {
    ::kill(-child, SIGKILL);
    killed = true;
  };
  while (out.read >= 0 || err.read >= 0) {
    pollfd fds[3] = {{out.read, POLLIN, 0}, {err.read, POLLIN, 0}, {in.write, POLLOUT, 0}};
    ::poll(fds, 3, 50);
    if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
        !drain(out.read, outcome.standard_output, command.capture_limit, outcome.truncated,
               command.on_output)) {
      Pipe::close_end(out.read);
    }
    if ((fds[1].revents & (POLLIN | POLLHUP | POLLERR)) != 0 &&
        !drain(err.read, outcome.standard_error, command.capture_limit, outcome.truncated, {})) {
      Pipe::close_end(err.read);
    }
    if (in.write >= 0 && (fds[2].revents & (POLLOUT | POLLERR)) != 0) {
      const ssize_t n = ::write(in.write, to_write.data(), to_write.size());
      if (n > 0) to_write.remove_prefix(static_cast<std::size_t>(n));
      if (to_write.empty() || (n < 0 && errno != EAGAIN && errno != EINTR)) Pipe::close_end(in.write);
    }
    if (!killed && g_interrupted.load()) {
      outcome.interrupted = true;
      kill_group();
    }
    if (!killed && command.timeout.count() > 0 && Clock::now() - start > command.timeout) {
      outcome.timed_out = true;
      kill_group();
    }
    if (!killed && command.on_tick && !command.on_tick()) {
      outcome.cancelled = true;
      kill_group();
    }
    // The child may be gone while a grandchild it left behind still holds the pipes.
    siginfo_t info{};
    if (!killed && ::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == child && fds[0].revents == 0 && fds[1].revents == 0) {
      kill_group();
    }
  }
  int status = 0;
  while (true) {
    const pid_t reaped = ::waitpid(child, &status, WNOHANG);
    if (reaped == child) break;
    if (reaped < 0 && errno != EINTR) break;
    if (!killed && g_interrupted.load()) {
      outcome.interrupted = true;
      kill_group();
    }
    if (!killed && command.timeout.count() > 0 && Clock::now() - start > command.timeout) {
      outcome.timed_out = true;
      kill_group();
    }
    ::usleep(1000);
  }
  ::kill(-child, SIGKILL);
  if (WIFEXITED(status)) outcome.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) outcome.signal = WTERMSIG(status);
  outcome.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  return outcome;
}

}  // namespace echolo
