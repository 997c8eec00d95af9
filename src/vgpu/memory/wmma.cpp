// wmma.load and wmma.store (PTX ISA 9.7.14.4): a warp moves a fragment between its registers and a matrix in
// memory, whose rows or columns lie `stride` elements apart. Where an element of a fragment lies is alu's:
// vgpu/alu/mma.hpp.
#include "vgpu/alu/mma.hpp"
#include "vgpu/memory/matrix_plans.hpp"

namespace echolo::vgpu {

namespace {

using alu::MmaCode;
using alu::Place;
using ptx::Type;

enum class Which : std::uint8_t { kA, kB, kC };

// The rest of what a wmma.load or wmma.store says, in a constant of its own: the bits above those of MmaCode.
constexpr unsigned kWhichBit = 58, kColumnMajorBit = 60;

struct Fragment {
  MmaCode code;
  Which which{};
  bool column_major = false;
  int registers = 0;  // that hold elements; a register beyond repeats one of these
  Type type() const { return which == Which::kA ? code.a : (which == Which::kB ? code.b : code.c); }
};

Fragment fragment_of(std::uint64_t bits) {
  Fragment f;
  f.code = MmaCode::unpack(bits);
  f.which = static_cast<Which>(bits >> kWhichBit & 3U);
  f.column_major = (bits >> kColumnMajorBit & 1U) != 0;
  const int elements = f.which == Which::kA   ? f.code.m * f.code.k
                       : f.which == Which::kB ? f.code.k * f.code.n
                                              : f.code.m * f.code.n;
  f.registers = elements / (kWarpSize * alu::per_register(f.type()));
  return f;
}

Place place(const Fragment& f, int i, int lane, int e) {
  if (f.which == Which::kA) return alu::place_of_a(f.code, i, lane, e);
  if (f.which == Which::kB) return alu::place_of_b(f.code, i, lane, e);
  return alu::place_of_c(f.code, f.code.c, i, lane, e);
}

// One element a lane, or with less than 8 bits a register's worth, which lies in one piece.
template <bool kLoad>
bool move_elements(Warp& warp, const Inst& inst, std::uint32_t mask, const MemoryCode& code,
                   const Fragment& f, const std::uint64_t* base, const std::uint64_t* stride, int i, int e,
                   Slot slot, bool* changed) {
  const auto bits = static_cast<std::uint64_t>(ptx::bits_of(f.type()));
  const auto bytes = static_cast<std::uint32_t>(bits < 8 ? 4 : bits / 8);
  alignas(64) std::uint64_t at[kWarpSize];
  const int some = std::countr_zero(mask);
  for (int lane = 0; lane < kWarpSize; ++lane) {
    const int from = (mask >> static_cast<unsigned>(lane) & 1U) != 0 ? lane : some;
    const Place p = place(f, i, from, e);
    const auto outer = static_cast<std::uint64_t>(f.column_major ? p.column : p.row);
    const auto inner = static_cast<std::uint64_t>(f.column_major ? p.row : p.column);
    at[lane] = base[from] + (outer * stride[from] + inner) * bits / 8;
    if (code.narrow_address) at[lane] &= 0xffffffffU;
  }
  Memory::Access access;
  access.kind = kLoad ? Memory::AccessKind::kLoad : Memory::AccessKind::kStore;
  access.space = code.space;
  access.order = ptx::Order::kWeak;
  access.bytes = access.element_bytes = access.alignment = static_cast<std::uint16_t>(bytes);
  access.mask = mask;
  access.addresses = at;
  access.pattern = Memory::Pattern::kScattered;
  if (!warp.block->grid->memory->access(warp, inst, access)) return false;
  auto* registers = reinterpret_cast<std::uint8_t*>(warp.lanes.write<std::uint8_t>(slot));
  const std::uint32_t width = f.type() == Type::kF64 ? 8 : 4;
  for_each_lane(mask, [&](int lane) {
    std::uint8_t* in_register =
        registers + static_cast<std::uint32_t>(lane) * width + static_cast<std::uint32_t>(e) * bytes;
    std::uint8_t* in_memory = host_pointer(lane_address(access, lane));
    if constexpr (kLoad) {
      std::memcpy(in_register, in_memory, bytes);
    } else {
      *changed |= std::memcmp(in_memory, in_register, bytes) != 0;
      std::memcpy(in_memory, in_register, bytes);
    }
  });
  if constexpr (!kLoad) {
    if (*changed) note_change(warp, access);
  }
  return true;
}

// Operands: the registers (first in a load), the address, the stride, the constant.
template <bool kLoad>
MemOutcome run_fragment(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  const Slot* rest = inst.operands + code.address;
  const Slot* values = kLoad ? inst.operands : rest + 1;
  const int n_values = code.vector;
  const Slot stride_slot = kLoad ? rest[1] : rest[1 + n_values];
  const Fragment f = fragment_of(warp.lanes.read<std::uint64_t>(kLoad ? rest[2] : rest[2 + n_values])[0]);
  // Copies: a load may overwrite the registers that hold them.
  std::uint64_t base[kWarpSize], stride[kWarpSize];
  for (int lane = 0; lane < kWarpSize; ++lane) {
    base[lane] = (code.narrow_address ? warp.lanes.read<std::uint32_t>(rest[0])[lane]
                                      : warp.lanes.read<std::uint64_t>(rest[0])[lane]) +
                 inst.aux[1];
    stride[lane] = warp.lanes.read<std::uint32_t>(stride_slot)[lane];
  }
  const int n_elements = ptx::bits_of(f.type()) < 8 ? 1 : alu::per_register(f.type());
  bool changed = false;
  for (int i = 0; i < n_values; ++i) {
    for (int e = 0; e < n_elements; ++e) {
      if (!move_elements<kLoad>(warp, inst, mask, code, f, base, stride, i % f.registers, e, values[i],
                                &changed))
        return MemOutcome::kFault;
    }
  }
  return MemOutcome::kDone;
}

// The widths of a matrix's rows and columns: the stride where none is written.
int default_stride(const Fragment& f) {
  const MmaCode& c = f.code;
  const int rows = f.which == Which::kB ? c.k : c.m, columns = f.which == Which::kA ? c.k : c.n;
  return f.column_major ? rows : columns;
}

}  // namespace

Result<Plan> plan_wmma(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const bool load = inst.mode == "load";
  Fragment f;
  f.which = context.has("a") ? Which::kA : (context.has("b") ? Which::kB : Which::kC);
  f.column_major = !inst.shape.a_row;
  MmaCode& code = f.code;
  code.wmma = true;
  code.m = inst.shape.m;
  code.n = inst.shape.n;
  code.k = inst.shape.k;
  code.a = code.b = code.c = code.d = inst.type;
  if (f.which ==
      Which::kC) {  // any input type that has these results: it only decides the number of registers
    if (inst.type == Type::kF16 || inst.type == Type::kF32)
      code.a = code.b = code.k == 8 ? Type::kTf32 : Type::kF16;
    if (inst.type == Type::kS32)
      code.a = code.b = code.k == 16 ? Type::kS8 : (code.k == 32 ? Type::kS4 : Type::kB1);
  } else if (inst.type != Type::kF64) {
    const bool integer = !ptx::is_float(inst.type) && inst.type != Type::kTf32;
    code.c = code.d = integer ? Type::kS32 : Type::kF32;
  }
  const MmaCode::Counts counts = code.counts();
  const bool narrow = f.which != Which::kC && ptx::bits_of(inst.type) < 8;
  if (counts.d == 0 || (narrow && f.column_major != (f.which == Which::kB)))
    return context.refuse("sm_90a has no such combination of shape, layout and type");
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.converge = true;
  plan.memory = load ? run_fragment<true> : run_fragment<false>;
  MemoryCode memory;
  const int n = f.which == Which::kA ? counts.a : (f.which == Which::kB ? counts.b : counts.c);
  memory.vector = static_cast<std::uint8_t>(n);
  const std::uint8_t width = inst.type == Type::kF64 ? 64 : 32;
  const auto add_values = [&](const ptx::Operand& operand, bool destination) -> Status {
    const std::vector<ptx::Operand> single = {operand};
    const auto& elements = operand.kind == ptx::OperandKind::kVector ? operand.elements : single;
    if (elements.size() != static_cast<std::size_t>(n))
      return context.refuse("its fragment has " + std::to_string(n) + " registers");
    for (const ptx::Operand& element : elements) {
      auto planned = context.value(element, width, destination);
      if (!planned) return planned.error();
      if (planned->width != width)
        return context.refuse("needs registers of " + std::to_string(width) + " bits");
      plan.operands.push_back(*planned);
    }
    return {};
  };
  if (load) {
    if (auto status = add_values(inst.operands[0], true); !status) return status.error();
  }
  if (auto status = context.address(inst.operands[load ? 1 : 0], inst.space, plan, memory); !status)
    return status.error();
  if (!load) {
    if (auto status = add_values(inst.operands[1], false); !status) return status.error();
  }
  if (inst.operands.size() > 2) {
    auto stride = context.value(inst.operands[2], 32, false);
    if (!stride) return stride.error();
    if (stride->width != 32) return context.refuse("needs a stride of 32 bits");
    plan.operands.push_back(*stride);
  } else {
    PlanOperand stride;
    stride.kind = PlanOperand::Kind::kImmediate;
    stride.value[0] = static_cast<std::uint64_t>(default_stride(f));
    plan.operands.push_back(stride);
  }
  PlanOperand constant;
  constant.kind = PlanOperand::Kind::kImmediate;
  constant.width = 64;
  constant.value[0] = code.pack() | static_cast<std::uint64_t>(f.which) << kWhichBit |
                      std::uint64_t{f.column_major} << kColumnMajorBit;
  plan.operands.push_back(constant);
  plan.aux[0] = memory.pack();
  return plan;
}

}  // namespace echolo::vgpu
