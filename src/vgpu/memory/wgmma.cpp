// wgmma (PTX ISA 9.7.15). A warp of the four computes its 16 rows of D when it issues the instruction; what
// the instruction reads of shared memory passes the one place as any load does, at that moment. Results are
// there at once, so wgmma.fence, commit_group and wait_group have nothing to wait for.
//
// A descriptor says how a matrix lies: in units of 16 bytes along one dimension, eight of which, one for each
// row, form a core matrix (9.7.15.5.1, "Shared Memory Matrix Layout"; "Matrix Descriptor Format").
#include <algorithm>
#include <bit>

#include "vgpu/alu/tensor.hpp"
#include "vgpu/memory/matrix_plans.hpp"

namespace echolo::vgpu {

namespace {

using ptx::Type;

constexpr int kRows = 16;   // of A and D that a warp has
constexpr int kUnit = 16;   // bytes
constexpr int kMostK = 32;  // elements: 32 bytes of one each

struct Code {
  std::uint16_t n = 0;
  Type d{}, a{}, b{};
  bool a_in_registers = false, transpose_a = false, transpose_b = false;
  bool negate_a = false, negate_b = false, saturate = false;
  std::uint8_t scale_d = 0;  // 0: an operand, 1: true, 2: false

  int per_register() const { return d == Type::kF16 ? 2 : 1; }
  int results() const { return n * kRows / (kWarpSize * per_register()); }

  std::uint64_t pack() const {
    const auto flag = [](bool set, unsigned at) { return std::uint64_t{set} << at; };
    return n | static_cast<std::uint64_t>(d) << 16U | static_cast<std::uint64_t>(a) << 24U |
           static_cast<std::uint64_t>(b) << 32U | flag(a_in_registers, 40) | flag(transpose_a, 41) |
           flag(transpose_b, 42) | flag(negate_a, 43) | flag(negate_b, 44) | flag(saturate, 45) |
           std::uint64_t{scale_d} << 48U;
  }
  static Code unpack(std::uint64_t bits) {
    const auto flag = [bits](unsigned at) { return (bits >> at & 1U) != 0; };
    Code code;
    code.n = static_cast<std::uint16_t>(bits);
    code.d = static_cast<Type>(bits >> 16U & 0xffU);
    code.a = static_cast<Type>(bits >> 24U & 0xffU);
    code.b = static_cast<Type>(bits >> 32U & 0xffU);
    code.a_in_registers = flag(40);
    code.transpose_a = flag(41);
    code.transpose_b = flag(42);
    code.negate_a = flag(43);
    code.negate_b = flag(44);
    code.saturate = flag(45);
    code.scale_d = static_cast<std::uint8_t>(bits >> 48U);
    return code;
  }
};

struct Descriptor {
  std::uint32_t start, leading, stride, base_offset,
      swizzle;  // swizzle: bytes of a row of the pattern, 0 none

  explicit Descriptor(std::uint64_t bits)
      : start(static_cast<std::uint32_t>(bits & 0x3fffU) << 4U),
        leading(static_cast<std::uint32_t>(bits >> 16U & 0x3fffU) << 4U),
        stride(static_cast<std::uint32_t>(bits >> 32U & 0x3fffU) << 4U),
        base_offset(static_cast<std::uint32_t>(bits >> 49U & 7U)),
        swizzle(0) {
    static constexpr std::uint32_t kBytes[] = {0, 128, 64, 32};
    swizzle = kBytes[bits >> 62U];
  }

  // The unit that holds, K-major, the half `k` (0, 1) of row `i`; MN-major, rows 8i .. 8i + 7 at depth `k`.
  std::uint32_t unit(bool transposed, std::uint32_t i, std::uint32_t k) const {
    if (swizzle == 0) {
      return transposed ? start + i * stride + k % 8 * kUnit + k / 8 * leading
                        : start + i / 8 * stride + i % 8 * kUnit + k * leading;
    }
    const std::uint32_t units = swizzle / kUnit;
    const std::uint32_t at =
        transposed ? start + i % units * kUnit + i / units * leading + k % 8 * swizzle + k / 8 * stride
                   : start + i / 8 * stride + i % 8 * swizzle + k * kUnit;
    // The number of a unit within its row of the pattern is combined with the number of 128 bytes.
    return at ^ ((((at >> 7U) - base_offset) & (units - 1)) << 4U);
  }
};

// Fetches units of 16 bytes, up to a warp's worth at a time.
bool fetch(Warp& warp, const Inst& inst, std::uint32_t mask, const std::uint32_t* units, int n,
           std::uint8_t* out) {
  for (int first = 0; first < n; first += kWarpSize) {
    const int count = std::min(n - first, kWarpSize);
    alignas(64) std::uint64_t at[kWarpSize];
    for (int lane = 0; lane < kWarpSize; ++lane) at[lane] = units[first + std::min(lane, count - 1)];
    Memory::Access access;
    access.kind = Memory::AccessKind::kLoad;
    access.space = ptx::Space::kShared;
    access.order = ptx::Order::kWeak;
    access.bytes = access.element_bytes = access.alignment = kUnit;
    access.mask = count == kWarpSize ? kAllLanes : (1U << static_cast<unsigned>(count)) - 1U;
    access.mask &= mask;
    access.addresses = at;
    access.pattern = Memory::Pattern::kScattered;
    if (access.mask == 0 || !warp.block->grid->memory->access(warp, inst, access)) return false;
    for (int lane = 0; lane < count; ++lane)
      std::memcpy(out + (first + lane) * kUnit, host_pointer(lane_address(access, lane)), kUnit);
  }
  return true;
}

// `rows` rows of 32 bytes along K, from row `first` on: out[row][32 bytes]. Transposed matrices have elements
// of 16 bits.
bool fetch_matrix(Warp& warp, const Inst& inst, std::uint32_t mask, std::uint64_t bits, bool transposed,
                  int first, int rows, std::uint8_t* out) {
  const Descriptor matrix(bits);
  constexpr int kMostUnits = 512;
  std::uint32_t units[kMostUnits];
  if (!transposed) {
    for (int i = 0; i < 2 * rows; ++i)
      units[i] =
          matrix.unit(false, static_cast<std::uint32_t>(first + i / 2), static_cast<std::uint32_t>(i % 2));
    return fetch(warp, inst, mask, units, 2 * rows, out);
  }
  const int n = rows / 8 * 16;
  for (int i = 0; i < n; ++i)
    units[i] =
        matrix.unit(true, static_cast<std::uint32_t>(first / 8 + i / 16), static_cast<std::uint32_t>(i % 16));
  std::uint8_t bytes[kMostUnits * kUnit];
  if (!fetch(warp, inst, mask, units, n, bytes)) return false;
  for (int i = 0; i < n; ++i) {
    for (int e = 0; e < 8; ++e)
      std::memcpy(out + (i / 16 * 8 + e) * 32 + i % 16 * 2, bytes + i * kUnit + 2 * e, 2);
  }
  return true;
}

// Where a register of D lies: register `i` of a lane, in pairs of neighbours.
struct Cell {
  int row, column;
};
Cell cell_of(const Code& code, int i, int lane, int e) {
  const int pair = code.per_register() == 2 ? i : i / 2, one = code.per_register() == 2 ? e : i % 2;
  return {lane / 4 + 8 * (pair % 2), 8 * (pair / 2) + 2 * (lane % 4) + one};
}

constexpr int kMostN = 256;

void multiply_floats(const Code& code, const std::uint8_t* a, const std::uint8_t* b, bool add,
                     const Lanes& lanes, const Slot* d, std::uint32_t mask) {
  const int depth = 8 * 32 / ptx::bits_of(code.a), per = code.per_register();
  alignas(64) static thread_local float x[kRows * kMostK], y[kMostN * kMostK], c[kRows * kMostN];
  alignas(64) float row[kMostK];
  for (int i = 0; i < kRows; ++i) {
    alu::widen_words(code.a, reinterpret_cast<const std::uint32_t*>(a + 32 * i), 8, row);
    for (int k = 0; k < kMostK; ++k) {
      const float value = k < depth ? row[k] : 0.0F;
      x[i * kMostK + k] = code.negate_a ? -value : value;
    }
  }
  for (int column = 0; column < code.n; ++column) {
    alu::widen_words(code.b, reinterpret_cast<const std::uint32_t*>(b + 32 * column), 8, row);
    for (int k = 0; k < depth; ++k)
      y[(column / 8 * depth + k) * 8 + column % 8] = code.negate_b ? -row[k] : row[k];
  }
  const auto place = [&](Cell cell) { return (cell.column / 8 * kRows + cell.row) * 8 + cell.column % 8; };
  for (int i = 0; i < code.results(); ++i) {
    alignas(64) float values[2 * kWarpSize] = {};
    if (add) alu::widen_words(code.d, lanes.read<std::uint32_t>(d[i]), kWarpSize, values);
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per; ++e) c[place(cell_of(code, i, lane, e))] = values[lane * per + e];
    }
  }
  alu::multiply_rows(code.a, code.d == Type::kF16, x, y, c, code.n / 8);
  for (int i = 0; i < code.results(); ++i) {
    auto* words = lanes.write<std::uint32_t>(d[i]);
    alignas(64) float values[2 * kWarpSize];
    for (int lane = 0; lane < kWarpSize; ++lane) {
      for (int e = 0; e < per; ++e) values[lane * per + e] = c[place(cell_of(code, i, lane, e))];
    }
    alignas(64) std::uint32_t bits[kWarpSize];
    if (code.d == Type::kF16)
      alu::round_to_f16(values, 2 * kWarpSize, reinterpret_cast<std::uint16_t*>(bits));
    else
      std::memcpy(bits, values, sizeof(bits));
    for_each_lane(mask, [&](int lane) { words[lane] = bits[lane]; });
  }
}

void multiply_integers(const Code& code, const std::uint8_t* a, const std::uint8_t* b, bool add,
                       const Lanes& lanes, const Slot* d, std::uint32_t mask) {
  for (int i = 0; i < code.results(); ++i) {
    auto* words = lanes.write<std::int32_t>(d[i]);
    for_each_lane(mask, [&](int lane) {
      const Cell cell = cell_of(code, i, lane, 0);
      const std::uint8_t* x = a + 32 * cell.row;
      const std::uint8_t* y = b + 32 * cell.column;
      std::int64_t sum = add ? words[lane] : 0;
      for (int k = 0; k < 32; ++k) {
        if (code.a == Type::kB1) {
          sum += std::popcount(static_cast<unsigned>(x[k] & y[k]));
        } else {
          const int left = code.a == Type::kS8 ? static_cast<std::int8_t>(x[k]) : x[k];
          const int right = code.b == Type::kS8 ? static_cast<std::int8_t>(y[k]) : y[k];
          sum += left * right;
        }
      }
      if (code.saturate) sum = std::clamp<std::int64_t>(sum, -0x80000000LL, 0x7fffffffLL);
      words[lane] = static_cast<std::int32_t>(sum);
    });
  }
}

// Operands: D, A (four registers or a descriptor), B's descriptor, the predicate scale-d where it is no
// constant.
MemOutcome run_mma_async(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const Code code = Code::unpack(inst.aux[0]);
  const Slot* d = inst.operands;
  const Slot* a = d + code.results();
  const Slot* b = a + (code.a_in_registers ? 4 : 1);
  const int some = std::countr_zero(mask);
  alignas(64) std::uint8_t rows[kRows * 32];
  alignas(64) static thread_local std::uint8_t columns[kMostN * 32];
  if (code.a_in_registers) {
    // Words of 32 bits: register i holds row lane / 4 + 8 * (i % 2), word lane % 4 + 4 * (i / 2).
    for (int i = 0; i < 4; ++i) {
      const auto* words = warp.lanes.read<std::uint32_t>(a[i]);
      for (int lane = 0; lane < kWarpSize; ++lane)
        std::memcpy(rows + (lane / 4 + 8 * (i % 2)) * 32 + (lane % 4 + 4 * (i / 2)) * 4, words + lane, 4);
    }
  } else {
    const std::uint64_t bits = warp.lanes.read<std::uint64_t>(*a)[some];
    const int first = kRows * static_cast<int>(warp.index_in_block % 4);
    if (!fetch_matrix(warp, inst, mask, bits, code.transpose_a, first, kRows, rows))
      return MemOutcome::kFault;
  }
  const std::uint64_t bits = warp.lanes.read<std::uint64_t>(*b)[some];
  if (!fetch_matrix(warp, inst, mask, bits, code.transpose_b, 0, code.n, columns)) return MemOutcome::kFault;
  const bool add = code.scale_d == 0
                       ? (*warp.lanes.read<std::uint32_t>(b[1]) >> static_cast<unsigned>(some) & 1U) != 0
                       : code.scale_d == 1;
  if (code.d == Type::kS32)
    multiply_integers(code, rows, columns, add, warp.lanes, d, mask);
  else
    multiply_floats(code, rows, columns, add, warp.lanes, d, mask);
  return MemOutcome::kDone;
}

MemOutcome run_nothing(Warp& /*warp*/, const Inst& /*inst*/, std::uint32_t /*mask*/) {
  return MemOutcome::kDone;
}

bool exists(const Code& code, int k) {
  const auto eight_bits = [](Type type) { return type == Type::kE4m3 || type == Type::kE5m2; };
  const auto bytes = [](Type type) { return type == Type::kU8 || type == Type::kS8; };
  const bool fine_n = code.n % 8 == 0 && code.n >= 8 && code.n <= 256;
  const int n = code.n;
  // Integers have fewer widths: multiples of 8 up to 32, then of 16.
  const bool coarse_n = fine_n && (n <= 32 || n % 16 == 0);
  switch (code.a) {
    case Type::kF16:
      return code.b == code.a && k == 16 && fine_n && (code.d == Type::kF32 || code.d == Type::kF16);
    case Type::kBf16:
      return code.b == code.a && k == 16 && fine_n && code.d == Type::kF32;
    case Type::kTf32:
      return code.b == code.a && k == 8 && fine_n && code.d == Type::kF32;
    case Type::kE4m3:
    case Type::kE5m2:
      return eight_bits(code.b) && k == 32 && fine_n && (code.d == Type::kF32 || code.d == Type::kF16);
    case Type::kU8:
    case Type::kS8:
      return bytes(code.b) && k == 32 && coarse_n && code.d == Type::kS32;
    case Type::kB1:
      return code.b == code.a && k == 256 && coarse_n && code.d == Type::kS32;
    default:
      return false;
  }
}

// An operand that must be one of two constants.
Result<bool> second_of(const PlanContext& context, const ptx::Operand& operand, std::int64_t first,
                       std::int64_t second, const char* what) {
  if (operand.kind == ptx::OperandKind::kImmediate && operand.value == first) return false;
  if (operand.kind == ptx::OperandKind::kImmediate && operand.value == second) return true;
  return context.refuse(std::string(what) + " must be " + std::to_string(first) + " or " +
                        std::to_string(second));
}

// imm-scale-a, imm-scale-b, imm-trans-a (not with A in registers), imm-trans-b.
Status read_immediates(const PlanContext& context, Code* code) {
  const auto& operands = context.inst.operands;
  const bool floats = code->d != Type::kS32, wide = code->a == Type::kF16 || code->a == Type::kBf16;
  const std::size_t n_transpose = wide ? (code->a_in_registers ? 1 : 2) : 0;
  const std::size_t wanted = 4 + (floats ? 2 : 0) + n_transpose;
  if (operands.size() != wanted)
    return context.refuse("it takes " + std::to_string(wanted) + " operands, here are " +
                          std::to_string(operands.size()));
  struct Wanted {
    bool present;
    bool* to;
    std::int64_t first, second;
    const char* what;
  };
  const Wanted all[] = {{floats, &code->negate_a, 1, -1, "the scale of A"},
                        {floats, &code->negate_b, 1, -1, "the scale of B"},
                        {n_transpose == 2, &code->transpose_a, 0, 1, "the transposition of A"},
                        {n_transpose >= 1, &code->transpose_b, 0, 1, "the transposition of B"}};
  std::size_t at = 4;
  for (const Wanted& one : all) {
    if (!one.present) continue;
    const Result<bool> value = second_of(context, operands[at++], one.first, one.second, one.what);
    if (!value.ok()) return value.error();
    *one.to = *value;
  }
  return {};
}

Result<Plan> plan_mma_async(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  if (inst.shape.sparse) return context.refuse("the virtual node does not execute sparse wgmma");
  Code code;
  code.n = inst.shape.n;
  code.d = inst.types[0];
  code.a = inst.types[1];
  code.b = inst.types[2];
  code.saturate = inst.sat;
  if (inst.shape.m != 64 || !exists(code, inst.shape.k) || inst.operands.size() < 4)
    return context.refuse("sm_90a has no such combination of shape and types");
  code.a_in_registers = inst.operands[1].kind == ptx::OperandKind::kVector;
  if (Status status = read_immediates(context, &code); !status.ok()) return status.error();
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.converge = true;
  plan.memory = run_mma_async;
  const auto add = [&](const ptx::Operand& operand, std::uint8_t width, bool destination) -> Status {
    auto planned = context.value(operand, width, destination);
    if (!planned) return planned.error();
    if (planned->width != width)
      return context.refuse("needs registers of " + std::to_string(width) + " bits here");
    plan.operands.push_back(*planned);
    return {};
  };
  const auto add_all = [&](const ptx::Operand& operand, int n, bool destination) -> Status {
    if (operand.kind != ptx::OperandKind::kVector || operand.elements.size() != static_cast<std::size_t>(n))
      return context.refuse("a fragment here has " + std::to_string(n) + " registers");
    for (const ptx::Operand& element : operand.elements) {
      if (Status status = add(element, 32, destination); !status.ok()) return status;
    }
    return {};
  };
  if (Status status = add_all(inst.operands[0], code.results(), true); !status.ok()) return status.error();
  if (Status status =
          code.a_in_registers ? add_all(inst.operands[1], 4, false) : add(inst.operands[1], 64, false);
      !status.ok())
    return status.error();
  if (Status status = add(inst.operands[2], 64, false); !status.ok()) return status.error();
  const ptx::Operand& scale = inst.operands[3];
  if (scale.kind == ptx::OperandKind::kImmediate) {
    code.scale_d = scale.value != 0 ? 1 : 2;
  } else if (Status status = add(scale, 1, false); !status.ok()) {
    return status.error();
  }
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace

Result<Plan> plan_wgmma(const PlanContext& context) {
  if (context.inst.mode == "mma_async") return plan_mma_async(context);
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.converge = true;
  plan.memory = run_nothing;
  const auto& operands = context.inst.operands;
  if (!operands.empty() && (operands[0].kind != ptx::OperandKind::kImmediate || operands[0].value < 0))
    return context.refuse("the number of groups that may be pending must be a constant");
  return plan;
}

}  // namespace echolo::vgpu
