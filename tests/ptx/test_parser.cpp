// Declarations, operands, scopes and the fields that modifiers fill.
#include <gtest/gtest.h>

#include <bit>

#include "helpers.hpp"

namespace echolo::ptx {
namespace {

TEST(PtxParser, ReadsAKernel) {
  const Module module = must_parse(kernel(R"(
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
  EXPECT_EQ(module.version_major, 9);
  EXPECT_EQ(module.version_minor, 2);
  EXPECT_EQ(module.target, "sm_90a");
  EXPECT_TRUE(k.is_entry && k.is_visible && k.is_defined);
  EXPECT_EQ(k.registers.size(), 104U);
  EXPECT_EQ(k.registers[8 + 8 + 31].name, "%r31");
  ASSERT_EQ(k.body.size(), 7U);
  EXPECT_EQ(k.body[0].space, Space::kParam);
  EXPECT_EQ(module.variable(k, k.body[0].operands[1].variable).name, "p");
  EXPECT_EQ(k.body[1].operands[1].special, SpecialReg::kTidX);
  EXPECT_EQ(k.body[2].compare, Compare::kGe);
  EXPECT_EQ(k.body[3].guard, 1);
  EXPECT_FALSE(k.body[3].guard_negated);
  EXPECT_EQ(k.body[3].operands[0].label, 6);
  EXPECT_EQ(k.body[4].operands[2].value, -1);
  EXPECT_EQ(k.body[5].vector, 2);
  EXPECT_EQ(k.body[5].operands[0].value, 8);
  EXPECT_EQ(k.body[5].operands[1].elements.size(), 2U);
  EXPECT_EQ(k.body[5].text, "st.global.v2.u32 [%rd1+8], {%r1, %r2}");
  EXPECT_EQ(k.body[5].ptx_line, 16);
  EXPECT_EQ(module.find_function("k"), &k);
  EXPECT_EQ(module.find_function("none"), nullptr);
}

TEST(PtxParser, Literals) {
  const auto immediate = [](const std::string& text) {
    return one("mov.b64 %rd1, " + text + ";").operands.at(1);
  };
  EXPECT_EQ(immediate("0x1F").value, 31);
  EXPECT_EQ(immediate("0XffU").value, 255);
  EXPECT_EQ(immediate("0b101").value, 5);
  EXPECT_EQ(immediate("017").value, 15);
  EXPECT_EQ(immediate("0").value, 0);
  EXPECT_EQ(immediate("-5").value, -5);
  EXPECT_EQ(immediate("0xffffffffffffffff").value, -1);
  EXPECT_EQ(immediate("WARP_SZ").value, 32);
  EXPECT_EQ(immediate("(3 + 4) * 2 - 1 << 1").value, 26);
  EXPECT_EQ(immediate("1 ? 2 : 3").value, 2);
  EXPECT_EQ(immediate("-7 / 2").value, -3);
  EXPECT_EQ(immediate("(!3) + ~0").value, -1);
  const Operand one_point_five = immediate("0d3FF8000000000000");
  EXPECT_TRUE(one_point_five.is_float);
  EXPECT_EQ(one_point_five.float_bits, 64);
  EXPECT_EQ(std::bit_cast<double>(one_point_five.value), 1.5);
  EXPECT_EQ(std::bit_cast<double>(immediate("-1.5e-3").value), -1.5e-3);

  const Operand single = one("mov.f32 %f1, 0f3FC00000;").operands.at(1);
  EXPECT_EQ(single.float_bits, 32);
  EXPECT_EQ(single.value, 0x3fc00000);
  const Operand decimal = one("add.f32 %f1, %f2, 1.5;").operands.at(2);
  EXPECT_EQ(decimal.float_bits, 32) << "a decimal literal takes the instruction's type";
  EXPECT_EQ(decimal.value, 0x3fc00000);
}

TEST(PtxParser, Operands) {
  EXPECT_EQ(one("ld.global.u32 %r1, [%rd1+-4];").operands[1].value, -4);
  EXPECT_EQ(one("ld.global.u32 %r1, [%rd1 - 4];").operands[1].value, -4);
  const Operand absolute = one("ld.global.u32 %r1, [64];").operands[1];
  EXPECT_EQ(absolute.kind, OperandKind::kAddress);
  EXPECT_EQ(absolute.reg, -1);
  EXPECT_EQ(absolute.variable, -1);
  EXPECT_EQ(absolute.value, 64);

  const Operand pair = one("setp.eq.and.u32 %p1|%p2, %r1, 3, !%p3;").operands[0];
  EXPECT_EQ(pair.kind, OperandKind::kPredicatePair);
  EXPECT_EQ(pair.elements[1].reg, 2);
  const Instruction setp = one("setp.eq.and.u32 _|%p2, %r1, 3, !%p3;");
  EXPECT_EQ(setp.operands[0].elements[0].kind, OperandKind::kNone);
  EXPECT_TRUE(setp.operands[3].negated);
  EXPECT_EQ(setp.bool_op, BoolOp::kAnd);

  const Instruction sink = one("@!%p4 mov.b64 {_, %r2}, %rd1;");
  EXPECT_TRUE(sink.guard_negated);
  EXPECT_EQ(sink.guard, 4);
  EXPECT_EQ(sink.operands[0].elements[0].kind, OperandKind::kNone);
  EXPECT_EQ(sink.n_destinations, 1);

  const Instruction tensor =
      one("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, "
          "0}], [%r3];");
  EXPECT_EQ(tensor.operands[1].reg, one("mov.u64 %rd1, 0;").operands[0].reg);
  ASSERT_EQ(tensor.operands[1].elements.size(), 2U);
  EXPECT_EQ(tensor.operands[1].elements[1].kind, OperandKind::kImmediate);
  EXPECT_EQ(tensor.space, Space::kSharedCluster);
  EXPECT_EQ(tensor.space2, Space::kGlobal);
  EXPECT_TRUE(tensor.bulk && tensor.tensor && tensor.async);
  EXPECT_EQ(tensor.n_destinations, 0);

  EXPECT_EQ(one("mov.u32 %r1, %envreg2;").operands[1].value, 2);
  EXPECT_EQ(one("mov.u32 %r1, %cluster_ctaid.z;").operands[1].special, SpecialReg::kClusterCtaidZ);
  EXPECT_EQ(one("mov.u32 %r1, %tid.w;").operands[1].kind, OperandKind::kImmediate);
  EXPECT_EQ(one("mov.u64 %rd1, %pm3_64;").operands[1].value, 67);
}

TEST(PtxParser, ModifiersFillTypedFields) {
  const Instruction ld = one("ld.acquire.sys.global.L1::no_allocate.v2.b32 {%r1, %r2}, [%rd1];");
  EXPECT_EQ(ld.order, Order::kAcquire);
  EXPECT_TRUE(ld.order_given);
  EXPECT_EQ(ld.scope, Scope::kSys);
  EXPECT_EQ(ld.space, Space::kGlobal);
  EXPECT_EQ(ld.modifiers.size(), 6U);
  EXPECT_TRUE(one("ld.global.nc.f32 %f1, [%rd1];").non_coherent);
  EXPECT_FALSE(one("atom.add.u32 %r1, [%rd1], 2;").order_given);
  EXPECT_EQ(one("atom.add.u32 %r1, [%rd1], 2;").sub_op, SubOp::kAdd);
  EXPECT_EQ(one("red.global.add.noftz.bf16x2 [%rd1], %r1;").type, Type::kBf16x2);

  const Instruction cvt = one("cvt.rni.sat.ftz.s32.f32 %r1, %f1;");
  EXPECT_EQ(cvt.type, Type::kS32);
  EXPECT_EQ(cvt.type2, Type::kF32);
  EXPECT_EQ(cvt.rounding, Rounding::kRni);
  EXPECT_TRUE(cvt.ftz && cvt.sat);
  EXPECT_EQ(one("mul.wide.u32 %rd1, %r1, 4;").mul_mode, MulMode::kWide);
  EXPECT_EQ(one("mul.hi.u32 %r1, %r1, 4;").mul_mode, MulMode::kHi);
  EXPECT_EQ(one("setp.hi.u32 %p1, %r1, 4;").compare, Compare::kHi);
  EXPECT_EQ(one("setp.nan.f32 %p1, %f1, %f2;").compare, Compare::kNan);
  EXPECT_TRUE(one("max.NaN.f32 %f1, %f1, %f2;").nan_propagate);
  EXPECT_TRUE(one("addc.cc.u32 %r1, %r1, 4;").carry_in);
  EXPECT_TRUE(one("addc.cc.u32 %r1, %r1, 4;").carry_out);
  EXPECT_TRUE(one("cvta.to.global.u64 %rd1, %rd2;").to);

  const Instruction shfl = one("shfl.sync.bfly.b32 %r1|%p1, %r2, 16, 31, -1;");
  EXPECT_EQ(shfl.sub_op, SubOp::kBfly);
  EXPECT_TRUE(shfl.sync);
  const Instruction shf = one("shf.l.wrap.b32 %r1, %r2, %r3, 7;");
  EXPECT_EQ(shf.sub_op, SubOp::kShiftL);
  EXPECT_EQ(shf.sub_op2, SubOp::kWrap);
  EXPECT_EQ(one("prmt.b32.f4e %r1, %r2, %r3, 7;").mode, "f4e");

  EXPECT_EQ(one("bar.sync 0;").sub_op, SubOp::kSync);
  EXPECT_TRUE(one("bar.sync 0;").aligned);
  EXPECT_FALSE(one("barrier.sync 0, 64;").aligned);
  EXPECT_FALSE(one("bar.warp.sync -1;").aligned);
  EXPECT_EQ(one("bar.warp.sync -1;").mode, "warp");
  const Instruction popc = one("barrier.red.popc.aligned.u32 %r1, 1, 64, !%p1;");
  EXPECT_EQ(popc.sub_op, SubOp::kRed);
  EXPECT_EQ(popc.sub_op2, SubOp::kPopc);
  const Instruction cluster = one("barrier.cluster.arrive.release.aligned;");
  EXPECT_EQ(cluster.mode, "cluster");
  EXPECT_EQ(cluster.order, Order::kRelease);
  EXPECT_EQ(one("membar.gl;").scope, Scope::kGpu);
  EXPECT_EQ(one("fence.acq_rel.sys;").order, Order::kAcqRel);
  const Instruction proxy = one("fence.proxy.async.shared::cta;");
  EXPECT_TRUE(proxy.proxy);
  EXPECT_EQ(proxy.mode, "async");
  EXPECT_EQ(proxy.space, Space::kShared);

  const Instruction wait =
      one("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%r1], %r2, 1000;");
  EXPECT_EQ(wait.sub_op, SubOp::kTryWait);
  EXPECT_EQ(wait.mode, "parity");
  EXPECT_EQ(wait.scope, Scope::kCluster);
  const Instruction expect = one("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 64;");
  EXPECT_EQ(expect.sub_op, SubOp::kArrive);
  EXPECT_EQ(expect.sub_op2, SubOp::kExpectTx);

  const Instruction copy = one("cp.async.cg.shared.global [%r1], [%rd1], 16;");
  EXPECT_EQ(copy.mode, "cg");
  EXPECT_TRUE(copy.async);
  EXPECT_EQ(copy.space, Space::kShared);
  EXPECT_EQ(copy.space2, Space::kGlobal);
  EXPECT_EQ(one("cp.async.wait_group 3;").sub_op, SubOp::kWaitGroup);
  EXPECT_FALSE(one("cp.async.wait_group 3;").bulk);
  EXPECT_TRUE(one("cp.async.bulk.wait_group.read 3;").bulk);
  EXPECT_EQ(one("cp.async.mbarrier.arrive.noinc.shared.b64 [%r1];").sub_op, SubOp::kMbarrierArrive);
}

TEST(PtxParser, Matrices) {
  const Instruction mma = one(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2,%f3,%f4}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
      "{%f1,%f2,%f3,%f4};");
  EXPECT_EQ(mma.shape.m, 16);
  EXPECT_EQ(mma.shape.n, 8);
  EXPECT_EQ(mma.shape.k, 16);
  EXPECT_TRUE(mma.shape.a_row && mma.shape.b_col);
  EXPECT_EQ(mma.types[0], Type::kF32);
  EXPECT_EQ(mma.types[2], Type::kBf16);
  EXPECT_EQ(mma.types[3], Type::kF32);
  EXPECT_FALSE(mma.destination_is_read);
  const Instruction load = one("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r5];");
  EXPECT_EQ(load.shape.count, 4);
  EXPECT_EQ(load.shape.n, 8);
  EXPECT_EQ(load.shape.k, 0);
  EXPECT_TRUE(load.shape.trans);
  const Instruction wgmma = one(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1,%f2,%f3,%f4}, %rd1, %rd2, %p1, 1, 1, 0, 1;");
  EXPECT_EQ(wgmma.mode, "mma_async");
  EXPECT_TRUE(wgmma.destination_is_read);
  EXPECT_EQ(wgmma.operands.size(), 8U);
  EXPECT_EQ(one("wgmma.wait_group.sync.aligned 1;").sub_op, SubOp::kWaitGroup);
  const Instruction row_row =
      one("wmma.mma.sync.aligned.row.row.m16n16k16.f32.f32 {%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8}, "
          "{%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, "
          "{%f1,%f2,%f3,%f4,%f5,%f6,%f7,%f8};");
  EXPECT_TRUE(row_row.shape.a_row);
  EXPECT_FALSE(row_row.shape.b_col);
}

TEST(PtxParser, BlocksHaveNamesOfTheirOwn) {
  const Module module = must_parse(kernel(R"(
    .reg .b32 t;
    mov.b32 t, 1;
    {
      .reg .b32 t;
      .param .b32 param0;
      mov.b32 t, 2;
      st.param.b32 [param0], t;
      bra done;
      bra outer;
      done:
    }
    {
      .param .b64 param0;
      st.param.b64 [param0], 1;
      done:
    }
    outer: mov.b32 t, 3;
    end:)"));
  const Function& k = module.functions[0];
  EXPECT_EQ(k.body[0].operands[0].reg, k.body[6].operands[0].reg);
  EXPECT_NE(k.body[0].operands[0].reg, k.body[1].operands[0].reg);
  EXPECT_EQ(module.variable(k, k.body[2].operands[0].variable).size, 4U);
  EXPECT_EQ(module.variable(k, k.body[5].operands[0].variable).size, 8U);
  EXPECT_EQ(k.body[3].operands[0].label, 5);
  EXPECT_EQ(k.body[4].operands[0].label, 6);
}

TEST(PtxParser, CallsDirectAndIndirect) {
  const Module module = must_parse(with_header(R"(
.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
.func (.reg .b32 out) fast(.reg .b32 in) { mov.b32 out, in; ret; }
.global .u32 late_user;
.entry k() {
  .reg .b64 %rd<2>;
  .reg .b32 %r<3>;
  {
  .param .b64 a; .param .b64 b; .param .b32 r;
  call.uni (r), vprintf, (a, b);
  call (%r1), fast, (%r2);
  prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b64 _) ;
  call (r), %rd1, (a, b), prototype_0;
  targets: .calltargets fast;
  call (%r1), %rd1, (7), targets;
  }
  ret;
}
.global .u32 late;
)"));
  const Function* k = module.find_function("k");
  ASSERT_NE(k, nullptr);
  const Instruction& call = k->body[0];
  EXPECT_TRUE(call.uniform);
  EXPECT_EQ(call.operands[0].kind, OperandKind::kFunction);
  EXPECT_EQ(module.functions[static_cast<std::size_t>(call.operands[0].function)].name, "vprintf");
  EXPECT_FALSE(module.functions[static_cast<std::size_t>(call.operands[0].function)].is_defined);
  ASSERT_EQ(call.call_arguments.size(), 2U);
  EXPECT_EQ(module.variable(*k, call.call_arguments[1].variable).name, "b")
      << "module variables declared after the body must not shift its own";
  EXPECT_EQ(k->body[1].call_results[0].kind, OperandKind::kRegister);
  EXPECT_EQ(k->body[2].call_prototype, 0);
  EXPECT_EQ(k->prototypes[0].parameters.size(), 2U);
  EXPECT_EQ(k->body[3].call_prototype, 1);
  EXPECT_EQ(k->body[3].call_arguments[0].value, 7);
  EXPECT_EQ(module.variables.size(), 2U);
}

TEST(PtxParser, BranchTables) {
  const Module module = must_parse(kernel(R"(
    ts: .branchtargets a, b, a;
    @%p1 brx.idx %r1, ts;
    brx.idx.uni %r2, later;
    later: .branchtargets b;
    a: add.u32 %r1, %r1, 1;
    b: ret;)"));
  const Function& k = module.functions[0];
  EXPECT_EQ(k.body[0].branch_targets, (std::vector<std::int32_t>{2, 3, 2}));
  EXPECT_EQ(k.body[1].branch_targets, (std::vector<std::int32_t>{3}));
  EXPECT_TRUE(k.body[1].uniform);
}

TEST(PtxParser, VariablesAndInitialisers) {
  const Module module = must_parse(with_header(R"(
.extern .shared .align 16 .b8 dynamic[];
.visible .global .align 4 .f32 f = 0f3F800000;
.const .f64 d[2] = {1.0, 2};
.global .u32 grid[2][3] = {{1, 2}, {4, 5, 6}};
.global .v2 .u16 pairs[2] = {{1, 2}, {3, 4}};
.global .u16 open[] = {1, 2, 3};
.global .u64 pointers[3] = {generic(grid)+8, f, func};
.global .align 1 .b8 packed[9] = {7, 0xFF(f+4), 0xFF00(f+4), 0xFF0000(f+4), 0xFF000000(f+4), 0xFF00000000(f+4),
  0xFF0000000000(f+4), 0xFF000000000000(f+4), 0xFF00000000000000(f+4)};
.visible .global .attribute(.managed) .align 8 .b8 managed[24];
.weak .global .s32 negative = -2;
.extern .global .u32 elsewhere;
.global .u32 elsewhere = 9;
.func func() { ret; }
)"));
  const auto variable = [&](std::string_view name) -> const Variable& {
    for (const Variable& v : module.variables) {
      if (v.name == name) return v;
    }
    throw std::runtime_error("no variable " + std::string(name));
  };
  EXPECT_EQ(variable("dynamic").size, 0U);
  EXPECT_EQ(variable("dynamic").align, 16U);
  EXPECT_TRUE(variable("dynamic").is_extern);
  EXPECT_EQ(variable("f").initial, (std::vector<std::uint8_t>{0, 0, 128, 63}));
  EXPECT_EQ(variable("d").initial.size(), 16U);
  EXPECT_EQ(variable("d").initial[15], 0x40);
  EXPECT_EQ(variable("grid").size, 24U);
  EXPECT_EQ(variable("grid").initial[12], 4) << "a short inner list leaves the rest of its row zero";
  EXPECT_EQ(variable("pairs").size, 8U);
  EXPECT_EQ(variable("pairs").align, 4U);
  EXPECT_EQ(variable("pairs").initial, (std::vector<std::uint8_t>{1, 0, 2, 0, 3, 0, 4, 0}));
  EXPECT_EQ(variable("open").size, 6U);
  const auto& relocations = variable("pointers").relocations;
  ASSERT_EQ(relocations.size(), 3U);
  EXPECT_TRUE(relocations[0].generic);
  EXPECT_EQ(relocations[0].addend, 8);
  EXPECT_EQ(module.variables[static_cast<std::size_t>(relocations[0].variable)].name, "grid");
  EXPECT_EQ(relocations[1].offset, 8U);
  EXPECT_EQ(relocations[2].function, 0);
  ASSERT_EQ(variable("packed").relocations.size(), 1U);
  EXPECT_EQ(variable("packed").relocations[0].offset, 1U);
  EXPECT_EQ(variable("packed").relocations[0].addend, 4);
  EXPECT_EQ(variable("packed").initial.size(), 9U);
  EXPECT_TRUE(variable("managed").is_managed);
  EXPECT_TRUE(variable("negative").is_visible);
  EXPECT_EQ(variable("negative").initial[0], 0xfe);
  EXPECT_FALSE(variable("elsewhere").is_extern);
  EXPECT_EQ(variable("elsewhere").initial[0], 9);
}

TEST(PtxParser, FunctionDirectivesParametersAndAliases) {
  const Module module = must_parse(with_header(R"(
.visible .entry k(
  .param .u64 .ptr .global .align 4 a,
  .param .align 16 .b8 b[48],
  .param .u64 .ptr c
)
.maxntid 128, 2, 1
.reqntid 64
.minnctapersm 2
.maxnreg 96
.explicitcluster
.reqnctapercluster 2, 1, 1
{ .pragma "nounroll"; trap; }
.weak .func stop() .noreturn { trap; }
.func other();
.alias other, stop;
)"));
  const Function& k = module.functions[0];
  EXPECT_EQ(k.parameters[0].align, 8U) << "alignment after .ptr is the pointee's";
  EXPECT_EQ(k.parameters[1].size, 48U);
  EXPECT_EQ(k.parameters[1].align, 16U);
  EXPECT_EQ(k.max_threads[1], 2U);
  EXPECT_EQ(k.required_threads[0], 64U);
  EXPECT_EQ(k.required_threads[2], 1U);
  EXPECT_EQ(k.min_blocks_per_sm, 2U);
  EXPECT_EQ(k.max_registers, 96U);
  EXPECT_TRUE(k.explicit_cluster);
  EXPECT_EQ(k.cluster[0], 2U);
  EXPECT_TRUE(module.find_function("stop")->no_return);
  EXPECT_EQ(module.find_function("other")->body.size(), 1U);
}

TEST(PtxParser, VectorRegisters) {
  const Module module =
      must_parse(kernel(".reg .v4 .b32 v;\nld.global.v4.b32 v, [%rd1];\nmov.b32 %r1, v.y;"));
  const Function& k = module.functions[0];
  ASSERT_EQ(k.body[0].operands[0].elements.size(), 4U);
  EXPECT_EQ(k.body[1].operands[1].reg, k.body[0].operands[0].elements[1].reg);
}

TEST(PtxParser, PositionsKnowFunctionsAndTheCallsTheyWereInlinedAt) {
  const Module module = must_parse(with_header(R"(.file 1 "a.cu"
.entry kern() {
.loc 1 20 3
.loc 1 10 4, function_name strings, inlined_at 1 20 3
.loc 1 5 6, function_name strings+6, inlined_at 1 10 4
exit;
.loc 1 21 1
exit;
}
.section .debug_str
{
strings:
.b8 111, 117, 116, 101, 114, 0
.b8 105, 110, 110
.b8 101, 114, 0
}
.section .debug_info { .b32 9, strings+3 .b8 1 l: .b64 l }
)"));
  const auto at = [&](std::int32_t index) { return module.positions.at(static_cast<std::size_t>(index)); };
  const auto function = [&](const Position& p) {
    return module.function_names.at(static_cast<std::size_t>(p.function));
  };
  const Position inner = at(module.functions[0].body[0].position);
  EXPECT_EQ(inner.line, 5);
  EXPECT_EQ(inner.column, 6);
  EXPECT_EQ(module.files.at(static_cast<std::size_t>(inner.file)), "a.cu");
  EXPECT_EQ(function(inner), "inner");
  const Position outer = at(inner.inlined_at);
  EXPECT_EQ(outer.line, 10);
  EXPECT_EQ(function(outer), "outer");
  const Position caller = at(outer.inlined_at);
  EXPECT_EQ(caller.line, 20);
  EXPECT_EQ(function(caller), "kern");
  EXPECT_EQ(caller.inlined_at, -1);
  const Position last = at(module.functions[0].body[1].position);
  EXPECT_EQ(last.line, 21);
  EXPECT_EQ(last.inlined_at, -1);
  EXPECT_EQ(at(module.functions[0].position).line, 20);
}

TEST(PtxParser, CommentsAndBlanksAnywhere) {
  const Module module = must_parse(kernel("/* a\n b */ add // c\n .u32 %r1 , /**/ %r2,\t3 ; ;\n\n"));
  ASSERT_EQ(module.functions[0].body.size(), 1U);
  EXPECT_EQ(module.functions[0].body[0].type, Type::kU32);
  EXPECT_EQ(module.functions[0].body[0].ptx_line, 11);
}

TEST(PtxParser, ZeroBytesAfterTheTextAreNoText) {
  EXPECT_EQ(must_parse(kernel("ret;") + std::string(3, '\0')).functions.size(), 1U);
}

}  // namespace
}  // namespace echolo::ptx
