#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>

#include "base/rng.hpp"
#include "helpers.hpp"
#include "ptx/liveness.hpp"

namespace echolo::ptx {
namespace {

std::string bare_kernel(const std::string& body) {
  return with_header(".visible .entry k(.param .u64 p)\n{\n" + body + "\n}\n");
}

std::vector<std::string> names(const Function& function, std::span<const std::int32_t> registers) {
  std::vector<std::string> out;
  for (const std::int32_t reg : registers)
    out.push_back(function.registers[static_cast<std::size_t>(reg)].name);
  std::ranges::sort(out);
  return out;
}

using Names = std::vector<std::string>;

TEST(PtxLiveness, FindsWhereRegistersDie) {
  const Module module = must_parse(bare_kernel(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    mov.u32 %r1, 1;
    mov.u32 %r2, 10;
loop:
    add.u32 %r3, %r1, %r2;
    add.u32 %r1, %r3, 1;
    setp.lt.u32 %p1, %r1, 100;
    @%p1 bra loop;
    add.u32 %r4, %r1, 1;
    ret;)"));
  const Function& k = module.functions[0];
  const Liveness liveness = compute_liveness(k);
  EXPECT_EQ(names(k, liveness.deaths_at(0)), Names{});
  EXPECT_EQ(names(k, liveness.deaths_at(2)), Names{"%r1"});
  EXPECT_EQ(names(k, liveness.deaths_at(3)), Names{"%r3"});
  EXPECT_EQ(names(k, liveness.deaths_at(5)), Names{"%p1"});  // %r2 dies on the way out, %r1 after it
  EXPECT_EQ(names(k, liveness.deaths_at(6)), (Names{"%r1", "%r4"}));
  EXPECT_TRUE(liveness.live_at_entry.empty());
  const SlotAssignment slots = assign_slots(k, liveness);
  EXPECT_EQ(slots.n_slots_by_class[static_cast<std::size_t>(SlotClass::k32)], 3U);
  EXPECT_EQ(slots.n_slots_by_class[static_cast<std::size_t>(SlotClass::kPred)], 1U);
  EXPECT_EQ(slots.slot_of_register[0], kNoSlot) << "%p0 is never used";
}

TEST(PtxLiveness, AGuardedWriteDoesNotEndARange) {
  const Module module = must_parse(bare_kernel(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    mov.u32 %r1, 7;
    setp.eq.u32 %p1, %r1, 3;
    mov.u32 %r2, 1;
    @%p1 mov.u32 %r2, 2;
    add.u32 %r3, %r2, 0;
    ret;)"));
  const Function& k = module.functions[0];
  const Liveness liveness = compute_liveness(k);
  EXPECT_EQ(names(k, liveness.deaths_at(3)), Names{"%p1"});
  EXPECT_EQ(names(k, liveness.deaths_at(4)), (Names{"%r2", "%r3"}));
}

TEST(PtxLiveness, AccumulatorsAreReadAndRegResultsLiveUntilRet) {
  const Module module = must_parse(
      ".version 9.2\n.target sm_90a\n.address_size 64\n"
      ".func (.reg .b32 out) f(.reg .b32 in)\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, in;\nmov.u32 out, "
      "%r1;\nret;\n}\n");
  const Function& f = module.functions[0];
  const Liveness liveness = compute_liveness(f);
  EXPECT_EQ(names(f, liveness.live_at_entry), Names{"in"});
  EXPECT_EQ(liveness.intervals[1].last, 2) << "out lives until ret";
}

// A random function: straight code, guarded writes, branches forwards and backwards.
std::string random_body(Rng& rng, int n_instructions, int n_registers) {
  std::string body =
      ".reg .pred %p<4>;\n.reg .b32 %r<" + std::to_string(n_registers) + ">;\n.reg .b64 %rd<4>;\n";
  const auto any = [&](int n) { return std::to_string(rng.below(static_cast<std::uint64_t>(n))); };
  for (int i = 0; i < n_instructions; ++i) {
    body += "L" + std::to_string(i) + ":\n";
    const std::string guard = rng.below(4) == 0 ? "@%p" + any(4) + " " : "";
    switch (rng.below(7)) {
      case 0:
        body += guard + "mov.u32 %r" + any(n_registers) + ", " + any(9) + ";\n";
        break;
      case 1:
        body += guard + "bra L" + any(n_instructions) + ";\n";
        break;
      case 2:
        body += guard + "setp.lt.u32 %p" + any(4) + ", %r" + any(n_registers) + ", 3;\n";
        break;
      case 3:
        body += guard + "cvt.u64.u32 %rd" + any(4) + ", %r" + any(n_registers) + ";\n";
        break;
      case 4:
        body += guard + "ld.global.v2.u32 {%r" + any(n_registers) + ", %r" + any(n_registers) + "}, [%rd" +
                any(4) + "];\n";
        break;
      default:
        body += guard + "add.u32 %r" + any(n_registers) + ", %r" + any(n_registers) + ", %r" +
                any(n_registers) + ";\n";
    }
  }
  return body + "ret;";
}

// Walks random paths twice at once: every register on its own, and in its slot. Both must always hold the
// same value.
TEST(PtxLiveness, SharedSlotsBehaveAsRegistersOfTheirOwn) {
  Rng rng(20);
  std::size_t n_reads_checked = 0, n_slots = 0, n_used = 0;
  for (int round = 0; round < 300; ++round) {
    const Module module = must_parse(bare_kernel(random_body(rng, 30, 3 + static_cast<int>(rng.below(12)))));
    const Function& k = module.functions[0];
    const Liveness liveness = compute_liveness(k);
    const SlotAssignment assignment = assign_slots(k, liveness);
    for (const std::uint32_t n : assignment.n_slots_by_class) n_slots += n;
    for (const std::uint32_t slot : assignment.slot_of_register) n_used += slot != kNoSlot;
    for (int walk = 0; walk < 5; ++walk) {
      std::vector<int> own(k.registers.size(), 0);  // 0: never written
      std::vector<bool> dead(k.registers.size(), false);
      std::vector<int> slots[kSlotClasses];
      for (std::size_t c = 0; c < kSlotClasses; ++c) slots[c].assign(assignment.n_slots_by_class[c], 0);
      const auto slot = [&](std::int32_t reg) -> int& {
        const auto at = static_cast<std::size_t>(reg);
        return slots[static_cast<std::size_t>(slot_class(k.registers[at].type))].at(
            assignment.slot_of_register[at]);
      };
      std::size_t at = 0;
      for (int step = 1; step < 400 && at < k.body.size(); ++step) {
        const Instruction& instruction = k.body[at];
        for_each_read(instruction, [&](std::int32_t reg) {
          const auto index = static_cast<std::size_t>(reg);
          EXPECT_FALSE(dead[index]) << k.registers[index].name << " is read after its death at " << at;
          if (own[index] == 0) return;
          ++n_reads_checked;
          EXPECT_EQ(own[index], slot(reg)) << k.registers[index].name << " at " << at;
        });
        const bool executes = instruction.guard < 0 || rng.below(2) == 0;
        if (executes) {
          int value = step * 8;
          for_each_written(instruction, [&](std::int32_t reg) {
            own[static_cast<std::size_t>(reg)] = slot(reg) = ++value;
            dead[static_cast<std::size_t>(reg)] = false;
          });
        }
        for (const std::int32_t reg : liveness.deaths_at(at)) dead[static_cast<std::size_t>(reg)] = true;
        if (executes && instruction.op == Opcode::kRet) break;
        at = executes && instruction.op == Opcode::kBra
                 ? static_cast<std::size_t>(instruction.operands[0].label)
                 : at + 1;
      }
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(n_reads_checked, 10000U);
  EXPECT_LT(n_slots, n_used) << "nothing was shared";
}

TEST(PtxLiveness, AFunctionTooLargeForTheAnalysisSharesNothing) {
  constexpr int kBlocks = 48000;
  std::string body = ".reg .b32 %r<" + std::to_string(kBlocks) + ">;\n";
  for (int i = 0; i < kBlocks; ++i) {
    const std::string n = std::to_string(i);
    body += "L" + n + ": add.u32 %r" + n + ", %r" + n + ", 1;\nbra L" + n + ";\n";
  }
  const Module module = must_parse(bare_kernel(body));
  const Function& k = module.functions[0];
  const Liveness liveness = compute_liveness(k);
  const SlotAssignment slots = assign_slots(k, liveness);
  EXPECT_TRUE(liveness.deaths.empty());
  EXPECT_EQ(liveness.deaths_begin.size(), k.body.size() + 1);
  EXPECT_EQ(slots.n_slots_by_class[static_cast<std::size_t>(SlotClass::k32)],
            static_cast<std::uint32_t>(kBlocks));
}

TEST(PtxLiveness, IsQuickForLargeBodies) {
  std::string body = ".reg .pred %p<2>;\n.reg .b32 %r<5001>;\n";
  for (int i = 0; i < 20000; ++i) {
    const std::string n = std::to_string(i);
    if (i % 4 == 0) body += "L" + n + ":\n";
    if (i % 4 == 3) {
      body += "@%p1 bra L" + std::to_string((i * 7 + 1000) % 20000 / 4 * 4) + ";\n";
    } else {
      body +=
          "add.u32 %r" + std::to_string(i % 5000) + ", %r" + std::to_string((i * 31 + 7) % 5000) + ", 1;\n";
    }
  }
  const Module module = must_parse(bare_kernel(body + "ret;"));
  const auto start = std::chrono::steady_clock::now();
  const Liveness liveness = compute_liveness(module.functions[0]);
  const SlotAssignment slots = assign_slots(module.functions[0], liveness);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  EXPECT_GT(slots.n_slots_by_class[static_cast<std::size_t>(SlotClass::k32)], 0U);
  EXPECT_LT(seconds, 5.0);  // 0.1 s unsanitised; the bound only catches a change of order
  RecordProperty("seconds", std::to_string(seconds));
}

}  // namespace
}  // namespace echolo::ptx
