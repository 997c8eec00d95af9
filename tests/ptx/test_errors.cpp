// Every kind of error: what is said, and on which line.
#include <gtest/gtest.h>

#include "helpers.hpp"

namespace echolo::ptx {
namespace {

struct Case {
  std::string text;
  int line;
  std::string message;  // a part of it
};

void expect_errors(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    const Result<Module> module = parse(c.text, "wrong.ptx");
    ASSERT_FALSE(module.ok()) << "no error in\n" << c.text;
    const std::string shown = module.error().render();
    EXPECT_EQ(module.error().line, c.line) << shown;
    EXPECT_EQ(module.error().file, "wrong.ptx");
    EXPECT_NE(shown.find(c.message), std::string::npos) << "got: " << shown << "\nwanted: " << c.message;
  }
}

TEST(PtxErrors, Modules) {
  expect_errors({
      {"", 1, "must begin with .version"},
      {".target sm_90a\n", 1, "must begin with .version"},
      {".version nine\n", 1, "expected a version"},
      {".version 9.2\n.target 5\n", 2, "expected a target"},
      {".version 9.2\n.target sm_90a\n.address_size 32\n", 3, "only .address_size 64"},
      {with_header("\n.nonsense 3;\n"), 5, "'.nonsense' is no directive of module scope"},
      {with_header("hello;\n"), 4, "expected a directive"},
      {with_header("/* never\nclosed\n"), 4, "this comment is never closed"},
      {with_header(".file 1 \"a.cu\n"), 4, "this string is never closed"},
      {with_header(".file 0 \"a.cu\"\n"), 4, "file numbers start at 1"},
      {with_header("\x01"), 4, "expected a directive"},
      {with_header(".pragma 3;"), 4, "the pragma's string"},
      {with_header(".alias f, g;"), 4, "must be declared as a function before .alias"},
      {with_header(".func f();\n.func g();\n.alias f, g;"), 6, "no function that this module defines"},
      {with_header(".section .debug_info { .b8 1, ; }"), 4, "expected data of a debug section"},
  });
}

TEST(PtxErrors, Declarations) {
  expect_errors({
      {with_header(".global .align 3 .b8 x;"), 4, "must be a power of two"},
      {with_header(".global x;"), 4, "expected a type"},
      {with_header(".global .pred x;"), 4, "cannot be .pred"},
      {with_header(".global .u32 .u64 x;"), 4, "has one type"},
      {with_header(".global .wrong .u64 x;"), 4, "'.wrong' is not known in a declaration"},
      {with_header(".global .u32 x[-1];"), 4, "must be a non-negative integer"},
      {with_header(".global .u32 x[2][];"), 4, "only an array's first dimension"},
      {with_header(".global .u64 x[1000000000000];"), 4, "larger than 1 TiB"},
      {with_header(".global .u32 x;\n.global .u32 x;"), 5, "'x' is defined twice"},
      {with_header(".global .u32 x[2] = {1, 2, 3};"), 4, "more initial values than elements"},
      {with_header(".global .u32 x[2] = 1;"), 4, "as the variable is an array"},
      {with_header(".shared .u32 x = 1;"), 4, "only .global and .const variables"},
      {with_header(".global .u64 x = y;"), 4, "'y' is not declared in this module"},
      {with_header(".global .u32 y;\n.global .u32 x = y;"), 5, "needs an element of 8 bytes"},
      {with_header(".global .u32 y;\n.global .b8 x[8] = {0xFF(y), 0xFF00(y)};"), 5, "lacks bytes"},
      {with_header(".global .u32 y;\n.global .b8 x[8] = {0xFF00(y)};"), 5, "must stand in order"},
      {with_header(".global .u32 x = 1 / 0;"), 4, "division by zero"},
      {with_header(".global .u32 x = 99999999999999999999;"), 4, "no number that fits in 64 bits"},
      {with_header(".global .u32 x = " + std::string(1000, '(') + "1;"), 4, "nested too deeply"},
      {with_header(".attribute(.managed)"), 4, "no directive of module scope"},
      {with_header(".global .attribute(.other) .u32 x;"), 4, "expected .managed or .unified"},
      {with_header(".entry f()\n.maxntid a\n{ }"), 5, "a dimension"},
      {with_header(".entry f()\n.wrong\n{ }"), 5, "no directive of a function"},
      {with_header(".func f() { ret; }\n.func f() { ret; }"), 5, "'f' is defined twice"},
      {with_header(".func f();\n.entry f() { ret; }"), 5, "both .entry and .func"},
      {with_header(".global .u32 f;\n.func f() { ret; }"), 5, "declared as a variable"},
      {with_header(".func f();\n.global .u32 f;"), 5, "declared as a function"},
      {with_header(".extern .func f() { ret; }"), 4, "is .extern and has a body"},
      {with_header(".func f(.global .u32 x);"), 4, "expected .param or .reg"},
      {with_header(".func f(.param .u32 x, .param .u32 x) { ret; }"), 4, "names two parameters"},
      {kernel(".reg .b32 %r<3>;"), 10, "declared twice in one block"},
      {kernel(".reg .b32 x;\n.param .b32 x;"), 11, "declared twice in one block"},
      {kernel(".reg .b32 %many<9999999>;"), 10, "too large"},
      {kernel(".reg .b32 %a<4194304>;"), 10, "more than 4,194,304 registers"},
  });
}

TEST(PtxErrors, Instructions) {
  expect_errors({
      {kernel("\nadd.u32 %r1, %r2, %r3;\nfrobnicate.u32 %r1;"), 12, "'frobnicate' is no PTX instruction"},
      {kernel("adc.u32 %r1, %r2, %r3;"), 10, "did you mean"},
      {kernel("add.u33 %r1, %r2, %r3;"), 10, "'.u33' is not a modifier of 'add'"},
      {kernel("ld.globl.u32 %r1, [%rd1];"), 10, "did you mean 'global'"},
      {kernel("add %r1, %r2, %r3;"), 10, "needs a type"},
      {kernel("cvt.f32 %f1, %r3;"), 10, "needs 2 types"},
      {kernel("add.u32.u32.u32 %r1, %r2, %r3;"), 10, "one type too many"},
      {kernel("mbarrier.dance.b64 [%rd1];"), 10, "no form of 'mbarrier'"},
      {kernel("add.u32 %r1, %r2;"), 10, "takes 3 operands, here are 2"},
      {kernel("bra;"), 10, "takes 1 operand, here are 0"},
      {kernel("add.u32 %r1, %r2, %r99;"), 10, "'%r99' is not declared"},
      {kernel("add.u32 %r1, %r2, x;"), 10, "'x' is not declared"},
      {kernel("mov.u32 %r1, %tid.q;"), 10, "'%tid.q' is not declared"},
      {kernel("add.u32 3, %r2, %r1;"), 10, "operand 1 of 'add.u32' must be a register"},
      {kernel("add.u32 %r1, %r2, %p1;"), 10, "must be a register that is no predicate"},
      {kernel("add.u32 %r1, %r2, [%rd1];"), 10, "operand 3 of 'add.u32' must be"},
      {kernel("ld.global.u32 %r1, %rd1;"), 10, "operand 2 of 'ld.global.u32' must be an address in brackets"},
      {kernel("ld.global.v4.u32 {%r1, %r2}, [%rd1];"), 10, "as many elements as '.v' says"},
      {kernel("st.global.v2.u32 [%rd1], %r1;"), 10, "a vector in braces"},
      {kernel("selp.u32 %r1, %r2, %r3, %r4;"), 10, "a predicate register"},
      {kernel("add.u32 %r1, !%r2, %r3;"), 10, "only a predicate register may follow '!'"},
      {kernel("@%r1 bra x;"), 10, "a guard must be a predicate register"},
      {kernel("@%px ret;"), 10, "'%px' is not declared"},
      {kernel("@%p1 { ret; }"), 10, "an instruction after the guard"},
      {kernel("bra nowhere;"), 10, "label 'nowhere' stands nowhere"},
      {kernel("{ inner: ret; }\nbra inner;"), 11, "label 'inner' stands nowhere"},
      {kernel("l: ret;\nl: ret;"), 11, "stands twice"},
      {kernel("l: ret;\nbrx.idx %r1, l;"), 11, "no list of .branchtargets"},
      {kernel("l: ret;\nt: .branchtargets l;\nbra t;"), 12, "is a list of branch targets"},
      {kernel("t: .branchtargets gone;\nbrx.idx %r1, t;"), 10, "label 'gone' stands nowhere"},
      {kernel("call other, ();"), 10, "function 'other' is not declared"},
      {kernel("call %rd1, ();"), 10, "an indirect call needs"},
      {kernel("call %rd1, (), %rd2;"), 10, "no .callprototype"},
      {with_header(".func f(.param .b32 a);\n.entry k() {\ncall f, ();\n}"), 6,
       "takes 1 arguments, the call passes 0"},
      {with_header(".func (.param .b32 r) f();\n.entry k() {\ncall f, ();\n}"), 6,
       "has 1 results, the call names 0"},
      {kernel("add.u32 %r1, !3, %r3;"), 10, "a predicate register after '!'"},
      {kernel("add.u32 %r1, %r2, %r3"), 11, "expected ';', found '}'"},
      {kernel("add.u32 %r1 %r2, %r3;"), 10, "expected ';'"},
      {kernel("mov.u32 %r1, {{{%r1}}};"), 10, "nested too deeply"},
      {kernel(".wrong .b32 x;"), 10, "no directive of a function's body"},
      {kernel(".param .align 4 .b8 buffer[4]") + ";", 11, "expected ';'"},
      {kernel("{"), 12, "is never closed"},
      {kernel(std::string(300, '{')), 10, "blocks are nested too deeply"},
      {kernel("mov.u32 %r1, 0fzz;"), 10, "no number that fits"},
      {kernel("ld.global.u32 %r1, [1.5];"), 10, "an address must be an integer"},
  });
}

TEST(PtxErrors, RegistersOfTheWrongSize) {
  expect_errors({
      {kernel("add.u64 %rd1, %rd2, %r1;"), 10, "register '%r1' has 32 bits, where 'add' wants 64"},
      {kernel("mul.wide.u32 %r1, %r2, 4;"), 10, "'mul' wants 64"},
      {kernel("mad.wide.u32 %rd1, %r2, 4, %r1;"), 10, "'mad' wants 64"},
      {kernel("shl.b64 %rd1, %rd2, %rd3;"), 10, "'shl' wants 32"},
      {kernel("setp.eq.u32 %r1, %r2, %r3;"), 10, "'setp' wants 1"},
      {kernel("ld.global.u64 %r1, [%rd1];"), 10, "'ld' wants 64 or more"},
      {kernel("ld.global.v2.u64 {%rd1, %r1}, [%rd1];"), 10, "'ld' wants 64 or more"},
      {kernel("ld.global.u32 %r1, [%r2];"), 10, "the address register '%r2' has 32 bits"},
      {kernel("st.shared.u32 [%rs1], %r2;"), 10, "the address register '%rs1' has 16 bits"},
      {kernel("ld.global.u32 %p1, [%rd1];"), 10, "'ld' wants 32"},
      {kernel("cvt.u64.u32 %rd1, %rs1;"), 10, "'cvt' wants 32 or more"},
      {kernel("mov.b64 {%r1, %rd1}, %rd2;"), 10, "'mov' wants 32"},
      {kernel("atom.global.add.u32 %r1, [%rd1], %rd2;"), 10, "'atom' wants 32"},
      {kernel("set.eq.u32.f64 %r1, %f1, %f2;"), 10, "'set' wants 64"},
      {kernel("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1,%f2}, {%r1,%r2,%r3,%r4}, {%r5,%r6}, "
              "{%f1,%f2};"),
       10, "operand 1 of 'mma' must name 4 registers for this shape and type, here are 2"},
      {kernel("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd1,%fd2}, {%f1}, {%fd3}, {%fd1,%fd2};"), 10,
       "operand 2 of 'mma' must be of 64-bit registers"},
      {kernel("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2}, [%r5];"), 10, "must name 4 registers"},
      {kernel("wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f1}, %rd1, %rd2, %p1, 1, 1, 0, 1;"), 10,
       "must name 4 registers"},
  });
}

TEST(PtxErrors, NameTheSourceLine) {
  const std::string text =
      with_header(".file 1 \"dir/candidate.cu\"\n.entry k() {\n.loc 1 41 7\nret;\nfrob;\n}\n");
  const Result<Module> module = parse(text, "candidate.ptx");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().line, 8);
  EXPECT_EQ(module.error().column, 1);
  EXPECT_NE(module.error().message.find("(compiled from dir/candidate.cu:41)"), std::string::npos)
      << module.error().message;
}

TEST(PtxErrors, DebugNames) {
  expect_errors({
      {kernel(".loc 1 2"), 11, "the column (a number)"},
      {kernel(".loc 1 2 3, function_name L, inlined_at 1 2 3\nret;"), 10, "no label of .debug_str"},
      {kernel(".loc 1 2 3, something 4"), 10, "function_name or inlined_at"},
      {kernel(".loc 1 2 3, function_name L + 9, inlined_at 1 2 3\nret;") +
           ".section .debug_str {\nL: .b8 65, 0\n}\n",
       10, "lies outside .debug_str"},
  });
}

// Small texts must not ask for much memory or time.
TEST(PtxErrors, HostileSizes) {
  std::string parameters = ".func f(";
  for (int i = 0; i < 9000; ++i)
    parameters += (i == 0 ? ".param .b32 p" : ", .param .b32 p") + std::to_string(i);
  std::string aliases = ".func f() {\n.reg .b32 %r<100000>;\nret;\n}\n";
  for (int i = 0; i < 20; ++i)
    aliases += ".func a" + std::to_string(i) + "();\n.alias a" + std::to_string(i) + ", f;\n";
  std::string tables = "t: .branchtargets l";
  for (int i = 0; i < 5000; ++i) tables += ", l";
  tables += ";\nl:\n";
  for (int i = 0; i < 1000; ++i) tables += "brx.idx %r1, t;\n";
  expect_errors({
      {with_header(parameters + ");"), 4, "at most 8,192 parameters"},
      {with_header(aliases), 29, "stand for too much code"},
      {kernel(tables), 850, "too many branch targets"},
      {with_header(".global .b8 x[2][1000000000] = {{1}, {2}};"), 4, "leave out more than 64 MiB"},
      {with_header(".file 99999999 \"a\""), 4, "the file's number is too large"},
      {kernel(std::string(100000, 'x') + ".u32 %r1;"), 10, "is no PTX instruction"},
      {kernel("mov.u32 %r1, " + std::string(100000, '-') + "1;"), 10, "nested too deeply"},
  });
}

TEST(PtxErrors, UntrustedTextIsShownWithoutControlCharacters) {
  const Result<Module> module = parse(kernel("\x1b[31m"), "wrong.ptx");
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.error().render().find('\x1b'), std::string::npos);
}

}  // namespace
}  // namespace echolo::ptx
