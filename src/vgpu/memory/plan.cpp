// Which memory function executes an instruction, and what they have in common.
#include "vgpu/memory/plan.hpp"

#include <utility>

#include "vgpu/memory/lane_ops.hpp"
#include "vgpu/memory/matrix_plans.hpp"
#include "vgpu/memory/texture.hpp"

namespace echolo::vgpu {

using ptx::Opcode;
using ptx::OperandKind;
using ptx::Space;

Memory::Pattern form_addresses(const Lanes& lanes, Slot slot, bool narrow, std::uint64_t offset,
                               std::uint32_t mask, std::uint32_t bytes, std::uint64_t* addresses) {
  static const LaneOps& ops = lane_ops();
  if ((slot.bits & Slot::kPool) != 0) {
    addresses[0] = narrow ? static_cast<std::uint32_t>(lanes.read<std::uint32_t>(slot)[0] +
                                                       static_cast<std::uint32_t>(offset))
                          : lanes.read<std::uint64_t>(slot)[0] + offset;
    return Memory::Pattern::kUniform;
  }
  if (narrow) {
    return ops.form_narrow(lanes.read<std::uint32_t>(slot), static_cast<std::uint32_t>(offset), mask, bytes,
                           addresses);
  }
  return ops.form_wide(lanes.read<std::uint64_t>(slot), offset, mask, bytes, addresses);
}

std::string PlanContext::form() const {
  std::string out(ptx::mnemonic(inst.op));
  for (const std::string_view modifier : inst.modifiers) {
    out += '.';
    out += modifier;
  }
  return out;
}

bool PlanContext::has(std::string_view modifier) const {
  return std::find(inst.modifiers.begin(), inst.modifiers.end(), modifier) != inst.modifiers.end();
}

Error PlanContext::refuse(const std::string& why) const {
  return usage_error(form() + (why.empty() ? "" : ": " + why));
}

std::uint8_t PlanContext::register_width(std::int32_t reg) const {
  const int bits = ptx::bits_of(function.registers[static_cast<std::size_t>(reg)].type);
  return static_cast<std::uint8_t>(bits == 8 ? 16 : bits);
}

Result<PlanOperand> PlanContext::value(const ptx::Operand& operand, std::uint8_t width,
                                       bool destination) const {
  PlanOperand out;
  out.destination = destination;
  out.width = width;
  switch (operand.kind) {
    case OperandKind::kNone:
      return out;
    case OperandKind::kRegister:
      out.kind = PlanOperand::Kind::kRegister;
      out.index = operand.reg;
      out.width = register_width(operand.reg);
      return out;
    case OperandKind::kImmediate:
      if (destination) break;
      out.kind = PlanOperand::Kind::kImmediate;
      out.value[0] = static_cast<std::uint64_t>(operand.value);
      out.value[1] = operand.value < 0 && !operand.is_float ? ~std::uint64_t{0} : 0;
      if (operand.is_float && operand.float_bits == 32 && width == 64) {
        const auto single = std::bit_cast<float>(static_cast<std::uint32_t>(operand.value));
        out.value[0] = std::bit_cast<std::uint64_t>(static_cast<double>(single));
      }
      return out;
    case OperandKind::kSpecial:
      out.kind = PlanOperand::Kind::kSpecial;
      out.index = static_cast<std::int32_t>(operand.special);
      out.value[0] = static_cast<std::uint64_t>(operand.value);
      return out;
    case OperandKind::kVariable:
      out.kind = PlanOperand::Kind::kVariable;
      out.index = operand.variable;
      out.value[0] = static_cast<std::uint64_t>(operand.value);
      return out;
    case OperandKind::kFunction:
      out.kind = PlanOperand::Kind::kFunction;
      out.index = operand.function;
      return out;
    default:
      break;
  }
  return refuse("an operand of this kind is not supported here");
}

Status PlanContext::address(const ptx::Operand& operand, Space space, Plan& plan, MemoryCode& code) const {
  if (operand.kind != OperandKind::kAddress || !operand.elements.empty())
    return refuse("needs one address in brackets");
  PlanOperand base;
  base.width = 64;
  plan.aux[1] = 0;
  if (operand.variable >= 0) {
    const ptx::Variable& variable = module.variable(function, operand.variable);
    if (space == Space::kGeneric) space = variable.space;
    base.kind = PlanOperand::Kind::kVariable;
    base.index = operand.variable;
    base.value[0] = static_cast<std::uint64_t>(operand.value);
    if (variable.space == Space::kParam) {
      const auto own = operand.variable - static_cast<std::int32_t>(module.variables.size());
      // Results come first, and an entry has none: its parameters are the first of its own.
      code.kernel_param = function.is_entry && own < static_cast<std::int32_t>(function.parameters.size());
    }
  } else if (operand.reg >= 0) {
    base.kind = PlanOperand::Kind::kRegister;
    base.index = operand.reg;
    base.width = register_width(operand.reg);
    if (base.width != 32 && base.width != 64) return refuse("an address register has 32 or 64 bits");
    plan.aux[1] = static_cast<std::uint64_t>(operand.value);
    code.kernel_param = space == Space::kParam && function.is_entry && !has("param::func");
  } else {
    base.kind = PlanOperand::Kind::kImmediate;
    base.value[0] = static_cast<std::uint64_t>(operand.value);
  }
  code.space = space;
  code.narrow_address = base.width == 32;
  code.address = static_cast<std::uint8_t>(plan.operands.size());
  plan.operands.push_back(base);
  return {};
}

Result<Plan> plan_memory(const ptx::Module& module, const ptx::Function& function,
                         const ptx::Instruction& inst, bool* mine) {
  const PlanContext context{module, function, inst};
  *mine = true;
  switch (inst.op) {
    case Opcode::kLd:
    case Opcode::kLdu:
      return plan_load(context);
    case Opcode::kSt:
      return inst.async ? plan_remote_store(context) : plan_store(context);
    case Opcode::kAtom:
    case Opcode::kRed:
      return inst.async ? plan_remote_store(context) : plan_atomic(context);
    case Opcode::kCp:
      return plan_copy(context);
    case Opcode::kLdmatrix:
    case Opcode::kStmatrix:
      return plan_matrix(context);
    case Opcode::kCvta:
    case Opcode::kIsspacep:
    case Opcode::kMapa:
    case Opcode::kGetctarank:
    case Opcode::kCreatepolicy:
    case Opcode::kPrefetch:
    case Opcode::kPrefetchu:
    case Opcode::kDiscard:
    case Opcode::kApplypriority:
      return plan_address(context);
    case Opcode::kMbarrier:
      return plan_barrier_object(context);
    case Opcode::kWmma:
      return plan_wmma(context);
    case Opcode::kWgmma:
      return plan_wgmma(context);
    case Opcode::kMultimem:
      return plan_multicast(context);
    case Opcode::kTensormap:
      return plan_tensor_map(context);
    case Opcode::kTex:
      return plan_texture(context);
    case Opcode::kTld4:
    case Opcode::kTxq:
    case Opcode::kSuld:
    case Opcode::kSust:
    case Opcode::kSured:
    case Opcode::kSuq:
      return context.refuse("the virtual node does not execute this instruction");
    default:
      *mine = false;
      return Plan{};
  }
}

}  // namespace echolo::vgpu
