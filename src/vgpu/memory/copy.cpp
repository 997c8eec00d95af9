// cp.async, its groups, and cp.async.mbarrier.arrive (PTX ISA, "Data Movement and Conversion Instructions:
// Asynchronous Copy"). The bytes move when the instruction issues, which the asynchronous group model allows.
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

// Operands: target, source, source size (32 bit); aux[1] the target's offset; extra: log2 of the copied size
// and flags. The source's offset is folded into operand 3, an immediate.
constexpr std::uint8_t kSizeMask = 0x1f, kIgnore = 0x20, kSourceNarrow = 0x40;

// Copies and says whether that changed anything.
template <std::size_t kBytes>
bool copy_each(const Memory::Access& to, const Memory::Access& from, std::uint32_t mask) {
  bool changed = false;
  for_each_lane(mask, [&](int i) {
    std::uint8_t before[kBytes], after[kBytes];
    std::uint8_t* const target = host_pointer(lane_address(to, i));
    std::memcpy(before, target, kBytes);
    std::memcpy(after, host_pointer(lane_address(from, i)), kBytes);
    changed |= std::memcmp(before, after, kBytes) != 0;
    std::memcpy(target, after, kBytes);
  });
  return changed;
}

Memory::Access source_access(const Warp& warp, const Inst& inst, const MemoryCode& code, std::uint32_t size,
                             std::uint32_t mask, std::uint64_t* addresses) {
  Memory::Access read;
  read.kind = Memory::AccessKind::kLoad;
  read.space = ptx::Space::kGlobal;
  read.bytes = static_cast<std::uint16_t>(size);
  read.element_bytes = read.bytes;
  // The source is aligned to the whole size (PTX ISA, cp.async), whatever is read of it.
  read.alignment = code.extra & kSizeMask;
  read.mask = mask;
  read.addresses = addresses;
  read.pattern = form_addresses(warp.lanes, inst.operands[1], (code.extra & kSourceNarrow) != 0,
                                warp.lanes.read<std::uint64_t>(inst.operands[3])[0], mask, size, addresses);
  return read;
}

// All lanes copy all bytes.
MemOutcome copy_whole(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  const std::uint32_t bytes = code.extra & kSizeMask;
  alignas(64) std::uint64_t from[kWarpSize], to[kWarpSize];
  Memory::Access read = source_access(warp, inst, code, bytes, mask, from);
  if (!warp.block->grid->memory->access(warp, inst, read)) return MemOutcome::kFault;
  Memory::Access write;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kStore, bytes, bytes, write, to))
    return MemOutcome::kFault;
  const bool changed = bytes == 16  ? copy_each<16>(write, read, mask)
                       : bytes == 8 ? copy_each<8>(write, read, mask)
                                    : copy_each<4>(write, read, mask);
  if (changed) note_change(warp, write);
  return MemOutcome::kDone;
}

MemOutcome copy_async(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  const std::uint32_t bytes = code.extra & kSizeMask;
  Memory& memory = *warp.block->grid->memory;
  std::uint32_t sizes[kWarpSize];
  const std::uint32_t* given = warp.lanes.read<std::uint32_t>(inst.operands[2]);
  for (int i = 0; i < kWarpSize; ++i) sizes[i] = std::min(given[i], bytes);
  if ((code.extra & kIgnore) != 0) {
    const std::uint32_t ignored = *warp.lanes.read<std::uint32_t>(inst.operands[4]);
    for (int i = 0; i < kWarpSize; ++i) {
      if (((ignored >> static_cast<unsigned>(i)) & 1U) != 0) sizes[i] = 0;
    }
  }

  std::uint8_t staged[kWarpSize][16] = {};
  // Lanes that read equally many bytes go together; nearly always these are all.
  std::uint32_t left = mask;
  while (left != 0) {
    const std::uint32_t size = sizes[std::countr_zero(left)];
    std::uint32_t group = 0;
    for_each_lane(left, [&](int i) {
      if (sizes[i] == size) group |= 1U << static_cast<unsigned>(i);
    });
    left &= ~group;
    if (size == 0) continue;
    alignas(64) std::uint64_t from[kWarpSize];
    Memory::Access read = source_access(warp, inst, code, size, group, from);
    if (!memory.access(warp, inst, read)) return MemOutcome::kFault;
    for_each_lane(group, [&](int i) { std::memcpy(staged[i], host_pointer(lane_address(read, i)), size); });
  }

  alignas(64) std::uint64_t to[kWarpSize];
  Memory::Access write;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kStore, bytes, bytes, write, to))
    return MemOutcome::kFault;
  bool changed = false;
  for_each_lane(mask, [&](int i) {
    std::uint8_t* target = host_pointer(lane_address(write, i));
    changed |= std::memcmp(target, staged[i], bytes) != 0;
    std::memcpy(target, staged[i], bytes);
  });
  if (changed) note_change(warp, write);
  return MemOutcome::kDone;
}

MemOutcome nothing(Warp&, const Inst&, std::uint32_t) { return MemOutcome::kDone; }

}  // namespace

Result<Plan> plan_copy(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  Plan plan;
  plan.kind = InstKind::kMemory;
  if (inst.bulk || inst.tensor || inst.sub_op == ptx::SubOp::kBulk || inst.sub_op == ptx::SubOp::kTensor ||
      context.has("bulk")) {
    return context.refuse("the virtual node does not execute bulk copies");
  }
  switch (inst.sub_op) {
    case ptx::SubOp::kCommitGroup:
    case ptx::SubOp::kWaitGroup:
    case ptx::SubOp::kWaitAll:
      plan.memory = nothing;
      return plan;
    case ptx::SubOp::kMbarrierArrive:
      return plan_barrier_object(context);
    case ptx::SubOp::kNone:
      break;
    default:
      return context.refuse("the virtual node does not execute this form");
  }
  if (inst.operands.size() < 3 || inst.operands[2].kind != ptx::OperandKind::kImmediate) {
    return context.refuse("the copied size must be a constant");
  }
  const std::int64_t bytes = inst.operands[2].value;
  if (bytes != 4 && bytes != 8 && bytes != 16)
    return context.refuse("copies 4, 8 or 16 bytes, not " + std::to_string(bytes));
  MemoryCode target, source;
  if (auto status = context.address(inst.operands[0], ptx::Space::kShared, plan, target); !status)
    return status.error();
  const std::uint64_t target_offset = plan.aux[1];
  if (auto status = context.address(inst.operands[1], ptx::Space::kGlobal, plan, source); !status)
    return status.error();
  target.extra = static_cast<std::uint8_t>(bytes);
  if (source.narrow_address) target.extra |= kSourceNarrow;

  PlanOperand size, offset;
  size.kind = PlanOperand::Kind::kImmediate;
  size.width = 32;
  size.value[0] = static_cast<std::uint64_t>(bytes);
  offset.kind = PlanOperand::Kind::kImmediate;
  offset.width = 64;
  offset.value[0] = plan.aux[1];
  std::optional<PlanOperand> ignored;
  // What follows is a source size or a predicate, then the cache policy where .L2::cache_hint says so.
  const std::size_t end = inst.operands.size() - (context.has("L2::cache_hint") ? 1 : 0);
  if (end > 3) {
    const ptx::Operand& further = inst.operands[3];
    auto planned = context.value(further, 32, false);
    if (!planned) return planned.error();
    if (planned->kind == PlanOperand::Kind::kRegister && planned->width == 1) {
      if (further.negated) return context.refuse("a negated ignore-src predicate");
      ignored = *planned;
      target.extra |= kIgnore;
    } else {
      if (planned->width != 32) return context.refuse("the source size must have 32 bits");
      size = *planned;
    }
  }
  plan.operands.push_back(size);
  plan.operands.push_back(offset);
  if (ignored) plan.operands.push_back(*ignored);
  plan.memory = size.kind == PlanOperand::Kind::kImmediate &&
                        size.value[0] == static_cast<std::uint64_t>(bytes) && !ignored
                    ? copy_whole
                    : copy_async;
  plan.aux[0] = target.pack();
  plan.aux[1] = target_offset;
  return plan;
}

}  // namespace echolo::vgpu
