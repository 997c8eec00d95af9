// Instructions across the lanes of a warp: shfl.sync (PTX ISA 9.7.9.6), vote.sync, match.sync, redux.sync
// (9.7.13) and movmatrix (9.7.14). vgpu/core calls them once the lanes of the member mask have converged;
// `mask` is those lanes. A shfl from a lane outside the mask, which the ISA leaves undefined, reads what that
// lane's register holds.
#include <array>
#include <bit>
#include <cstring>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/operands.hpp"

namespace echolo::vgpu::alu {
namespace {

using ptx::Opcode;
using ptx::SubOp;
using ptx::Type;

bool active(std::uint32_t mask, int lane) { return ((mask >> static_cast<unsigned>(lane)) & 1U) != 0; }

void write_predicate(const Lanes& lanes, Slot slot, std::uint32_t bits, std::uint32_t mask) {
  std::uint32_t* d = lanes.write<std::uint32_t>(slot);
  *d = (*d & ~mask) | (bits & mask);
}

// x for the active lanes, what was there for the others.
void write_lanes(std::uint32_t* d, const std::uint32_t* x, std::uint32_t mask) {
  if (mask == kAllLanes) {
    std::memcpy(d, x, kWarpSize * sizeof(*d));
    return;
  }
  for (int lane = 0; lane < kWarpSize; ++lane) d[lane] = active(mask, lane) ? x[lane] : d[lane];
}
void fill_lanes(std::uint32_t* d, std::uint32_t x, std::uint32_t mask) {
  for (int lane = 0; lane < kWarpSize; ++lane) d[lane] = active(mask, lane) ? x : d[lane];
}

constexpr std::array<std::int32_t, kWarpSize> kLaneIndex = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                            11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                                            22, 23, 24, 25, 26, 27, 28, 29, 30, 31};

// d|p, a, b, c, membermask. The first loop is one the compiler vectorises: from which lane, and is it in the
// segment.
template <SubOp kMode>
void run_shfl(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto* a = lanes.read<std::uint32_t>(inst.operands[2]);
  const auto* b = lanes.read<std::int32_t>(inst.operands[3]);
  const auto* c = lanes.read<std::int32_t>(inst.operands[4]);
  alignas(64) std::array<std::int32_t, kWarpSize> source;
  alignas(64) std::array<std::uint32_t, kWarpSize> result;
  std::uint32_t in_range = 0;
  for (std::size_t i = 0; i < kWarpSize; ++i) {
    const std::int32_t lane = kLaneIndex[i], offset = b[i] & 0x1f, clamp = c[i] & 0x1f,
                       segment = (c[i] >> 8) & 0x1f;
    const std::int32_t first = lane & segment;
    const std::int32_t last = first | (clamp & ~segment);
    std::int32_t from = first | (offset & ~segment);
    if constexpr (kMode == SubOp::kUp) from = lane - offset;
    if constexpr (kMode == SubOp::kDown) from = lane + offset;
    if constexpr (kMode == SubOp::kBfly) from = lane ^ offset;
    const std::int32_t inside = -static_cast<std::int32_t>(kMode == SubOp::kUp ? from >= last : from <= last);
    source[i] = (from & inside) | (lane & ~inside);
    in_range |= static_cast<std::uint32_t>(inside) & (1U << i);
  }
  for (std::size_t i = 0; i < kWarpSize; ++i) result[i] = a[source[i]];
  write_lanes(lanes.write<std::uint32_t>(inst.operands[0]), result.data(), mask);
  write_predicate(lanes, inst.operands[1], in_range, mask);
}

// d, p, membermask. aux[0]: 1 where p is negated.
template <SubOp kMode>
void run_vote(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  std::uint32_t p = *lanes.read<std::uint32_t>(inst.operands[1]);
  if (inst.aux[0] != 0) p = ~p;
  p &= mask;
  if constexpr (kMode == SubOp::kBallot) {
    fill_lanes(lanes.write<std::uint32_t>(inst.operands[0]), p, mask);
  } else {
    const bool holds =
        kMode == SubOp::kAll ? p == mask : (kMode == SubOp::kAny ? p != 0 : p == mask || p == 0);
    write_predicate(lanes, inst.operands[0], holds ? kAllLanes : 0, mask);
  }
}

// d|p, a, membermask: all lanes equal?
template <typename T>
void run_match_all(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const T* a = lanes.read<T>(inst.operands[2]);
  const T first = a[std::countr_zero(mask)];
  bool equal = true;
  for (int lane = 0; lane < kWarpSize; ++lane) equal = equal && (!active(mask, lane) || a[lane] == first);
  fill_lanes(lanes.write<std::uint32_t>(inst.operands[0]), equal ? mask : 0, mask);
  write_predicate(lanes, inst.operands[1], equal ? kAllLanes : 0, mask);
}

// d, a, membermask: which lanes hold the same as this one?
template <typename T>
void run_match_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const T* a = lanes.read<T>(inst.operands[1]);
  std::array<std::uint32_t, kWarpSize> result{};
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    for (std::size_t other = 0; other < kWarpSize; ++other)
      result[lane] |= a[other] == a[lane] ? 1U << other : 0U;
    result[lane] &= mask;
  }
  write_lanes(lanes.write<std::uint32_t>(inst.operands[0]), result.data(), mask);
}

// d, a, membermask.
template <typename T, T (*kReduce)(T, T)>
void run_redux(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  T* d = lanes.write<T>(inst.operands[0]);
  const T* a = lanes.read<T>(inst.operands[1]);
  const int first = std::countr_zero(mask);
  T total = a[first];
  for (int lane = first + 1; lane < kWarpSize; ++lane) {
    if (active(mask, lane)) total = kReduce(total, a[lane]);
  }
  for (int lane = 0; lane < kWarpSize; ++lane) {
    if (active(mask, lane)) d[lane] = total;
  }
}
using U32 = std::uint32_t;
using S32 = std::int32_t;
U32 sum(U32 a, U32 b) { return a + b; }
U32 both(U32 a, U32 b) { return a & b; }
U32 either(U32 a, U32 b) { return a | b; }
U32 differ(U32 a, U32 b) { return a ^ b; }
template <typename T>
T least(T a, T b) {
  return b < a ? b : a;
}
template <typename T>
T most(T a, T b) {
  return a < b ? b : a;
}

// movmatrix.m8n8.trans.b16: lane 4r+c holds elements (r, 2c) and (r, 2c+1), before and after the
// transposition.
void run_movmatrix(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  auto* d = lanes.write<std::uint32_t>(inst.operands[0]);
  const auto* a = lanes.read<std::uint32_t>(inst.operands[1]);
  std::array<std::array<std::uint16_t, 8>, 8> matrix{};
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    matrix[lane / 4][lane % 4 * 2] = static_cast<std::uint16_t>(a[lane]);
    matrix[lane / 4][lane % 4 * 2 + 1] = static_cast<std::uint16_t>(a[lane] >> 16U);
  }
  for (std::size_t lane = 0; lane < kWarpSize; ++lane) {
    const std::uint32_t low = matrix[lane % 4 * 2][lane / 4], high = matrix[lane % 4 * 2 + 1][lane / 4];
    if (active(mask, static_cast<int>(lane))) d[lane] = high << 16U | low;
  }
}

Functions one(AluFn function) { return {function, function}; }

Functions find_redux(const ptx::Instruction& inst) {
  const bool is_signed = inst.type == Type::kS32;
  if (inst.type == Type::kB32) {
    switch (inst.sub_op) {
      case SubOp::kAnd:
        return one(run_redux<U32, both>);
      case SubOp::kOr:
        return one(run_redux<U32, either>);
      case SubOp::kXor:
        return one(run_redux<U32, differ>);
      default:
        return {};
    }
  }
  if (!is_signed && inst.type != Type::kU32) return {};
  switch (inst.sub_op) {
    case SubOp::kAdd:
      return one(run_redux<U32, sum>);
    case SubOp::kMin:
      return is_signed ? one(run_redux<S32, least<S32>>) : one(run_redux<U32, least<U32>>);
    case SubOp::kMax:
      return is_signed ? one(run_redux<S32, most<S32>>) : one(run_redux<U32, most<U32>>);
    default:
      return {};
  }
}

// The first of p|q, or the operand itself; the second, or a sink.
Status add_pair(PlanBuilder& to, const ptx::Operand& written, Type first) {
  const bool pair = written.kind == ptx::OperandKind::kPredicatePair;
  Status status = to.destination(pair ? written.elements[0] : written, first);
  return status.ok() ? to.destination(pair ? written.elements[1] : ptx::Operand{}, Type::kPred) : status;
}

}  // namespace

Functions find_cross_lane(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  if (inst.op != Opcode::kMovmatrix && !inst.sync) return {};
  const int bits = ptx::bits_of(inst.type);
  switch (inst.op) {
    case Opcode::kShfl:
      if (bits != 32) return {};
      switch (inst.sub_op) {
        case SubOp::kUp:
          return one(run_shfl<SubOp::kUp>);
        case SubOp::kDown:
          return one(run_shfl<SubOp::kDown>);
        case SubOp::kBfly:
          return one(run_shfl<SubOp::kBfly>);
        case SubOp::kIdx:
          return one(run_shfl<SubOp::kIdx>);
        default:
          return {};
      }
    case Opcode::kVote:
      switch (inst.sub_op) {
        case SubOp::kAll:
          return one(run_vote<SubOp::kAll>);
        case SubOp::kAny:
          return one(run_vote<SubOp::kAny>);
        case SubOp::kUni:
          return one(run_vote<SubOp::kUni>);
        case SubOp::kBallot:
          return one(run_vote<SubOp::kBallot>);
        default:
          return {};
      }
    case Opcode::kMatch:
      if (inst.sub_op == SubOp::kAll)
        return bits == 64 ? one(run_match_all<std::uint64_t>) : one(run_match_all<std::uint32_t>);
      if (inst.sub_op == SubOp::kAny)
        return bits == 64 ? one(run_match_any<std::uint64_t>) : one(run_match_any<std::uint32_t>);
      return {};
    case Opcode::kRedux:
      return find_redux(inst);
    case Opcode::kMovmatrix:
      return inst.shape.trans && inst.type == Type::kB16 ? one(run_movmatrix) : Functions{};
    default:
      return {};
  }
}

Status plan_cross_lane(PlanBuilder& to, const ptx::Instruction& inst) {
  to.plan.kind = InstKind::kCrossLane;
  const std::vector<ptx::Operand>& operands = inst.operands;
  const auto sources = [&](std::size_t from, Type type) {
    for (std::size_t i = from; i + 1 < operands.size(); ++i) {
      if (Status status = to.source(operands[i], i == from ? type : Type::kB32); !status.ok()) return status;
    }
    to.plan.membermask = static_cast<std::int16_t>(to.plan.operands.size());
    return to.source(operands.back(), Type::kB32);
  };
  if (inst.op == Opcode::kMovmatrix) {
    Status status = to.destination(operands[0], Type::kB32);
    return status.ok() ? to.source(operands[1], Type::kB32) : status;
  }
  if (operands.size() < 3) return usage_error("only the .sync form exists for sm_90a");
  switch (inst.op) {
    case Opcode::kShfl: {
      if (operands.size() != 5) return usage_error("only the .sync form exists for sm_90a");
      Status status = add_pair(to, operands[0], Type::kB32);
      return status.ok() ? sources(1, Type::kB32) : status;
    }
    case Opcode::kMatch: {
      Status status = inst.sub_op == SubOp::kAll ? add_pair(to, operands[0], Type::kB32)
                                                 : to.destination(operands[0], Type::kB32);
      return status.ok() ? sources(1, inst.type) : status;
    }
    case Opcode::kVote: {
      Status status = to.destination(operands[0], inst.sub_op == SubOp::kBallot ? Type::kB32 : Type::kPred);
      if (status.ok()) status = to.source(operands[1], Type::kPred, true);
      to.plan.aux[0] = operands[1].negated ? 1 : 0;
      to.plan.membermask = static_cast<std::int16_t>(to.plan.operands.size());
      return status.ok() ? to.source(operands[2], Type::kB32) : status;
    }
    default: {
      Status status = to.destination(operands[0], Type::kB32);
      return status.ok() ? sources(1, Type::kB32) : status;
    }
  }
}

}  // namespace echolo::vgpu::alu
