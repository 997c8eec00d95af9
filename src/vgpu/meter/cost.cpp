// Slots are what ptxas for sm_90 makes of a form: nothing of register moves, address conversions and kernel
// parameters (constant operands), two instructions of 64-bit integers, sequences for division and roots.
#include "vgpu/meter/cost.hpp"

#include <algorithm>

namespace echolo::vgpu {
namespace {

using ptx::Opcode;
using ptx::Type;

bool is_wide(Type type) { return type == Type::kU64 || type == Type::kS64 || type == Type::kB64; }

// Time of a product of this type in units of one of bf16 (H100 data sheet, dense rates).
double of_bf16(Type type) {
  switch (type) {
    case Type::kTf32:
    case Type::kF32:
      return 2;
    case Type::kF64:
      return 989.0 / 67.0;
    case Type::kE4m3:
    case Type::kE5m2:
    case Type::kS8:
    case Type::kU8:
      return 0.5;
    case Type::kS4:
    case Type::kU4:
      return 0.25;
    default:
      return 1;
  }
}

InstCost matrix(const ptx::Instruction& inst, double warps) {
  InstCost cost{Pipe::kTensor, 1, 0};
  const double products = 2.0 * inst.shape.m * inst.shape.n * inst.shape.k / warps;
  const Type a = inst.types[1] != Type::kNone ? inst.types[1] : inst.type;
  const double flops = products * of_bf16(a) / (inst.shape.sparse ? 2 : 1);
  cost.tensor_flops = static_cast<std::uint32_t>(std::min(flops, 4e9));
  return cost;
}

std::uint8_t division(const ptx::Instruction& inst) {
  if (inst.approx || inst.full) return 2;
  if (inst.type == Type::kF64 || is_wide(inst.type)) return 40;
  return ptx::is_float(inst.type) ? 10 : 18;
}

}  // namespace

InstCost cost_of(const ptx::Instruction& inst) {
  const Type type = inst.type;
  const std::uint8_t wide = is_wide(type) ? 2 : 1;
  switch (inst.op) {
    case Opcode::kMma:
      return matrix(inst, 1);
    case Opcode::kWmma:
      if (inst.mode == "mma") return matrix(inst, 1);
      return {Pipe::kMemory, 4, 0};
    case Opcode::kWgmma:
      return inst.shape.k != 0 ? matrix(inst, 4) : InstCost{Pipe::kControl, 1, 0};
    case Opcode::kLd:
    case Opcode::kLdu:
      if (inst.space == ptx::Space::kParam || inst.space == ptx::Space::kConst) return {Pipe::kMemory, 0, 0};
      return {Pipe::kMemory, 1, 0};
    case Opcode::kSt:
      if (inst.space == ptx::Space::kParam) return {Pipe::kMemory, 0, 0};
      return {Pipe::kMemory, 1, 0};
    case Opcode::kAtom:
    case Opcode::kRed:
    case Opcode::kCp:
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
    case Opcode::kShfl:
    case Opcode::kMultimem:
    case Opcode::kMbarrier:
      return {Pipe::kMemory, 1, 0};
    case Opcode::kMov:
    case Opcode::kCvta:
      return {Pipe::kInteger, 0, 0};
    case Opcode::kEx2:
    case Opcode::kLg2:
    case Opcode::kSin:
    case Opcode::kCos:
    case Opcode::kTanh:
    case Opcode::kRsqrt:
      return {Pipe::kSpecial, 1, 0};
    case Opcode::kRcp:
    case Opcode::kSqrt:
      if (inst.approx) return {Pipe::kSpecial, 1, 0};
      return {type == Type::kF64 ? Pipe::kDouble : Pipe::kFloat,
              static_cast<std::uint8_t>(type == Type::kF64 ? 30 : 8), 0};
    case Opcode::kDiv:
    case Opcode::kRem:
      return {type == Type::kF64    ? Pipe::kDouble
              : ptx::is_float(type) ? Pipe::kFloat
                                    : Pipe::kInteger,
              division(inst), 0};
    case Opcode::kCvt:
      // Conversions to and from 64 bits and between integers and floats run at a quarter rate.
      return {ptx::is_float(type) == ptx::is_float(inst.type2) && !is_wide(type) ? Pipe::kInteger
                                                                                 : Pipe::kSpecial,
              1, 0};
    case Opcode::kMul:
    case Opcode::kMad:
      if (type == Type::kF64) return {Pipe::kDouble, 1, 0};
      if (ptx::is_float(type)) return {Pipe::kFloat, 1, 0};
      return {Pipe::kInteger, static_cast<std::uint8_t>(is_wide(type) ? 4 : 1), 0};
    case Opcode::kBra:
    case Opcode::kBrx:
    case Opcode::kCall:
    case Opcode::kRet:
    case Opcode::kExit:
    case Opcode::kBar:
    case Opcode::kBarrier:
    case Opcode::kFence:
    case Opcode::kMembar:
    case Opcode::kNanosleep:
    case Opcode::kElect:
    case Opcode::kVote:
    case Opcode::kSetmaxnreg:
    case Opcode::kGriddepcontrol:
      return {Pipe::kControl, 1, 0};
    default:
      if (type == Type::kF64) return {Pipe::kDouble, 1, 0};
      return {ptx::is_float(type) ? Pipe::kFloat : Pipe::kInteger, wide, 0};
  }
}

}  // namespace echolo::vgpu
