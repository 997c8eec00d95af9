#include "runtime/node/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/text.hpp"
#include "runtime/node/sandbox.hpp"

namespace echolo::runtime {
namespace {

constexpr rlim_t kFileBytes = 256U << 20U;
constexpr rlim_t kDataBytes = rlim_t{24} << 30U;
constexpr rlim_t kOpenFiles = 512, kProcesses = 8192;

void limit(int resource, rlim_t value) {
  rlimit now{};
  if (::getrlimit(static_cast<__rlimit_resource>(resource), &now) != 0) return;
  if (now.rlim_max != RLIM_INFINITY && now.rlim_max < value) value = now.rlim_max;
  const rlimit wanted{value, value};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &wanted);
}

struct ChildSetup {
  char* const* argv;
  char* const* envp;
  const char* directory;
  int control, output, seccomp;
  pid_t parent;
  rlim_t cpu_seconds;
};

// Between fork and exec: async-signal-safe calls only.
[[noreturn]] void run_child(const ChildSetup& setup) {
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != setup.parent) ::_exit(126);
  struct sigaction plain {};
  plain.sa_handler = SIG_DFL;
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE}) ::sigaction(signal, &plain, nullptr);
  const int null = ::open("/dev/null", O_RDONLY);
  if (null < 0 || ::dup2(null, 0) < 0 || ::dup2(setup.output, 1) < 0 || ::dup2(setup.output, 2) < 0)
    ::_exit(126);
  ::fcntl(setup.control, F_SETFD, 0);
  if (setup.seccomp >= 0) ::fcntl(setup.seccomp, F_SETFD, 0);
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_FSIZE, kFileBytes);
  limit(RLIMIT_DATA, kDataBytes);
  limit(RLIMIT_NOFILE, kOpenFiles);
  limit(RLIMIT_NPROC, kProcesses);
  limit(RLIMIT_CPU, setup.cpu_seconds);
  // Host addresses that a program prints or hashes are the same on every run.
  ::personality(ADDR_NO_RANDOMIZE);
  if (setup.directory != nullptr && ::chdir(setup.directory) != 0) ::_exit(126);
  ::execve(setup.argv[0], setup.argv, setup.envp);
  ::_exit(127);
}

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

void Fd::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

Status start_pe(const LaunchPlan& plan, PeProcess& process) {
  int control[2];
  int output[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) {
    return machine_error(std::string("cannot make a socket: ") + std::strerror(errno));
  }
  Fd ours(control[0]), theirs(control[1]);
  if (::pipe2(output, O_CLOEXEC) != 0)
    return machine_error(std::string("cannot make a pipe: ") + std::strerror(errno));
  Fd read_end(output[0]), write_end(output[1]);
  ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
  ::fcntl(ours.get(), F_SETFL, O_NONBLOCK);

  std::vector<std::string> argv = plan.argv;
  Fd filter;
  if (plan.sandbox) {
    Result<int> made = seccomp_program(plan.may_fork);
    if (!made.ok()) return made.error();
    filter = Fd(*made);
    argv = sandbox_command(plan, filter.get());
  }
  std::vector<std::string> environment;
  for (const auto& [key, value] : plan.env) environment.push_back(key + "=" + value);
  environment.push_back(std::string(wire::kControlFdVariable) + "=" + std::to_string(theirs.get()));
  std::vector<char*> argv_pointers = pointers(argv);
  std::vector<char*> environment_pointers = pointers(environment);
  ChildSetup setup{argv_pointers.data(),
                   environment_pointers.data(),
                   plan.sandbox ? nullptr : plan.directory.c_str(),
                   theirs.get(),
                   write_end.get(),
                   filter.get(),
                   ::getpid(),
                   static_cast<rlim_t>(plan.cpu_limit.count())};
  const pid_t child = ::fork();
  if (child < 0) return machine_error(std::string("cannot start a process: ") + std::strerror(errno));
  if (child == 0) run_child(setup);
  ::setpgid(child, child);
  process.child = child;
  process.pid_fd = Fd(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  process.control = std::move(ours);
  process.output = std::move(read_end);
  process.started = std::chrono::steady_clock::now();
  return {};
}

void reap(PeProcess& process, int* status) {
  if (process.child <= 0) return;
  for (int i = 0; i < 1000; ++i) {
    const pid_t reaped = ::waitpid(process.child, status, WNOHANG);
    if (reaped == process.child || (reaped < 0 && errno != EINTR)) break;
    ::usleep(1000);
  }
  // What it left behind in its group goes with it.
  ::kill(-process.child, SIGKILL);
  process.child = -1;
}

void kill_pe(PeProcess& process) {
  if (process.child <= 0) return;
  ::kill(-process.child, SIGKILL);
  ::kill(process.child, SIGKILL);
  int status = 0;
  reap(process, &status);
}

void PeProcess::append_output(std::string_view text) {
  const std::size_t room = output_limit > report.output.size() ? output_limit - report.output.size() : 0;
  report.output.append(text.substr(0, room));
  if (text.size() > room) report.output_truncated = true;
}

void PeProcess::take_output() {
  if (!output.valid()) return;
  char buffer[65536];
  // Bounded, so that a PE that writes without end can't keep the node here.
  for (int i = 0; i < 64; ++i) {
    const ssize_t n = ::read(output.get(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
      output.close();
      return;
    }
    append_output(std::string_view(buffer, static_cast<std::size_t>(n)));
  }
}

ReadState read_request(HostThread& thread) {
  constexpr std::size_t kHeader = sizeof(wire::RequestHeader);
  while (!thread.in_call) {
    std::size_t wanted = kHeader;
    wire::RequestHeader header;
    if (thread.incoming.size() >= kHeader) {
      std::memcpy(&header, thread.incoming.data(), kHeader);
      if (!wire::valid(header) || wire::is_note(static_cast<wire::Op>(header.op)))
        return ReadState::kMalformed;
      wanted += header.bytes;
    }
    if (thread.incoming.size() < wanted) {
      // Grows with what arrives, not with what the header claims.
      const std::size_t had = thread.incoming.size();
      const std::size_t room = std::min<std::size_t>(wanted - had, 1U << 20U);
      thread.incoming.resize(had + room);
      const ssize_t n = ::recv(thread.socket.get(), thread.incoming.data() + had, room, MSG_DONTWAIT);
      thread.incoming.resize(had + static_cast<std::size_t>(n > 0 ? n : 0));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ReadState::kOk;
      if (n <= 0) return ReadState::kClosed;
      continue;
    }
    thread.pending = {};
    thread.pending.header = header;
    thread.pending.payload.assign(thread.incoming.begin() + static_cast<std::ptrdiff_t>(kHeader),
                                  thread.incoming.end());
    thread.incoming.clear();
    thread.in_call = true;
  }
  return ReadState::kOk;
}

bool write_reply(int socket, int error, std::uint32_t flags, const std::vector<std::uint8_t>& payload,
                 int fd) {
  wire::ReplyHeader header;
  header.error = error;
  header.flags = flags;
  header.bytes = static_cast<std::uint32_t>(payload.size());
  iovec part{&header, sizeof header};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(c), &fd, sizeof fd);
  }
  ssize_t n = -1;
  do {
    n = ::sendmsg(socket, &message, MSG_NOSIGNAL);
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof header)) return false;
  for (std::size_t at = 0; at < payload.size();) {
    n = ::send(socket, payload.data() + at, payload.size() - at, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;  // SO_SNDTIMEO: a PE that asks and does not read
    at += static_cast<std::size_t>(n);
  }
  return true;
}

std::chrono::milliseconds processor_time(pid_t process) {
  const Result<std::string> stat = read_file("/proc/" + std::to_string(process) + "/stat");
  if (!stat.ok()) return std::chrono::milliseconds(0);
  const std::size_t paren = stat->rfind(')');
  if (paren == std::string::npos) return std::chrono::milliseconds(0);
  // After the name: state is field 3, utime field 14, stime field 15.
  const std::vector<std::string> fields = split(std::string_view(*stat).substr(paren + 2), ' ');
  if (fields.size() < 13) return std::chrono::milliseconds(0);
  const unsigned long long ticks =
      std::strtoull(fields[11].c_str(), nullptr, 10) + std::strtoull(fields[12].c_str(), nullptr, 10);
  const long per_second = ::sysconf(_SC_CLK_TCK);
  return std::chrono::milliseconds(ticks * 1000 /
                                   static_cast<unsigned long long>(per_second > 0 ? per_second : 100));
}

bool all_asleep(pid_t process, int* n_tasks) {
  *n_tasks = 0;
  const std::string folder = "/proc/" + std::to_string(process) + "/task";
  DIR* tasks = ::opendir(folder.c_str());
  if (tasks == nullptr) return false;
  bool asleep = true;
  while (const dirent* entry = ::readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    ++*n_tasks;
    char text[512];
    const int file = ::open((folder + "/" + entry->d_name + "/stat").c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    const ssize_t n = ::read(file, text, sizeof text - 1);
    ::close(file);
    if (n <= 0) continue;
    text[n] = 0;
    const char* paren = std::strrchr(text, ')');  // the name before it may hold anything
    if (paren == nullptr || paren[1] == 0 || (paren[2] != 'S' && paren[2] != 'Z')) asleep = false;
  }
  ::closedir(tasks);
  return asleep;
}

}  // namespace echolo::runtime
