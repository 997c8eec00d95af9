// Words of memory that streams wait for and write (CUDA driver API, "Stream Memory Operations"). A wait takes
// what a release of the word published, as an acquire at system scope does; a write publishes what its stream
// did before, unless it says that it orders nothing.
#include <string>

#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

enum Comparison : std::uint8_t { kGreaterOrEqual = 0, kEqual = 1, kAnyBit = 2 };  // CUstreamWaitValue_flags

bool holds(std::uint64_t found, std::uint64_t wanted, std::uint8_t bytes, std::uint8_t comparison) {
  if (comparison == kEqual) return found == wanted;
  if (comparison == kAnyBit) return (found & wanted) != 0;
  // Cyclic: the difference's sign decides, so that a counter may wrap.
  return bytes == 4 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(found - wanted)) >= 0
                    : static_cast<std::int64_t>(found - wanted) >= 0;
}

std::string wait_text(const vgpu::Memory& memory, std::uint64_t address, std::uint64_t wanted,
                      std::uint64_t found, std::uint8_t comparison) {
  const vgpu::Allocation* allocation = memory.find(address);
  const char* const sign = comparison == kEqual ? " == " : comparison == kAnyBit ? " & " : " >= ";
  return "the word at byte " + std::to_string(allocation == nullptr ? 0 : address - allocation->base) +
         " of " + (allocation == nullptr ? "freed memory" : allocation->describe()) + sign +
         std::to_string(wanted) + " (it holds " + std::to_string(found) + ")";
}

}  // namespace

Answer Node::stream_word(int pe, HostThread& thread, wire::Reader in) {
  const StreamHandle stream = in.u64();
  const std::uint64_t address = in.u64();
  std::uint64_t value = in.u64();
  const std::uint8_t bytes = in.u8();
  const bool write = in.u8() != 0;
  const std::uint8_t comparison = in.u8();
  const bool orders = in.u8() != 0;
  if (!in.done() || (bytes != 4 && bytes != 8) || comparison > kAnyBit || address % bytes != 0)
    return Answer::malformed();
  if (bytes == 4) value = static_cast<std::uint32_t>(value);
  const bool any_pe = machine_->config().peers_reachable;
  Op op = make_op(pe, thread, thread.pending.header.name);
  op.attempt = [this, address, value, bytes, write, comparison, orders, any_pe](Op& self) {
    vgpu::Memory& memory = machine_->memory();
    vgpu::Memory::Accessor who = host_accessor(self, any_pe);
    who.alignment = bytes;
    who.synchronises = true;
    who.scope = ptx::Scope::kSys;
    if (write) {
      who.order = orders ? ptx::Order::kRelease : ptx::Order::kRelaxed;
      return memory.write(address, &value, bytes, who) ? Step::kDone : Step::kFault;
    }
    who.order = ptx::Order::kAcquire;
    std::uint64_t found = 0;
    if (!memory.read(address, &found, bytes, who)) return Step::kFault;
    if (holds(found, value, bytes, comparison)) return Step::kDone;
    self.waits_for = wait_text(memory, address, value, found, comparison);
    return Step::kWaiting;
  };
  return Answer::fail(engine_.submit(pe, thread.index, stream, std::move(op)));
}

}  // namespace echolo::runtime
