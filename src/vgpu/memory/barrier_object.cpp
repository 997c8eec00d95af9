// mbarrier objects in shared memory (PTX ISA, "Parallel Synchronization and Communication Instructions:
// mbarrier"). The object's layout is the implementation's own: bits 0-19 pending arrivals, 20-39 expected
// arrivals, 40-61 pending bytes (two's complement), 63 the phase. A phase ends when no arrival and no byte is
// pending.
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint64_t kCountMask = (1U << 20U) - 1U;
constexpr std::int64_t kMaxBytes = (1 << 20) - 1;

enum class BarrierOp : std::uint8_t {
  kInit,
  kInval,
  kArrive,
  kArriveDrop,
  kExpectTx,
  kCompleteTx,
  kTestState,
  kTestParity
};

// MemoryCode::extra
constexpr std::uint8_t kOpMask = 0x0f, kHasState = 0x10, kExpects = 0x20;

struct BarrierObject {
  std::int64_t pending = 0, expected = 0, bytes = 0;
  bool phase = false;

  static BarrierObject unpack(std::uint64_t word) {
    BarrierObject out;
    out.pending = static_cast<std::int64_t>(word & kCountMask);
    out.expected = static_cast<std::int64_t>((word >> 20U) & kCountMask);
    out.bytes = static_cast<std::int64_t>(word << 2U) >> 42;
    out.phase = (word >> 63U) != 0;
    return out;
  }
  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(pending) | static_cast<std::uint64_t>(expected) << 20U |
           (static_cast<std::uint64_t>(bytes) & ((1U << 22U) - 1U)) << 40U | std::uint64_t{phase} << 63U;
  }
  void complete_if_done() {
    if (pending != 0 || bytes != 0) return;
    phase = !phase;
    pending = expected;
  }
};

MemOutcome wrong_use(Warp& warp, const Inst& inst, int lane, std::string message, std::string why,
                     std::string advice) {
  Finding finding;
  finding.kind = FindingKind::kDeviceTrap;
  finding.message = std::move(message);
  finding.why = std::move(why);
  finding.advice = std::move(advice);
  finding.sites.push_back(make_site(warp, lane, inst, "barrier"));
  finding.fatal = true;
  warp.block->grid->findings->add(std::move(finding));
  return MemOutcome::kFault;
}

// Operands: [destination], address, [argument]. Lanes act one after the other.
MemOutcome barrier_object(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  const auto op = static_cast<BarrierOp>(code.extra & kOpMask);
  const bool test = op == BarrierOp::kTestState || op == BarrierOp::kTestParity;
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  const auto kind = op == BarrierOp::kInit || op == BarrierOp::kInval ? Memory::AccessKind::kStore
                    : test                                            ? Memory::AccessKind::kLoad
                                                                      : Memory::AccessKind::kAtomic;
  if (!begin_access(warp, inst, code, mask, kind, 8, 8, access, at)) return MemOutcome::kFault;
  const bool has_argument = inst.n_operands > code.address + 1U;
  const Slot argument = has_argument ? inst.operands[code.address + 1U] : Slot{};
  bool changed = false;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    std::uint8_t* const place = host_pointer(lane_address(access, i));
    std::uint64_t before = 0;
    std::memcpy(&before, place, sizeof before);
    BarrierObject object = BarrierObject::unpack(before);
    const std::int64_t given = !has_argument ? 1
                               : op == BarrierOp::kTestState
                                   ? static_cast<std::int64_t>(warp.lanes.read<std::uint64_t>(argument)[i])
                                   : static_cast<std::int64_t>(warp.lanes.read<std::uint32_t>(argument)[i]);
    switch (op) {
      case BarrierOp::kInit:
        if (given < 1 || given > static_cast<std::int64_t>(kCountMask)) {
          return wrong_use(warp, inst, i,
                           "an mbarrier is initialised for " + std::to_string(given) + " arrivals",
                           "an mbarrier expects 1 to 1,048,575 arrivals a phase",
                           "pass the number of threads that arrive");
        }
        object = BarrierObject{given, given, 0, false};
        break;
      case BarrierOp::kInval:
        object = BarrierObject{};
        break;
      case BarrierOp::kArrive:
      case BarrierOp::kArriveDrop: {
        std::int64_t count = given;
        if ((code.extra & kExpects) != 0) {
          object.bytes += given;
          count = 1;
        }
        if (count > object.pending) {
          return wrong_use(warp, inst, i, "more threads arrive at an mbarrier than it expects",
                           "its phase has " + std::to_string(object.pending) + " arrivals left of " +
                               std::to_string(object.expected) + ", and this adds " + std::to_string(count),
                           "initialise it (mbarrier.init) with the number of arrivals of one phase");
        }
        object.pending -= count;
        if (op == BarrierOp::kArriveDrop) object.expected -= count;
        object.complete_if_done();
        break;
      }
      case BarrierOp::kExpectTx:
        object.bytes += given;
        break;
      case BarrierOp::kCompleteTx:
        object.bytes -= given;
        object.complete_if_done();
        break;
      case BarrierOp::kTestState:
      case BarrierOp::kTestParity: {
        const bool awaited = op == BarrierOp::kTestState
                                 ? BarrierObject::unpack(static_cast<std::uint64_t>(given)).phase
                                 : (given & 1) != 0;
        std::uint32_t* out = warp.lanes.write<std::uint32_t>(inst.operands[0]);
        const std::uint32_t bit = 1U << static_cast<unsigned>(i);
        *out = object.phase != awaited ? *out | bit : *out & ~bit;
        break;
      }
    }
    if (object.bytes > kMaxBytes || object.bytes < -kMaxBytes) {
      return wrong_use(warp, inst, i, "an mbarrier's pending bytes leave their range",
                       "at most 1,048,575 bytes can be pending in a phase",
                       "split the transfer over several phases");
    }
    if (test) continue;
    const std::uint64_t after = object.pack();
    changed |= after != before;
    std::memcpy(place, &after, sizeof after);
    if ((code.extra & kHasState) != 0) warp.lanes.write<std::uint64_t>(inst.operands[0])[i] = before;
  }
  if (changed) note_change(warp, access);
  return MemOutcome::kDone;
}

void pending_count(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const std::uint64_t* state = lanes.read<std::uint64_t>(inst.operands[1]);
  std::uint32_t* out = lanes.write<std::uint32_t>(inst.operands[0]);
  for_each_lane(mask, [&](int i) { out[i] = static_cast<std::uint32_t>(state[i] & kCountMask); });
}

MemOutcome nothing(Warp&, const Inst&, std::uint32_t) { return MemOutcome::kDone; }

Status add_operand(const PlanContext& context, Plan& plan, const ptx::Operand& operand, std::uint8_t width,
                   bool destination) {
  auto planned = context.value(operand, width, destination);
  if (!planned) return planned.error();
  if (planned->width != width) return context.refuse("needs registers of " + std::to_string(width) + " bits");
  plan.operands.push_back(*planned);
  return {};
}

}  // namespace

Result<Plan> plan_barrier_object(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.memory = barrier_object;
  MemoryCode code;
  code.order = inst.order;
  code.scope = inst.scope;
  if (inst.op == ptx::Opcode::kCp) {
    // cp.async.mbarrier.arrive: the copies are done by now. Without .noinc the arrival was added to the
    // expected ones.
    if (!context.has("noinc")) {
      plan.memory = nothing;
      return plan;
    }
    if (auto status = context.address(operands[0], inst.space, plan, code); !status) return status.error();
    code.extra = static_cast<std::uint8_t>(BarrierOp::kArrive);
    plan.aux[0] = code.pack();
    return plan;
  }
  if (context.has("pending_count")) {
    plan.kind = InstKind::kAlu;
    plan.memory = nullptr;
    plan.alu = pending_count;
    plan.alu_full = pending_count;
    if (auto status = add_operand(context, plan, operands[0], 32, true); !status) return status.error();
    if (auto status = add_operand(context, plan, operands[1], 64, false); !status) return status.error();
    return plan;
  }
  std::optional<BarrierOp> op;
  std::size_t address = 0;
  std::uint8_t argument_width = 32;
  if (context.has("init")) op = BarrierOp::kInit;
  if (context.has("inval")) op = BarrierOp::kInval;
  if (context.has("complete_tx")) op = BarrierOp::kCompleteTx;
  if (context.has("test_wait") || context.has("try_wait")) {
    op = context.has("parity") ? BarrierOp::kTestParity : BarrierOp::kTestState;
    if (*op == BarrierOp::kTestState) argument_width = 64;
    address = 1;
    if (auto status = add_operand(context, plan, operands[0], 1, true); !status) return status.error();
  } else if (context.has("arrive") || context.has("arrive_drop")) {
    op = context.has("arrive") ? BarrierOp::kArrive : BarrierOp::kArriveDrop;
    if (context.has("expect_tx")) code.extra |= kExpects;
    address = 1;
    if (operands[0].kind != ptx::OperandKind::kNone) {
      code.extra |= kHasState;
      if (auto status = add_operand(context, plan, operands[0], 64, true); !status) return status.error();
    }
  } else if (context.has("expect_tx")) {
    op = BarrierOp::kExpectTx;
  }
  if (!op) return context.refuse("the virtual node does not execute this form");
  if (auto status = context.address(operands[address], inst.space, plan, code); !status)
    return status.error();
  if (operands.size() > address + 1) {
    if (auto status = add_operand(context, plan, operands[address + 1], argument_width, false); !status)
      return status.error();
  }
  code.extra |= static_cast<std::uint8_t>(*op);
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
