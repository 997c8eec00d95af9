// cp.async, its groups, and cp.async.mbarrier.arrive (PTX ISA, "Data Movement and Conversion Instructions:
// Asynchronous Copy"). The bytes move when the thread waits for them; see async.hpp.
#include "vgpu/memory/async.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

// Operands: target, source, source size (32 bit), source offset (an immediate), [ignore-src predicate];
// aux[1] the target's offset; extra: copied size and flags.
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

Memory::Access read_of(CopyEntry& entry, std::uint32_t size, std::uint32_t mask) {
  Memory::Access read;
  read.kind = Memory::AccessKind::kLoad;
  read.space = ptx::Space::kGlobal;
  read.bytes = static_cast<std::uint16_t>(size);
  read.element_bytes = read.bytes;
  // The source is aligned to the whole size (PTX ISA, cp.async), whatever is read of it.
  read.alignment = entry.size;
  read.mask = mask;
  read.pattern = entry.from_pattern;
  read.addresses = entry.from.data();
  return read;
}

Memory::Access write_of(CopyEntry& entry) {
  const MemoryCode code = MemoryCode::unpack(entry.inst->aux[0]);
  Memory::Access write;
  write.kind = Memory::AccessKind::kStore;
  write.space = code.space;
  write.bytes = write.element_bytes = write.alignment = entry.size;
  write.mask = entry.mask;
  write.pattern = entry.to_pattern;
  write.addresses = entry.to.data();
  return write;
}

// All lanes copy all bytes.
bool move_whole(Warp& warp, CopyEntry& entry) {
  Memory& memory = *warp.block->grid->memory;
  Memory::Access read = read_of(entry, entry.size, entry.mask);
  if (!memory.access(warp, *entry.inst, read)) return false;
  Memory::Access write = write_of(entry);
  if (!memory.access(warp, *entry.inst, write)) return false;
  const bool changed = entry.size == 16  ? copy_each<16>(write, read, entry.mask)
                       : entry.size == 8 ? copy_each<8>(write, read, entry.mask)
                                         : copy_each<4>(write, read, entry.mask);
  if (changed) note_change(warp, write);
  return true;
}

// Lanes read different numbers of bytes; the rest of the target becomes zero.
bool move_parts(Warp& warp, CopyEntry& entry) {
  Memory& memory = *warp.block->grid->memory;
  std::uint8_t staged[kWarpSize][16] = {};
  for (std::uint32_t left = entry.mask; left != 0;) {
    const std::uint32_t size = entry.bytes[static_cast<std::size_t>(std::countr_zero(left))];
    std::uint32_t group = 0;
    for_each_lane(left, [&](int i) {
      if (entry.bytes[static_cast<std::size_t>(i)] == size) group |= 1U << static_cast<unsigned>(i);
    });
    left &= ~group;
    if (size == 0) continue;
    alignas(64) std::uint64_t from[kWarpSize];
    const std::uint64_t filler = entry.from[static_cast<std::size_t>(std::countr_zero(group))];
    for (std::size_t i = 0; i < kWarpSize; ++i) from[i] = ((group >> i) & 1U) != 0 ? entry.from[i] : filler;
    Memory::Access read = read_of(entry, size, group);
    read.addresses = from;
    if (!memory.access(warp, *entry.inst, read)) return false;
    for_each_lane(group, [&](int i) { std::memcpy(staged[i], host_pointer(lane_address(read, i)), size); });
  }
  Memory::Access write = write_of(entry);
  if (!memory.access(warp, *entry.inst, write)) return false;
  bool changed = false;
  for_each_lane(entry.mask, [&](int i) {
    std::uint8_t* target = host_pointer(lane_address(write, i));
    changed |= std::memcmp(target, staged[i], entry.size) != 0;
    std::memcpy(target, staged[i], entry.size);
  });
  if (changed) note_change(warp, write);
  return true;
}

// `kWhole`: the source size is the copied size, and nothing is ignored.
template <bool kWhole>
MemOutcome issue_copy(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  CopyEntry entry;
  entry.inst = &inst;
  entry.mask = mask;
  entry.size = code.extra & kSizeMask;
  entry.move = kWhole ? move_whole : move_parts;
  entry.from_pattern = form_addresses(warp.lanes, inst.operands[1], (code.extra & kSourceNarrow) != 0,
                                      warp.lanes.read<std::uint64_t>(inst.operands[3])[0], mask, entry.size,
                                      entry.from.data());
  entry.to_pattern = form_addresses(warp.lanes, inst.operands[code.address], code.narrow_address, inst.aux[1],
                                    mask, entry.size, entry.to.data());
  if constexpr (!kWhole) {
    const std::uint32_t* given = warp.lanes.read<std::uint32_t>(inst.operands[2]);
    const std::uint32_t ignored =
        (code.extra & kIgnore) != 0 ? *warp.lanes.read<std::uint32_t>(inst.operands[4]) : 0;
    for (unsigned i = 0; i < kWarpSize; ++i) {
      entry.bytes[i] = static_cast<std::uint8_t>(
          ((ignored >> i) & 1U) != 0 ? 0 : std::min<std::uint32_t>(given[i], entry.size));
    }
    if (entry.from_pattern != Memory::Pattern::kScattered) {
      const std::uint64_t step = entry.from_pattern == Memory::Pattern::kUniform ? 0 : entry.size;
      for (std::size_t i = 1; i < kWarpSize; ++i) entry.from[i] = entry.from[0] + i * step;
      entry.from_pattern = Memory::Pattern::kScattered;
    }
  }
  // The target may change from now on: who has used it must be done with it.
  CopyEntry ahead = entry;
  Memory::Access target = write_of(ahead);
  target.announced = true;
  Memory& memory = *warp.block->grid->memory;
  if (!memory.access(warp, inst, target)) return MemOutcome::kFault;
  memory.async().issue(warp, entry);
  return MemOutcome::kDone;
}

MemOutcome commit_group(Warp& warp, const Inst&, std::uint32_t mask) {
  warp.block->grid->memory->async().commit(warp, mask);
  return MemOutcome::kDone;
}

// Operand 0: how many of the newest groups may stay on their way.
MemOutcome wait_group(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const std::uint32_t newest = warp.lanes.read<std::uint32_t>(inst.operands[0])[std::countr_zero(mask)];
  return warp.block->grid->memory->async().wait(warp, mask, newest) ? MemOutcome::kDone : MemOutcome::kFault;
}

MemOutcome wait_all(Warp& warp, const Inst&, std::uint32_t mask) {
  return warp.block->grid->memory->async().wait_all(warp, mask) ? MemOutcome::kDone : MemOutcome::kFault;
}

}  // namespace

Result<Plan> plan_copy(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  if (inst.tensor || context.has("tensor")) return plan_tensor_copy(context);
  if (inst.bulk || context.has("bulk")) return plan_bulk_copy(context);
  Plan plan;
  plan.kind = InstKind::kMemory;
  switch (inst.sub_op) {
    case ptx::SubOp::kCommitGroup:
      plan.memory = commit_group;
      return plan;
    case ptx::SubOp::kWaitGroup: {
      auto newest = context.value(inst.operands[0], 32, false);
      if (!newest) return newest.error();
      plan.operands.push_back(*newest);
      plan.memory = wait_group;
      return plan;
    }
    case ptx::SubOp::kWaitAll:
      plan.memory = wait_all;
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
  const bool whole = size.kind == PlanOperand::Kind::kImmediate &&
                     size.value[0] == static_cast<std::uint64_t>(bytes) && !ignored;
  plan.memory = whole ? issue_copy<true> : issue_copy<false>;
  plan.aux[0] = target.pack();
  plan.aux[1] = target_offset;
  return plan;
}

}  // namespace echolo::vgpu
