// Atomic memory operations and signals (NVSHMEM documentation, "Atomic Memory Operations", "Signaling
// Operations").
#include "shmem/call.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;

std::uint64_t updated(const Element& type, Amo amo, std::uint64_t old, std::uint64_t operand,
                      std::uint64_t compared) {
  const std::uint64_t keep =
      type.bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8U * type.bytes)) - 1;
  switch (amo) {
    case Amo::kFetch:
      return old;
    case Amo::kSet:
    case Amo::kSwap:
      return operand & keep;
    case Amo::kInc:
    case Amo::kAdd:
      return reduce(type, Reduction::kSum, old, operand);
    case Amo::kAnd:
      return old & operand;
    case Amo::kOr:
      return old | operand;
    case Amo::kXor:
      return (old ^ operand) & keep;
    case Amo::kCompareSwap:
      return (old & keep) == (compared & keep) ? operand & keep : old;
  }
  return old;
}

CallOutcome do_atomic(Call& call) {
  const Operation& op = call.op;
  const Element& element = *op.element;
  const int pe = call.integer(static_cast<int>(op.arguments.size()) - 1);
  const std::uint64_t there =
      call.remote(call.pointer(0), pe, op.amo == Amo::kFetch ? "source" : "destination");
  if (there == 0) return CallOutcome::kFault;
  const bool compares = op.amo == Amo::kCompareSwap;
  const std::uint64_t operand = op.arguments.size() > 2 ? call.arguments[compares ? 2 : 1] : 1;
  const std::uint64_t compared = compares ? call.arguments[1] : 0;
  if (!op.fetches) {
    Message message;
    message.to = pe;
    message.word = there;
    message.operand = operand;
    message.amo = op.amo;
    message.type = &element;
    if (!call.memory.admits(there, element.bytes, true, call.accessor(element.bytes)))
      return CallOutcome::kFault;
    return call.delivery.issue(call, std::move(message)) ? CallOutcome::kDone : CallOutcome::kFault;
  }
  // One that returns something is done when it returns.
  if (!call.delivery.before(call, pe)) return CallOutcome::kFault;
  vgpu::Memory::Accessor who = call.strong(element.bytes, ptx::Order::kRelaxed);
  who.synchronises = op.amo != Amo::kFetch;
  who.check_written = op.amo != Amo::kSwap;
  if (vgpu::Meter* const meter = call.memory.meter()) {
    const bool changes = op.amo != Amo::kFetch;
    meter->sent(call.warp, {pe, element.bytes, true, 0, op.granularity, changes ? there : 0,
                            op.amo == Amo::kSet || op.amo == Amo::kSwap});
  }
  std::uint64_t old = 0;
  const auto update = [&](std::uint64_t value) { return updated(element, op.amo, value, operand, compared); };
  if (!call.memory.modify(there, element.bytes, update, &old, who)) return CallOutcome::kFault;
  call.result = element.bytes == 8 ? old : old & 0xffffffffULL;
  return CallOutcome::kDone;
}

CallOutcome do_signal_op(Call& call) {
  Message message;
  if (!add_signal(call, call.pointer(0), call.size(1), call.integer(2), call.integer(3), &message))
    return CallOutcome::kFault;
  return call.delivery.issue(call, std::move(message)) ? CallOutcome::kDone : CallOutcome::kFault;
}

CallOutcome do_signal_fetch(Call& call) {
  vgpu::Memory::Accessor who = call.strong(8, ptx::Order::kAcquire, false);
  who.check_written = true;
  if (vgpu::Meter* const meter = call.memory.meter())
    meter->saw(call.warp, call.inst, call.lane, call.pointer(0), call.op.name);
  return call.memory.read(call.pointer(0), &call.result, 8, who) ? CallOutcome::kDone : CallOutcome::kFault;
}

}  // namespace echolo::shmem
