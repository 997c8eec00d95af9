// Progress on standard error: one live line on a terminal, nothing but notes elsewhere.
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <thread>

#include "base/text.hpp"
#include "cli/session.hpp"

namespace echolo::cli {
namespace {

using Clock = std::chrono::steady_clock;

class NotesOnly : public judge::Progress {
 public:
  void note(const std::string& line) override {
    const std::scoped_lock lock(mutex_);
    std::fprintf(stderr, "%s\n", printable(line).c_str());
  }

 private:
  std::mutex mutex_;
};

class LiveLine : public judge::Progress {
 public:
  LiveLine() : ticker_([this] { tick(); }) {}
  LiveLine(const LiveLine&) = delete;
  LiveLine& operator=(const LiveLine&) = delete;
  ~LiveLine() override {
    {
      const std::scoped_lock lock(mutex_);
      over_ = true;
    }
    wake_.notify_all();
    ticker_.join();
    erase();
  }
  void stage(const std::string& name, const std::string& what) override {
    const std::scoped_lock lock(mutex_);
    name_ = name;
    what_ = what;
    done_ = total_ = 0;
    start_ = Clock::now();
  }
  void advance(std::size_t done, std::size_t total, const std::string& what) override {
    const std::scoped_lock lock(mutex_);
    done_ = std::max(done, done_);
    total_ = total;
    what_ = what;
  }
  void note(const std::string& line) override {
    const std::scoped_lock lock(mutex_);
    erase();
    std::fprintf(stderr, "%s\n", printable(line).c_str());
  }

 private:
  void erase() {
    if (shown_) std::fputs("\r\x1b[K", stderr);
    shown_ = false;
  }
  void tick() {
    std::unique_lock lock(mutex_);
    while (!over_) {
      wake_.wait_for(lock, std::chrono::milliseconds(200));
      if (over_ || name_.empty()) continue;
      constexpr std::size_t kWidth = 100;
      const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
      std::string line = name_;
      if (total_ > 0) line += " " + std::to_string(done_) + "/" + std::to_string(total_);
      char elapsed[32];
      std::snprintf(elapsed, sizeof elapsed, " %.0f s ", seconds);
      line += elapsed + printable(what_);
      if (line.size() > kWidth) line = line.substr(0, kWidth - 3) + "...";
      std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
      std::fflush(stderr);
      shown_ = true;
    }
  }

  std::mutex mutex_;
  std::condition_variable wake_;
  std::string name_, what_;
  std::size_t done_ = 0, total_ = 0;
  Clock::time_point start_ = Clock::now();
  bool over_ = false;
  bool shown_ = false;
  std::thread ticker_;  // last: it uses everything above
};

}  // namespace

std::unique_ptr<judge::Progress> Session::progress() const {
  if (::isatty(STDERR_FILENO) != 0) return std::make_unique<LiveLine>();
  return std::make_unique<NotesOnly>();
}

}  // namespace echolo::cli
