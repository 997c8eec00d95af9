// atom and red (PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red"). Lanes act one
// after the other, lowest first.
#include "vgpu/memory/plan.hpp"
#include "vgpu/memory/updates.hpp"

namespace echolo::vgpu {

namespace {

using namespace updates;  // NOLINT(google-build-using-namespace)
using ptx::SubOp;
using ptx::Type;

// MemoryCode::extra: does the instruction return the old value (atom), and does f32 addition flush subnormals
// (on global memory it does, on shared memory not).
constexpr std::uint8_t kReturns = 1, kFlushes = 2;

// Operands: [old values, n of them where kReturns], address, b (n), c (cas only).
template <typename T, Update<T> kUpdate>
MemOutcome atomic(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kAtomic, sizeof(T), sizeof(T) * code.vector,
                    access, at)) {
    return MemOutcome::kFault;
  }
  const bool flushes = (code.extra & kFlushes) != 0;
  const unsigned n = code.vector;
  const bool three = inst.n_operands > code.address + 1U + n;
  bool changed = false;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    const std::uint64_t address = lane_address(access, i);
    for (unsigned v = 0; v < n; ++v) {
      const T b = warp.lanes.read<T>(inst.operands[code.address + 1U + v])[i];
      const T c = three ? warp.lanes.read<T>(inst.operands[code.address + 1U + n + v])[i] : T{};
      std::uint8_t* const bytes = host_pointer(address + v * sizeof(T));
      T old;
      std::memcpy(&old, bytes, sizeof old);
      const T next = kUpdate(old, b, c, flushes);
      if (next != old) {
        std::memcpy(bytes, &next, sizeof next);
        changed = true;
      }
      if ((code.extra & kReturns) != 0) warp.lanes.write<T>(inst.operands[v])[i] = old;
    }
  }
  if (changed) note_change(warp, access);
  warp.block->grid->memory->note_strong_write(warp, inst, access);
  return MemOutcome::kDone;
}

template <bool kSwap>
MemOutcome atomic_128(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if (!begin_access(warp, inst, code, mask, Memory::AccessKind::kAtomic, 16, 16, access, at))
    return MemOutcome::kFault;
  const std::uint64_t* b = warp.lanes.read<std::uint64_t>(inst.operands[code.address + 1U]);
  const std::uint64_t* c = kSwap ? warp.lanes.read<std::uint64_t>(inst.operands[code.address + 2U]) : b;
  bool changed = false;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int i = std::countr_zero(lanes);
    std::uint8_t* const bytes = host_pointer(lane_address(access, i));
    std::uint64_t old[2];
    std::memcpy(old, bytes, sizeof old);
    if (!kSwap || (old[0] == b[i] && old[1] == b[kWarpSize + i])) {
      const std::uint64_t next[2] = {c[i], c[kWarpSize + i]};
      changed |= std::memcmp(next, old, sizeof old) != 0;
      std::memcpy(bytes, next, sizeof next);
    }
    if ((code.extra & kReturns) != 0) {
      std::uint64_t* out = warp.lanes.write<std::uint64_t>(inst.operands[0]);
      out[i] = old[0];
      out[kWarpSize + i] = old[1];
    }
  }
  if (changed) note_change(warp, access);
  warp.block->grid->memory->note_strong_write(warp, inst, access);
  return MemOutcome::kDone;
}

template <typename T>
MemFn choose_bits(SubOp op) {
  switch (op) {
    case SubOp::kAnd:
      return atomic<T, bit_and<T>>;
    case SubOp::kOr:
      return atomic<T, bit_or<T>>;
    case SubOp::kXor:
      return atomic<T, bit_xor<T>>;
    case SubOp::kExch:
      return atomic<T, exchange<T>>;
    case SubOp::kCas:
      return atomic<T, compare_swap<T>>;
    default:
      return nullptr;
  }
}

template <typename T>
MemFn choose_integer(SubOp op, bool is_signed) {
  switch (op) {
    case SubOp::kAdd:
      return atomic<T, add<T>>;
    case SubOp::kMin:
      return is_signed ? atomic<T, minimum_signed<T>> : atomic<T, minimum<T>>;
    case SubOp::kMax:
      return is_signed ? atomic<T, maximum_signed<T>> : atomic<T, maximum<T>>;
    default:
      return nullptr;
  }
}

template <typename Format>
MemFn choose_half(SubOp op, bool packed) {
  switch (op) {
    case SubOp::kAdd:
      return packed ? MemFn{atomic<std::uint32_t, both_halves<add_half<Format>>>}
                    : MemFn{atomic<std::uint16_t, add_half<Format>>};
    case SubOp::kMin:
      return packed ? MemFn{atomic<std::uint32_t, both_halves<pick_half<Format, false>>>}
                    : MemFn{atomic<std::uint16_t, pick_half<Format, false>>};
    case SubOp::kMax:
      return packed ? MemFn{atomic<std::uint32_t, both_halves<pick_half<Format, true>>>}
                    : MemFn{atomic<std::uint16_t, pick_half<Format, true>>};
    default:
      return nullptr;
  }
}

MemFn choose(SubOp op, Type type) {
  switch (type) {
    case Type::kB16:
      return op == SubOp::kCas ? atomic<std::uint16_t, compare_swap<std::uint16_t>> : nullptr;
    case Type::kB32:
      return choose_bits<std::uint32_t>(op);
    case Type::kB64:
      return choose_bits<std::uint64_t>(op);
    case Type::kB128:
      return op == SubOp::kCas ? atomic_128<true> : op == SubOp::kExch ? atomic_128<false> : nullptr;
    case Type::kU32:
    case Type::kS32:
      if (op == SubOp::kInc && type == Type::kU32) return atomic<std::uint32_t, increment>;
      if (op == SubOp::kDec && type == Type::kU32) return atomic<std::uint32_t, decrement>;
      return choose_integer<std::uint32_t>(op, type == Type::kS32);
    case Type::kU64:
    case Type::kS64:
      return choose_integer<std::uint64_t>(op, type == Type::kS64);
    case Type::kF32:
      return op == SubOp::kAdd ? atomic<std::uint32_t, add_f32> : nullptr;
    case Type::kF64:
      return op == SubOp::kAdd ? atomic<std::uint64_t, add_f64> : nullptr;
    case Type::kF16:
      return choose_half<F16Format>(op, false);
    case Type::kF16x2:
      return choose_half<F16Format>(op, true);
    case Type::kBf16:
      return choose_half<Bf16Format>(op, false);
    case Type::kBf16x2:
      return choose_half<Bf16Format>(op, true);
    default:
      return nullptr;
  }
}

}  // namespace

Result<Plan> plan_atomic(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  if (inst.async) return context.refuse("the virtual node does not execute this form");
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.memory = choose(inst.sub_op, inst.type);
  if (plan.memory == nullptr)
    return context.refuse("the virtual node has no such atomic operation on this type");
  MemoryCode code;
  code.order = inst.order_given ? inst.order : ptx::Order::kRelaxed;
  code.scope = inst.scope == ptx::Scope::kNone ? ptx::Scope::kGpu : inst.scope;
  code.vector = inst.vector;
  const auto bits = static_cast<std::uint8_t>(ptx::bits_of(inst.type));
  std::size_t next = 0;
  // One operand or a vector of them.
  const auto add_values = [&](const ptx::Operand& operand, bool destination) -> Status {
    const std::vector<ptx::Operand> single = {operand};
    const auto& elements = operand.kind == ptx::OperandKind::kVector ? operand.elements : single;
    if (elements.size() != code.vector) return context.refuse("the vector has another number of registers");
    for (const ptx::Operand& element : elements) {
      auto planned = context.value(element, bits, destination);
      if (!planned) return planned.error();
      if (planned->kind == PlanOperand::Kind::kRegister && planned->width != bits) {
        return context.refuse("needs registers of " + std::to_string(bits) + " bits");
      }
      plan.operands.push_back(*planned);
    }
    return {};
  };
  if (inst.op == ptx::Opcode::kAtom) {
    if (inst.operands[0].kind != ptx::OperandKind::kNone) {
      if (auto status = add_values(inst.operands[0], true); !status) return status.error();
      code.extra |= kReturns;
    }
    next = 1;
  }
  if (auto status = context.address(inst.operands[next++], inst.space, plan, code); !status)
    return status.error();
  if (code.space == ptx::Space::kGlobal || code.space == ptx::Space::kGeneric) code.extra |= kFlushes;
  const std::size_t n_sources = inst.sub_op == SubOp::kCas ? 2 : 1;
  if (inst.operands.size() < next + n_sources) return context.refuse("needs more operands");
  for (std::size_t i = 0; i < n_sources; ++i) {
    if (auto status = add_values(inst.operands[next + i], false); !status) return status.error();
  }
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
