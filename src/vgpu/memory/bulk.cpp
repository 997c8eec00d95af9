// cp.async.bulk, cp.reduce.async.bulk, their groups (PTX ISA, "Data Movement and Conversion Instructions:
// Bulk copy"), and st.async and red.async ("st.async", "red.async").
#include <memory>

#include "vgpu/memory/async_operands.hpp"
#include "vgpu/memory/updates.hpp"

namespace echolo::vgpu {

namespace {

// aux[0] of bulk_copy; aux[1]: the ReduceFn, or 0.
struct BulkForm {
  bool to_global = false, from_global = false;
  bool grouped = false;    // completion by bulk_group, else by an mbarrier (operands 5, 6)
  std::uint8_t mask = 0;   // index of the operand with the multicast mask; 0: none
  std::uint8_t bytes = 0;  // ... with the byte mask
  std::uint8_t element = 1;

  std::uint64_t pack() const {
    return (to_global ? 1U : 0U) | (from_global ? 2U : 0U) | (grouped ? 4U : 0U) | std::uint64_t{mask} << 8U |
           std::uint64_t{bytes} << 16U | std::uint64_t{element} << 24U;
  }
  static BulkForm unpack(std::uint64_t bits) {
    return {(bits & 1U) != 0,
            (bits & 2U) != 0,
            (bits & 4U) != 0,
            static_cast<std::uint8_t>(bits >> 8U),
            static_cast<std::uint8_t>(bits >> 16U),
            static_cast<std::uint8_t>(bits >> 24U)};
  }
};

// Operands: target (2), source (2), size, [mbarrier (2)], further ones by index.
MemOutcome bulk_copy(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const BulkForm form = BulkForm::unpack(inst.aux[0]);
  const auto reduce = reinterpret_cast<ReduceFn>(inst.aux[1]);  // NOLINT(performance-no-int-to-ptr)
  Memory& memory = *warp.block->grid->memory;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t to = lane_address_at(warp, inst, 0, lane);
    const std::uint64_t from = lane_address_at(warp, inst, 2, lane);
    const std::uint32_t size = warp.lanes.read<std::uint32_t>(inst.operands[4])[lane];
    if (!check_multiple(warp, inst, lane, "the target of a bulk copy", to, 16) ||
        !check_multiple(warp, inst, lane, "the source of a bulk copy", from, 16) ||
        !check_multiple(warp, inst, lane, "the size of a bulk copy", size, 16)) {
      return MemOutcome::kFault;
    }
    AsyncOperation operation;
    operation.warp = &warp;
    operation.inst = &inst;
    operation.lane = lane;
    operation.what = reduce != nullptr ? "cp.reduce.async.bulk" : "cp.async.bulk";
    operation.in_bulk_group = form.grouped;
    std::vector<AsyncPlace> targets = {AsyncPlace{nullptr, to}};
    AsyncPlace source{nullptr, from};
    if (!form.from_global) {
      const auto place = shared_place(warp, inst, lane, "read", from);
      if (!place) return MemOutcome::kFault;
      source = *place;
      operation.uses.push_back(source.block);
    }
    std::vector<Block*> blocks;
    if (!form.to_global) {
      const auto place = shared_place(warp, inst, lane, "write", to);
      if (!place) return MemOutcome::kFault;
      targets[0] = *place;
      if (form.mask != 0) {
        const auto named = multicast_blocks(warp, inst, lane,
                                            warp.lanes.read<std::uint16_t>(inst.operands[form.mask])[lane]);
        if (!named) return MemOutcome::kFault;
        blocks = *named;
        targets.clear();
        for (Block* block : blocks) targets.push_back({block, place->at});
      }
      for (const AsyncPlace& target : targets) operation.uses.push_back(target.block);
    }
    if (!form.grouped) {
      const auto barrier = shared_place(warp, inst, lane, "barrier", lane_address_at(warp, inst, 5, lane));
      if (!barrier) return MemOutcome::kFault;
      if (blocks.empty()) blocks.push_back(barrier->block);
      for (Block* block : blocks) {
        operation.signals.push_back({block, static_cast<std::uint32_t>(barrier->at), size, false});
        operation.uses.push_back(block);
      }
    }
    const std::uint32_t bytes =
        form.bytes != 0 ? warp.lanes.read<std::uint16_t>(inst.operands[form.bytes])[lane] : 0xffffU;
    operation.move = [&memory, targets, source, size, reduce, bytes,
                      element = form.element](const Memory::Accessor& issuer) {
      Memory::Accessor who = issuer;
      who.check_written = true;
      std::vector<std::uint8_t> staged(size);
      if (!read_place(memory, source, staged.data(), size, who)) return false;
      for (const AsyncPlace& target : targets) {
        if (reduce != nullptr) {
          if (!reduce_place(memory, target, staged.data(), size, element, reduce, who)) return false;
        } else if (bytes == 0xffffU) {
          if (!write_place(memory, target, staged.data(), size, who)) return false;
        } else {
          for (std::uint32_t i = 0; i < size; ++i) {
            if (((bytes >> (i % 16)) & 1U) == 0) continue;
            if (!write_place(memory, {target.block, target.at + i}, &staged[i], 1, who)) return false;
          }
        }
      }
      return true;
    };
    memory.async().issue(std::move(operation));
  }
  return MemOutcome::kDone;
}

MemOutcome commit_bulk(Warp& warp, const Inst&, std::uint32_t mask) {
  warp.block->grid->memory->async().commit_bulk(warp, mask);
  return MemOutcome::kDone;
}

MemOutcome wait_bulk(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const std::uint32_t newest = warp.lanes.read<std::uint32_t>(inst.operands[0])[std::countr_zero(mask)];
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    if (!warp.block->grid->memory->async().wait_bulk(warp, std::countr_zero(lanes), newest))
      return MemOutcome::kFault;
  }
  return MemOutcome::kDone;
}

MemOutcome nothing(Warp&, const Inst&, std::uint32_t) { return MemOutcome::kDone; }

// st.async and red.async. Operands: target (2), mbarrier (2), values; aux[0]: bytes of an element | elements
// << 8; aux[1]: the ReduceFn, or 0.
MemOutcome remote_store(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const auto element = static_cast<std::uint32_t>(inst.aux[0] & 0xffU);
  const auto n = static_cast<std::uint32_t>(inst.aux[0] >> 8U);
  const auto reduce = reinterpret_cast<ReduceFn>(inst.aux[1]);  // NOLINT(performance-no-int-to-ptr)
  Memory& memory = *warp.block->grid->memory;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t to = lane_address_at(warp, inst, 0, lane);
    const char* const what = reduce != nullptr ? "the target of red.async" : "the target of st.async";
    if (!check_multiple(warp, inst, lane, what, to, std::uint64_t{element} * n)) return MemOutcome::kFault;
    const auto target = shared_place(warp, inst, lane, "write", to);
    if (!target) return MemOutcome::kFault;
    const auto barrier = shared_place(warp, inst, lane, "barrier", lane_address_at(warp, inst, 2, lane));
    if (!barrier) return MemOutcome::kFault;
    if (barrier->block != target->block) {
      return async_fault(warp, inst, lane, FindingKind::kDeviceTrap,
                         "an asynchronous store and its mbarrier lie in different blocks' shared memory",
                         "the mbarrier must be in the shared memory that is written",
                         "map both addresses to the same rank (mapa)");
    }
    std::array<std::uint8_t, 32> value{};
    for (std::uint32_t i = 0; i < n; ++i) {
      if (element == 8) {
        std::memcpy(&value[i * 8U], &warp.lanes.read<std::uint64_t>(inst.operands[4 + i])[lane], 8);
      } else {
        std::memcpy(&value[i * 4U], &warp.lanes.read<std::uint32_t>(inst.operands[4 + i])[lane], 4);
      }
    }
    AsyncOperation operation;
    operation.warp = &warp;
    operation.inst = &inst;
    operation.lane = lane;
    operation.what = reduce != nullptr ? "red.async" : "st.async";
    operation.uses = {target->block};
    operation.signals.push_back(
        {barrier->block, static_cast<std::uint32_t>(barrier->at), element * n, false});
    operation.move = [&memory, target = *target, value, element, n, reduce](const Memory::Accessor& who) {
      if (reduce != nullptr)
        return reduce_place(memory, target, value.data(), element * n, element, reduce, who);
      return write_place(memory, target, value.data(), element * n, who);
    };
    memory.async().issue(std::move(operation));
  }
  return MemOutcome::kDone;
}

}  // namespace

Result<Plan> plan_bulk_copy(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  Plan plan;
  plan.kind = InstKind::kMemory;
  if (context.has("commit_group")) {
    plan.memory = commit_bulk;
    return plan;
  }
  if (context.has("wait_group")) {
    if (auto status = add_value(context, plan, operands[0], 32); !status) return status.error();
    plan.memory = wait_bulk;
    return plan;
  }
  if (context.has("prefetch")) {  // a hint
    plan.memory = nothing;
    return plan;
  }
  if (context.has("ignore_oob")) return context.refuse("the virtual node does not execute this form");
  BulkForm form;
  form.to_global = inst.space == ptx::Space::kGlobal;
  form.from_global = inst.space2 == ptx::Space::kGlobal;
  form.grouped = context.has("bulk_group");
  if (form.to_global == form.from_global && form.to_global)
    return context.refuse("a bulk copy has shared memory on one side");
  if (form.to_global != form.grouped)
    return context.refuse(
        "completes through an mbarrier in shared memory, through a bulk_group in global memory");
  if (inst.mode == "reduce") {
    const ReduceFn reduce = reduce_function(inst.sub_op, inst.type);
    if (reduce == nullptr) return context.refuse("there is no such reduction on this type");
    plan.aux[1] = reinterpret_cast<std::uint64_t>(reduce);
    form.element = static_cast<std::uint8_t>(ptx::bytes_of(inst.type));
  }
  const std::uint64_t reduce = plan.aux[1];
  if (auto status = add_address(context, plan, operands[0], inst.space); !status) return status.error();
  if (auto status = add_address(context, plan, operands[1], inst.space2); !status) return status.error();
  if (auto status = add_value(context, plan, operands[2], 32); !status) return status.error();
  std::size_t next = 3;
  if (!form.grouped) {
    if (operands.size() < 4) return context.refuse("needs the address of an mbarrier");
    if (auto status = add_address(context, plan, operands[next++], ptx::Space::kShared); !status)
      return status.error();
  }
  const auto further = [&](std::uint8_t& index) -> Status {
    if (operands.size() <= next) return context.refuse("needs more operands");
    index = static_cast<std::uint8_t>(plan.operands.size());
    return add_value(context, plan, operands[next++], 16);
  };
  if (inst.multicast) {
    if (auto status = further(form.mask); !status) return status.error();
  }
  if (context.has("L2::cache_hint")) ++next;  // a hint
  if (inst.bytemask) {
    if (auto status = further(form.bytes); !status) return status.error();
  }
  plan.memory = bulk_copy;
  plan.aux[0] = form.pack();
  plan.aux[1] = reduce;
  return plan;
}

Result<Plan> plan_remote_store(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  if (!context.has("mbarrier::complete_tx::bytes") || operands.size() != 3)
    return context.refuse("only the form that completes through an mbarrier exists on sm_90");
  Plan plan;
  plan.kind = InstKind::kMemory;
  if (auto status = add_address(context, plan, operands[0], inst.space); !status) return status.error();
  if (auto status = add_address(context, plan, operands[2], inst.space); !status) return status.error();
  const int bytes = ptx::bytes_of(inst.type);
  if (bytes != 4 && bytes != 8) return context.refuse("stores elements of 4 or 8 bytes");
  const std::vector<ptx::Operand> single = {operands[1]};
  const auto& values = operands[1].kind == ptx::OperandKind::kVector ? operands[1].elements : single;
  if (values.size() != inst.vector) return context.refuse("the vector has another number of registers");
  for (const ptx::Operand& value : values) {
    if (auto status = add_value(context, plan, value, static_cast<std::uint8_t>(8 * bytes)); !status)
      return status.error();
  }
  plan.aux[0] = static_cast<std::uint64_t>(bytes) | std::uint64_t{inst.vector} << 8U;
  plan.aux[1] = 0;
  if (inst.op == ptx::Opcode::kRed) {
    const ReduceFn reduce = reduce_function(inst.sub_op, inst.type);
    if (reduce == nullptr) return context.refuse("there is no such reduction on this type");
    plan.aux[1] = reinterpret_cast<std::uint64_t>(reduce);
  }
  plan.memory = remote_store;
  return plan;
}

}  // namespace echolo::vgpu
