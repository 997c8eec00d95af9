// A PE that does not use our library but speaks to the node itself: valid headers, then whatever the seed
// says.
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "runtime/protocol.hpp"

using namespace echolo::runtime;  // NOLINT(google-build-using-namespace)

namespace {

int control() {
  const char* text = std::getenv(wire::kControlFdVariable);
  return text == nullptr ? -1 : std::atoi(text);
}

int connect_thread() {
  int pair[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return -1;
  char byte = 'c';
  iovec part{&byte, 1};
  alignas(cmsghdr) char space[CMSG_SPACE(sizeof(int))] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = space;
  message.msg_controllen = sizeof space;
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(header), &pair[1], sizeof(int));
  ::sendmsg(control(), &message, MSG_NOSIGNAL);
  ::close(pair[1]);
  return pair[0];
}

void send_request(int fd, std::uint16_t op, const char* name, const std::vector<std::uint8_t>& payload,
                  echolo::Rng& rng) {
  wire::RequestHeader header;
  header.op = op;
  header.bytes = static_cast<std::uint32_t>(payload.size());
  std::strncpy(header.name, name, sizeof header.name - 1);
  for (wire::Frame& frame : header.frames) {
    frame.module = static_cast<std::uint32_t>(rng.below(3));
    frame.offset = rng.next();
  }
  if (::send(fd, &header, sizeof header, MSG_NOSIGNAL) < 0) return;
  if (!payload.empty() && ::send(fd, payload.data(), payload.size(), MSG_NOSIGNAL) < 0) return;
}

// Takes the reply where there is one; false where the node has had enough.
bool take_reply(int fd, std::uint64_t* word) {
  pollfd waiting{fd, POLLIN, 0};
  if (::poll(&waiting, 1, 100) <= 0) return true;
  wire::ReplyHeader reply;
  if (::recv(fd, &reply, sizeof reply, MSG_WAITALL) != static_cast<ssize_t>(sizeof reply)) return false;
  std::vector<std::uint8_t> payload(reply.bytes);
  if (reply.bytes != 0 && ::recv(fd, payload.data(), payload.size(), MSG_WAITALL) <= 0) return false;
  if (payload.size() >= sizeof *word) std::memcpy(word, payload.data(), sizeof *word);
  return true;
}

constexpr const char* kPtx =
    ".version 9.2\n.target sm_90a\n.address_size 64\n"
    ".visible .entry k(.param .u64 p) { .reg .b64 %rd<3>; .reg .b32 %r<2>; ld.param.u64 %rd1, [p];\n"
    "cvta.to.global.u64 %rd2, %rd1; mov.u32 %r1, 7; st.global.u32 [%rd2], %r1; ret; }\n";
constexpr const char* kNames[] = {"nvshmem_quiet",
                                  "nvshmem_malloc",
                                  "nvshmem_int_put",
                                  "nvshmem_barrier_all",
                                  "nvshmemx_int_put_on_stream",
                                  "nvshmem_free",
                                  "nvshmem_team_split_strided",
                                  "nvshmem_float_sum_reduce",
                                  "nvshmemx_signal_op",
                                  "nvshmem_int_g",
                                  "nvshmem_ptr"};

// The fields of a request: q 64 bits, d 32 bits, b 8 bits, t text.
const char* form_of(wire::Op op) {
  using wire::Op;
  switch (op) {
    case Op::kHello:
      return "dd";
    case Op::kKernelInfo:
    case Op::kVariable:
      return "dt";
    case Op::kFunctionLimit:
      return "dtq";
    case Op::kOccupancy:
      return "dtdq";
    case Op::kLaunch:
      return "dtddddddqqbdddt";
    case Op::kFree:
      return "bq";
    case Op::kFreeAsync:
    case Op::kEventElapsed:
    case Op::kGraphLaunch:
    case Op::kGraphFindInClone:
    case Op::kGraphUpdate:
      return "qq";
    case Op::kStreamWaitEvent:
    case Op::kEventRecord:
      return "qqq";
    case Op::kFill:
      return "qdbqqqqb";
    case Op::kUnloadModule:
    case Op::kKernelNames:
      return "d";
    case Op::kPool:
    case Op::kVirtual:
      return "bqqq";
    case Op::kIpcMemory:
    case Op::kIpcEvent:
      return "bqq";
    case Op::kStreamWord:
      return "qqqbbbb";
    case Op::kGraphNodes:
      return "qb";
    case Op::kGraphEnable:
      return "qqb";
    case Op::kStreamCreate:
      return "dd";
    case Op::kHostFunction:
      return "qqqb";
    case Op::kService:
      return "bt";
    case Op::kEventCreate:
    case Op::kCaptureMode:
      return "d";
    case Op::kCaptureBegin:
      return "qd";
    case Op::kMemoryInfo:
    case Op::kDeviceSync:
    case Op::kGraphCreate:
    case Op::kShmemInit:
    case Op::kShmemFinalize:
      return "";
    default:
      return "q";
  }
}

}  // namespace

int main(int argc, char** argv) {
  echolo::Rng rng(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1);
  int fd = connect_thread();
  if (fd < 0) return 1;
  wire::Writer hello;
  hello.u32(1).u32(1);
  send_request(fd, static_cast<std::uint16_t>(wire::Op::kHello), "connect", hello.bytes(), rng);
  std::uint64_t word = 0;
  take_reply(fd, &word);
  send_request(fd, static_cast<std::uint16_t>(wire::Op::kShmemInit), "nvshmem_init", {}, rng);
  take_reply(fd, &word);
  wire::Writer module;
  module.text("x").text(kPtx);
  send_request(fd, static_cast<std::uint16_t>(wire::Op::kLoadModule), "load module", module.bytes(), rng);
  take_reply(fd, &word);
  std::vector<std::uint64_t> handles = {
      0, 1, 2, 0x2000'0000'0000ULL, 0x3000'0000'0000ULL, ~0ULL, 1ULL << 40U, 4096, 64, 8};
  for (int i = 0; i < 150; ++i) {
    const auto op =
        static_cast<std::uint16_t>(1 + rng.below(static_cast<std::uint64_t>(wire::Op::kCount) - 1));
    const auto kind = static_cast<wire::Op>(op);
    const bool ends_it = wire::is_note(kind) || kind == wire::Op::kNextCommand || kind == wire::Op::kService;
    if (ends_it && rng.below(50) != 0) continue;
    wire::Writer out;
    const auto number = [&] { return handles[rng.below(handles.size())]; };
    if (op == static_cast<std::uint16_t>(wire::Op::kAllocate)) {
      out.u8(static_cast<std::uint8_t>(rng.below(6))).u64(rng.below(2) == 0 ? 4096 : number()).u64(1);
    } else if (op == static_cast<std::uint16_t>(wire::Op::kCopy)) {
      for (int k = 0; k < 7; ++k) out.u64(number());
      out.u8(static_cast<std::uint8_t>(rng.below(2))).u8(static_cast<std::uint8_t>(rng.below(2)));
      out.u8(static_cast<std::uint8_t>(rng.below(2))).blob(nullptr, 0);
    } else if (op == static_cast<std::uint16_t>(wire::Op::kShmemCall)) {
      const auto n = static_cast<std::uint32_t>(4 + rng.below(8));
      out.u8(static_cast<std::uint8_t>(rng.below(2))).u64(number()).u32(n);
      for (std::uint32_t k = 0; k < n; ++k) out.u64(number());
    } else if (kind == wire::Op::kGraphAddNode || kind == wire::Op::kGraphSetNode) {
      out.u64(number());
      if (kind == wire::Op::kGraphAddNode) {
        out.u32(1).u64(number());
      } else {
        out.u64(number());
      }
      wire::Writer inner;
      for (int k = 0; k < 6; ++k) inner.u64(number());
      const auto type = static_cast<std::uint8_t>(rng.below(9));
      out.u8(type).u64(number()).put(static_cast<std::uint16_t>(type < 4 ? rng.below(60) : 0));
      out.blob(inner.bytes().data(), type < 4 ? inner.bytes().size() : 0);
    } else if (kind == wire::Op::kGraphDepend) {
      out.u64(number()).u8(static_cast<std::uint8_t>(rng.below(2))).u32(1).u64(number()).u64(number());
    } else if (kind == wire::Op::kCaptureDepend) {
      out.u64(number()).u8(static_cast<std::uint8_t>(rng.below(2))).u32(1).u64(number());
    } else if (kind == wire::Op::kVirtual) {
      out.u8(static_cast<std::uint8_t>(rng.below(10))).u64(number());
      out.u64(rng.below(2) == 0 ? 4U << 20U : number()).u64(number());
    } else if (op == static_cast<std::uint16_t>(wire::Op::kLoadModule)) {
      out.text("x").text(rng.below(20) != 0 ? kPtx : "garbage {");
    } else {
      // Mostly the right form with any values; sometimes not even that.
      const char* form = rng.below(40) == 0 ? "qqbd" : form_of(static_cast<wire::Op>(op));
      for (const char* p = form; *p != 0; ++p) {
        switch (*p) {
          case 'q':
            out.u64(number());
            break;
          case 'd':
            // The first is often a module's number, the others sizes of a launch.
            out.u32(p == form ? 1
                              : static_cast<std::uint32_t>(rng.below(6) == 0 ? number() : 1 + rng.below(3)));
            break;
          case 'b':
            out.u8(static_cast<std::uint8_t>(rng.below(2)));
            break;
          default:
            out.text(kind == wire::Op::kLaunch && p[1] == 0 ? std::string_view("01234567") : "k");
            break;
        }
      }
    }
    const bool shmem = kind == wire::Op::kShmemCall;
    send_request(fd, op, kNames[rng.below(shmem ? std::size(kNames) : 1)], out.bytes(), rng);
    word = 0;
    if (!take_reply(fd, &word)) return 0;
    if (word != 0) handles.push_back(word);
    if (rng.below(20) == 0) {  // another connection, or garbage on the control socket
      if (rng.below(2) == 0) {
        fd = connect_thread();
        send_request(fd, static_cast<std::uint16_t>(wire::Op::kHello), "connect", hello.bytes(), rng);
        take_reply(fd, &word);
      } else {
        std::vector<std::uint8_t> junk(rng.below(300));
        for (std::uint8_t& byte : junk) byte = static_cast<std::uint8_t>(rng.next());
        if (!junk.empty() && ::send(control(), junk.data(), junk.size(), MSG_NOSIGNAL) < 0) return 0;
      }
    }
  }
  return 0;
}
