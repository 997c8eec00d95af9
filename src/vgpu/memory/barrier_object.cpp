// Instructions on mbarrier objects in shared memory (PTX ISA, "Parallel Synchronization and Communication
// Instructions: mbarrier"). Without .shared::cluster the object is the block's own.
#include "vgpu/memory/barrier_object.hpp"

#include <utility>

#include "vgpu/memory/async.hpp"
#include "vgpu/memory/cluster.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

constexpr auto kCountMask = BarrierObject::kCountMask;

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
constexpr std::uint8_t kOpMask = 0x0f, kHasState = 0x10, kExpects = 0x20, kNoComplete = 0x40, kRelaxed = 0x80;

// The block whose shared memory a byte lies in, and where there.
std::pair<const Block*, std::uint64_t> home_of(const Block& own, const std::uint8_t* place) {
  const auto offset_in = [place](const Block& block) {
    return static_cast<std::uint64_t>(place - block.shared.data());
  };
  if (const Cluster* cluster = cluster_of(own).cluster; cluster != nullptr) {
    for (const Block* block : cluster->blocks) {
      if (block != nullptr && offset_in(*block) < block->shared.size()) return {block, offset_in(*block)};
    }
  }
  return {&own, offset_in(own)};
}

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
  Order& order = warp.block->grid->memory->order();
  AsyncCopies& async = warp.block->grid->memory->async();
  const bool has_argument = inst.n_operands > code.address + 1U;
  const Slot argument = has_argument ? inst.operands[code.address + 1U] : Slot{};
  bool changed = false;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    std::uint8_t* const place = host_pointer(lane_address(access, i));
    const auto home = home_of(*warp.block, place);
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
        async.begin_barrier(home.first, home.second);
        break;
      case BarrierOp::kInval:
        object = BarrierObject{};
        async.begin_barrier(home.first, home.second);
        break;
      case BarrierOp::kArrive:
      case BarrierOp::kArriveDrop: {
        std::int64_t count = given;
        if ((code.extra & kExpects) != 0) {
          object.bytes += given;
          count = 1;
        }
        if (object.expected == 0) {
          return wrong_use(warp, inst, i, "a thread arrives at an mbarrier that is not initialised",
                           "it expects no arrivals: mbarrier.init has not been executed for it, or "
                           "mbarrier.inval has",
                           "initialise it, and let the other threads wait (a barrier) before they use it");
        }
        if (count > object.pending) {
          return wrong_use(warp, inst, i, "more threads arrive at an mbarrier than it expects",
                           "its phase has " + std::to_string(object.pending) + " arrivals left of " +
                               std::to_string(object.expected) + ", and this adds " + std::to_string(count),
                           "initialise it (mbarrier.init) with the number of arrivals of one phase");
        }
        object.pending -= count;
        if (op == BarrierOp::kArriveDrop) object.expected -= count;
        if ((code.extra & kNoComplete) != 0 && object.pending == 0 && object.bytes == 0) {
          return wrong_use(warp, inst, i, "an arrival with .noComplete ends the mbarrier's phase",
                           "it is the last of " + std::to_string(object.expected) + " that were expected",
                           "arrive without .noComplete, or expect more arrivals (mbarrier.init)");
        }
        if ((code.extra & kRelaxed) == 0)
          async.release_to(home.first, home.second, order.release(order.thread(warp, i)));
        if (object.complete_if_done()) async.end_phase(home.first, home.second);
        break;
      }
      case BarrierOp::kExpectTx:
        object.bytes += given;
        break;
      case BarrierOp::kCompleteTx:
        object.bytes -= given;
        if (object.complete_if_done()) async.end_phase(home.first, home.second);
        break;
      case BarrierOp::kTestState:
      case BarrierOp::kTestParity: {
        const bool awaited = op == BarrierOp::kTestState
                                 ? BarrierObject::unpack(static_cast<std::uint64_t>(given)).phase
                                 : (given & 1) != 0;
        std::uint32_t* out = warp.lanes.write<std::uint32_t>(inst.operands[0]);
        const std::uint32_t bit = 1U << static_cast<unsigned>(i);
        *out = object.phase != awaited ? *out | bit : *out & ~bit;
        if (object.phase != awaited && (code.extra & kRelaxed) == 0) {
          const Clock* const clock = async.acquire_from(home.first, home.second);
          if (clock != nullptr) order.acquire(order.thread(warp, i), *clock);
        }
        break;
      }
    }
    if (!object.bytes_in_range()) {
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

// cp.async.mbarrier.arrive: each lane's earlier cp.async arrive at the mbarrier when they are done. Without
// .noinc the phase waits for one arrival more.
MemOutcome copies_arrive(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  if ((code.extra & kExpects) != 0) {
    alignas(64) std::uint64_t at[kWarpSize];
    Memory::Access access;
    if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kAtomic, 8, 8, access, at))
      return MemOutcome::kFault;
    for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
      std::uint8_t* const place = host_pointer(lane_address(access, std::countr_zero(lanes)));
      std::uint64_t word = 0;
      std::memcpy(&word, place, sizeof word);
      BarrierObject object = BarrierObject::unpack(word);
      ++object.pending;
      word = object.pack();
      std::memcpy(place, &word, sizeof word);
    }
    note_change(warp, access);
  }
  alignas(64) std::uint64_t addresses[kWarpSize];
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    const Memory::Pattern pattern = form_addresses(warp.lanes, inst.operands[code.address],
                                                   code.narrow_address, inst.aux[1], mask, 8, addresses);
    std::uint64_t address = addresses[pattern == Memory::Pattern::kScattered ? i : 0];
    if (pattern == Memory::Pattern::kContiguous) address += static_cast<std::uint64_t>(i) * 8;
    if (address >= kSharedWindow) address -= kSharedWindow;
    AsyncSignal signal;
    signal.block = shared_owner(*warp.block, address);
    if (signal.block == nullptr) {
      report_no_owner(warp, inst, i, "barrier", address);
      return MemOutcome::kFault;
    }
    signal.offset = static_cast<std::uint32_t>(address & ((1U << kClusterRankShift) - 1U));
    signal.count = 1;
    signal.arrives = true;
    warp.block->grid->memory->async().arrive_when_done(warp, inst, i, signal);
  }
  return MemOutcome::kDone;
}

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
    if (auto status = context.address(operands[0], inst.space, plan, code); !status) return status.error();
    plan.memory = copies_arrive;
    if (!context.has("noinc")) code.extra |= kExpects;
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
    if (context.has("noComplete")) code.extra |= kNoComplete;
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
  if (inst.order_given && inst.order == ptx::Order::kRelaxed) code.extra |= kRelaxed;
  // The object itself is never raced for: its operations are atomic in the cluster.
  if (*op != BarrierOp::kInit && *op != BarrierOp::kInval) {
    code.order = ptx::Order::kRelaxed;
    code.scope = ptx::Scope::kCluster;
  }
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
