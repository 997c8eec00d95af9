// put, get, p, g, iput, iget, put-with-signal, nvshmem_ptr (NVSHMEM documentation, "Remote Memory Access" and
// "Signaling Operations").
#include <cstring>
#include <vector>

#include "shmem/call.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;
using vgpu::FindingKind;

namespace {

// Moves n bytes from `from` to `to`; at most one of the two may be a window of the calling thread.
bool move(Call& call, std::uint64_t to, std::uint64_t from, std::uint64_t n, std::uint8_t alignment) {
  if (n == 0) return true;
  if (!call.is_window(to) && !call.is_window(from))
    return call.memory.copy(to, from, n, call.accessor(alignment));
  std::vector<std::uint8_t> bytes(n);
  return call.read_local(from, bytes.data(), n) && call.write_local(to, bytes.data(), n);
}

}  // namespace

bool add_signal(Call& call, std::uint64_t address, std::uint64_t value, int op, int pe, Message* message) {
  if (op != 9 && op != 10) {
    call.fault(FindingKind::kOutOfBounds, call.op.name + " is given signal operation " + std::to_string(op),
               "the operations are NVSHMEM_SIGNAL_SET and NVSHMEM_SIGNAL_ADD", "pass one of the two");
    return false;
  }
  const std::uint64_t there = call.remote(address, pe, "signal");
  if (there == 0 || !call.memory.admits(there, 8, true, call.accessor(8))) return false;
  message->word = there;
  message->operand = value;
  message->amo = op == 9 ? Amo::kSet : Amo::kAdd;
  message->type = &signal_element();
  message->to = pe;
  return true;
}

namespace {

// Blocking gets are done by the caller itself.
CallOutcome get_now(Call& call, std::uint64_t to, std::uint64_t from, std::uint64_t n, std::uint64_t bytes,
                    int pe) {
  if (!call.delivery.before(call, pe)) return CallOutcome::kFault;
  if (vgpu::Meter* const meter = call.memory.meter())
    meter->sent(call.warp, {pe, bytes, true, to, call.op.granularity, 0, true});
  const std::uint8_t element = call.op.element->bytes;
  if (!call.op.strided) {
    return move(call, to, from, bytes, element) ? CallOutcome::kDone : CallOutcome::kFault;
  }
  const auto dst = static_cast<std::int64_t>(call.size(2)) * element;
  const auto sst = static_cast<std::int64_t>(call.size(3)) * element;
  for (std::uint64_t i = 0; i < n; ++i) {
    const auto step = static_cast<std::int64_t>(i);
    if (!move(call, to + static_cast<std::uint64_t>(step * dst),
              from + static_cast<std::uint64_t>(step * sst), element, element)) {
      return CallOutcome::kFault;
    }
  }
  return CallOutcome::kDone;
}

// The data of a put, or of a non-blocking get. Bounds are looked at now, so that the call is named.
bool add_data(Call& call, std::uint64_t to, std::uint64_t from, std::uint64_t n, std::uint64_t bytes,
              Message* message) {
  const Operation& op = call.op;
  const std::uint8_t element = op.element->bytes;
  Message& m = *message;
  m.target = to;
  m.bytes = bytes;
  m.element = element;
  m.get = op.get;
  m.nonblocking = op.nonblocking;
  m.local = op.get ? to : from;
  m.local_bytes = bytes;
  const auto step_of = [&](int argument) { return static_cast<std::int64_t>(call.size(argument)) * element; };
  m.stride = op.strided ? step_of(2) : 0;
  if (op.strided && m.stride == 0)
    m.bytes = bytes = n == 0 ? 0 : element;  // all to one place: the last stays
  for (std::uint64_t i = 0; i < (op.strided ? n : 1); ++i) {
    const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(i) * m.stride);
    if (bytes > 0 && !call.memory.admits(to + at, op.strided ? element : bytes, true, call.accessor(element)))
      return false;
  }
  if (op.strided) {
    for (std::uint64_t i = m.stride == 0 && n > 0 ? n - 1 : 0; i < n; ++i) {
      const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(i) * step_of(3));
      if (!call.pack_local(from + at, element, &m.packet)) return false;
    }
    return true;
  }
  if (op.nonblocking && !call.is_window(from)) {
    m.source = from;
    return bytes == 0 || call.memory.admits(from, bytes, false, call.accessor(element));
  }
  return bytes == 0 || call.pack_local(from, bytes, &m.packet);
}

}  // namespace

CallOutcome do_transfer(Call& call) {
  const Operation& op = call.op;
  const std::uint64_t dest = call.pointer(0);
  const std::uint64_t source = call.pointer(1);
  const int pe = call.integer(op.strided ? 5 : (op.signal ? 6 : 3));
  const std::uint64_t n = call.size(op.strided ? 4 : 2);
  std::uint64_t bytes = 0;
  if (!call.total_bytes(n, &bytes)) return CallOutcome::kFault;
  const std::uint64_t far = call.remote(op.get ? source : dest, pe, op.get ? "source" : "destination");
  if (far == 0) return CallOutcome::kFault;
  const std::uint64_t to = op.get ? dest : far;
  const std::uint64_t from = op.get ? far : source;
  // What comes back into the caller's own shared or local memory is there when the call returns.
  if (op.get && (!op.nonblocking || call.is_window(to))) return get_now(call, to, from, n, bytes, pe);
  Message message;
  message.to = pe;
  if (!add_data(call, to, from, n, bytes, &message)) return CallOutcome::kFault;
  if (op.signal && !add_signal(call, call.pointer(3), call.size(4), call.integer(5), pe, &message))
    return CallOutcome::kFault;
  if (message.bytes == 0 && message.word == 0) return CallOutcome::kDone;
  // One element is written as a whole: others may wait for it.
  if (message.word == 0 && n == 1 && !op.nonblocking && !op.get && !message.packet.bytes.empty() &&
      message.packet.written.empty() && bytes <= 8 && (bytes & (bytes - 1)) == 0 && to % bytes == 0) {
    message.word = to;
    message.type = &unsigned_element(static_cast<std::uint8_t>(bytes));
    std::memcpy(&message.operand, message.packet.bytes.data(), bytes);
    message.bytes = 0;
    message.packet = {};
  }
  return call.delivery.issue(call, std::move(message)) ? CallOutcome::kDone : CallOutcome::kFault;
}

CallOutcome do_p(Call& call) {
  const std::uint8_t bytes = call.op.element->bytes;
  Message message;
  message.to = call.integer(2);
  message.word = call.remote(call.pointer(0), message.to, "destination");
  if (message.word == 0 || !call.memory.admits(message.word, bytes, true, call.accessor(bytes)))
    return CallOutcome::kFault;
  message.operand = call.arguments[1];
  message.type = &unsigned_element(bytes);
  return call.delivery.issue(call, std::move(message)) ? CallOutcome::kDone : CallOutcome::kFault;
}

CallOutcome do_g(Call& call) {
  const std::uint64_t there = call.remote(call.pointer(0), call.integer(1), "source");
  if (there == 0) return CallOutcome::kFault;
  if (!call.delivery.before(call, call.integer(1))) return CallOutcome::kFault;
  vgpu::Memory::Accessor who = call.strong(call.op.element->bytes, ptx::Order::kRelaxed);
  who.check_written = true;
  call.result = 0;
  return call.memory.read(there, &call.result, call.op.element->bytes, who) ? CallOutcome::kDone
                                                                            : CallOutcome::kFault;
}

CallOutcome do_ptr(Call& call) {
  const int pe = call.integer(1);
  const bool exists = pe >= 0 && pe < call.world.n_pes;
  if (!exists || (pe != call.pe && !call.world.peers_reachable)) {
    call.result = 0;  // "a null pointer is returned if the object can't be accessed by loads and stores"
    return CallOutcome::kDone;
  }
  call.result = call.memory.translate(call.pointer(0), pe);
  return CallOutcome::kDone;
}

// Null where the team's PEs can't be reached by loads and stores (NVSHMEM documentation, "nvshmemx_mc_ptr").
CallOutcome do_mc_ptr(Call& call) {
  const Team* team = call.world.team(call.integer(0));
  call.result = team == nullptr || !call.world.peers_reachable || team->index_of(call.pe) < 0
                    ? 0
                    : call.memory.multicast(call.pointer(1), team->pes);
  return CallOutcome::kDone;
}

CallOutcome do_fence(Call& call) {
  call.delivery.fence(call);
  call.fence_stores();
  return CallOutcome::kDone;
}

CallOutcome do_quiet(Call& call) {
  if (!call.delivery.quiet(call)) return CallOutcome::kFault;
  call.fence_stores();
  return CallOutcome::kDone;
}

}  // namespace echolo::shmem
