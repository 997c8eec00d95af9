#include "runtime/node/sandbox.hpp"

#include <fcntl.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

#include "base/subprocess.hpp"
#include "base/text.hpp"

namespace echolo::runtime {
namespace {

constexpr const char* kBubblewrap = "/usr/bin/bwrap";

// What a PE has no business with: other processes, the kernel's inner life, and new ways out of the sandbox.
constexpr int kDenied[] = {SCMP_SYS(ptrace),
                           SCMP_SYS(process_vm_readv),
                           SCMP_SYS(process_vm_writev),
                           SCMP_SYS(process_madvise),
                           SCMP_SYS(kcmp),
                           SCMP_SYS(pidfd_open),
                           SCMP_SYS(pidfd_getfd),
                           SCMP_SYS(pidfd_send_signal),
                           SCMP_SYS(mount),
                           SCMP_SYS(umount2),
                           SCMP_SYS(pivot_root),
                           SCMP_SYS(chroot),
                           SCMP_SYS(setns),
                           SCMP_SYS(unshare),
                           SCMP_SYS(open_tree),
                           SCMP_SYS(move_mount),
                           SCMP_SYS(fsopen),
                           SCMP_SYS(fsmount),
                           SCMP_SYS(fsconfig),
                           SCMP_SYS(keyctl),
                           SCMP_SYS(add_key),
                           SCMP_SYS(request_key),
                           SCMP_SYS(bpf),
                           SCMP_SYS(perf_event_open),
                           SCMP_SYS(userfaultfd),
                           SCMP_SYS(io_uring_setup),
                           SCMP_SYS(io_uring_enter),
                           SCMP_SYS(io_uring_register),
                           SCMP_SYS(init_module),
                           SCMP_SYS(finit_module),
                           SCMP_SYS(delete_module),
                           SCMP_SYS(kexec_load),
                           SCMP_SYS(reboot),
                           SCMP_SYS(swapon),
                           SCMP_SYS(swapoff),
                           SCMP_SYS(quotactl),
                           SCMP_SYS(acct),
                           SCMP_SYS(open_by_handle_at),
                           SCMP_SYS(name_to_handle_at),
                           SCMP_SYS(connect),
                           SCMP_SYS(bind),
                           SCMP_SYS(listen),
                           SCMP_SYS(accept),
                           SCMP_SYS(accept4),
                           SCMP_SYS(socket),
                           SCMP_SYS(shmget),
                           SCMP_SYS(shmat),
                           SCMP_SYS(msgget),
                           SCMP_SYS(semget),
                           SCMP_SYS(mq_open),
                           SCMP_SYS(setpriority),
                           SCMP_SYS(sched_setscheduler)};

bool exists(const std::string& path) {
  struct stat info {};
  return ::lstat(path.c_str(), &info) == 0;
}

}  // namespace

std::vector<std::string> sandbox_command(const LaunchPlan& plan, int seccomp_fd) {
  std::vector<std::string> out = {kBubblewrap,
                                  "--unshare-user",
                                  "--unshare-pid",
                                  "--unshare-net",
                                  "--unshare-ipc",
                                  "--unshare-uts",
                                  "--unshare-cgroup-try",
                                  "--die-with-parent",
                                  "--new-session",
                                  "--cap-drop",
                                  "ALL",
                                  "--hostname",
                                  "pe",
                                  "--ro-bind",
                                  "/usr",
                                  "/usr"};
  for (const char* path : {"/bin", "/sbin", "/lib", "/lib64", "/lib32"}) {
    char target[256];
    const ssize_t n = ::readlink(path, target, sizeof target - 1);
    if (n > 0) {
      out.insert(out.end(), {"--symlink", std::string(target, static_cast<std::size_t>(n)), path});
    } else if (exists(path)) {
      out.insert(out.end(), {"--ro-bind", path, path});
    }
  }
  for (const char* path : {"/etc/ld.so.cache", "/etc/localtime"})
    out.insert(out.end(), {"--ro-bind-try", path, path});
  out.insert(out.end(), {"--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"});
  for (const std::string& path : plan.readable) out.insert(out.end(), {"--ro-bind", path, path});
  out.insert(out.end(), {"--ro-bind", plan.directory, plan.directory, "--chdir", plan.directory});
  out.insert(out.end(), {"--seccomp", std::to_string(seccomp_fd), "--"});
  out.insert(out.end(), plan.argv.begin(), plan.argv.end());
  return out;
}

Result<int> seccomp_program(bool may_fork) {
  const std::unique_ptr<void, void (*)(scmp_filter_ctx)> filter(seccomp_init(SCMP_ACT_ALLOW),
                                                                seccomp_release);
  if (filter == nullptr) return machine_error("cannot make a seccomp filter");
  int bad = 0;
  for (const int call : kDenied) bad |= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), call, 0);
  if (!may_fork) {
    // Threads are fine, processes are not. clone3 hides its flags in memory, so the C library is sent back to
    // clone.
    bad |= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(fork), 0);
    bad |= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(vfork), 0);
    bad |= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
    bad |= seccomp_rule_add(filter.get(), SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
                            SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0));
  }
  const int fd = ::memfd_create("echolo-seccomp", MFD_CLOEXEC);
  if (fd < 0 || bad != 0 || seccomp_export_bpf(filter.get(), fd) != 0 || ::lseek(fd, 0, SEEK_SET) != 0) {
    if (fd >= 0) ::close(fd);
    return machine_error("cannot make a seccomp filter",
                         "is libseccomp newer than the kernel's headers here?");
  }
  return fd;
}

std::string sandbox_problem() {
  static const std::string problem = [] {
    if (!exists(kBubblewrap)) return std::string("bubblewrap is not installed");
    LaunchPlan plan;
    plan.argv = {"/usr/bin/true"};
    plan.directory = "/usr";
    Result<int> filter = seccomp_program(false);
    if (!filter.ok()) return filter.error().message;
    Command command;
    command.argv = sandbox_command(plan, *filter);
    command.timeout = std::chrono::seconds(10);
    const int fd = *filter;
    command.in_child = [fd] { ::fcntl(fd, F_SETFD, 0); };
    const Result<Outcome> outcome = run_command(command);
    ::close(fd);
    if (!outcome.ok()) return outcome.error().message;
    if (outcome->ok()) return std::string();
    std::string said(trim(outcome->standard_error));
    return "bubblewrap can't make a sandbox: " + (said.empty() ? "it ended without a word" : said);
  }();
  return problem;
}

}  // namespace echolo::runtime
