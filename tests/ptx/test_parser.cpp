#include <gtest/gtest.h>

#include "ptx/module.hpp"

namespace echolo::ptx {
namespace {

// A module around `body` of one kernel with a .u64 parameter `p`.
std::string kernel(const std::string& body) {
  return ".version 9.2\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{\n" + body +
         "\n}\n";
}

Module must_parse(const std::string& text) {
  Result<Module> module = parse(text, "test.ptx");
  if (!module.ok()) {
    ADD_FAILURE() << module.error().render();
    return {};
  }
  return std::move(*module);
}

TEST(PtxParser, ReadsAKernel) {
  const Module module = must_parse(kernel(R"(
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    setp.ge.s32 %p1, %r1, 32;
    @%p1 bra $L__end;
    add.s32 %r2, %r1, -1;
    st.global.v2.u32 [%rd1+8], {%r1, %r2};
$L__end:
    ret;)"));
  ASSERT_EQ(module.functions.size(), 1U);
  const Function& k = module.functions[0];
  EXPECT_TRUE(k.is_entry && k.is_visible && k.is_defined);
  EXPECT_EQ(k.registers.size(), 8U);
  ASSERT_EQ(k.body.size(), 7U);
  EXPECT_EQ(k.body[0].space, Space::kParam);
  EXPECT_EQ(module.variable(k, k.body[0].operands[1].variable).name, "p");
  EXPECT_EQ(k.body[1].operands[1].special, SpecialReg::kTidX);
  EXPECT_EQ(k.body[2].compare, Compare::kGe);
  EXPECT_EQ(k.body[3].guard, 1);
  EXPECT_EQ(k.body[3].operands[0].label, 6);
  EXPECT_EQ(k.body[4].operands[2].value, -1);
  EXPECT_EQ(k.body[5].vector, 2);
  EXPECT_EQ(k.body[5].operands[0].value, 8);
  EXPECT_EQ(k.body[5].operands[1].elements.size(), 2U);
  EXPECT_EQ(k.body[5].text, "st.global.v2.u32 [%rd1+8], {%r1, %r2}");
}

}  // namespace
}  // namespace echolo::ptx
