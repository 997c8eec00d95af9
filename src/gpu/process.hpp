// A child process that answers one line to each line it is sent.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

namespace echolo::gpu {

// A child that did not answer as it should. `hung`: it said nothing within the limit.
struct ChildFault : std::runtime_error {
  ChildFault(const std::string& text, bool is_hung) : std::runtime_error(text), hung(is_hung) {}
  bool hung;
};

class Process {
 public:
  // Starts `argv` in a process group of its own with `environment` on top of ours; an empty value unsets.
  Process(const std::vector<std::string>& argv, const std::map<std::string, std::string>& environment,
          const std::string& log) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    name_ = argv[0];
    pid_ = fork();
    if (pid_ < 0) throw std::runtime_error("fork failed");
    if (pid_ == 0) {
      setpgid(0, 0);
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      const int to = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      if (to >= 0) dup2(to, STDERR_FILENO);
      for (const auto& [key, value] : environment) {
        value.empty() ? unsetenv(key.c_str()) : setenv(key.c_str(), value.c_str(), 1);
      }
      std::vector<char*> words;
      for (const std::string& word : argv) words.push_back(const_cast<char*>(word.c_str()));
      words.push_back(nullptr);
      execvp(words[0], words.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    to_ = in[1];
    from_ = out[0];
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    close(to_);
    close(from_);
    if (!reaped_) {
      kill(-pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }

  void send(const std::string& line) {
    const std::string text = line + "\n";
    std::size_t done = 0;
    while (done < text.size()) {
      const ssize_t n = ::write(to_, text.data() + done, text.size() - done);
      if (n <= 0) throw ChildFault("it has ended" + how_it_ended(), false);
      done += static_cast<std::size_t>(n);
    }
  }

  // The next answer without its first word, which must be `word`.
  std::string receive(const std::string& word, std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    std::size_t end = 0;
    while ((end = pending_.find('\n')) == std::string::npos) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(until - std::chrono::steady_clock::now());
      pollfd waiting{from_, POLLIN, 0};
      if (left.count() <= 0 || poll(&waiting, 1, static_cast<int>(left.count())) == 0) {
        throw ChildFault("no answer within " + std::to_string(limit.count()) + " ms", true);
      }
      char buffer[65536];
      const ssize_t n = ::read(from_, buffer, sizeof buffer);
      if (n <= 0) throw ChildFault("it has ended" + how_it_ended(), false);
      pending_.append(buffer, static_cast<std::size_t>(n));
    }
    const std::string line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    if (line.compare(0, word.size(), word) != 0) throw ChildFault(line, false);
    return line.size() > word.size() ? line.substr(word.size() + 1) : "";
  }

  // Ends by itself within the limit after having been asked; otherwise the destructor kills it.
  void await_end(std::chrono::milliseconds limit) {
    const auto until = std::chrono::steady_clock::now() + limit;
    while (!reaped_ && std::chrono::steady_clock::now() < until) {
      if (waitpid(pid_, &status_, WNOHANG) == pid_) reaped_ = true;
      if (!reaped_) usleep(2000);
    }
  }

 private:
  std::string how_it_ended() {
    if (!reaped_ && waitpid(pid_, &status_, 0) == pid_) reaped_ = true;
    if (WIFSIGNALED(status_)) return " with signal " + std::to_string(WTERMSIG(status_));
    return " with exit code " + std::to_string(WEXITSTATUS(status_));
  }

  std::string name_, pending_;
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1, status_ = 0;
  bool reaped_ = false;
};

}  // namespace echolo::gpu
