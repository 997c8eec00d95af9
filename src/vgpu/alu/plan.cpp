// plan_alu: which function executes an instruction, with which operands.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "vgpu/alu/alu.hpp"
#include "vgpu/alu/operands.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu {
namespace alu {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;
using ptx::Type;

Type twice(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return type;
  }
}

// The types of the operands as written, destination first; the planner checks their number against the
// instruction.
std::vector<Type> operand_types(const ptx::Instruction& inst) {
  const Type t = inst.type;
  switch (inst.op) {
    case Opcode::kShl:
    case Opcode::kShr:
      return {t, t, Type::kU32};
    case Opcode::kShf:
    case Opcode::kPrmt:
    case Opcode::kBmsk:
      return {Type::kB32, Type::kB32, Type::kB32, Type::kB32};
    case Opcode::kMul:
      return {inst.mul_mode == ptx::MulMode::kWide ? twice(t) : t, t, t};
    case Opcode::kMad:
    case Opcode::kMadc: {
      const Type wide = inst.mul_mode == ptx::MulMode::kWide ? twice(t) : t;
      return {wide, t, t, wide};
    }
    case Opcode::kBfe:
      return {t, t, Type::kU32, Type::kU32};
    case Opcode::kBfi:
      return {t, t, t, Type::kU32, Type::kU32};
    case Opcode::kFns:
      return {Type::kU32, Type::kB32, Type::kU32, Type::kS32};
    case Opcode::kSzext:
      return {t, t, Type::kU32};
    case Opcode::kPopc:
    case Opcode::kClz:
    case Opcode::kBfind:
      return {Type::kU32, t};
    case Opcode::kDp4a:
    case Opcode::kDp2a:
      return {Type::kB32, Type::kB32, Type::kB32, Type::kB32};
    case Opcode::kSelp:
      return {t, t, t, Type::kPred};
    case Opcode::kSlct:
      return {t, t, t, inst.type2};
    case Opcode::kSet:
      return {t, inst.type2, inst.type2, Type::kPred};
    case Opcode::kSetp:
      return {Type::kPred, t, t, Type::kPred};
    case Opcode::kTestp:
      return {Type::kPred, t};
    default:
      return {t, t, t, t, t};
  }
}

std::uint64_t bool_bits(const ptx::Instruction& inst, const Operand* c) {
  std::uint64_t bits = static_cast<std::uint64_t>(inst.bool_op);  // kNone 0, kAnd 1, kOr 2, kXor 3
  if (bits != 0 && c != nullptr && c->negated) bits |= 4U;
  return bits;
}

bool is_half(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}
bool is_packed(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

std::uint64_t true_value(Type type) {
  switch (type) {
    case Type::kF32:
      return 0x3f800000U;
    case Type::kF16:
      return 0x3c00U;
    case Type::kF16x2:
      return 0x3c003c00U;
    case Type::kBf16:
      return 0x3f80U;
    case Type::kBf16x2:
      return 0x3f803f80U;
    default:
      return 0xffffffffU;
  }
}

constexpr std::string_view kTestpModes[] = {"finite",     "infinite", "number",
                                            "notanumber", "normal",   "subnormal"};

// p|q or p alone: two destinations where the function wants a pair.
Status add_pair(PlanBuilder& to, const Operand& written, Type first, Type second, bool always_both) {
  if (written.kind == OperandKind::kPredicatePair) {
    Status status = to.destination(written.elements[0], first);
    return status.ok() ? to.destination(written.elements[1], second) : status;
  }
  Status status = to.destination(written, first);
  if (status.ok() && always_both) status = to.destination(Operand{}, second);
  return status;
}

Status plan_setp(PlanBuilder& to, const ptx::Instruction& inst) {
  const bool packed = is_packed(inst.type);
  const bool pair =
      inst.operands[0].kind == OperandKind::kPredicatePair || inst.bool_op != ptx::BoolOp::kNone || packed;
  if (Status status = add_pair(to, inst.operands[0], Type::kPred, Type::kPred, pair); !status.ok())
    return status;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (Status status = to.source(inst.operands[i], i == 3 ? Type::kPred : inst.type, i == 3); !status.ok())
      return status;
  }
  to.plan.aux[0] =
      bool_bits(inst, inst.operands.size() > 3 ? &inst.operands[3] : nullptr) | (packed ? 8U : 0U);
  return {};
}

Status plan_lop3(PlanBuilder& to, const ptx::Instruction& inst) {
  const bool pair = inst.bool_op != ptx::BoolOp::kNone;
  if (Status status = add_pair(to, inst.operands[0], Type::kB32, Type::kPred, pair); !status.ok())
    return status;
  for (std::size_t i = 1; i < 4; ++i) {
    if (Status status = to.source(inst.operands[i], Type::kB32); !status.ok()) return status;
  }
  if (inst.operands[4].kind != OperandKind::kImmediate)
    return usage_error("the table of lop3 must be a constant");
  to.plan.aux[0] = static_cast<std::uint64_t>(inst.operands[4].value) & 0xffU;
  if (!pair) return {};
  to.plan.aux[1] = bool_bits(inst, &inst.operands[5]);
  return to.source(inst.operands[5], Type::kPred, true);
}

Type part_type(int bits) {
  switch (bits) {
    case 8:
      return Type::kB8;
    case 16:
      return Type::kB16;
    case 32:
      return Type::kB32;
    default:
      return Type::kB64;
  }
}

Status plan_mov(PlanBuilder& to, const ptx::Instruction& inst) {
  const int whole = ptx::bits_of(inst.type);
  for (std::size_t i = 0; i < 2; ++i) {
    const Operand& written = inst.operands[i];
    const bool vector = written.kind == OperandKind::kVector;
    if (vector) {
      const auto n = static_cast<int>(written.elements.size());
      const int part = n == 0 ? 0 : whole / n;
      if ((n != 2 && n != 4) || part < 8 || part * n != whole)
        return usage_error("mov cannot split its type so");
      to.plan.aux[0] = static_cast<std::uint64_t>(part);
      to.plan.aux[1] = static_cast<std::uint64_t>(whole);
    }
    const Type type = vector ? part_type(whole / static_cast<int>(written.elements.size())) : inst.type;
    const std::size_t n = vector ? written.elements.size() : 1;
    for (std::size_t k = 0; k < n; ++k) {
      const Operand& element = vector ? written.elements[k] : written;
      if (Status status = i == 0 ? to.destination(element, type) : to.source(element, type); !status.ok())
        return status;
    }
  }
  return {};
}

// cvt reads and writes registers as wide as their type or wider (PTX ISA 9.4.1).
Status plan_cvt(PlanBuilder& to, const ptx::Instruction& inst) {
  to.any_width = true;
  if (Status status = to.destination(inst.operands[0], inst.type); !status.ok()) return status;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (Status status = to.source(inst.operands[i], inst.type2); !status.ok()) return status;
  }
  to.plan.aux[0] = convert_code(inst, to.plan.operands[0].width, to.plan.operands[1].width);
  return {};
}

Status plan_ordinary(PlanBuilder& to, const ptx::Instruction& inst) {
  const std::vector<Type> types = operand_types(inst);
  const bool negatable = inst.op == Opcode::kSelp || inst.op == Opcode::kSet;
  if (inst.operands.empty() || inst.operands.size() > types.size())
    return usage_error("it has a wrong number of operands");
  if (Status status = to.destination(inst.operands[0], types[0]); !status.ok()) return status;
  for (std::size_t i = 1; i < inst.operands.size(); ++i) {
    if (Status status = to.source(inst.operands[i], types[i], negatable && i == 3); !status.ok())
      return status;
  }
  std::uint64_t& aux = to.plan.aux[0];
  if (inst.type == Type::kF32 || inst.type == Type::kF64) aux = directed_code(inst);
  if (is_half(inst.type)) aux = half_code(inst);
  switch (inst.op) {
    case Opcode::kAdd:
    case Opcode::kAddc:
    case Opcode::kSub:
    case Opcode::kSubc:
    case Opcode::kMad:
    case Opcode::kMadc:
      if (ptx::is_float(inst.type)) break;
      aux = (inst.carry_in ? 1U : 0U) | (inst.carry_out ? 2U : 0U);
      break;
    case Opcode::kSelp:
      aux = inst.operands[3].negated ? 1 : 0;
      break;
    case Opcode::kSet:
      aux = bool_bits(inst, inst.operands.size() > 3 ? &inst.operands[3] : nullptr) |
            (is_packed(inst.type2) ? 8U : 0U) | (storage_bits(inst.type) == 16 ? 16U : 0U) |
            true_value(inst.type) << 32U;
      break;
    case Opcode::kTestp:
      for (std::uint64_t i = 0; i < std::size(kTestpModes); ++i) {
        if (inst.mode == kTestpModes[i]) aux = i;
      }
      break;
    default:
      break;
  }
  return {};
}

Status plan_operands(PlanBuilder& to, const ptx::Instruction& inst) {
  switch (inst.op) {
    case Opcode::kSetp:
      return plan_setp(to, inst);
    case Opcode::kLop3:
      return plan_lop3(to, inst);
    case Opcode::kMov:
      return plan_mov(to, inst);
    case Opcode::kCvt:
      return inst.mode == "pack" ? plan_pack(to, inst) : plan_cvt(to, inst);
    case Opcode::kShfl:
    case Opcode::kVote:
    case Opcode::kMatch:
    case Opcode::kRedux:
    case Opcode::kMovmatrix:
      return plan_cross_lane(to, inst);
    case Opcode::kMma:
    case Opcode::kWmma:
      return plan_mma(to, inst);
    default:
      return is_video(inst.op) ? plan_video(to, inst) : plan_ordinary(to, inst);
  }
}

// An opcode may be of several families; types and roundings tell them apart.
Functions find(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  switch (inst.op) {
    case Opcode::kMov:
      return find_move(form);
    case Opcode::kCvt:
      return find_convert(form);
    case Opcode::kMma:
    case Opcode::kWmma:
      return find_mma(form);
    case Opcode::kSetp:
    case Opcode::kSet:
    case Opcode::kSelp:
    case Opcode::kSlct:
    case Opcode::kTestp:
      return find_compare(form);
    case Opcode::kShfl:
    case Opcode::kVote:
    case Opcode::kMatch:
    case Opcode::kRedux:
    case Opcode::kMovmatrix:
      return find_cross_lane(form);
    case Opcode::kAdd:
    case Opcode::kAddc:
    case Opcode::kSub:
    case Opcode::kSubc:
    case Opcode::kMul:
    case Opcode::kMad:
    case Opcode::kMadc:
    case Opcode::kMul24:
    case Opcode::kMad24:
    case Opcode::kSad:
    case Opcode::kDiv:
    case Opcode::kRem:
    case Opcode::kAbs:
    case Opcode::kNeg:
    case Opcode::kMin:
    case Opcode::kMax:
    case Opcode::kFma:
    case Opcode::kCopysign:
    case Opcode::kRcp:
    case Opcode::kSqrt:
    case Opcode::kRsqrt:
    case Opcode::kSin:
    case Opcode::kCos:
    case Opcode::kLg2:
    case Opcode::kEx2:
    case Opcode::kTanh:
      for (const auto family :
           {find_integer, find_float32, find_float64, find_half, find_approx, find_directed}) {
        if (const Functions found = family(form)) return found;
      }
      return {};
    default:
      return is_video(inst.op) ? find_video(form) : find_bits(form);
  }
}

bool is_mine(Opcode op) {
  switch (op) {
    case Opcode::kAbs:
    case Opcode::kAdd:
    case Opcode::kAddc:
    case Opcode::kAnd:
    case Opcode::kBfe:
    case Opcode::kBfi:
    case Opcode::kBfind:
    case Opcode::kBmsk:
    case Opcode::kBrev:
    case Opcode::kClz:
    case Opcode::kCnot:
    case Opcode::kCopysign:
    case Opcode::kCos:
    case Opcode::kCvt:
    case Opcode::kDiv:
    case Opcode::kDp2a:
    case Opcode::kDp4a:
    case Opcode::kEx2:
    case Opcode::kFma:
    case Opcode::kFns:
    case Opcode::kLg2:
    case Opcode::kLop3:
    case Opcode::kMad:
    case Opcode::kMad24:
    case Opcode::kMadc:
    case Opcode::kMatch:
    case Opcode::kMax:
    case Opcode::kMin:
    case Opcode::kMma:
    case Opcode::kMov:
    case Opcode::kMovmatrix:
    case Opcode::kMul:
    case Opcode::kMul24:
    case Opcode::kNeg:
    case Opcode::kNot:
    case Opcode::kOr:
    case Opcode::kPopc:
    case Opcode::kPrmt:
    case Opcode::kRcp:
    case Opcode::kRedux:
    case Opcode::kRem:
    case Opcode::kRsqrt:
    case Opcode::kSad:
    case Opcode::kSelp:
    case Opcode::kSet:
    case Opcode::kSetp:
    case Opcode::kShf:
    case Opcode::kShfl:
    case Opcode::kShl:
    case Opcode::kShr:
    case Opcode::kSin:
    case Opcode::kSlct:
    case Opcode::kSqrt:
    case Opcode::kSub:
    case Opcode::kSubc:
    case Opcode::kSzext:
    case Opcode::kTanh:
    case Opcode::kTestp:
    case Opcode::kVote:
    case Opcode::kXor:
      return true;
    default:
      return false;
  }
}

std::string form_of(const ptx::Instruction& inst) {
  return std::string(inst.text.substr(0, inst.text.find_first_of(" \t\n")));
}

}  // namespace
}  // namespace alu

Result<Plan> plan_alu(const ptx::Module& /*module*/, const ptx::Function& function,
                      const ptx::Instruction& inst, bool* mine) {
  *mine = alu::is_mine(inst.op) || alu::is_video(inst.op) ||
          (inst.op == ptx::Opcode::kWmma && inst.mode == "mma");
  if (!*mine) return Plan{};
  if (Status status = alu::use_simd_target_of_environment(); !status.ok()) return status.error();
  alu::PlanBuilder builder{function, {}};
  if (Status status = alu::plan_operands(builder, inst); !status.ok()) {
    return usage_error("cannot execute " + alu::form_of(inst) + ": " + status.error().message);
  }
  Plan& plan = builder.plan;
  int source_bits = 0;
  for (const PlanOperand& operand : plan.operands) {
    if (!operand.destination && source_bits == 0) source_bits = operand.width;
  }
  const alu::Form form{inst, plan.operands.empty() ? 0 : int{plan.operands[0].width}, source_bits};
  const alu::Functions found = alu::find(form);
  if (!found) return usage_error("the virtual node does not execute the form " + alu::form_of(inst));
  plan.alu = found.masked;
  plan.alu_full = found.full;
  if (found.helper != 0) plan.aux[1] = found.helper;
  return std::move(plan);
}

}  // namespace echolo::vgpu
