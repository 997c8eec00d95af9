// atom and red (PTX ISA, "Parallel Synchronization and Communication Instructions: atom, red"). Lanes act one
// after the other, lowest first.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "vgpu/memory/half.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

using ptx::SubOp;
using ptx::Type;

// MemoryCode::extra: does the instruction return the old value (atom), and does f32 addition flush subnormals
// (on global memory it does, on shared memory not).
constexpr std::uint8_t kReturns = 1, kFlushes = 2;

template <typename T>
using Update = T (*)(T old, T b, T c, bool flushes);

float flush(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits & 0x7f800000U) == 0 ? std::bit_cast<float>(bits & 0x80000000U) : value;
}

// ---- updates of one element ----
template <typename T>
T add(T old, T b, T, bool) {
  return static_cast<T>(old + b);
}
template <typename T>
T bit_and(T old, T b, T, bool) {
  return old & b;
}
template <typename T>
T bit_or(T old, T b, T, bool) {
  return old | b;
}
template <typename T>
T bit_xor(T old, T b, T, bool) {
  return old ^ b;
}
template <typename T>
T exchange(T, T b, T, bool) {
  return b;
}
template <typename T>
T compare_swap(T old, T b, T c, bool) {
  return old == b ? c : old;
}
template <typename T>
T minimum(T old, T b, T, bool) {
  return std::min(old, b);
}
template <typename T>
T maximum(T old, T b, T, bool) {
  return std::max(old, b);
}
template <typename T>
T minimum_signed(T old, T b, T, bool) {
  using S = std::make_signed_t<T>;
  return static_cast<T>(std::min(static_cast<S>(old), static_cast<S>(b)));
}
template <typename T>
T maximum_signed(T old, T b, T, bool) {
  using S = std::make_signed_t<T>;
  return static_cast<T>(std::max(static_cast<S>(old), static_cast<S>(b)));
}
std::uint32_t increment(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  return old >= b ? 0 : old + 1;
}
std::uint32_t decrement(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  return old == 0 || old > b ? b : old - 1;
}

std::uint32_t add_f32(std::uint32_t old, std::uint32_t b, std::uint32_t, bool flushes) {
  float x = std::bit_cast<float>(old), y = std::bit_cast<float>(b);
  if (flushes) {
    x = flush(x);
    y = flush(y);
  }
  float sum = x + y;
  if (sum != sum) return 0x7fffffff;
  if (flushes) sum = flush(sum);
  return std::bit_cast<std::uint32_t>(sum);
}
// NaNs as in vgpu/alu: the first NaN operand made quiet; what is invalid gives the default NaN.
std::uint64_t add_f64(std::uint64_t old, std::uint64_t b, std::uint64_t, bool) {
  constexpr std::uint64_t kQuiet = 0x0008'0000'0000'0000ULL;
  const double x = std::bit_cast<double>(old), y = std::bit_cast<double>(b);
  if (x != x) return old | kQuiet;
  if (y != y) return b | kQuiet;
  const double sum = x + y;
  return sum != sum ? 0xfff8'0000'0000'0000ULL : std::bit_cast<std::uint64_t>(sum);
}

struct F16 {
  static float widen(std::uint16_t bits) { return f16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_f16(value); }
};
struct Bf16 {
  static float widen(std::uint16_t bits) { return bf16_to_float(bits); }
  static std::uint16_t narrow(float value) { return float_to_bf16(value); }
};

// A float has more than twice the digits of either format and two to spare, so rounding the float sum once
// more gives the correctly rounded sum.
template <typename Format>
std::uint16_t add_half(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
  return Format::narrow(Format::widen(old) + Format::widen(b));
}
// The number where one side is NaN; -0 is below +0.
template <typename Format, bool kMax>
std::uint16_t pick_half(std::uint16_t old, std::uint16_t b, std::uint16_t, bool) {
  const float x = Format::widen(old), y = Format::widen(b);
  if (x != x && y != y) return 0x7fff;
  if (x != x) return b;
  if (y != y) return old;
  if (x == y) return ((old & 0x8000U) != 0) == kMax ? b : old;
  return (x > y) == kMax ? old : b;
}
template <Update<std::uint16_t> kOne>
std::uint32_t both_halves(std::uint32_t old, std::uint32_t b, std::uint32_t, bool) {
  const std::uint32_t low = kOne(static_cast<std::uint16_t>(old), static_cast<std::uint16_t>(b), 0, false);
  const std::uint32_t high =
      kOne(static_cast<std::uint16_t>(old >> 16U), static_cast<std::uint16_t>(b >> 16U), 0, false);
  return low | high << 16U;
}

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
      return choose_half<F16>(op, false);
    case Type::kF16x2:
      return choose_half<F16>(op, true);
    case Type::kBf16:
      return choose_half<Bf16>(op, false);
    case Type::kBf16x2:
      return choose_half<Bf16>(op, true);
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
