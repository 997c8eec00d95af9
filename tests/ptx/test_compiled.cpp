// What nvcc makes of real sources: those under tests/ptx/sources are compiled where the compiler is
// installed; texts that it made of some of them stand under tests/ptx/data for machines without.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "../venv_nvcc.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "helpers.hpp"
#include "ptx/liveness.hpp"

namespace echolo::ptx {
namespace {

namespace fs = std::filesystem;

const fs::path kSource = fs::path(ECHOLO_SOURCE_DIR) / "tests/ptx/sources";
const fs::path kData = fs::path(ECHOLO_SOURCE_DIR) / "tests/ptx/data";

std::string compile(const std::string& name, bool relocatable) {
  const fs::path out =
      fs::path(ECHOLO_BINARY_DIR) / ("test_ptx_" + name + (relocatable ? "_rdc" : "") + ".ptx");
  Command command;
  command.argv = {
      test::venv_nvcc(), "-std=c++17", "-gencode", "arch=compute_90a,code=compute_90a", "-lineinfo",
      "-cudart",         "none",       "-ptx",     (kSource / (name + ".cu")).string(), "-o",
      out.string()};
  if (relocatable) command.argv.emplace_back("-rdc=true");
  command.timeout = std::chrono::minutes(5);
  const Result<Outcome> outcome = run_command(command);
  if (!outcome.ok() || !outcome->ok()) {
    ADD_FAILURE() << "nvcc: " << (outcome.ok() ? outcome->standard_error : outcome.error().render());
    return {};
  }
  const Result<std::string> text = read_file(out.string());
  fs::remove(out);
  return text.ok() ? *text : std::string();
}

std::string read(const std::string& name) {
  const Result<std::string> text = read_file((kData / name).string());
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : std::string();
}

const Variable* variable(const Module& module, std::string_view name) {
  const auto found = std::ranges::find(module.variables, name, &Variable::name);
  return found == module.variables.end() ? nullptr : &*found;
}

// What must hold of every module, whatever it says.
void check_module(const Module& module) {
  for (const Function& function : module.functions) {
    const auto n_registers = static_cast<std::int32_t>(function.registers.size());
    const auto n_variables = static_cast<std::int32_t>(module.variables.size() + function.parameters.size() +
                                                       function.results.size() + function.variables.size());
    const auto check = [&](const Operand& operand, const auto& self) -> void {
      EXPECT_LT(operand.reg, n_registers);
      EXPECT_LT(operand.variable, n_variables);
      if (operand.kind == OperandKind::kLabel && operand.label < 0) {
        EXPECT_TRUE(false) << "a label is not resolved";
      }
      EXPECT_LE(operand.label, static_cast<std::int32_t>(function.body.size()));
      for (const Operand& element : operand.elements) self(element, self);
    };
    for (const Instruction& instruction : function.body) {
      if (instruction.op != Opcode::kBrx) {
        for (const Operand& operand : instruction.operands) check(operand, check);
      }
      for (const Operand& operand : instruction.call_arguments) check(operand, check);
      EXPECT_FALSE(instruction.text.empty());
      EXPECT_GT(instruction.ptx_line, 0);
    }
    if (function.body.empty()) continue;
    const Liveness liveness = compute_liveness(function);
    const SlotAssignment slots = assign_slots(function, liveness);
    EXPECT_EQ(slots.slot_of_register.size(), function.registers.size());
    if (function.is_entry) {
      EXPECT_TRUE(liveness.live_at_entry.empty())
          << function.name << " reads "
          << function.registers[static_cast<std::size_t>(liveness.live_at_entry[0])].name
          << " before it is written";
    }
  }
}

void check_language(const Module& module) {
  check_module(module);
  const Variable* first = variable(module, "first");
  ASSERT_NE(first, nullptr);
  ASSERT_EQ(first->relocations.size(), 1U);
  EXPECT_EQ(first->relocations[0].offset, 8U);
  EXPECT_EQ(module.variables[static_cast<std::size_t>(first->relocations[0].variable)].name, "second");
  const Variable* packed = variable(module, "packed");
  ASSERT_NE(packed, nullptr);
  ASSERT_EQ(packed->relocations.size(), 1U);
  EXPECT_EQ(packed->relocations[0].offset, 1U);
  EXPECT_EQ(packed->relocations[0].addend, 8);
  const Variable* functions = variable(module, "functions");
  ASSERT_NE(functions, nullptr);
  ASSERT_EQ(functions->relocations.size(), 2U);
  EXPECT_GE(functions->relocations[1].function, 0);
  EXPECT_TRUE(variable(module, "shared_with_host")->is_managed);
  EXPECT_EQ(variable(module, "dynamic")->size, 0U);

  const auto kernel_at = std::ranges::find_if(module.functions, &Function::is_entry);
  ASSERT_NE(kernel_at, module.functions.end());
  EXPECT_EQ(kernel_at->max_threads[0], 128U);
  EXPECT_EQ(kernel_at->min_blocks_per_sm, 2U);
  EXPECT_EQ(kernel_at->parameters.size(), 3U);
  EXPECT_EQ(kernel_at->parameters[2].size, 48U);
  const auto indirect = [](const Instruction& i) { return i.op == Opcode::kCall && i.call_prototype >= 0; };
  EXPECT_GE(std::ranges::count_if(kernel_at->body, indirect), 2)
      << "a virtual call and one through a pointer";
}

void check_inlined(const Module& module) {
  check_module(module);
  const Function& kernel = module.functions.at(0);
  const auto fma = std::ranges::find(kernel.body, Opcode::kFma, &Instruction::op);
  ASSERT_NE(fma, kernel.body.end());
  std::vector<std::string> chain;
  for (std::int32_t at = fma->position; at >= 0;) {
    const Position& position = module.positions.at(static_cast<std::size_t>(at));
    EXPECT_TRUE(module.files.at(static_cast<std::size_t>(position.file)).ends_with("inlined.cu"));
    chain.push_back(module.function_names.at(static_cast<std::size_t>(position.function)) + ":" +
                    std::to_string(position.line) + ":" + std::to_string(position.column));
    at = position.inlined_at;
  }
  EXPECT_EQ(chain, (std::vector<std::string>{"_Z9innermostf:3:3", "_Z6middleIfET_S0_:7:3", "_Z5outerPf:10:3",
                                             "_Z7inlinedPf:13:3"}));
}

void check_inline_asm(const Module& module) {
  check_module(module);
  std::size_t n = 0;
  for (const Function& function : module.functions) n += function.body.size();
  EXPECT_GT(n, 250U);
}

TEST(PtxStored, Language) { check_language(must_parse(read("language.ptx"))); }
TEST(PtxStored, Inlined) { check_inlined(must_parse(read("inlined.ptx"))); }
TEST(PtxStored, InlineAsm) { check_inline_asm(must_parse(read("inline_asm.ptx"))); }

class PtxCompiled : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override {
    if (test::venv_nvcc().empty()) GTEST_SKIP() << "no nvcc in .venv";
  }
};
INSTANTIATE_TEST_SUITE_P(Whole, PtxCompiled, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Relocatable, PtxCompiled, testing::Values(true));

TEST_P(PtxCompiled, Language) { check_language(must_parse(compile("language", GetParam()))); }
TEST_P(PtxCompiled, Inlined) { check_inlined(must_parse(compile("inlined", GetParam()))); }
TEST_P(PtxCompiled, InlineAsm) { check_inline_asm(must_parse(compile("inline_asm", GetParam()))); }
TEST_P(PtxCompiled, Libraries) { check_module(must_parse(compile("libraries", GetParam()))); }

TEST(PtxSpeed, AMegabyteIsParsedWellUnderASecond) {
  const std::string text = read("inline_asm.ptx");
  const std::size_t body_begin = text.find(".visible .entry"), body_end = text.find("\t.file");
  ASSERT_NE(body_begin, std::string::npos);
  ASSERT_NE(body_end, std::string::npos);
  std::string large = text.substr(0, body_begin);
  const std::string kernels = text.substr(body_begin, body_end - body_begin);
  for (int copy = 0; large.size() < 1000000; ++copy) {
    std::string renamed = kernels;
    for (std::size_t at = 0; (at = renamed.find("entry _Z", at)) != std::string::npos; at += 8) {
      renamed.insert(at + 6, "c" + std::to_string(copy));
    }
    large += renamed;
  }
  large += text.substr(body_end);
  const auto start = std::chrono::steady_clock::now();
  const Module module = must_parse(large);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(module.functions.size(), 100U);
  EXPECT_LT(seconds, 3.0);  // 0.03 s where nothing else runs and no sanitiser does
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace echolo::ptx
