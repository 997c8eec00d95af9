// wait_until, test and signal_wait_until (NVSHMEM documentation, "Point-To-Point Synchronization").
#include <vector>

#include "shmem/call.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;
using vgpu::FindingKind;

namespace {

struct WaitArguments {
  std::uint64_t variables = 0;
  std::uint64_t n = 1;
  std::uint64_t indices = 0;  // 0: none
  std::uint64_t status = 0;   // 0: none; an int an element, non-zero: skip it
  int cmp = 0;
  std::uint64_t value = 0;  // the value, or the address of an array of them
};

WaitArguments unpack(const Call& call) {
  WaitArguments a;
  a.variables = call.pointer(0);
  if (call.op.quantifier == Quantifier::kOne) {
    a.cmp = call.integer(1);
    a.value = call.arguments[2];
    return a;
  }
  const bool some = call.op.quantifier == Quantifier::kSome;
  a.n = call.size(1);
  a.indices = some ? call.pointer(2) : 0;
  const int at = some ? 3 : 2;
  a.status = call.pointer(at);
  a.cmp = call.integer(at + 1);
  a.value = call.arguments[static_cast<std::size_t>(at) + 2];
  return a;
}

void describe_wait(Call& call, const WaitArguments& a, std::uint64_t index, std::uint64_t want,
                   std::uint64_t holds) {
  const Element& element = *call.op.element;
  call.wait.address = a.variables + index * element.bytes;
  call.wait.bytes = element.bytes;
  call.wait.comparison = std::string(comparison_sign(a.cmp)) + " " + print(element, want);
  call.wait.waits_for = (call.op.signal ? "signal " : "value ") + call.wait.comparison;
  call.wait.holds = print(element, holds);
}

}  // namespace

CallOutcome do_wait(Call& call) {
  const Operation& op = call.op;
  const Element& element = *op.element;
  const WaitArguments a = unpack(call);
  if (a.cmp < 0 || a.cmp > 5) {
    return call.fault(FindingKind::kOutOfBounds, op.name + " is given comparison " + std::to_string(a.cmp),
                      "the comparisons are NVSHMEM_CMP_EQ, NE, GT, LE, LT and GE", "pass one of them");
  }
  // Looking is not yet seeing: only a wait that is met, or a test, orders what follows.
  vgpu::Memory::Accessor who = call.accessor(element.bytes, false);
  who.check_written = true;
  who.agent = {};
  std::vector<std::uint64_t> met;
  std::uint64_t n_looked_at = 0;
  std::uint64_t last_value = 0;
  bool described = false;
  for (std::uint64_t i = 0; i < a.n; ++i) {
    std::int32_t skip = 0;
    if (a.status != 0 && !call.read_local(a.status + i * 4, &skip, 4)) return CallOutcome::kFault;
    if (skip != 0) continue;
    ++n_looked_at;
    std::uint64_t value = 0;
    if (!call.memory.read(a.variables + i * element.bytes, &value, element.bytes, who))
      return CallOutcome::kFault;
    std::uint64_t want = op.vector ? 0 : a.value;
    if (op.vector && !call.read_local(a.value + i * element.bytes, &want, element.bytes))
      return CallOutcome::kFault;
    last_value = value;
    if (compare(element, a.cmp, value, want)) {
      met.push_back(i);
      if (op.quantifier == Quantifier::kAny) break;
    } else if (!described) {
      describe_wait(call, a, i, want, value);
      described = true;
    }
  }
  // An empty set of variables (all skipped, or none) is met at once; _any then returns SIZE_MAX, _some 0.
  const bool all = op.quantifier == Quantifier::kAll || op.quantifier == Quantifier::kOne;
  const bool satisfied = n_looked_at == 0 || (all ? met.size() == n_looked_at : !met.empty());
  if (!satisfied && !op.test) return CallOutcome::kBlocked;
  const vgpu::Memory::Accessor sees = call.strong(element.bytes, ptx::Order::kAcquire, false);
  for (const std::uint64_t i : met) {
    std::uint64_t value = 0;
    if (!call.memory.read(a.variables + i * element.bytes, &value, element.bytes, sees))
      return CallOutcome::kFault;
    if (vgpu::Meter* const meter = call.memory.meter())
      meter->saw(call.warp, call.inst, call.lane, a.variables + i * element.bytes, op.name);
  }
  switch (op.quantifier) {
    case Quantifier::kOne:
      call.result = op.signal ? last_value : (satisfied ? 1 : 0);
      break;
    case Quantifier::kAll:
      call.result = satisfied ? 1 : 0;
      break;
    case Quantifier::kAny:
      call.result = met.empty() ? ~std::uint64_t{0} : met.front();
      break;
    case Quantifier::kSome:
      for (std::size_t k = 0; k < met.size(); ++k) {
        if (!call.write_local(a.indices + k * 8, &met[k], 8)) return CallOutcome::kFault;
      }
      call.result = met.size();
      break;
  }
  return CallOutcome::kDone;
}

}  // namespace echolo::shmem
