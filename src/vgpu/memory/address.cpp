// Instructions about addresses: cvta, isspacep, mapa, getctarank; and hints: createpolicy, prefetch, discard
// (PTX ISA, "Data Movement and Conversion Instructions").
#include "vgpu/memory/cluster.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

using ptx::Opcode;
using ptx::Space;

std::uint64_t window_base(Space space) {
  switch (space) {
    case Space::kShared:
    case Space::kSharedCluster:
      return kSharedWindow;
    case Space::kLocal:
      return kLocalWindow;
    case Space::kParam:
      return kParamWindow;
    default:
      return 0;
  }
}

std::uint64_t window_bytes(Space space) {
  switch (space) {
    case Space::kShared:
      return kSharedWindowBytes;
    case Space::kSharedCluster:
      return kSharedClusterWindowBytes;
    case Space::kLocal:
      return kLocalWindowBytes;
    default:
      return kParamWindowBytes;
  }
}

// d = a + aux[0]; the window's base, or its negative for .to.
template <typename T>
void shift_address(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const T* from = lanes.read<T>(inst.operands[1]);
  T* to = lanes.write<T>(inst.operands[0]);
  const auto add = static_cast<T>(inst.aux[0]);
  for_each_lane(mask, [&](int i) { to[i] = static_cast<T>(from[i] + add); });
}

// p = a lies in [aux[0], aux[0] + aux[1])
template <typename T>
void in_window(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const T* from = lanes.read<T>(inst.operands[1]);
  std::uint32_t* to = lanes.write<std::uint32_t>(inst.operands[0]);
  std::uint32_t result = 0;
  for_each_lane(mask, [&](int i) {
    if (std::uint64_t{from[i]} - inst.aux[0] < inst.aux[1]) result |= 1U << static_cast<unsigned>(i);
  });
  *to = (*to & ~mask) | result;
}

template <typename T>
void outside_windows(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const T* from = lanes.read<T>(inst.operands[1]);
  std::uint32_t* to = lanes.write<std::uint32_t>(inst.operands[0]);
  std::uint32_t result = 0;
  for_each_lane(mask, [&](int i) {
    const std::uint64_t a = from[i];
    const bool window = a - kSharedWindow < kSharedClusterWindowBytes ||
                        a - kLocalWindow < kLocalWindowBytes || a - kParamWindow < kParamWindowBytes;
    if (!window) result |= 1U << static_cast<unsigned>(i);
  });
  *to = (*to & ~mask) | result;
}

// Constant variables lie among the global ones here.
MemOutcome in_constant_memory(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const std::uint64_t* from = warp.lanes.read<std::uint64_t>(inst.operands[1]);
  std::uint32_t* to = warp.lanes.write<std::uint32_t>(inst.operands[0]);
  std::uint32_t result = 0;
  for_each_lane(mask, [&](int i) {
    const Allocation* const found = warp.block->grid->memory->find(from[i]);
    if (found != nullptr && found->kind == AllocationKind::kConstant)
      result |= 1U << static_cast<unsigned>(i);
  });
  *to = (*to & ~mask) | result;
  return MemOutcome::kDone;
}

template <typename T>
void constant_result(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  T* to = lanes.write<T>(inst.operands[0]);
  for_each_lane(mask, [&](int i) { to[i] = static_cast<T>(inst.aux[0]); });
}

// aux[0]: kSharedWindow for generic addresses, 0 for those of .shared::cluster.
template <typename T>
MemOutcome map_address(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const T* from = warp.lanes.read<T>(inst.operands[1]);
  const std::uint32_t* rank = warp.lanes.read<std::uint32_t>(inst.operands[2]);
  T* to = warp.lanes.write<T>(inst.operands[0]);
  const Block& block = *warp.block;
  const Cluster* const cluster = cluster_of(block).cluster;
  const std::size_t n_blocks = cluster != nullptr ? cluster->blocks.size() : 1;
  const auto base = static_cast<T>(inst.aux[0]);
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    if (rank[i] >= n_blocks) {
      Finding finding;
      finding.kind = FindingKind::kOutOfBounds;
      finding.fatal = true;
      finding.message = "mapa asks for the shared memory of block " + std::to_string(rank[i]) +
                        " of the cluster, which has " + std::to_string(n_blocks) +
                        (n_blocks == 1 ? " block" : " blocks");
      finding.advice = "use a rank below %cluster_nctarank (cluster.num_blocks()), or launch larger clusters";
      finding.sites.push_back(make_site(warp, i, inst, "call"));
      warp.block->grid->findings->add(std::move(finding));
      return MemOutcome::kFault;
    }
    const auto offset = static_cast<std::uint32_t>(from[i] - base) & ((1U << kClusterRankShift) - 1U);
    to[i] = static_cast<T>(base + (static_cast<T>(rank[i] + 1U) << kClusterRankShift) + offset);
  }
  return MemOutcome::kDone;
}

template <typename T>
MemOutcome rank_of_address(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const T* from = warp.lanes.read<T>(inst.operands[1]);
  std::uint32_t* to = warp.lanes.write<std::uint32_t>(inst.operands[0]);
  const auto base = static_cast<T>(inst.aux[0]);
  const std::uint32_t own = cluster_of(*warp.block).rank;
  for_each_lane(mask, [&](int i) {
    const auto rank = static_cast<std::uint32_t>((from[i] - base) >> kClusterRankShift);
    to[i] = rank == 0 ? own : rank - 1;
  });
  return MemOutcome::kDone;
}

MemOutcome nothing(Warp&, const Inst&, std::uint32_t) { return MemOutcome::kDone; }

// discard.L2 destroys the line's contents: what is read next was never written.
MemOutcome discard(Warp& warp, const Inst& inst, std::uint32_t mask) {
  constexpr std::uint32_t kLine = 128;
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kStore, kLine, kLine, access, at))
    return MemOutcome::kFault;
  for_each_lane(mask, [&](int i) { warp.block->grid->memory->poison(lane_address(access, i), kLine); });
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

Result<Plan> plan_address(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  Plan plan;
  const bool wide = ptx::bits_of(inst.type) == 64;
  const std::uint8_t width = wide ? 64 : 32;
  switch (inst.op) {
    case Opcode::kCvta:
      if (auto status = add_operand(context, plan, operands[0], width, true); !status) return status.error();
      if (auto status = add_operand(context, plan, operands[1], width, false); !status) return status.error();
      plan.aux[0] = inst.to ? ~window_base(inst.space) + 1 : window_base(inst.space);
      if (!wide && plan.aux[0] != 0) return context.refuse("generic addresses have 64 bits");
      plan.alu = wide ? shift_address<std::uint64_t> : shift_address<std::uint32_t>;
      break;
    case Opcode::kIsspacep: {
      if (auto status = add_operand(context, plan, operands[0], 1, true); !status) return status.error();
      const bool narrow =
          operands[1].kind == ptx::OperandKind::kRegister && context.register_width(operands[1].reg) == 32;
      if (auto status = add_operand(context, plan, operands[1], narrow ? 32 : 64, false); !status)
        return status.error();
      if (inst.space == Space::kGlobal) {
        plan.alu = narrow ? outside_windows<std::uint32_t> : outside_windows<std::uint64_t>;
      } else if (inst.space == Space::kConst) {
        if (narrow) return context.refuse("generic addresses have 64 bits");
        plan.kind = InstKind::kMemory;
        plan.memory = in_constant_memory;
        return plan;
      } else {
        plan.aux[0] = window_base(inst.space);
        plan.aux[1] = window_bytes(inst.space);
        plan.alu = narrow ? in_window<std::uint32_t> : in_window<std::uint64_t>;
      }
      break;
    }
    case Opcode::kMapa:
      if (auto status = add_operand(context, plan, operands[0], width, true); !status) return status.error();
      if (auto status = add_operand(context, plan, operands[1], width, false); !status) return status.error();
      if (auto status = add_operand(context, plan, operands[2], 32, false); !status) return status.error();
      plan.kind = InstKind::kMemory;
      plan.aux[0] = inst.space == Space::kGeneric ? kSharedWindow : 0;
      plan.memory = wide ? map_address<std::uint64_t> : map_address<std::uint32_t>;
      return plan;
    case Opcode::kGetctarank:
      if (auto status = add_operand(context, plan, operands[0], 32, true); !status) return status.error();
      if (auto status = add_operand(context, plan, operands[1], width, false); !status) return status.error();
      plan.kind = InstKind::kMemory;
      plan.aux[0] = inst.space == Space::kGeneric ? kSharedWindow : 0;
      plan.memory = wide ? rank_of_address<std::uint64_t> : rank_of_address<std::uint32_t>;
      return plan;
    case Opcode::kCreatepolicy:
      if (auto status = add_operand(context, plan, operands[0], 64, true); !status) return status.error();
      plan.alu = constant_result<std::uint64_t>;
      break;
    case Opcode::kDiscard: {
      MemoryCode code;
      plan.kind = InstKind::kMemory;
      plan.memory = discard;
      if (auto status = context.address(operands[0], inst.space, plan, code); !status) return status.error();
      plan.aux[0] = code.pack();
      return plan;
    }
    default:  // prefetch, prefetchu, applypriority: hints
      plan.kind = InstKind::kMemory;
      plan.memory = nothing;
      return plan;
  }
  plan.kind = InstKind::kAlu;
  plan.alu_full = plan.alu;
  return plan;
}

}  // namespace echolo::vgpu
