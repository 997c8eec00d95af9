#include "litmus/flow.hpp"

#include "litmus/trace.hpp"

namespace echolo::litmus {
namespace {

template <typename F>
void successors(const Thread& thread, int pc, F f) {
  const Instruction& instruction = thread.code[pc];
  if (instruction.op == Op::kBranch || instruction.op == Op::kJump) f(instruction.target);
  if (instruction.op != Op::kJump) f(pc + 1);
}

}  // namespace

std::vector<std::vector<bool>> live_registers(const Program& program, int thread) {
  const Thread& code = program.threads[thread];
  const int n = static_cast<int>(code.code.size());
  std::vector<std::vector<bool>> live(n + 1, std::vector<bool>(code.registers.size(), false));
  for (const Observed& seen : program.observed) {
    if (seen.thread == thread) live[n][seen.index] = true;
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (int pc = n - 1; pc >= 0; --pc) {
      const Instruction& instruction = code.code[pc];
      std::vector<bool> in(code.registers.size(), false);
      successors(code, pc, [&](int next) {
        for (std::size_t r = 0; r < in.size(); ++r) in[r] = in[r] || live[next][r];
      });
      if (instruction.destination >= 0) in[instruction.destination] = false;
      for (const Operand* operand : {&instruction.a, &instruction.b, &instruction.c}) {
        if (operand->reg >= 0) in[operand->reg] = true;
      }
      if (in != live[pc]) {
        live[pc] = in;
        changed = true;
      }
    }
  }
  return live;
}

std::vector<bool> reachable_from(const Thread& thread, int pc) {
  std::vector<bool> seen(thread.code.size() + 1, false);
  std::vector<int> open{pc};
  while (!open.empty()) {
    const int at = open.back();
    open.pop_back();
    if (seen[at]) continue;
    seen[at] = true;
    if (at < static_cast<int>(thread.code.size()))
      successors(thread, at, [&](int next) { open.push_back(next); });
  }
  return seen;
}

bool may_reach_barrier(const Program& program, int thread, int pc, std::int64_t instance,
                       std::int64_t resource) {
  const Thread& code = program.threads[thread];
  const std::vector<bool> seen = reachable_from(code, pc);
  const auto may_be = [](const Operand& operand, std::int64_t value) {
    return operand.reg >= 0 || operand.constant == value;
  };
  for (std::size_t at = 0; at < code.code.size(); ++at) {
    const Instruction& each = code.code[at];
    const bool barrier = each.op == Op::kBarrierSync || each.op == Op::kBarrierArrive;
    if (seen[at] && barrier && may_be(each.a, instance) && may_be(each.b, resource)) return true;
  }
  return false;
}

bool may_write(const Program& program, int thread, int pc, int location) {
  const Thread& code = program.threads[thread];
  const std::vector<bool> seen = reachable_from(code, pc);
  const auto is = [&](int address) {
    return address >= 0 && program.addresses[address].location == location;
  };
  for (std::size_t at = 0; at < code.code.size(); ++at) {
    const Instruction& each = code.code[at];
    if (!seen[at] || each.op == Op::kLoad) continue;
    if (is(each.address) || is(each.signal)) return true;
  }
  return false;
}

}  // namespace echolo::litmus
