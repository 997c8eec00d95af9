// Who goes on when. Nothing happens before every PE is quiet; then pending calls are answered in the order of
// PEs and their threads; where none can be answered the device runs. So a run depends on the seed alone.
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "base/subprocess.hpp"
#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kQuantum = 100'000, kPollQuantum = 4'000;  // warp instructions
// Polls answered "not ready" in a row, with a device that can't go on and memory that does not change.
constexpr std::uint64_t kIdlePolls = 2000;
// Warp instructions for which one PE's host threads may be kept waiting while others run.
constexpr std::uint64_t kHeldBack = 500'000;
constexpr int kMaxThreads = 256;
constexpr int kControlBatch =
    64;  // messages taken at once, so that a PE that sends without end holds up nobody

// What a control message carries: a note, or one byte and the socket of a new thread.
struct ControlMessage {
  std::vector<std::uint8_t> bytes;
  Fd socket;
};

// False: nothing there (or the end, with *closed).
bool receive_control(int fd, ControlMessage* out, bool* closed) {
  static thread_local std::vector<std::uint8_t> buffer(64U << 10U);
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * 4)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t n = -1;
  do {
    n = ::recvmsg(fd, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  } while (n < 0 && errno == EINTR);
  *closed = n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK);
  if (n <= 0) return false;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int got = -1;
      std::memcpy(&got, CMSG_DATA(h) + i * sizeof(int), sizeof got);
      Fd owned(got);
      if (!out->socket.valid()) out->socket = std::move(owned);
    }
  }
  out->bytes.assign(buffer.begin(), buffer.begin() + n);
  return true;
}

}  // namespace

bool Node::all_gone() const {
  return std::all_of(pes_.begin(), pes_.end(), [](const auto& pe) { return pe->process.ended; });
}

// What ends a PE is only kept here: judge_ends() looks at all PEs at once, so that their order does not
// depend on which of them was quicker.
void Node::take_note(int pe, const wire::RequestHeader& header, wire::Reader in,
                     std::vector<std::uint8_t> bytes) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  PeProcess& process = state.process;
  switch (static_cast<wire::Op>(header.op)) {
    case wire::Op::kNoteModule: {
      in.u64();
      const std::string path(in.text());
      if (in.done()) sites_.add_module(pe, path);
      break;
    }
    case wire::Op::kNoteExit:
      process.exit_code = in.i32();
      process.exited = true;
      break;
    case wire::Op::kNoteEnd:
      process.good_end = true;
      break;
    case wire::Op::kNoteUnsupported: {
      const std::string text(in.text().substr(0, 1000));
      const std::string token = sites_.token(pe, header.frames);
      if (state.notes.size() < 16) state.notes.push_back(text + (token.empty() ? "" : ", at " + token));
      break;
    }
    case wire::Op::kNoteException:
    case wire::Op::kNoteFailure:
    case wire::Op::kNoteCrash:
      if (process.last_words) break;
      process.last_words = LastWords{header, std::move(bytes)};
      break;
    default:
      stop("crashed", "PE " + std::to_string(pe) + " speaks the node's protocol wrongly");
      break;
  }
}

void Node::judge_last_words(int pe) {
  PeProcess& process = pes_[static_cast<std::size_t>(pe)]->process;
  if (!process.last_words || process.reported) return;
  process.reported = true;
  const wire::RequestHeader& header = process.last_words->header;
  wire::Reader in(process.last_words->payload);
  PeReport& report = process.report;
  const std::string phase = driver_ && !driver_->phase(pe).empty() ? " in " + driver_->phase(pe) : "";
  const std::string token = sites_.token(pe, header.frames);
  const std::string at = token.empty() ? "" : ", at " + token;
  const std::string name = "PE " + std::to_string(pe);
  if (static_cast<wire::Op>(header.op) != wire::Op::kNoteCrash) {
    const bool exception = static_cast<wire::Op>(header.op) == wire::Op::kNoteException;
    report.end = exception ? PeEnd::kException : PeEnd::kExitCode;
    report.detail =
        std::string(exception ? "exception " : "") + std::string(in.text().substr(0, 4000)) + phase;
    const std::string& refusal = pes_[static_cast<std::size_t>(pe)]->first_refusal;
    if (!exception && !refusal.empty()) report.detail += "; first refused: " + refusal;
    stop(exception ? "crashed" : "launch_error", name + ": " + report.detail);
    return;
  }
  const int signal = static_cast<int>(in.u32() & 127U);
  const std::uint64_t address = in.u64();
  report.end = PeEnd::kSignal;
  report.code = signal;
  if (signal == SIGXCPU && process.asked_where) {
    report.end = PeEnd::kTimeout;
    report.detail = "makes no call for " + std::to_string(spec_.host_timeout.count()) + " ms" + phase + at;
    stop("timeout", name + " " + report.detail);
    return;
  }
  const char* abbreviation = ::sigabbrev_np(signal);
  report.detail = std::string("SIG") + (abbreviation == nullptr ? "?" : abbreviation);
  if (signal == SIGSEGV || signal == SIGBUS) {
    char text[32];
    std::snprintf(text, sizeof text, " at address 0x%llx", static_cast<unsigned long long>(address));
    report.detail += text;
  }
  report.detail += phase + at;
  if (address >= vgpu::kArenaBase && address < vgpu::kArenaBase + vgpu::kArenaBytes) {
    report_dereference(pe, address, sites_.frame(pe, header.frames));
  }
  stop("crashed", name + ": " + report.detail);
}

void Node::report_dereference(int pe, std::uint64_t address, const vgpu::Frame& where) {
  const vgpu::Allocation* object = machine_->memory().find(address);
  vgpu::Finding finding;
  finding.kind = vgpu::FindingKind::kHostDereference;
  finding.fatal = true;
  finding.message = "host code of PE " + std::to_string(pe) + " dereferences device memory";
  finding.why = "a device address means nothing to the CPU; on a GPU machine this is a segmentation fault";
  finding.advice =
      "copy with cudaMemcpy, or allocate with cudaMallocManaged or cudaMallocHost what both sides use";
  vgpu::Site site;
  site.role = "host";
  site.pe = pe;
  site.on_device = false;
  site.where = where;
  site.call = driver_ ? driver_->call_of(pe) : 0;
  finding.sites.push_back(site);
  if (object != nullptr) {
    finding.address = {object->pe, object->describe(), static_cast<std::int64_t>(address - object->base)};
  }
  machine_->findings().add(std::move(finding));
}

// Called when all PEs are quiet: those that ended badly since, in their order.
bool Node::judge_ends() {
  for (auto& pe : pes_) {
    judge_last_words(pe->process.pe);
    if (pe->process.ended) judge_end(pe->process.pe);
  }
  return !stopped_ && !machine_->findings().has_fatal();
}

// Takes in whatever the PEs have sent, said or printed. False where the poll itself fails.
bool Node::read_all_ready(int timeout_ms) {
  struct Source {
    int pe;
    int what;  // -1 control, -2 output, -3 process, otherwise a thread
  };
  std::vector<pollfd> fds;
  std::vector<Source> sources;
  for (auto& pe : pes_) {
    PeProcess& process = pe->process;
    if (process.ended) continue;
    const auto add = [&](const Fd& fd, int what, short events = POLLIN) {
      if (!fd.valid()) return;
      fds.push_back({fd.get(), events, 0});
      sources.push_back({process.pe, what});
    };
    add(process.control, -1);
    add(process.output, -2);
    add(process.pid_fd, -3);
    for (auto& [index, thread] : process.threads) {
      // A thread that waits for its reply sends nothing, but it may go away.
      add(thread->socket, index, static_cast<short>(thread->in_call ? POLLRDHUP : POLLIN));
    }
  }
  if (fds.empty()) return true;
  attend();
  const int n = ::poll(fds.data(), fds.size(), timeout_ms);
  attend();
  if (n < 0) return errno == EINTR;
  if (n == 0) return true;
  std::vector<int> ended;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    if (fds[i].revents == 0) continue;
    const int index = sources[i].pe;
    PeProcess& process = pes_[static_cast<std::size_t>(index)]->process;
    if (sources[i].what == -1) {
      bool closed = false;
      ControlMessage message;
      for (int taken = 0; taken < kControlBatch && receive_control(process.control.get(), &message, &closed);
           ++taken) {
        if (message.socket.valid()) {
          if (process.threads.size() >= kMaxThreads) {
            stop("crashed", "PE " + std::to_string(index) + " has more than " + std::to_string(kMaxThreads) +
                                " threads");
            return true;
          }
          auto thread = std::make_unique<HostThread>();
          thread->index = process.next_thread++;
          thread->running_since = Clock::now();
          thread->heard_at = attended_;
          ucred who{};
          socklen_t size = sizeof who;
          if (::getsockopt(message.socket.get(), SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
            process.process = who.pid;
          const timeval patience{2, 0};
          ::setsockopt(message.socket.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
          thread->socket = std::move(message.socket);
          const int number = thread->index;
          process.threads[number] = std::move(thread);
        } else if (message.bytes.size() >= sizeof(wire::RequestHeader)) {
          wire::RequestHeader header;
          std::memcpy(&header, message.bytes.data(), sizeof header);
          const std::size_t body = message.bytes.size() - sizeof header;
          if (wire::valid(header) && wire::is_note(static_cast<wire::Op>(header.op)) &&
              header.bytes == body) {
            message.bytes.erase(message.bytes.begin(), message.bytes.begin() + sizeof header);
            take_note(index, header, wire::Reader(message.bytes), message.bytes);
          }
        }
        message = {};
      }
      if (closed) process.control.close();
    } else if (sources[i].what == -2) {
      process.take_output();
    } else if (sources[i].what == -3) {
      ended.push_back(index);
    } else {
      const auto it = process.threads.find(sources[i].what);
      if (it == process.threads.end()) continue;
      it->second->heard_at = attended_;
      const ReadState state = it->second->in_call ? ReadState::kClosed : read_request(*it->second);
      if (state == ReadState::kClosed) {
        process.ending = process.ending || it->second->is_main;
        process.thread_left = Clock::now();
        process.heard_at = attended_;
        process.threads.erase(it);
        continue;
      }
      if (state == ReadState::kMalformed) {
        stop("crashed", "PE " + std::to_string(index) + " speaks the node's protocol wrongly");
      }
      if (state == ReadState::kOk && it->second->in_call && it->second->pending.op() == wire::Op::kHello) {
        greet(index, *it->second);
      }
    }
  }
  // Last, so that what a process said before it ended has been read.
  for (const int pe : ended) {
    bool more = true;
    for (int n_left = 4096; more && n_left > 0 && pes_[static_cast<std::size_t>(pe)]->process.control.valid();
         --n_left) {
      PeProcess& process = pes_[static_cast<std::size_t>(pe)]->process;
      ControlMessage message;
      bool closed = false;
      more = receive_control(process.control.get(), &message, &closed);
      if (more && message.bytes.size() >= sizeof(wire::RequestHeader)) {
        wire::RequestHeader header;
        std::memcpy(&header, message.bytes.data(), sizeof header);
        const std::size_t body = message.bytes.size() - sizeof header;
        if (wire::valid(header) && wire::is_note(static_cast<wire::Op>(header.op)) && header.bytes == body) {
          message.bytes.erase(message.bytes.begin(), message.bytes.begin() + sizeof header);
          take_note(pe, header, wire::Reader(message.bytes), message.bytes);
        }
      }
    }
    pe_ended(pe);
  }
  return true;
}

// A new thread is greeted at once: nothing that another PE could notice follows from it.
void Node::greet(int pe, HostThread& thread) {
  const Answer answer = handle(pe, thread);
  thread.in_call = false;
  thread.pending = {};
  thread.running_since = Clock::now();
  thread.heard_at = attended_;
  if (answer.kind != Answer::Kind::kReply) {
    stop("crashed", "PE " + std::to_string(pe) + " speaks the node's protocol wrongly");
  } else if (!write_reply(thread.socket.get(), answer.error, answer.flags, answer.payload, answer.fd)) {
    stop("crashed", "PE " + std::to_string(pe) + " does not read the node's reply");
  }
}

bool Node::wait_for_hosts() {
  for (bool first = true;; first = false) {
    const Clock::time_point now = Clock::now();
    bool all_quiet = true;
    for (auto& pe : pes_) {
      bool computing = false;
      if (!quiet(*pe, now, &computing)) all_quiet = false;
    }
    if (!read_all_ready(all_quiet || first ? 0 : 5)) return false;
    if (stopped_ || machine_->findings().has_fatal() || !check_limits()) return false;
    if (all_quiet) return judge_ends();
  }
}

// Again until nobody can be answered: the last to arrive at a barrier releases those that were asked before
// it, and all of them go on together.
bool Node::answer_hosts(bool* progress, bool held_back_too) {
  for (bool again = true; again;) {
    again = false;
    if (!answer_round(&again, held_back_too ? -1 : held_back_pe())) return false;
    *progress = *progress || again;
  }
  return true;
}

// The PE whose host threads wait until nobody else can go on, or until others have run for so long that they
// may be waiting for it.
int Node::held_back_pe() {
  const std::uint64_t executed = machine_->counters().warp_instructions;
  return executed - executed_at_held_ < kHeldBack ? machine_->held_back_pe() : -1;
}

bool Node::answer_round(bool* progress, int held_back) {
  for (auto& pe : pes_) {
    PeProcess& process = pe->process;
    if (process.ended || process.pe == held_back) continue;
    for (auto& [index, thread] : process.threads) {
      if (!thread->in_call) continue;
      Answer answer = handle(process.pe, *thread);
      if (stopped_ || machine_->findings().has_fatal()) return false;
      if (answer.kind == Answer::Kind::kBlocked) continue;
      if (answer.kind == Answer::Kind::kMalformed) {
        stop("crashed", "PE " + std::to_string(process.pe) + " speaks the node's protocol wrongly, in " +
                            std::string(thread->pending.header.name));
        return false;
      }
      if (thread->pending.is_poll && answer.error == kNotReadyYet) {
        ++idle_polls_;
      } else {
        idle_polls_ = 0;
      }
      remember_refusal(process.pe, *thread, answer.error);
      if (pe->needs_service && !pe->service_running) answer.flags |= wire::kStartService;
      thread->in_call = false;
      thread->pending = {};
      thread->running_since = Clock::now();
      thread->heard_at = attended_;
      if (process.pe == machine_->held_back_pe()) executed_at_held_ = machine_->counters().warp_instructions;
      *progress = true;
      // Where the reply is not taken the process is ending, or it is lost: its end or the time limit will
      // tell.
      write_reply(thread->socket.get(), answer.error, answer.flags, answer.payload, answer.fd);
    }
  }
  return true;
}

bool Node::run_device(bool* progress) {
  bool polling = false, computing = false;
  const Clock::time_point now = Clock::now();
  for (auto& pe : pes_) {
    bool busy = false;
    quiet(*pe, now, &busy);
    computing = computing || busy;
    for (auto& [index, thread] : pe->process.threads)
      polling = polling || (thread->in_call && thread->pending.is_poll);
  }
  bool fault = false;
  *progress = engine_.pump(machine_->now_ns(), &fault);
  if (fault || stopped_ || machine_->findings().has_fatal()) return false;
  if (*progress) return true;
  const std::uint64_t before = machine_->memory().changes();
  const auto begun = std::chrono::steady_clock::now();
  const vgpu::Machine::Progress state = machine_->run(polling || computing ? kPollQuantum : kQuantum);
  device_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  if (machine_->findings().has_fatal()) return false;
  bool stuck = false;
  switch (state) {
    case vgpu::Machine::Progress::kRan:
      *progress = true;
      break;
    case vgpu::Machine::Progress::kAsleep:
      machine_->advance_to(machine_->next_wake_ns());
      *progress = true;
      break;
    case vgpu::Machine::Progress::kFaulted:
      return false;
    case vgpu::Machine::Progress::kLivelock:
      explain_stuck(true);
      return false;
    case vgpu::Machine::Progress::kIdle:
    case vgpu::Machine::Progress::kStuck:
      stuck = true;
      break;
  }
  if (machine_->memory().changes() != before) idle_polls_ = 0;
  if (engine_.pump(machine_->now_ns(), &fault)) *progress = true;
  if (fault || stopped_ || machine_->findings().has_fatal()) return false;
  if (*progress) {
    if (polling) poll_round_ = true;
    return true;
  }
  if (stuck && polling && idle_polls_ < kIdlePolls) {
    poll_round_ = true;
    *progress = true;
    return true;
  }
  if (stuck && computing) {
    // Somebody may still write to mapped memory, or make the call that the others wait for.
    read_all_ready(5);
    *progress = true;
    return check_limits();
  }
  return true;
}

// A process that is just ending closes its sockets one by one; that must not look like threads that wait for
// ever.
bool Node::still_stuck() {
  const auto census = [this] {
    std::vector<std::size_t> out;
    for (const auto& pe : pes_)
      out.push_back(pe->process.threads.size() * 4 + (pe->process.ended ? 2 : 0) +
                    (pe->process.ending ? 1 : 0));
    return out;
  };
  const std::vector<std::size_t> before = census();
  read_all_ready(2);
  return census() == before;
}

void Node::explain_stuck(bool livelock) {
  std::vector<vgpu::Machine::HostWait> hosts;
  const std::vector<const Op*> waiting = engine_.waiting();
  for (auto& pe : pes_) {
    PeProcess& process = pe->process;
    if (process.ended) {
      vgpu::Machine::HostWait wait;
      wait.pe = process.pe;
      wait.gone = true;
      hosts.push_back(wait);
      continue;
    }
    for (auto& [index, thread] : process.threads) {
      if (!thread->in_call || thread->is_service) continue;
      vgpu::Machine::HostWait wait;
      wait.pe = process.pe;
      wait.in = thread->pending.header.name;
      wait.waits_for = thread->pending.waits_for;
      for (const Op* op : waiting) {
        if (op->pe != process.pe || op->waits_for.empty() || thread->pending.wait.empty()) continue;
        wait.waits_for += ", which waits for " + op->waits_for;
        break;
      }
      wait.where = sites_.frame(process.pe, thread->pending.header.frames);
      hosts.push_back(wait);
    }
  }
  machine_->explain_stuck(hosts, livelock);
  stop(livelock ? "livelock" : "deadlock", livelock ? "no PE gets on" : "no PE can go on");
}

void Node::conduct() {
  while (!all_gone()) {
    if (!wait_for_hosts()) return;
    if (all_gone()) return;
    bool progress = false;
    if (!answer_hosts(&progress, false)) return;
    poll_round_ = false;
    if (progress) continue;
    if (!run_device(&progress)) return;
    if (!check_limits()) return;
    if (progress) continue;
    // Operations that ended in the last attempt may have freed a host: ask once more before calling it a
    // deadlock.
    if (!answer_hosts(&progress, true)) return;
    if (progress) continue;
    if (!still_stuck()) continue;
    explain_stuck(false);
    return;
  }
}

}  // namespace echolo::runtime
