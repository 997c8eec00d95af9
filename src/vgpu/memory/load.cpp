// ld and ldu (PTX ISA, "Data Movement and Conversion Instructions: ld").
#include <type_traits>

#include "vgpu/memory/lane_ops.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

using Pattern = Memory::Pattern;
using ptx::Type;

template <typename Element>
Element fetch(std::uint64_t address) {
  Element value;
  std::memcpy(&value, host_pointer(address), sizeof value);
  return value;
}

// Widens as the element's signedness says: ld of a narrower type fills the register (PTX ISA, "Operand Size
// Exceeding Instruction-Type Size").
template <typename Element, typename Register>
Register widen(Element value) {
  if constexpr (std::is_signed_v<Element>) {
    return static_cast<Register>(static_cast<std::make_signed_t<Register>>(value));
  } else {
    return static_cast<Register>(value);
  }
}

// .v2 and .v4 of 32-bit elements by a whole warp.
void load_packed(Warp& warp, const Inst& inst, unsigned vector, const Memory::Access& access) {
  static const LaneOps& ops = lane_ops();
  alignas(64) std::uint32_t staged[kWarpSize * 4];
  const std::uint32_t* packed = staged;
  if (access.pattern == Pattern::kContiguous) {
    packed = reinterpret_cast<const std::uint32_t*>(access.addresses[0]);
  } else if (vector == 4) {
    for (int i = 0; i < kWarpSize; ++i) std::memcpy(staged + 4 * i, host_pointer(access.addresses[i]), 16);
  } else {
    for (int i = 0; i < kWarpSize; ++i) std::memcpy(staged + 2 * i, host_pointer(access.addresses[i]), 8);
  }
  std::uint32_t* out[4] = {};
  for (unsigned v = 0; v < vector; ++v) out[v] = warp.lanes.write<std::uint32_t>(inst.operands[v]);
  ops.split32(packed, vector, out);
}

template <typename Element, typename Register>
MemOutcome load(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  const std::uint32_t bytes = sizeof(Element) * code.vector;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kLoad, sizeof(Element), bytes, access, at))
    return MemOutcome::kFault;
  if constexpr (std::is_same_v<Element, Register> && sizeof(Element) == 4) {
    if (code.vector > 1 && code.vector <= 4 && mask == kAllLanes && access.pattern != Pattern::kUniform) {
      load_packed(warp, inst, code.vector, access);
      return MemOutcome::kDone;
    }
  }
  if (access.older != nullptr) [[unlikely]] {
    Register* out = warp.lanes.write<Register>(inst.operands[0]);
    for_each_lane(mask, [&](int i) {
      const bool older = (access.older->mask >> static_cast<unsigned>(i) & 1U) != 0;
      Element value;
      std::memcpy(&value,
                  older ? reinterpret_cast<const void*>(&access.older->value[i])
                        : host_pointer(lane_address(access, i)),
                  sizeof value);
      out[i] = widen<Element, Register>(value);
    });
    return MemOutcome::kDone;
  }
  for (unsigned v = 0; v < code.vector; ++v) {
    Register* out = warp.lanes.write<Register>(inst.operands[v]);
    const std::uint64_t skip = v * sizeof(Element);
    switch (access.pattern) {
      case Pattern::kContiguous: {
        const std::uint8_t* from = host_pointer(at[0] + skip);
        if (sizeof(Element) == sizeof(Register) && code.vector == 1) {
          std::memcpy(out, from, sizeof(Register) * kWarpSize);
        } else {
          for (int i = 0; i < kWarpSize; ++i) {
            Element value;
            std::memcpy(&value, from + static_cast<std::size_t>(i) * bytes, sizeof value);
            out[i] = widen<Element, Register>(value);
          }
        }
        break;
      }
      case Pattern::kUniform: {
        const auto value = widen<Element, Register>(fetch<Element>(at[0] + skip));
        for_each_lane(mask, [&](int i) { out[i] = value; });
        break;
      }
      case Pattern::kScattered:
        for_each_lane(mask, [&](int i) { out[i] = widen<Element, Register>(fetch<Element>(at[i] + skip)); });
    }
  }
  return MemOutcome::kDone;
}

MemOutcome load_128(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kLoad, 16, 16U * code.vector, access, at))
    return MemOutcome::kFault;
  for (unsigned v = 0; v < code.vector; ++v) {
    std::uint64_t* out = warp.lanes.write<std::uint64_t>(inst.operands[v]);
    for_each_lane(mask, [&](int i) {
      const std::uint64_t address = lane_address(access, i) + 16U * v;
      out[i] = fetch<std::uint64_t>(address);
      out[kWarpSize + i] = fetch<std::uint64_t>(address + 8);
    });
  }
  return MemOutcome::kDone;
}

template <typename Element>
MemFn with_register(std::uint8_t width) {
  switch (width) {
    case 16:
      if constexpr (sizeof(Element) <= 2) return load<Element, std::uint16_t>;
      return nullptr;
    case 32:
      if constexpr (sizeof(Element) <= 4) return load<Element, std::uint32_t>;
      return nullptr;
    case 64:
      return load<Element, std::uint64_t>;
    default:
      return nullptr;
  }
}

MemFn choose(Type type, std::uint8_t width) {
  const bool sign = ptx::is_signed(type);
  switch (ptx::bits_of(type)) {
    case 8:
      return sign ? with_register<std::int8_t>(width) : with_register<std::uint8_t>(width);
    case 16:
      return sign ? with_register<std::int16_t>(width) : with_register<std::uint16_t>(width);
    case 32:
      return sign ? with_register<std::int32_t>(width) : with_register<std::uint32_t>(width);
    case 64:
      return with_register<std::uint64_t>(width);
    case 128:
      return width == 128 ? load_128 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

Result<Plan> plan_load(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  Plan plan;
  plan.kind = InstKind::kMemory;
  MemoryCode code;
  code.order = inst.order;
  code.scope = inst.scope;
  code.vector = inst.vector;
  const auto bits = static_cast<std::uint8_t>(ptx::bits_of(inst.type));
  std::uint8_t width = 0;
  const auto add = [&](const ptx::Operand& operand) -> Status {
    auto planned = context.value(operand, bits == 8 ? 16 : bits, true);
    if (!planned) return planned.error();
    if (planned->kind == PlanOperand::Kind::kRegister) {
      if (width != 0 && planned->width != width)
        return context.refuse("registers of different widths in one vector");
      width = planned->width;
    }
    plan.operands.push_back(*planned);
    return {};
  };
  const ptx::Operand& destination = inst.operands[0];
  if (destination.kind == ptx::OperandKind::kVector) {
    if (destination.elements.size() != code.vector)
      return context.refuse("the vector has another number of registers");
    for (const ptx::Operand& element : destination.elements) {
      if (auto status = add(element); !status) return status.error();
    }
  } else if (destination.kind == ptx::OperandKind::kNone) {
    for (unsigned i = 0; i < code.vector; ++i) {
      if (auto status = add(destination); !status) return status.error();
    }
  } else if (auto status = add(destination); !status) {
    return status.error();
  }
  // Sinks take whatever width the others have.
  if (width == 0) width = bits == 8 ? 16 : bits;
  for (PlanOperand& operand : plan.operands) {
    if (operand.kind == PlanOperand::Kind::kUnused) operand.width = width;
  }
  plan.memory = choose(inst.type, width);
  if (plan.memory == nullptr)
    return context.refuse("does not fit a register of " + std::to_string(width) + " bits");
  if (auto status = context.address(inst.operands[1], inst.space, plan, code); !status) return status.error();
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
