// Runs memory instructions, given as PTX text, on one warp: just what plan_memory and Memory need, without
// vgpu/core.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/text.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

class MemoryHarness {
 public:
  explicit MemoryHarness(int n_pes = 2, bool peers_reachable = true, std::uint64_t seed = 1) {
    MemoryConfig config;
    config.n_pes = n_pes;
    config.seed = seed;
    config.peers_reachable = peers_reachable;
    auto made = Memory::create(config, log);
    if (!made) throw std::runtime_error(made.error().render());
    memory = std::move(*made);
    grid.memory = memory.get();
    grid.findings = &log;
    grid.pe = 0;
    grid.launch_id = 1;
    grid.grid_dim = {1, 1, 1};
    grid.block_dim = {32, 1, 1};
    block.grid = &grid;
    set_shared(4096);
    warp.block = &block;
    warp.live = kAllLanes;
    set_local(256);
  }

  void set_shared(std::size_t bytes) {
    block.shared.assign(bytes, 0);
    block.shared_written.assign((bytes + 7) / 8, 0);
  }
  void set_local(std::uint32_t bytes) {
    local_bytes.assign(std::size_t{bytes} * kWarpSize, 0);
    local_marks.assign(local_bytes.size() / 8 + 1, 0);
    warp.local = local_bytes.data();
    warp.local_written = local_marks.data();
    warp.local_bytes = bytes;
  }

  // Parses a kernel of these declarations and instructions; execute() then runs its memory instructions in
  // order. Registers there are: %p<8> .pred, %h<32> .b16, %r<64> .b32, %rd<64> .b64, %q<8> .b128; parameters
  // pa (u64), pb (u32).
  // Line i of `body` (from 0) is at test.cu:20+i, column 5.
  void assemble(const std::string& body, const std::string& globals = "") {
    std::string placed;
    int line = 20;
    for (const std::string& text : split(body, '\n'))
      placed += ".loc 1 " + std::to_string(line++) + " 5\n" + text + "\n";
    const std::string text =
        ".version 9.2\n.target sm_90a\n.address_size 64\n.file 1 \"test.cu\"\n" + globals +
        "\n.visible .entry k(.param .u64 pa, .param .u32 pb)\n{\n.reg .pred %p<8>;\n.reg .b16 %h<32>;\n"
        ".reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .b128 %q<8>;\n" +
        placed + "\nret;\n}\n";
    auto parsed = ptx::parse(text, "test.ptx");
    ASSERT_TRUE(parsed) << parsed.error().render();
    module = std::make_unique<ptx::Module>(std::move(*parsed));
    grid.module = module.get();
    function = &module->functions.back();
    grid.kernel = function;
    slots.clear();
    registers.assign(512 * (function->registers.size() + 1), 0);
    for (std::size_t i = 0; i < function->registers.size(); ++i)
      slots.push_back({static_cast<std::uint32_t>(512 * (i + 1))});
    pool.assign(1U << 16U, 0);
    pool_used = 512;
    warp.lanes.registers = aligned(registers);
    warp.lanes.pool = aligned(pool);
    instructions.clear();
    plans.clear();
    operand_slots.clear();
    for (const ptx::Instruction& source : function->body) {
      if (source.op == ptx::Opcode::kRet) continue;
      bool mine = false;
      auto plan = plan_memory(*module, *function, source, &mine);
      ASSERT_TRUE(mine) << source.text;
      ASSERT_TRUE(plan) << plan.error().render();
      add(source, *plan);
    }
  }

  // The refusal of the single instruction of `body`.
  std::string refusal(const std::string& body) {
    const std::string text =
        ".version 9.2\n.target sm_90a\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<8>;\n"
        ".reg .b16 %h<32>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n" +
        body + "\nret;\n}\n";
    auto parsed = ptx::parse(text, "test.ptx");
    if (!parsed) return "parse: " + parsed.error().message;
    bool mine = false;
    auto plan = plan_memory(*parsed, parsed->functions.back(), parsed->functions.back().body.front(), &mine);
    return plan ? "" : plan.error().message;
  }

  MemOutcome execute(std::uint32_t mask = kAllLanes) {
    for (std::unique_ptr<Inst>& inst : instructions) {
      if (inst->kind == InstKind::kAlu) {
        inst->alu(warp.lanes, *inst, mask);
      } else if (inst->memory(warp, *inst, mask) == MemOutcome::kFault) {
        return MemOutcome::kFault;
      }
    }
    return MemOutcome::kDone;
  }

  template <typename T>
  T* reg(const std::string& name) {
    for (std::size_t i = 0; i < function->registers.size(); ++i) {
      if (function->registers[i].name == name) return warp.lanes.write<T>(slots[i]);
    }
    throw std::runtime_error("no register " + name);
  }
  template <typename T>
  void set(const std::string& name, T first, T step = 0) {
    for (int i = 0; i < kWarpSize; ++i) reg<T>(name)[i] = static_cast<T>(first + static_cast<T>(i) * step);
  }

  std::uint64_t device(std::uint64_t size, const std::string& name = "buf", int pe = 0) {
    return *memory->allocate(pe, size, 256, AllocationKind::kDevice, name, "cudaMalloc", "test.cu:7");
  }
  void fill(std::uint64_t address, const void* bytes, std::size_t n) {
    Memory::Accessor who;
    ASSERT_TRUE(memory->write(address, bytes, n, who));
  }

  FindingLog log;
  std::unique_ptr<Memory> memory;
  Grid grid;
  Block block;
  Warp warp;
  std::unique_ptr<ptx::Module> module;
  const ptx::Function* function = nullptr;
  std::map<std::int32_t, std::uint64_t> variables;  // addresses of variables, by index

 private:
  static std::uint8_t* aligned(std::vector<std::uint8_t>& bytes) {
    bytes.resize(bytes.size() + 64);
    return bytes.data() + (64 - reinterpret_cast<std::uintptr_t>(bytes.data()) % 64) % 64;
  }

  void add(const ptx::Instruction& source, const Plan& plan) {
    auto inst = std::make_unique<Inst>();
    inst->kind = plan.kind;
    inst->source = &source;
    inst->aux[0] = plan.aux[0];
    inst->aux[1] = plan.aux[1];
    if (plan.kind == InstKind::kMemory) {
      inst->memory = plan.memory;
    } else {
      inst->alu = plan.alu;
    }
    auto list = std::make_unique<std::vector<Slot>>();
    for (const PlanOperand& operand : plan.operands) list->push_back(slot_of(operand));
    inst->n_operands = static_cast<std::uint8_t>(list->size());
    inst->operands = list->data();
    operand_slots.push_back(std::move(list));
    instructions.push_back(std::move(inst));
  }

  Slot slot_of(const PlanOperand& operand) {
    switch (operand.kind) {
      case PlanOperand::Kind::kUnused:
        return operand.destination ? Slot{0} : Slot{Slot::kPool};
      case PlanOperand::Kind::kRegister:
        return slots[static_cast<std::size_t>(operand.index)];
      case PlanOperand::Kind::kImmediate:
        return constant(operand.width, operand.value[0], operand.value[1]);
      case PlanOperand::Kind::kVariable:
        return constant(operand.width, variable(operand.index) + operand.value[0], 0);
      default:
        throw std::runtime_error("operand kind");
    }
  }

  std::uint64_t variable(std::int32_t index) {
    if (const auto known = variables.find(index); known != variables.end()) return known->second;
    const auto own = index - static_cast<std::int32_t>(module->variables.size());
    return own == 1 ? 8 : 0;  // pa at 0, pb at 8; others begin their space
  }

  Slot constant(std::uint8_t width, std::uint64_t low, std::uint64_t high) {
    const Slot slot{static_cast<std::uint32_t>(pool_used) | Slot::kPool};
    std::uint8_t* to = const_cast<std::uint8_t*>(warp.lanes.pool) + pool_used;
    for (int i = 0; i < kWarpSize; ++i) {
      if (width == 16) reinterpret_cast<std::uint16_t*>(to)[i] = static_cast<std::uint16_t>(low);
      if (width == 32) reinterpret_cast<std::uint32_t*>(to)[i] = static_cast<std::uint32_t>(low);
      if (width >= 64) reinterpret_cast<std::uint64_t*>(to)[i] = low;
      if (width == 128) reinterpret_cast<std::uint64_t*>(to)[kWarpSize + i] = high;
    }
    pool_used += 512;
    return slot;
  }

  std::vector<std::uint8_t> registers, pool, local_bytes, local_marks;
  std::size_t pool_used = 0;
  std::vector<Slot> slots;
  std::vector<Plan> plans;
  std::vector<std::unique_ptr<Inst>> instructions;
  std::vector<std::unique_ptr<std::vector<Slot>>> operand_slots;
};

}  // namespace echolo::vgpu
