// st (PTX ISA, "Data Movement and Conversion Instructions: st").
#include "vgpu/memory/lane_ops.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

using Pattern = Memory::Pattern;

// Writes and says whether that changed anything.
template <typename Element>
bool put(std::uint64_t address, Element value) {
  Element before;
  std::memcpy(&before, host_pointer(address), sizeof before);
  std::memcpy(host_pointer(address), &value, sizeof value);
  return before != value;
}

template <unsigned kBytes>
bool put_each(const std::uint64_t* addresses, const std::uint32_t* staged) {
  std::uint64_t differ = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    std::uint64_t before[kBytes / 8], after[kBytes / 8];
    std::memcpy(before, host_pointer(addresses[i]), kBytes);
    std::memcpy(after, staged + static_cast<std::size_t>(i) * (kBytes / 4), kBytes);
    for (unsigned w = 0; w < kBytes / 8; ++w) differ |= before[w] ^ after[w];
    std::memcpy(host_pointer(addresses[i]), after, kBytes);
  }
  return differ != 0;
}

// .v2 and .v4 of 32-bit elements by a whole warp. Says whether anything changed.
bool store_packed(Warp& warp, const Inst& inst, const MemoryCode& code, const Memory::Access& access) {
  static const LaneOps& ops = lane_ops();
  alignas(64) std::uint32_t staged[kWarpSize * 4];
  const std::uint32_t* in[4] = {};
  for (unsigned v = 0; v < code.vector; ++v)
    in[v] = warp.lanes.read<std::uint32_t>(inst.operands[code.address + 1U + v]);
  ops.join32(in, code.vector, staged);
  if (access.pattern == Pattern::kScattered) {
    return code.vector == 4 ? put_each<16>(access.addresses, staged) : put_each<8>(access.addresses, staged);
  }
  const std::size_t n = std::size_t{access.bytes} * kWarpSize;
  if (std::memcmp(host_pointer(access.addresses[0]), staged, n) == 0) return false;
  std::memcpy(host_pointer(access.addresses[0]), staged, n);
  return true;
}

template <typename Element, typename Register>
MemOutcome store(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  const std::uint32_t bytes = sizeof(Element) * code.vector;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kStore, sizeof(Element), bytes, access, at))
    return MemOutcome::kFault;
  bool changed = false;
  unsigned n = code.vector;
  if constexpr (sizeof(Element) == 4 && sizeof(Register) == 4) {
    if (n > 1 && n <= 4 && mask == kAllLanes && access.pattern != Pattern::kUniform) {
      changed = store_packed(warp, inst, code, access);
      n = 0;
    }
  }
  for (unsigned v = 0; v < n; ++v) {
    const Register* from = warp.lanes.read<Register>(inst.operands[code.address + 1U + v]);
    const std::uint64_t skip = v * sizeof(Element);
    switch (access.pattern) {
      case Pattern::kContiguous: {
        std::uint8_t* to = host_pointer(at[0] + skip);
        if (sizeof(Element) == sizeof(Register) && code.vector == 1) {
          changed = std::memcmp(to, from, sizeof(Element) * kWarpSize) != 0;
          if (changed) std::memcpy(to, from, sizeof(Element) * kWarpSize);
        } else {
          for (int i = 0; i < kWarpSize; ++i) {
            changed |=
                put(at[0] + skip + static_cast<std::uint64_t>(i) * bytes, static_cast<Element>(from[i]));
          }
        }
        break;
      }
      case Pattern::kUniform: {
        // Lanes write in order: the last one's value stays.
        const int last = 31 - std::countl_zero(mask);
        changed |= put(at[0] + skip, static_cast<Element>(from[last]));
        break;
      }
      case Pattern::kScattered:
        for_each_lane(mask, [&](int i) { changed |= put(at[i] + skip, static_cast<Element>(from[i])); });
    }
  }
  if (changed) note_change(warp, access);
  if (is_strong(code.order)) warp.block->grid->memory->note_strong_write(warp, inst, access);
  return MemOutcome::kDone;
}

MemOutcome store_128(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kStore, 16, 16U * code.vector, access, at))
    return MemOutcome::kFault;
  bool changed = false;
  for (unsigned v = 0; v < code.vector; ++v) {
    const std::uint64_t* from = warp.lanes.read<std::uint64_t>(inst.operands[code.address + 1U + v]);
    for_each_lane(mask, [&](int i) {
      const std::uint64_t address = lane_address(access, i) + 16U * v;
      changed |= put(address, from[i]);
      changed |= put(address + 8, from[kWarpSize + i]);
    });
  }
  if (changed) note_change(warp, access);
  if (is_strong(code.order)) warp.block->grid->memory->note_strong_write(warp, inst, access);
  return MemOutcome::kDone;
}

template <typename Element>
MemFn with_register(std::uint8_t width) {
  switch (width) {
    case 16:
      if constexpr (sizeof(Element) <= 2) return store<Element, std::uint16_t>;
      return nullptr;
    case 32:
      if constexpr (sizeof(Element) <= 4) return store<Element, std::uint32_t>;
      return nullptr;
    case 64:
      return store<Element, std::uint64_t>;
    default:
      return nullptr;
  }
}

MemFn choose(int bits, std::uint8_t width) {
  switch (bits) {
    case 8:
      return with_register<std::uint8_t>(width);
    case 16:
      return with_register<std::uint16_t>(width);
    case 32:
      return with_register<std::uint32_t>(width);
    case 64:
      return with_register<std::uint64_t>(width);
    case 128:
      return width == 128 ? store_128 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

Result<Plan> plan_store(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  if (inst.async || inst.bulk || context.has("bulk"))
    return context.refuse("the virtual node does not execute this form");
  Plan plan;
  plan.kind = InstKind::kMemory;
  MemoryCode code;
  code.order = inst.order;
  code.scope = inst.scope;
  code.vector = inst.vector;
  if (auto status = context.address(inst.operands[0], inst.space, plan, code); !status) return status.error();
  const int bits = ptx::bits_of(inst.type);
  const ptx::Operand& source = inst.operands[1];
  const std::vector<ptx::Operand> single = {source};
  const std::vector<ptx::Operand>& sources =
      source.kind == ptx::OperandKind::kVector ? source.elements : single;
  if (sources.size() != code.vector) return context.refuse("the vector has another number of registers");
  // Registers decide the width that is read; immediates follow.
  std::uint8_t width = 0;
  for (const ptx::Operand& operand : sources) {
    if (operand.kind != ptx::OperandKind::kRegister) continue;
    const std::uint8_t mine = context.register_width(operand.reg);
    if (width != 0 && mine != width) return context.refuse("registers of different widths in one vector");
    width = mine;
  }
  if (width == 0) width = static_cast<std::uint8_t>(bits == 8 ? 16 : bits);
  for (const ptx::Operand& operand : sources) {
    auto planned = context.value(operand, width, false);
    if (!planned) return planned.error();
    plan.operands.push_back(*planned);
  }
  plan.memory = choose(bits, width);
  if (plan.memory == nullptr)
    return context.refuse("does not fit a register of " + std::to_string(width) + " bits");
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
