// Atomic memory operations and signals (NVSHMEM documentation, "Atomic Memory Operations", "Signaling
// Operations").
#include "shmem/call.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;

CallOutcome do_atomic(Call& call) {
  const Operation& op = call.op;
  const int pe = call.integer(static_cast<int>(op.arguments.size()) - 1);
  const std::uint64_t there =
      call.remote(call.pointer(0), pe, op.amo == Amo::kFetch ? "source" : "destination");
  if (there == 0) return CallOutcome::kFault;
  const std::uint64_t operand = op.arguments.size() > 2 ? call.arguments[1] : 1;
  const std::uint64_t swapped = op.amo == Amo::kCompareSwap ? call.arguments[2] : 0;
  const Element& element = *op.element;
  const std::uint64_t keep = element.bytes == 8 ? ~std::uint64_t{0} : 0xffffffffULL;
  const auto update = [&](std::uint64_t old) -> std::uint64_t {
    switch (op.amo) {
      case Amo::kFetch:
        return old;
      case Amo::kSet:
      case Amo::kSwap:
        return operand & keep;
      case Amo::kInc:
      case Amo::kAdd:
        return reduce(element, Reduction::kSum, old, operand);
      case Amo::kAnd:
        return old & operand;
      case Amo::kOr:
        return old | operand;
      case Amo::kXor:
        return (old ^ operand) & keep;
      case Amo::kCompareSwap:
        return (old & keep) == (operand & keep) ? swapped & keep : old;
    }
    return old;
  };
  vgpu::Memory::Accessor who = call.accessor(element.bytes);
  who.synchronises = op.amo != Amo::kFetch;
  who.check_written = op.amo != Amo::kSet && op.amo != Amo::kSwap;
  std::uint64_t old = 0;
  if (!call.memory.modify(there, element.bytes, update, &old, who)) return CallOutcome::kFault;
  call.result = old & keep;
  return CallOutcome::kDone;
}

CallOutcome do_signal_op(Call& call) {
  return apply_signal(call, call.pointer(0), call.size(1), call.integer(2), call.integer(3));
}

CallOutcome do_signal_fetch(Call& call) {
  vgpu::Memory::Accessor who = call.accessor(8, false);
  who.check_written = true;
  return call.memory.read(call.pointer(0), &call.result, 8, who) ? CallOutcome::kDone : CallOutcome::kFault;
}

}  // namespace echolo::shmem
