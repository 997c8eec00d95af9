#include <algorithm>

#include "vgpu/alu/mma.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using ptx::Type;

Type register_type(Type element) { return ptx::bits_of(element) == 64 ? Type::kB64 : Type::kB32; }
bool is_one(Type type, std::initializer_list<Type> types) {
  for (const Type t : types) {
    if (t == type) return true;
  }
  return false;
}
bool is_eight_bit_integer(Type type) { return is_one(type, {Type::kU8, Type::kS8}); }
bool is_four_bit_integer(Type type) { return is_one(type, {Type::kU4, Type::kS4}); }
bool is_eight_bit_float(Type type) { return is_one(type, {Type::kE4m3, Type::kE5m2}); }

struct Shape {
  int m, n, k;
};
bool has(const MmaCode& code, std::initializer_list<Shape> shapes) {
  for (const Shape& s : shapes) {
    if (s.m == code.m && s.n == code.n && s.k == code.k) return true;
  }
  return false;
}

// The combinations that sm_90a has (9.7.14.5).
bool dense_exists(const MmaCode& code) {
  const bool f32 = code.d == Type::kF32 && code.c == Type::kF32;
  const bool f16 = code.d == Type::kF16 && code.c == Type::kF16;
  const bool s32 = code.d == Type::kS32 && code.c == Type::kS32;
  const bool same = code.a == code.b;
  switch (code.a) {
    case Type::kF16:
      if (!same) return false;
      if (has(code, {{8, 8, 4}})) return f32 || f16 || (code.d == Type::kF32 && code.c == Type::kF16);
      return has(code, {{16, 8, 8}, {16, 8, 16}}) && (f32 || f16);
    case Type::kBf16:
      return same && f32 && has(code, {{16, 8, 8}, {16, 8, 16}});
    case Type::kTf32:
      return same && f32 && has(code, {{16, 8, 4}, {16, 8, 8}});
    case Type::kF64:
      return same && code.d == Type::kF64 && code.c == Type::kF64 &&
             has(code, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
    case Type::kE4m3:
    case Type::kE5m2:
      return is_eight_bit_float(code.b) && (f32 || f16) && has(code, {{16, 8, 16}, {16, 8, 32}});
    case Type::kU8:
    case Type::kS8:
      return is_eight_bit_integer(code.b) && s32 && has(code, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}});
    case Type::kU4:
    case Type::kS4:
      return is_four_bit_integer(code.b) && s32 && has(code, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
    case Type::kB1:
      return same && s32 && has(code, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
    default:
      return false;
  }
}

bool sparse_exists(const MmaCode& code) {
  const bool f32 = code.d == Type::kF32 && code.c == Type::kF32;
  const bool f16 = code.d == Type::kF16 && code.c == Type::kF16;
  const bool s32 = code.d == Type::kS32 && code.c == Type::kS32;
  switch (code.a) {
    case Type::kF16:
      return code.b == Type::kF16 && (f32 || f16) && has(code, {{16, 8, 16}, {16, 8, 32}});
    case Type::kBf16:
      return code.b == Type::kBf16 && f32 && has(code, {{16, 8, 16}, {16, 8, 32}});
    case Type::kTf32:
      return code.b == Type::kTf32 && f32 && has(code, {{16, 8, 8}, {16, 8, 16}});
    case Type::kE4m3:
    case Type::kE5m2:
      return is_eight_bit_float(code.b) && f32 && has(code, {{16, 8, 64}});
    case Type::kU8:
    case Type::kS8:
      return is_eight_bit_integer(code.b) && s32 && has(code, {{16, 8, 32}, {16, 8, 64}});
    case Type::kU4:
    case Type::kS4:
      return is_four_bit_integer(code.b) && s32 && has(code, {{16, 8, 64}, {16, 8, 128}});
    default:
      return false;
  }
}

bool wmma_exists(const MmaCode& code) {
  const bool wide = has(code, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}});
  const auto half_or_single = [](Type type) { return type == Type::kF16 || type == Type::kF32; };
  if (code.a != code.b) return false;
  switch (code.a) {
    case Type::kF16:
      return wide && half_or_single(code.d) && half_or_single(code.c);
    case Type::kBf16:
      return wide && code.d == Type::kF32 && code.c == Type::kF32;
    case Type::kTf32:
      return has(code, {{16, 16, 8}}) && code.d == Type::kF32 && code.c == Type::kF32;
    case Type::kF64:
      return has(code, {{8, 8, 4}}) && code.d == Type::kF64 && code.c == Type::kF64;
    case Type::kU8:
    case Type::kS8:
      return wide && code.d == Type::kS32 && code.c == Type::kS32;
    case Type::kU4:
    case Type::kS4:
      return has(code, {{8, 8, 32}}) && code.d == Type::kS32 && code.c == Type::kS32;
    case Type::kB1:
      return has(code, {{8, 8, 128}}) && code.d == Type::kS32 && code.c == Type::kS32;
    default:
      return false;
  }
}

int selectors(
    const MmaCode& code) {  // how many values the selector has: the threads of four that give metadata
  const int bits_a_row =
      code.a == Type::kTf32 ? code.k / 2 * 4 : code.k / (is_four_bit_integer(code.a) ? 8 : 4) * 4;
  const int threads = bits_a_row / 16;
  return threads == 0 ? 4 : 4 / threads;
}

}  // namespace

MmaCode MmaCode::of(const ptx::Instruction& inst) {
  MmaCode code;
  code.m = inst.shape.m;
  code.n = inst.shape.n;
  code.k = inst.shape.k;
  code.d = inst.types[0];
  code.a = inst.types[1];
  code.b = inst.types[2];
  code.c = inst.types[3];
  code.wmma = inst.op == ptx::Opcode::kWmma;
  // wmma.mma on halves names D and C only.
  if (code.wmma && code.b == Type::kNone) {
    code.c = code.a;
    code.a = code.b = Type::kF16;
  }
  code.rounding = inst.rounding;
  code.saturate = inst.sat;
  code.sparse = inst.shape.sparse;
  const bool quad_pairs = !code.wmma && code.m == 8 && code.k == 4 && code.a == Type::kF16;
  if (quad_pairs) {
    code.a_column = !inst.shape.a_row;
    code.b_row = !inst.shape.b_col;
  }
  code.exclusive_or = inst.sub_op == ptx::SubOp::kXor;
  return code;
}

std::uint64_t MmaCode::pack() const {
  std::uint64_t bits = 0;
  unsigned at = 0;
  const auto put = [&](std::uint64_t value, unsigned width) {
    bits |= value << at;
    at += width;
  };
  put(m, 6);
  put(n, 6);
  put(k, 9);
  for (const Type type : {d, a, b, c}) put(static_cast<std::uint64_t>(type), 6);
  put(static_cast<std::uint64_t>(rounding), 4);
  for (const bool flag : {saturate, sparse, wmma, a_column, b_row, exclusive_or}) put(flag ? 1 : 0, 1);
  put(selector, 2);
  return bits;
}

MmaCode MmaCode::unpack(std::uint64_t bits) {
  const auto take = [&](unsigned width) {
    const std::uint64_t value = bits & ((1ULL << width) - 1);
    bits >>= width;
    return value;
  };
  MmaCode out;
  out.m = static_cast<std::uint16_t>(take(6));
  out.n = static_cast<std::uint16_t>(take(6));
  out.k = static_cast<std::uint16_t>(take(9));
  for (Type* type : {&out.d, &out.a, &out.b, &out.c}) *type = static_cast<Type>(take(6));
  out.rounding = static_cast<ptx::Rounding>(take(4));
  for (bool* flag : {&out.saturate, &out.sparse, &out.wmma, &out.a_column, &out.b_row, &out.exclusive_or})
    *flag = take(1) != 0;
  out.selector = static_cast<std::uint8_t>(take(2));
  return out;
}

MmaCode::Counts MmaCode::counts() const {
  if (!(wmma ? wmma_exists(*this) : sparse ? sparse_exists(*this) : dense_exists(*this))) return {};
  const auto registers = [](int elements, Type type) { return elements / (kWarpSize * per_register(type)); };
  if (!wmma && m == 8 && k == 4 && a == Type::kF16)
    return {d == Type::kF32 ? 8 : 4, 2, 2, c == Type::kF32 ? 8 : 4};
  // wmma of halves has kept eight registers of A and B in every shape; the GPU reads the first ones.
  if (wmma && a == Type::kF16) return {registers(m * n, d), 8, 8, registers(m * n, c)};
  return {registers(m * n, d), registers(m * k / (sparse ? 2 : 1), a), registers(n * k, b),
          registers(m * n, c)};
}

Place place_of_a(const MmaCode& code, int i, int lane, int e) {
  const int g = lane / 4, t = lane % 4, per = per_register(code.a);
  if (!code.wmma && code.m == 8 && code.k == 4 &&
      code.a == Type::kF16) {  // quad pairs: two rows of four lanes
    const int upper = lane >= 16 ? 4 : 0, element = 2 * i + e;
    return code.a_column ? Place{upper + element, t} : Place{upper + t, element};
  }
  if (code.m == 8) return {g, 4 * per * i + per * t + e};
  const int half = code.m == 32 ? i / (code.k / (4 * per) * 2) : 0;  // 16 rows each
  const int j = code.m == 32 ? i % (code.k / (4 * per) * 2) : i;
  return {16 * half + g + 8 * (j % 2), 4 * per * (j / 2) + per * t + e};
}

Place place_of_b(const MmaCode& code, int i, int lane, int e) {
  const int g = lane / 4, t = lane % 4, per = per_register(code.b);
  if (!code.wmma && code.m == 8 && code.k == 4 && code.a == Type::kF16) {
    const int upper = lane >= 16 ? 4 : 0, element = 2 * i + e;
    return code.b_row ? Place{t, upper + element} : Place{element, upper + t};
  }
  if (code.n == 8) return {4 * per * i + per * t + e, g};
  const int depth = std::max(code.k / (4 * per), 1);  // registers along k
  if (code.n == 32) {                                 // two halves of 16 columns, as rows of A lie
    const int half = i / (2 * depth), j = i % (2 * depth);
    return {4 * per * (j / 2) + per * t + e, 16 * half + g + 8 * (j % 2)};
  }
  return {4 * per * (i % depth) + per * t + e, g + 8 * (i / depth)};
}

Place place_of_c(const MmaCode& code, Type type, int i, int lane, int e) {
  const int g = lane / 4, t = lane % 4;
  if (!code.wmma && code.m == 8 && code.k == 4 && code.a == Type::kF16) {
    const int upper = lane >= 16 ? 4 : 0;
    if (type == Type::kF16) return {upper + t, 2 * i + e};
    return {upper + (lane & 1) + (i & 2), (i & 4) + (lane & 2) + (i & 1)};
  }
  // As pairs of neighbours in a row: register i of f32 holds one of a pair, of f16 both.
  const int pair = type == Type::kF16 ? i : i / 2, one = type == Type::kF16 ? e : i % 2;
  if (code.n == 32) return {2 * t + one, g + 8 * pair};  // the transposed of 32 by 8
  if (code.n == 16) return {g + 8 * (pair % 2), 2 * t + one + 8 * (pair / 2)};
  return {g + 8 * pair, 2 * t + one};
}

int sparse_column(const MmaCode& code, const std::uint32_t* metadata, int row, int column) {
  // Each chunk of A (four elements, of which two are there; four pairs of 4-bit ones; two of tf32, of which
  // one is there) has four bits. With elements of 16 bits and more, a thread of four gives those of four
  // chunks of row g and then of row g + 8; with narrower ones, those of eight chunks of one of the two rows.
  const bool pairs = is_four_bit_integer(code.a), single = code.a == Type::kTf32;
  const bool narrow = ptx::bits_of(code.a) < 16;
  const int chunk = single ? column : (pairs ? column / 4 : column / 2);
  const int bits_a_row = single ? code.k / 2 * 4 : code.k / (pairs ? 8 : 4) * 4;
  const int first = std::max(bits_a_row / 16, 1) * code.selector;
  const int thread = first + (narrow ? 2 * (chunk / 8) + row / 8 : chunk / 4);
  const int at = narrow ? chunk % 8 : 4 * (row / 8) + chunk % 4;
  const unsigned nibble = metadata[4 * (row % 8) + thread] >> (4 * at) & 0xfU;
  if (single) return 2 * chunk + ((nibble & 3U) == 2 ? 1 : 0);
  if (pairs)
    return 8 * chunk + 2 * static_cast<int>(column % 4 < 2 ? nibble & 3U : nibble >> 2U) + column % 2;
  return 4 * chunk + static_cast<int>(column % 2 == 0 ? nibble & 3U : nibble >> 2U);
}

Status plan_mma(PlanBuilder& to, const ptx::Instruction& inst) {
  to.plan.kind = InstKind::kCrossLane;
  MmaCode code = MmaCode::of(inst);
  const MmaCode::Counts counts = code.counts();
  const bool quad_pairs = !code.wmma && code.m == 8 && code.k == 4 && code.a == Type::kF16;
  const bool layouts = code.wmma || quad_pairs || (inst.shape.a_row && inst.shape.b_col);
  const std::size_t n_operands = code.sparse ? 6 : 4;
  if (counts.d == 0 || !layouts || inst.operands.size() != n_operands) {
    return usage_error("sm_90a has no such combination of shape and types");
  }
  if (code.a == Type::kB1 && inst.sub_op != ptx::SubOp::kXor && inst.sub_op != ptx::SubOp::kAnd)
    return usage_error("single bits are combined with .xor or .and");
  const int wanted[] = {counts.d, counts.a, counts.b, counts.c};
  const Type types[] = {register_type(code.d), register_type(code.a), register_type(code.b),
                        register_type(code.c)};
  for (std::size_t i = 0; i < 4; ++i) {
    const ptx::Operand& operand = inst.operands[i];
    const bool vector = operand.kind == ptx::OperandKind::kVector;
    const int given = vector ? static_cast<int>(operand.elements.size()) : 1;
    if (given != wanted[i])
      return usage_error("a fragment of " + std::to_string(given) + " registers where it takes " +
                         std::to_string(wanted[i]));
    for (int r = 0; r < given; ++r) {
      const ptx::Operand& element = vector ? operand.elements[static_cast<std::size_t>(r)] : operand;
      if (Status status = i == 0 ? to.destination(element, types[i]) : to.source(element, types[i]);
          !status.ok())
        return status;
    }
  }
  if (code.sparse) {
    if (Status status = to.source(inst.operands[4], Type::kB32); !status.ok()) return status;
    const ptx::Operand& selector = inst.operands[5];
    if (selector.kind != ptx::OperandKind::kImmediate || selector.value < 0 ||
        selector.value >= selectors(code))
      return usage_error("the sparsity selector must be a constant below " + std::to_string(selectors(code)));
    code.selector = static_cast<std::uint8_t>(selector.value);
  }
  to.plan.aux[0] = code.pack();
  return {};
}

}  // namespace echolo::vgpu::alu
