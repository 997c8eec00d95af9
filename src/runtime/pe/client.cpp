// Connections to the node (one a host thread), the reserved address ranges, and the process's start and end.
#include "runtime/pe/client.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "runtime/pe/crash.hpp"
#include "runtime/pe/service.hpp"
#include "runtime/pe/sites.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::runtime::pe {
namespace {

int g_control = -1;
bool g_forked = false;
wire::Hello g_hello;
bool g_have_hello = false;
pthread_mutex_t g_hello_lock = PTHREAD_MUTEX_INITIALIZER;
pthread_key_t g_thread_key;

thread_local int t_socket = -1;
thread_local bool t_gone = false;

void end_process(const char* why) {
  // The node is gone or refuses to talk: nothing sensible can follow.
  if (why != nullptr) std::fprintf(stderr, "echolo: %s\n", why);
  ::_exit(125);
}

bool write_all(int fd, const void* data, std::size_t n) {
  const auto* at = static_cast<const std::uint8_t*>(data);
  while (n > 0) {
    const ssize_t k = ::send(fd, at, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= static_cast<std::size_t>(k);
  }
  return true;
}

bool read_all(int fd, void* data, std::size_t n) {
  auto* at = static_cast<std::uint8_t*>(data);
  while (n > 0) {
    const ssize_t k = ::recv(fd, at, n, 0);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= static_cast<std::size_t>(k);
  }
  return true;
}

// Sends `byte` with a descriptor on the control socket: a new thread's end of a socket pair.
bool send_descriptor(int fd) {
  char byte = 'c';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(g_control, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == 1;
}

// The first reply carries the memfd of this PE's pinned memory along with its first byte.
bool read_with_descriptor(int socket, void* data, std::size_t n, int* fd) {
  iovec part{data, n};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t k = -1;
  do {
    k = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (k < 0 && errno == EINTR);
  if (k <= 0) return false;
  for (cmsghdr* h = CMSG_FIRSTHDR(&message); h != nullptr; h = CMSG_NXTHDR(&message, h)) {
    if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS) std::memcpy(fd, CMSG_DATA(h), sizeof *fd);
  }
  const auto got = static_cast<std::size_t>(k);
  return got == n || read_all(socket, static_cast<std::uint8_t*>(data) + got, n - got);
}

void* reserve(std::uint64_t base, std::uint64_t bytes) {
  return ::mmap(reinterpret_cast<void*>(base), bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}

void map_ranges(const wire::Hello& hello, int pinned) {
  const std::uint64_t mine = vgpu::kHostBase + static_cast<std::uint64_t>(hello.pe) * vgpu::kHostSpan;
  if (reserve(vgpu::kArenaBase, vgpu::kArenaBytes) == MAP_FAILED ||
      reserve(vgpu::kHostBase, vgpu::kHostBytes) == MAP_FAILED) {
    end_process("this process already uses the addresses of the virtual device's memory");
  }
  if (pinned < 0) end_process("the node sent no pinned memory");
  if (::mmap(reinterpret_cast<void*>(mine), vgpu::kHostSpan, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_NORESERVE | MAP_FIXED, pinned, 0) == MAP_FAILED) {
    end_process("cannot map pinned memory");
  }
  ::close(pinned);
}

void on_process_exit(int code, void*) {
  if (g_forked) return;
  wire::Writer note;
  note.i32(code);
  __cudaEcholoNote(static_cast<std::uint16_t>(wire::Op::kNoteExit), note.bytes().data(), note.bytes().size());
}

void on_thread_end(void*) {
  t_gone = true;
  if (t_socket >= 0) ::close(t_socket);
  t_socket = -1;
}

bool connect_thread() {
  if (t_socket >= 0) return true;
  if (g_control < 0 || t_gone) return false;
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return false;
  const bool sent = send_descriptor(pair[1]);
  ::close(pair[1]);
  if (!sent) {
    ::close(pair[0]);
    return false;
  }
  t_socket = pair[0];
  // The main thread's connection lasts as long as the process: static destructors still make calls.
  if (::gettid() != ::getpid()) pthread_setspecific(g_thread_key, &t_socket);
  use_alternate_stack();

  wire::RequestHeader request;
  request.op = static_cast<std::uint16_t>(wire::Op::kHello);
  std::snprintf(request.name, sizeof request.name, "connect");
  wire::Writer payload;
  payload.u32(static_cast<std::uint32_t>(::getpid())).u32(static_cast<std::uint32_t>(::gettid()));
  request.bytes = static_cast<std::uint32_t>(payload.bytes().size());
  wire::ReplyHeader reply;
  wire::Hello hello;
  int pinned = -1;
  if (!write_all(t_socket, &request, sizeof request) ||
      !write_all(t_socket, payload.bytes().data(), payload.bytes().size()) ||
      !read_with_descriptor(t_socket, &reply, sizeof reply, &pinned) || reply.bytes != sizeof hello ||
      !read_all(t_socket, &hello, sizeof hello)) {
    end_process(nullptr);
  }
  if (hello.first != 0) map_ranges(hello, pinned);
  g_hello = hello;
  __atomic_store_n(&g_have_hello, true, __ATOMIC_RELEASE);
  return true;
}

bool ensure_connected() {
  if (g_forked) return false;
  if (t_socket >= 0) return true;
  // Only one thread may be the first.
  pthread_mutex_lock(&g_hello_lock);
  const bool ok = connect_thread();
  pthread_mutex_unlock(&g_hello_lock);
  return ok;
}

__attribute__((constructor(101))) void start() {
  const char* text = std::getenv(wire::kControlFdVariable);
  if (text != nullptr) {
    g_control = static_cast<int>(std::strtol(text, nullptr, 10));
    if (::fcntl(g_control, F_SETFD, FD_CLOEXEC) != 0) g_control = -1;
    ::unsetenv(wire::kControlFdVariable);
  }
  pthread_key_create(&g_thread_key, on_thread_end);
  pthread_atfork(nullptr, nullptr, [] { g_forked = true; });
  if (g_control < 0) return;
  // Output of a process that is killed must not be lost in its buffers.
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  ::on_exit(on_process_exit, nullptr);
  install_crash_handlers();
}

}  // namespace

}  // namespace echolo::runtime::pe

using namespace echolo::runtime;  // NOLINT(google-build-using-namespace)

extern "C" {

int __cudaEcholoCall(std::uint16_t op, const char* name, const std::uint8_t* in, std::size_t n,
                     std::uint8_t** out, std::size_t* n_out) {
  *out = nullptr;
  *n_out = 0;
  if (pe::t_gone) return pe::kCudartUnloading;
  if (!pe::ensure_connected()) {
    if (pe::g_control < 0) {
      std::fprintf(stderr,
                   "echolo: %s: this program runs under `echolo sanitize` or `echolo check`, not by itself\n",
                   name);
    }
    return pe::kInitializationError;
  }
  if (n > wire::kMaxPayload) return pe::kInvalidValue;
  wire::RequestHeader request;
  request.op = op;
  request.bytes = static_cast<std::uint32_t>(n);
  std::snprintf(request.name, sizeof request.name, "%s", name);
  pe::gather_frames(request.frames);
  pe::enter_call(name, request.frames);
  wire::ReplyHeader reply;
  if (!pe::write_all(pe::t_socket, &request, sizeof request) || !pe::write_all(pe::t_socket, in, n) ||
      !pe::read_all(pe::t_socket, &reply, sizeof reply) || reply.magic != wire::kMagic) {
    pe::end_process(nullptr);
  }
  if (reply.bytes != 0) {
    *out = static_cast<std::uint8_t*>(std::malloc(reply.bytes));
    if (*out == nullptr || !pe::read_all(pe::t_socket, *out, reply.bytes)) pe::end_process(nullptr);
    *n_out = reply.bytes;
  }
  pe::leave_call();
  if ((reply.flags & wire::kStartService) != 0) pe::start_service();
  return reply.error;
}

void __cudaEcholoNote(std::uint16_t op, const std::uint8_t* in, std::size_t n) {
  if (pe::g_control < 0 || pe::g_forked) return;
  wire::RequestHeader header;
  header.op = op;
  header.bytes = static_cast<std::uint32_t>(n);
  pe::crash_frames(header.frames);
  iovec parts[2] = {{&header, sizeof header}, {const_cast<std::uint8_t*>(in), n}};
  msghdr message{};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  ssize_t sent = -1;
  do {
    sent = ::sendmsg(pe::g_control, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
}

const wire::Hello* __cudaEcholoHello() {
  if (!pe::ensure_connected()) return nullptr;
  return &pe::g_hello;
}
}
