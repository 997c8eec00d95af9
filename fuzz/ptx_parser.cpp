// libFuzzer target: any text either parses or gives an error with a message; what parses also survives
// liveness analysis. Run: build-fuzz/fuzz_ptx_parser fuzz/corpus/ptx -max_total_time=120 (see
// fuzz/CMakeLists.txt).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "ptx/liveness.hpp"
#include "ptx/module.hpp"

namespace {

using namespace echolo::ptx;

void require(bool condition) {
  if (!condition) std::abort();
}

void check_operand(const Module& module, const Function& function, const Operand& operand) {
  require(operand.reg < static_cast<std::int32_t>(function.registers.size()));
  require(operand.function < static_cast<std::int32_t>(module.functions.size()));
  require(operand.label <= static_cast<std::int32_t>(function.body.size()));
  if (operand.variable >= 0) require(!module.variable(function, operand.variable).name.empty());
  for (const Operand& element : operand.elements) check_operand(module, function, element);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto module = parse(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  if (!module.ok()) {
    require(!module.error().message.empty());
    return 0;
  }
  for (const Function& function : module->functions) {
    for (const Instruction& instruction : function.body) {
      for (const Operand& operand : instruction.operands) check_operand(*module, function, operand);
      for (const Operand& operand : instruction.call_arguments) check_operand(*module, function, operand);
      for (const Operand& operand : instruction.call_results) check_operand(*module, function, operand);
      for (const std::int32_t target : instruction.branch_targets) {
        require(target >= 0 && target <= static_cast<std::int32_t>(function.body.size()));
      }
      require(instruction.position < static_cast<std::int32_t>(module->positions.size()));
    }
    const Liveness liveness = compute_liveness(function);
    const SlotAssignment slots = assign_slots(function, liveness);
    require(slots.slot_of_register.size() == function.registers.size());
  }
  return 0;
}
