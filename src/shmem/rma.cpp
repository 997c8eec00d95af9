// put, get, p, g, iput, iget, put-with-signal, nvshmem_ptr (NVSHMEM documentation, "Remote Memory Access" and
// "Signaling Operations").
#include <limits>
#include <vector>

#include "shmem/call.hpp"

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

// n * bytes, or an error where that is more than memory can hold.
bool total_bytes(Call& call, std::uint64_t n, std::uint64_t* bytes) {
  if (n <= (std::uint64_t{1} << 48U)) {
    *bytes = n * call.op.element->bytes;
    return true;
  }
  call.fault(FindingKind::kOutOfBounds, call.op.name + " is asked for " + std::to_string(n) + " elements",
             "no memory is that large: the count looks like a negative number", "check the element count");
  return false;
}

}  // namespace

CallOutcome apply_signal(Call& call, std::uint64_t address, std::uint64_t value, int op, int pe) {
  if (op != 9 && op != 10) {
    return call.fault(FindingKind::kOutOfBounds,
                      call.op.name + " is given signal operation " + std::to_string(op),
                      "the operations are NVSHMEM_SIGNAL_SET and NVSHMEM_SIGNAL_ADD", "pass one of the two");
  }
  const std::uint64_t there = call.remote(address, pe, "signal");
  if (there == 0) return CallOutcome::kFault;
  vgpu::Memory::Accessor who = call.accessor(8);
  who.synchronises = true;
  const auto update = [&](std::uint64_t old) { return op == 9 ? value : old + value; };
  return call.memory.modify(there, 8, update, nullptr, who) ? CallOutcome::kDone : CallOutcome::kFault;
}

CallOutcome do_transfer(Call& call) {
  const Operation& op = call.op;
  const std::uint64_t dest = call.pointer(0);
  const std::uint64_t source = call.pointer(1);
  const int n_at = op.strided ? 4 : 2;
  const int pe = call.integer(op.strided ? 5 : (op.signal ? 6 : 3));
  const std::uint64_t n = call.size(n_at);
  std::uint64_t bytes = 0;
  if (!total_bytes(call, n, &bytes)) return CallOutcome::kFault;
  const std::uint8_t element = op.element->bytes;
  const std::uint8_t alignment = element;
  const std::uint64_t far = call.remote(op.get ? source : dest, pe, op.get ? "source" : "destination");
  if (far == 0) return CallOutcome::kFault;
  const std::uint64_t to = op.get ? dest : far;
  const std::uint64_t from = op.get ? far : source;
  if (!op.strided) {
    if (!move(call, to, from, bytes, alignment)) return CallOutcome::kFault;
  } else {
    const auto dst = static_cast<std::int64_t>(call.size(2)) * element;
    const auto sst = static_cast<std::int64_t>(call.size(3)) * element;
    for (std::uint64_t i = 0; i < n; ++i) {
      const auto step = static_cast<std::int64_t>(i);
      if (!move(call, to + static_cast<std::uint64_t>(step * dst),
                from + static_cast<std::uint64_t>(step * sst), element, alignment)) {
        return CallOutcome::kFault;
      }
    }
  }
  if (op.signal) return apply_signal(call, call.pointer(3), call.size(4), call.integer(5), pe);
  return CallOutcome::kDone;
}

CallOutcome do_p(Call& call) {
  const std::uint64_t there = call.remote(call.pointer(0), call.integer(2), "destination");
  if (there == 0) return CallOutcome::kFault;
  const std::uint64_t value = call.arguments[1];
  vgpu::Memory::Accessor who = call.accessor(call.op.element->bytes);
  who.synchronises = true;
  return call.memory.write(there, &value, call.op.element->bytes, who) ? CallOutcome::kDone
                                                                       : CallOutcome::kFault;
}

CallOutcome do_g(Call& call) {
  const std::uint64_t there = call.remote(call.pointer(0), call.integer(1), "source");
  if (there == 0) return CallOutcome::kFault;
  vgpu::Memory::Accessor who = call.accessor(call.op.element->bytes);
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

CallOutcome do_order(Call& /*call*/) { return CallOutcome::kDone; }

}  // namespace echolo::shmem
