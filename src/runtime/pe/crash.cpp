#include "runtime/pe/crash.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstring>

#include "runtime/pe/client.hpp"
#include "runtime/pe/sites.hpp"

namespace echolo::runtime::pe {
namespace {

constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS, SIGXCPU, SIGXFSZ};
constexpr std::size_t kStackBytes = 128 << 10;

thread_local bool t_have_stack = false;
thread_local wire::Frame t_frames[wire::kMaxFrames];
thread_local bool t_crashing = false;
volatile sig_atomic_t g_crashing = 0;

void report(int signal, std::uint64_t address) {
  // No allocation here: the heap may be what is broken.
  struct __attribute__((packed)) {
    std::uint32_t signal;
    std::uint64_t address;
    std::uint8_t arena;
  } note{static_cast<std::uint32_t>(signal), address, 0};
  note.arena = in_arena(reinterpret_cast<void*>(address)) ? 1 : 0;
  __cudaEcholoNote(static_cast<std::uint16_t>(wire::Op::kNoteCrash),
                   reinterpret_cast<const std::uint8_t*>(&note), sizeof note);
}

void on_signal(int signal, siginfo_t* info, void* context) {
  const auto* machine = static_cast<ucontext_t*>(context);
  const auto pc = static_cast<std::uint64_t>(machine->uc_mcontext.gregs[REG_RIP]);
  const std::uint64_t address =
      signal == SIGSEGV || signal == SIGBUS ? reinterpret_cast<std::uint64_t>(info->si_addr) : 0;
  if (g_crashing != 0) {
    // Unwinding from a broken stack crashed in turn: say what is known without it.
    if (t_crashing) report(signal, address);
    ::_exit(128 + signal);
  }
  g_crashing = 1;
  t_crashing = true;
  for (wire::Frame& frame : t_frames) frame = {};
  t_frames[0] = frame_of(pc, true);
  wire::Frame walked[wire::kMaxFrames];
  gather_frames(walked);
  if (walked[0].module != 0) std::memcpy(t_frames, walked, sizeof t_frames);
  report(signal, address);
  ::_exit(128 + signal);
}

}  // namespace

void install_crash_handlers() {
  use_alternate_stack();
  struct sigaction action {};
  action.sa_sigaction = on_signal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigemptyset(&action.sa_mask);
  for (const int signal : kSignals) ::sigaction(signal, &action, nullptr);
}

void use_alternate_stack() {
  if (t_have_stack) return;
  void* memory = ::mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack{};
  stack.ss_sp = memory;
  stack.ss_size = kStackBytes;
  t_have_stack = ::sigaltstack(&stack, nullptr) == 0;
}

void enter_call(const char*, const wire::Frame* frames) { std::memcpy(t_frames, frames, sizeof t_frames); }
void leave_call() {
  for (wire::Frame& frame : t_frames) frame = {};
}

void crash_frames(wire::Frame* frames) { std::memcpy(frames, t_frames, sizeof t_frames); }

}  // namespace echolo::runtime::pe
