#include "vgpu/core/decode_function.hpp"

#include <algorithm>

#include "base/text.hpp"

namespace echolo::vgpu {
namespace {

using ptx::Opcode;
using ptx::Operand;
using ptx::OperandKind;

bool has_modifier(const ptx::Instruction& instruction, std::string_view name) {
  return std::find(instruction.modifiers.begin(), instruction.modifiers.end(), name) !=
         instruction.modifiers.end();
}

// Functions that the driver gives every kernel.
Builtin find_builtin(std::string_view name) {
  if (name == "vprintf") return Builtin::kVprintf;
  if (name == "__assertfail") return Builtin::kAssertfail;
  if (name == "malloc") return Builtin::kMalloc;
  if (name == "free") return Builtin::kFree;
  return Builtin::kNone;
}

class FunctionDecoder {
 public:
  FunctionDecoder(const ptx::Module& module, const DeviceCallTable* calls, PoolBuilder& pool,
                  KernelImage& image)
      : module_(module), function_(*image.function), calls_(calls), pool_(pool), image_(image) {}

  Status run() {
    if (Status status = lay_out_frame(image_); !status.ok()) return status;
    assign_registers(image_);
    temps_begin_ = image_.register_bytes;
    for (const ptx::Instruction& instruction : function_.body) {
      image_.first_inst.push_back(static_cast<std::uint32_t>(image_.code.size()));
      n_temps_ = 0;
      if (Status status = decode(instruction); !status.ok()) return status;
    }
    image_.first_inst.push_back(static_cast<std::uint32_t>(image_.code.size()));
    Inst last;  // falling off the end returns
    last.kind = InstKind::kControl;
    last.control = static_cast<std::uint32_t>(function_.is_entry ? Control::kExit : Control::kRet);
    last.source = function_.body.empty() ? nullptr : &function_.body.back();
    push(last, {}, 0);
    finish();
    return {};
  }

 private:
  const ptx::Module& module_;
  const ptx::Function& function_;
  const DeviceCallTable* calls_;
  PoolBuilder& pool_;
  KernelImage& image_;
  std::uint32_t temps_begin_ = 0, n_temps_ = 0, most_temps_ = 0;
  std::vector<std::size_t> operands_at_;  // of each Inst: index of its first slot

  Slot temp() {
    const Slot slot{temps_begin_ + n_temps_ * 512U};
    most_temps_ = std::max(most_temps_, ++n_temps_);
    return slot;
  }
  Slot immediate(unsigned width, std::uint64_t value, std::uint64_t high = 0) {
    if (width < 64) value &= (1ULL << width) - 1;
    return pool_.add({PoolEntry::Kind::kImmediate, static_cast<std::uint8_t>(width), -1, {value, high}});
  }

  void push(Inst inst, const std::vector<Slot>& operands, int n_destinations,
            const std::vector<std::uint8_t>& widths = {}) {
    operands_at_.push_back(image_.operand_slots.size());
    inst.n_operands = static_cast<std::uint8_t>(operands.size());
    inst.n_destinations = static_cast<std::uint8_t>(n_destinations);
    image_.operand_slots.insert(image_.operand_slots.end(), operands.begin(), operands.end());
    image_.operand_widths.insert(image_.operand_widths.end(), widths.begin(), widths.end());
    image_.operand_widths.resize(image_.operand_slots.size());
    image_.code.push_back(inst);
  }

  // Pointers into vectors that have stopped growing, and labels to instruction indices.
  void finish() {
    image_.register_bytes = temps_begin_ + most_temps_ * 512U;
    for (std::size_t i = 0; i < image_.code.size(); ++i) {
      Inst& inst = image_.code[i];
      inst.operands = image_.operand_slots.data() + operands_at_[i];
      if (inst.kind == InstKind::kControl && inst.control == static_cast<std::uint32_t>(Control::kBra)) {
        inst.target = static_cast<std::int32_t>(image_.first_inst[static_cast<std::size_t>(inst.target)]);
      }
    }
    for (auto& table : image_.branch_tables) {
      for (std::int32_t& target : table) {
        target = static_cast<std::int32_t>(image_.first_inst[static_cast<std::size_t>(target)]);
      }
    }
    find_held_loads(image_);
  }

  Inst start(const ptx::Instruction& instruction) {
    Inst inst;
    inst.source = &instruction;
    if (instruction.guard >= 0) {
      inst.guard = instruction.guard_negated ? 2 : 1;
      inst.guard_slot = image_.register_slots[static_cast<std::size_t>(instruction.guard)];
    }
    return inst;
  }

  Error refuse(const ptx::Instruction& instruction, const std::string& what) const {
    return error_at(module_, instruction,
                    what + " is not executed by the virtual node (`" +
                        std::string(instruction.text.substr(0, 120)) + "`)");
  }

  Slot special(const ptx::Instruction& instruction, ptx::SpecialReg reg, std::uint64_t number,
               unsigned width) {
    const Slot slot = temp();
    push_special(instruction, slot, reg, number, width, false);
    return slot;
  }
  void push_special(const ptx::Instruction& instruction, Slot to, ptx::SpecialReg reg, std::uint64_t number,
                    unsigned width, bool guarded) {
    Inst inst;
    if (guarded) inst = start(instruction);
    inst.source = &instruction;
    inst.kind = InstKind::kControl;
    inst.control = static_cast<std::uint32_t>(Control::kSpecial);
    inst.aux[0] = static_cast<std::uint64_t>(reg) | (number << 16U);
    inst.aux[1] = width;
    push(inst, {to}, 1);
  }

  Result<Slot> variable_address(const ptx::Instruction& instruction, std::int32_t index, std::uint64_t addend,
                                unsigned width) {
    const ptx::Variable& variable = module_.variable(function_, index);
    const bool at_module = module_.is_module_variable(index);
    switch (variable.space) {
      case ptx::Space::kGlobal:
      case ptx::Space::kConst:
        if (!at_module) return refuse(instruction, "a global variable inside a function");
        return pool_.add({PoolEntry::Kind::kGlobal, static_cast<std::uint8_t>(width), index, {addend, 0}});
      case ptx::Space::kShared:
      case ptx::Space::kSharedCluster: {
        const std::int32_t key = pool_.shared_key(function_, at_module ? -1 : image_.index, index);
        if (std::find(image_.shared_variables.begin(), image_.shared_variables.end(), key) ==
            image_.shared_variables.end()) {
          image_.shared_variables.push_back(key);
        }
        return pool_.add({PoolEntry::Kind::kShared, static_cast<std::uint8_t>(width), key, {addend, 0}});
      }
      case ptx::Space::kLocal:
      case ptx::Space::kParam: {
        if (at_module) return refuse(instruction, "a .local or .param variable at module scope");
        const std::size_t own = static_cast<std::size_t>(index) - module_.variables.size();
        if (function_.is_entry && own < function_.parameters.size()) {
          return immediate(width, image_.param_offsets[own] + addend);
        }
        const auto found = image_.local_offsets.find(index);
        const std::uint64_t offset = (found == image_.local_offsets.end() ? 0 : found->second) + addend;
        if (function_.is_entry) return immediate(width, offset);
        const Slot slot = temp();
        Inst inst;
        inst.source = &instruction;
        inst.kind = InstKind::kControl;
        inst.control = static_cast<std::uint32_t>(Control::kFrameAddress);
        inst.aux[0] = offset;
        inst.aux[1] = width;
        push(inst, {slot}, 1);
        return slot;
      }
      default:
        return refuse(instruction, "a variable of this state space");
    }
  }

  Result<Slot> slot_of(const ptx::Instruction& instruction, const PlanOperand& operand) {
    switch (operand.kind) {
      case PlanOperand::Kind::kUnused:
        return operand.destination ? Slot{0} : Slot{Slot::kPool};
      case PlanOperand::Kind::kRegister:
        return image_.register_slots[static_cast<std::size_t>(operand.index)];
      case PlanOperand::Kind::kImmediate:
        return immediate(operand.width, operand.value[0], operand.value[1]);
      case PlanOperand::Kind::kVariable:
        return variable_address(instruction, operand.index, operand.value[0], operand.width);
      case PlanOperand::Kind::kFunction:
        return immediate(operand.width, function_address(operand.index));
      case PlanOperand::Kind::kSpecial:
        return special(instruction, static_cast<ptx::SpecialReg>(operand.index), operand.value[0],
                       operand.width);
    }
    return Slot{0};
  }

  // A plain source or destination of one of core's own instructions.
  Result<Slot> simple(const ptx::Instruction& instruction, const Operand& operand, unsigned width,
                      bool destination) {
    PlanOperand plan;
    plan.width = static_cast<std::uint8_t>(width);
    plan.destination = destination;
    switch (operand.kind) {
      case OperandKind::kNone:
        break;
      case OperandKind::kRegister:
        if (image_.register_bits[static_cast<std::size_t>(operand.reg)] != width) {
          return refuse(instruction, "an operand register of another width");
        }
        plan.kind = PlanOperand::Kind::kRegister;
        plan.index = operand.reg;
        break;
      case OperandKind::kImmediate:
        plan.kind = PlanOperand::Kind::kImmediate;
        plan.value[0] = static_cast<std::uint64_t>(operand.value);
        break;
      case OperandKind::kSpecial:
        plan.kind = PlanOperand::Kind::kSpecial;
        plan.index = static_cast<std::int32_t>(operand.special);
        plan.value[0] = static_cast<std::uint64_t>(operand.value);
        break;
      default:
        return refuse(instruction, "this operand");
    }
    return slot_of(instruction, plan);
  }

  Status decode(const ptx::Instruction& instruction) {
    bool mine = false;
    Status status = decode_control(instruction, &mine);
    if (mine || !status.ok()) return status;
    Result<Plan> plan = plan_alu(module_, function_, instruction, &mine);
    if (!mine && plan.ok()) plan = plan_memory(module_, function_, instruction, &mine);
    if (!plan.ok()) {
      const Error& error = plan.error();
      return error_at(module_, instruction, error.message, error.hint);
    }
    if (!mine) return refuse(instruction, "'" + std::string(ptx::mnemonic(instruction.op)) + "'");
    std::vector<Slot> slots;
    std::vector<std::uint8_t> widths;
    int n_destinations = 0;
    for (const PlanOperand& operand : plan->operands) {
      Result<Slot> slot = slot_of(instruction, operand);
      if (!slot.ok()) return slot.error();
      slots.push_back(*slot);
      widths.push_back(operand.kind == PlanOperand::Kind::kRegister
                           ? image_.register_bits[static_cast<std::size_t>(operand.index)]
                           : operand.width);
      n_destinations += operand.destination ? 1 : 0;
    }
    Inst inst = start(instruction);
    inst.kind = plan->kind;
    if (plan->kind == InstKind::kMemory) {
      inst.memory = plan->memory;
    } else {
      inst.alu = plan->alu;
      inst.alu_full = plan->alu_full != nullptr ? plan->alu_full : plan->alu;
    }
    inst.aux[0] = plan->aux[0];
    inst.aux[1] = plan->aux[1];
    inst.membermask = plan->membermask;
    inst.converge = plan->converge;
    push(inst, slots, n_destinations, widths);
    return {};
  }

  Status control(const ptx::Instruction& instruction, Control op,
                 const std::vector<std::pair<Operand, unsigned>>& in, int n_destinations,
                 std::uint64_t aux = 0, std::int32_t target = -1) {
    std::vector<Slot> slots;
    for (std::size_t i = 0; i < in.size(); ++i) {
      Result<Slot> slot =
          simple(instruction, in[i].first, in[i].second, static_cast<int>(i) < n_destinations);
      if (!slot.ok()) return slot.error();
      slots.push_back(*slot);
    }
    Inst inst = start(instruction);
    inst.kind = InstKind::kControl;
    inst.control = static_cast<std::uint32_t>(op);
    inst.aux[0] = aux;
    inst.target = target;
    push(inst, slots, n_destinations);
    return {};
  }

  Status decode_control(const ptx::Instruction& instruction, bool* mine) {
    *mine = true;
    const auto& operands = instruction.operands;
    switch (instruction.op) {
      case Opcode::kBra:
        if (operands.size() != 1 || operands[0].kind != OperandKind::kLabel)
          return refuse(instruction, "this branch");
        return control(instruction, Control::kBra, {}, 0, 0, operands[0].label);
      case Opcode::kBrx: {
        if (operands.empty() || instruction.branch_targets.empty()) return refuse(instruction, "this branch");
        image_.branch_tables.push_back(instruction.branch_targets);
        return control(instruction, Control::kBrx, {{operands[0], 32U}}, 0, image_.branch_tables.size() - 1);
      }
      case Opcode::kCall:
        return decode_call(instruction);
      case Opcode::kRet:
        return control(instruction, function_.is_entry ? Control::kExit : Control::kRet, {}, 0);
      case Opcode::kExit:
        return control(instruction, Control::kExit, {}, 0);
      case Opcode::kTrap:
      case Opcode::kBrkpt:
        return control(instruction, Control::kTrap, {}, 0);
      case Opcode::kBar:
      case Opcode::kBarrier:
        return decode_barrier(instruction);
      case Opcode::kMembar:
      case Opcode::kFence:
        if (instruction.proxy) {
          const bool async = instruction.mode.starts_with("async");
          return control(instruction, async ? Control::kFence : Control::kNop, {}, 0, kProxyFence);
        }
        return control(
            instruction, Control::kFence, {}, 0,
            static_cast<std::uint64_t>(instruction.scope) |
                (instruction.op == Opcode::kMembar || instruction.order == ptx::Order::kSc ? kFenceSc : 0));
      case Opcode::kSetmaxnreg: {
        // The number of registers has no effect here; that it is one the ISA allows (9.7.19.5) is checked.
        const bool constant = operands.size() == 1 && operands[0].kind == OperandKind::kImmediate;
        const std::int64_t n = constant ? operands[0].value : 0;
        if (n < 24 || n > 256 || n % 8 != 0)
          return refuse(instruction, "setmaxnreg with a number that is no multiple of 8 from 24 to 256");
        return control(instruction, Control::kNop, {}, 0);
      }
      case Opcode::kGriddepcontrol:
      case Opcode::kPmevent:
        return control(instruction, Control::kNop, {}, 0);
      case Opcode::kNanosleep:
        if (operands.size() != 1) return refuse(instruction, "this nanosleep");
        return control(instruction, Control::kNanosleep, {{operands[0], 32U}}, 0);
      case Opcode::kActivemask:
        return control(instruction, Control::kActivemask, {{operands.at(0), 32U}}, 1);
      case Opcode::kElect: {
        if (operands.size() != 2 || operands[0].kind != OperandKind::kPredicatePair) {
          return refuse(instruction, "this elect");
        }
        return control(
            instruction, Control::kElect,
            {{operands[0].elements.at(0), 32U}, {operands[0].elements.at(1), 1U}, {operands[1], 32U}}, 2);
      }
      case Opcode::kMov:
        if (operands.size() == 2 && operands[0].kind == OperandKind::kRegister &&
            operands[1].kind == OperandKind::kSpecial) {
          push_special(instruction, image_.register_slots[static_cast<std::size_t>(operands[0].reg)],
                       operands[1].special, static_cast<std::uint64_t>(operands[1].value),
                       image_.register_bits[static_cast<std::size_t>(operands[0].reg)], true);
          return {};
        }
        break;
      default:
        break;
    }
    *mine = false;
    return {};
  }

  Status decode_barrier(const ptx::Instruction& instruction) {
    const auto& operands = instruction.operands;
    if (has_modifier(instruction, "warp")) {
      if (operands.size() != 1) return refuse(instruction, "this barrier");
      return control(instruction, Control::kWarpSync, {{operands[0], 32U}}, 0);
    }
    if (has_modifier(instruction, "cluster")) {
      const bool arrives = instruction.sub_op == ptx::SubOp::kArrive;
      const std::uint64_t releases = arrives && instruction.order != ptx::Order::kRelaxed ? 2 : 0;
      return control(instruction, arrives ? Control::kClusterArrive : Control::kClusterWait, {}, 0,
                     (instruction.aligned ? 1U : 0U) | releases);
    }
    BarrierForm form;
    form.aligned = instruction.op == Opcode::kBar || instruction.aligned;
    std::vector<std::pair<Operand, unsigned>> in;
    std::size_t at = 0;
    int n_destinations = 0;
    std::size_t trailing = 0;
    if (instruction.sub_op == ptx::SubOp::kArrive) {
      form.action = BarrierForm::Action::kArrive;
    } else if (instruction.sub_op == ptx::SubOp::kRed) {
      switch (instruction.sub_op2) {
        case ptx::SubOp::kPopc:
          form.action = BarrierForm::Action::kRedPopc;
          break;
        case ptx::SubOp::kAnd:
          form.action = BarrierForm::Action::kRedAnd;
          break;
        case ptx::SubOp::kOr:
          form.action = BarrierForm::Action::kRedOr;
          break;
        default:
          return refuse(instruction, "this barrier");
      }
      if (operands.size() < 3) return refuse(instruction, "this barrier");
      in.emplace_back(operands[at++], form.action == BarrierForm::Action::kRedPopc ? 32U : 1U);
      n_destinations = 1;
      trailing = 1;
      form.negated = operands.back().negated;
    } else if (instruction.sub_op != ptx::SubOp::kSync) {
      return refuse(instruction, "this barrier");
    }
    if (at >= operands.size()) return refuse(instruction, "this barrier");
    in.emplace_back(operands[at++], 32U);
    if (at + trailing < operands.size()) {
      form.has_count = true;
      in.emplace_back(operands[at++], 32U);
    } else {
      in.emplace_back(Operand{}, 32U);
    }
    if (trailing != 0) in.emplace_back(operands[at++], 1U);
    if (at != operands.size()) return refuse(instruction, "this barrier");
    return control(instruction, Control::kBarrier, in, n_destinations, form.pack());
  }

  Status decode_call(const ptx::Instruction& instruction) {
    CallSite site;
    Control op = Control::kCall;
    std::vector<std::pair<Operand, unsigned>> in;
    const std::vector<ptx::Variable>* parameters = nullptr;
    const std::vector<ptx::Variable>* results = nullptr;
    if (instruction.operands.empty()) return refuse(instruction, "this call");
    const Operand& callee = instruction.operands[0];
    if (callee.kind == OperandKind::kFunction) {
      const ptx::Function& target = module_.functions[static_cast<std::size_t>(callee.function)];
      site.callee = callee.function;
      parameters = &target.parameters;
      results = &target.results;
      if (target.is_defined) {
        image_.callees.push_back(callee.function);
      } else if (const DeviceCall* device = calls_ != nullptr ? calls_->find(target.name) : nullptr) {
        site.device = device;
        op = Control::kCallDevice;
      } else if (const Builtin builtin = find_builtin(target.name); builtin != Builtin::kNone) {
        site.builtin = builtin;
        op = Control::kCallBuiltin;
      } else {
        return undefined(instruction, target.name);
      }
    } else if (callee.kind == OperandKind::kRegister) {
      op = Control::kCallIndirect;
      image_.calls_indirectly = true;
      in.emplace_back(callee, 64U);
      if (instruction.call_prototype >= 0) {
        const auto& prototype = function_.prototypes[static_cast<std::size_t>(instruction.call_prototype)];
        parameters = &prototype.parameters;
        results = &prototype.results;
      }
    } else {
      return refuse(instruction, "this call");
    }
    if (parameters == nullptr || parameters->size() != instruction.call_arguments.size() ||
        results->size() != instruction.call_results.size()) {
      return refuse(instruction, "a call whose arguments do not fit its prototype");
    }
    std::uint32_t at = 0;
    std::vector<ParamPiece> layout = lay_out_parameters(*parameters, at);
    for (std::size_t i = 0; i < layout.size(); ++i) site.argument_offsets.push_back(layout[i].callee_at);
    site.argument_bytes = at;
    std::uint32_t result_at = 0;
    std::vector<ParamPiece> result_layout = lay_out_parameters(*results, result_at);
    const auto bind = [&](std::vector<ParamPiece>& pieces, const std::vector<Operand>& given) {
      for (std::size_t i = 0; i < pieces.size(); ++i) {
        const auto found = image_.local_offsets.find(given[i].variable);
        if (given[i].kind != OperandKind::kVariable || found == image_.local_offsets.end()) return false;
        pieces[i].at = found->second;
      }
      return true;
    };
    if (!bind(layout, instruction.call_arguments) || !bind(result_layout, instruction.call_results)) {
      return refuse(instruction, "a call whose arguments are not .param variables");
    }
    site.arguments = std::move(layout);
    site.results = std::move(result_layout);
    image_.calls.push_back(std::move(site));
    return control(instruction, op, in, 0, image_.calls.size() - 1);
  }

  Error undefined(const ptx::Instruction& instruction, const std::string& name) const {
    std::string hint;
    if (calls_ != nullptr) {
      const std::vector<std::string> names = calls_->names();
      hint = did_you_mean(name, names);
    }
    if (hint.empty()) hint = "define it in the same source, or use a function of nvshmem.h";
    return error_at(module_, instruction, "device function '" + name + "' is called but defined nowhere",
                    hint);
  }
};

}  // namespace

Slot PoolBuilder::add(const PoolEntry& entry) {
  const auto [at, fresh] = known_.try_emplace(entry, program_.pool_bytes);
  if (fresh) {
    program_.pool.push_back(entry);
    program_.pool_offsets.push_back(program_.pool_bytes);
    program_.pool_bytes += (lanes_bytes(entry.width) + 63U) / 64U * 64U;
  }
  return Slot{at->second | Slot::kPool};
}

std::int32_t PoolBuilder::shared_key(const ptx::Function& function, std::int32_t function_index,
                                     std::int32_t variable) {
  const auto [at, fresh] = shared_known_.try_emplace({function_index, variable},
                                                     static_cast<std::int32_t>(program_.shared.size()));
  if (fresh) {
    const ptx::Variable& declared = program_.module->variable(function, variable);
    const bool dynamic = declared.size == 0;
    program_.shared.push_back(
        {function_index, variable, declared.size, std::max(declared.align, 1U), dynamic, declared.name});
  }
  return at->second;
}

Status decode_function(const ptx::Module& module, const DeviceCallTable* calls, PoolBuilder& pool,
                       KernelImage& image) {
  return FunctionDecoder(module, calls, pool, image).run();
}

Error error_at_position(const ptx::Module& module, std::int32_t position, std::string message,
                        std::string hint) {
  Error error = usage_error(std::move(message), std::move(hint));
  // Line 0 marks code that the compiler made of nothing in particular; the place it was inlined at says more.
  while (position >= 0) {
    const ptx::Position& at = module.positions[static_cast<std::size_t>(position)];
    if (at.line > 0) {
      error.file = module.files[static_cast<std::size_t>(at.file)];
      error.line = at.line;
      error.column = at.column;
      break;
    }
    position = at.inlined_at;
  }
  return error;
}

Error error_at(const ptx::Module& module, const ptx::Instruction& instruction, std::string message,
               std::string hint) {
  Error error = error_at_position(module, instruction.position, std::move(message), std::move(hint));
  if (error.line == 0) error.message += " (PTX line " + std::to_string(instruction.ptx_line) + ")";
  return error;
}

}  // namespace echolo::vgpu
