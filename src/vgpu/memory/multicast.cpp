// multimem: one instruction on the copies of a symmetric object that all PEs of a team hold (PTX ISA, "Data
// Movement and Conversion Instructions: multimem"). An address is one that nvshmemx_mc_ptr returned.
#include <array>

#include "vgpu/memory/async_operands.hpp"
#include "vgpu/memory/updates.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::vgpu {

namespace {

enum class MulticastOp : std::uint8_t { kLoadReduce, kStore, kReduce };

// aux[0]: op | elements << 8 | storage bytes of an element << 16 | bytes of one value << 24; aux[1]: the
// ReduceFn on one value, or 0.
// Operands: address (2), then the registers (destinations or sources).
MemOutcome multicast(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const auto op = static_cast<MulticastOp>(inst.aux[0] & 0xffU);
  const auto n = static_cast<std::uint32_t>(inst.aux[0] >> 8U) & 0xffU;
  const auto element = static_cast<std::uint32_t>(inst.aux[0] >> 16U) & 0xffU;
  const auto part = static_cast<std::uint32_t>(inst.aux[0] >> 24U) & 0xffU;
  const auto reduce = reinterpret_cast<ReduceFn>(inst.aux[1]);  // NOLINT(performance-no-int-to-ptr)
  const std::size_t at = op == MulticastOp::kLoadReduce ? n : 0;
  const std::size_t registers = op == MulticastOp::kLoadReduce ? 0 : 2;
  Memory& memory = *warp.block->grid->memory;
  const std::uint32_t bytes = element * n;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const std::uint64_t address = lane_address_at(warp, inst, at, lane);
    const std::vector<std::uint64_t> targets = memory.multicast_targets(address);
    if (targets.empty()) {
      return async_fault(warp, inst, lane, FindingKind::kOutOfBounds,
                         "PE " + std::to_string(warp.block->grid->pe) +
                             " gives multimem an address that is no multicast address",
                         "multimem works on the copies that all PEs hold of a symmetric object",
                         "use the pointer that nvshmemx_mc_ptr() returns for the object and a team");
    }
    Memory::Accessor who;
    who.warp = &warp;
    who.inst = &inst;
    who.lane = lane;
    who.pe = warp.block->grid->pe;
    who.what = "multimem";
    who.any_pe = true;
    who.alignment = static_cast<std::uint8_t>(bytes);
    who.check_written = op != MulticastOp::kStore;
    who.synchronises = true;
    who.agent = memory.order().thread(warp, lane);
    who.order = inst.source->order;
    who.scope = inst.source->scope;
    if (Meter* const meter = memory.meter()) {
      for (const std::uint64_t target : targets)
        meter->moved(warp, target, bytes, op != MulticastOp::kLoadReduce);
    }
    std::array<std::uint8_t, 32> value{};
    const auto read_registers = [&] {
      for (std::uint32_t i = 0; i < n; ++i) {
        const Slot slot = inst.operands[registers + i];
        const void* from =
            element == 8   ? static_cast<const void*>(&warp.lanes.read<std::uint64_t>(slot)[lane])
            : element == 4 ? static_cast<const void*>(&warp.lanes.read<std::uint32_t>(slot)[lane])
                           : static_cast<const void*>(&warp.lanes.read<std::uint16_t>(slot)[lane]);
        std::memcpy(&value[std::size_t{i} * element], from, element);
      }
    };
    if (op == MulticastOp::kLoadReduce) {
      bool first = true;
      for (const std::uint64_t target : targets) {
        std::array<std::uint8_t, 32> held{};
        if (!memory.read(target, held.data(), bytes, who)) return MemOutcome::kFault;
        if (first) value = held;
        for (std::uint32_t i = 0; !first && i < bytes; i += part) reduce(&value[i], &held[i]);
        first = false;
      }
      for (std::uint32_t i = 0; i < n; ++i) {
        const Slot slot = inst.operands[registers + i];
        void* to = element == 8   ? static_cast<void*>(&warp.lanes.write<std::uint64_t>(slot)[lane])
                   : element == 4 ? static_cast<void*>(&warp.lanes.write<std::uint32_t>(slot)[lane])
                                  : static_cast<void*>(&warp.lanes.write<std::uint16_t>(slot)[lane]);
        std::memcpy(to, &value[std::size_t{i} * element], element);
      }
      continue;
    }
    read_registers();
    for (const std::uint64_t target : targets) {
      if (op == MulticastOp::kStore) {
        if (!memory.write(target, value.data(), bytes, who)) return MemOutcome::kFault;
        continue;
      }
      std::array<std::uint8_t, 32> held{};
      if (!memory.read(target, held.data(), bytes, who)) return MemOutcome::kFault;
      for (std::uint32_t i = 0; i < bytes; i += part) reduce(&held[i], &value[i]);
      if (!memory.write(target, held.data(), bytes, who)) return MemOutcome::kFault;
    }
  }
  return MemOutcome::kDone;
}

}  // namespace

Result<Plan> plan_multicast(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  if (context.has("bulk")) return context.refuse("only sm_100 and later have it");
  Plan plan;
  plan.kind = InstKind::kMemory;
  const bool loads = inst.mode == "ld_reduce";
  const MulticastOp op = loads               ? MulticastOp::kLoadReduce
                         : inst.mode == "st" ? MulticastOp::kStore
                                             : MulticastOp::kReduce;
  ReduceFn reduce = nullptr;
  if (op != MulticastOp::kStore) {
    reduce = reduce_function(inst.sub_op, inst.type);
    if (reduce == nullptr) return context.refuse("there is no such reduction on this type");
  }
  const int bytes = ptx::bytes_of(inst.type);
  if (bytes != 2 && bytes != 4 && bytes != 8)
    return context.refuse("the virtual node has no multimem on this type");
  const std::size_t data = loads ? 0 : 1;
  if (operands.size() != 2) return context.refuse("needs an address and a value");
  const std::vector<ptx::Operand> single = {operands[data]};
  const auto& values = operands[data].kind == ptx::OperandKind::kVector ? operands[data].elements : single;
  if (values.size() != inst.vector) return context.refuse("the vector has another number of registers");
  const auto add_values = [&]() -> Status {
    for (const ptx::Operand& value : values) {
      auto planned = context.value(value, static_cast<std::uint8_t>(8 * bytes), loads);
      if (!planned) return planned.error();
      if (planned->width != 8 * bytes)
        return context.refuse("needs registers of " + std::to_string(8 * bytes) + " bits");
      plan.operands.push_back(*planned);
    }
    return {};
  };
  if (loads) {
    if (auto status = add_values(); !status) return status.error();
  }
  if (auto status = add_address(context, plan, operands[1 - data], ptx::Space::kGlobal); !status)
    return status.error();
  if (!loads) {
    if (auto status = add_values(); !status) return status.error();
  }
  plan.memory = multicast;
  plan.aux[0] = static_cast<std::uint64_t>(op) | std::uint64_t{inst.vector} << 8U |
                static_cast<std::uint64_t>(bytes) << 16U | static_cast<std::uint64_t>(bytes) << 24U;
  plan.aux[1] = reinterpret_cast<std::uint64_t>(reduce);
  return plan;
}

}  // namespace echolo::vgpu
