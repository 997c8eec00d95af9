// Small PTX texts, so also without nvcc: forms that the compiler seldom emits, and what is refused at load.
#include <gtest/gtest.h>

#include "core_harness.hpp"

namespace echolo::vgpu {
namespace {

using Progress = Machine::Progress;

// A kernel `k` with one pointer parameter in %rd1, lane index in %r1, and &out[tid] in %rd2.
std::string kernel(const std::string& body, const std::string& before = "") {
  return ".version 9.2\n.target sm_90a\n.address_size 64\n" + before +
         "\n.visible .entry k(.param .u64 out)\n{\n.reg .pred %p<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<8>;\n"
         "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nmul.wide.u32 %rd3, %r1, 4;\nadd.s64 %rd2, %rd1, "
         "%rd3;\n" +
         body + "\n}\n";
}

std::vector<int> run(const std::string& text, std::uint32_t threads, std::size_t n = 0) {
  Node node(text);
  if (n == 0) n = threads;
  const std::uint64_t out = node.upload(std::vector<int>(n, -1));
  node.launch("k", {1, 1, 1}, {threads, 1, 1}, Params().add(out));
  const Progress end = node.finish();
  EXPECT_EQ(end, Progress::kIdle) << node.explain(end);
  return node.download<int>(out, n);
}

TEST(CorePtx, BranchTable) {
  const std::vector<int> out = run(kernel(R"(
    and.b32 %r2, %r1, 3;
    ts: .branchtargets A, B, C, B;
    brx.idx %r2, ts;
    A: mov.u32 %r3, 10; bra E;
    B: mov.u32 %r3, 20; bra E;
    C: mov.u32 %r3, 30;
    E: st.global.u32 [%rd2], %r3;
    ret;)"),
                                   32);
  const int want[4] = {10, 20, 30, 20};
  for (std::size_t i = 0; i < 32; ++i) EXPECT_EQ(out[i], want[i % 4]);
}

TEST(CorePtx, ShuffleInBothBranchesIsOneShuffle) {
  const std::vector<int> out = run(kernel(R"(
    setp.lt.u32 %p1, %r1, 16;
    mul.lo.u32 %r2, %r1, 3;
    @%p1 bra LOW;
    add.u32 %r3, %r2, 1000;
    shfl.sync.idx.b32 %r4, %r3, 2, 31, -1;
    bra END;
    LOW:
    shfl.sync.idx.b32 %r4, %r2, 2, 31, -1;
    END:
    st.global.u32 [%rd2], %r4;
    ret;)"),
                                   32);
  for (const int value : out) EXPECT_EQ(value, 6);
}

TEST(CorePtx, ElectAndActivemask) {
  const std::vector<int> out = run(kernel(R"(
    mov.u32 %r5, 0;
    setp.lt.u32 %p1, %r1, 5;
    @%p1 bra END;
    elect.sync %r2|%p2, 0xffffffe0;
    activemask.b32 %r3;
    selp.u32 %r4, 1000, 0, %p2;
    add.u32 %r5, %r2, %r4;
    END:
    st.global.u32 [%rd2], %r5;
    ret;)"),
                                   32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i < 5 ? 0 : i == 5 ? 1005 : 5);
}

TEST(CorePtx, GuardedExitAndCall) {
  const std::vector<int> out = run(kernel(R"(
    setp.gt.u32 %p1, %r1, 20;
    @%p1 exit;
    setp.lt.u32 %p2, %r1, 10;
    mov.u32 %r3, 7;
    {
    .param .b32 a; .param .b32 r;
    st.param.b32 [a], %r1;
    @%p2 call (r), f, (a);
    @%p2 ld.param.b32 %r3, [r];
    }
    st.global.u32 [%rd2], %r3;
    ret;)",
                                          R"(
    .func (.param .b32 r) f(.param .b32 a) {
      .reg .b32 %x<3>;
      ld.param.b32 %x1, [a];
      add.u32 %x2, %x1, 100;
      st.param.b32 [r], %x2;
      ret;
    })"),
                                   32);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(out[static_cast<std::size_t>(i)], i > 20 ? -1 : i < 10 ? i + 100 : 7);
}

TEST(CorePtx, BarrierCountsOfBlocksThatEndInPartOfAWarp) {
  const std::vector<int> out = run(kernel(R"(
    bar.sync 1, 64;
    barrier.sync.aligned 2;
    st.global.u32 [%rd2], %r1;
    ret;)"),
                                   40);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i);
}

TEST(CorePtx, BarriersWithoutAlignedTakePartsOfAWarp) {
  const std::vector<int> out = run(kernel(R"(
    setp.lt.u32 %p1, %r1, 7;
    @%p1 bra LOW;
    barrier.sync 3;
    mov.u32 %r2, 1;
    bra END;
    LOW:
    barrier.sync 3;
    mov.u32 %r2, 2;
    END:
    st.global.u32 [%rd2], %r2;
    ret;)"),
                                   64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i < 7 ? 2 : 1);
}

TEST(CorePtx, NegatedPredicateOfABarrierReduction) {
  const std::vector<int> out = run(kernel(R"(
    setp.lt.u32 %p1, %r1, 10;
    bar.red.popc.u32 %r2, 0, !%p1;
    st.global.u32 [%rd2], %r2;
    ret;)"),
                                   64);
  for (const int value : out) EXPECT_EQ(value, 54);
}

TEST(CorePtx, LoopsOfUnequalLengthMeetAgain) {
  const std::vector<int> out = run(kernel(R"(
    mov.u32 %r2, 0;
    mov.u32 %r3, 0;
    LOOP:
    add.u32 %r3, %r3, %r2;
    add.u32 %r2, %r2, 1;
    setp.le.u32 %p1, %r2, %r1;
    @%p1 bra LOOP;
    bar.sync 0;
    st.global.u32 [%rd2], %r3;
    ret;)"),
                                   64);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<std::size_t>(i)], i * (i + 1) / 2);
}

struct Refusal {
  const char* what;
  const char* body;
  const char* message;
};

TEST(CorePtx, RefusedAtLoad) {
  const Refusal cases[] = {
      {"a tensor map changed on the device", "tensormap.replace.tile.rank.global.b1024.b32 [8], 2;\nret;",
       "tensormap.replace"},
      {"texture", "tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f1, %f2}];\nret;", "tex"},
      {"undefined function", "call.uni nowhere, ();\nret;", "nowhere"},
  };
  for (const Refusal& refusal : cases) {
    auto machine = Machine::create({}, nullptr);
    ASSERT_TRUE(machine.ok());
    const auto module = (*machine)->load_module(0,
                                                kernel(std::string(".reg .f32 %f<8>;\n") + refusal.body,
                                                       ".extern .func nowhere();\n.global .texref t;\n"),
                                                "x.ptx");
    ASSERT_FALSE(module.ok()) << refusal.what;
    EXPECT_NE(module.error().render().find(refusal.message), std::string::npos) << module.error().render();
  }
}

struct Fault {
  const char* body;
  FindingKind kind;
  const char* message;
};

TEST(CorePtx, Faults) {
  const Fault cases[] = {
      {"mov.u32 %r2, 17; bar.sync %r2; ret;", FindingKind::kDeviceTrap, "barrier 17 does not exist"},
      {"bar.sync 1, 40; ret;", FindingKind::kDeviceTrap, "positive multiple of 32"},
      {"trap;", FindingKind::kDeviceTrap, "trap"},
      {"mov.u32 %r2, 5; ts: .branchtargets A; brx.idx %r2, ts; A: ret;", FindingKind::kDeviceTrap,
       "its table has 1"},
      {"mov.u64 %rd4, 48; p: .callprototype _ (); call %rd4, (), p; ret;", FindingKind::kDeviceTrap,
       "not a device function's address"},
  };
  for (const Fault& fault : cases) {
    Node node(kernel(fault.body));
    node.launch("k", {1, 1, 1}, {32, 1, 1}, Params().add(node.upload(std::vector<int>(32))));
    ASSERT_EQ(node.finish(), Progress::kFaulted) << fault.body;
    const Finding& finding = node.machine->findings().all().at(0);
    EXPECT_EQ(finding.kind, fault.kind);
    EXPECT_NE(finding.message.find(fault.message), std::string::npos) << finding.message;
  }
}

TEST(CorePtx, EndlessRecursionIsAStackOverflow) {
  Node node(kernel("call.uni f, (); ret;",
                   ".func f() { .local .b8 a[256]; .reg .b32 %x; .reg .b64 %y; mov.u64 %y, a; "
                   "st.local.u32 [%y], 1; call.uni f, (); ret; }"));
  node.launch("k", {1, 1, 1}, {32, 1, 1}, Params().add(node.upload(std::vector<int>(32))));
  ASSERT_EQ(node.finish(), Progress::kFaulted);
  EXPECT_NE(node.machine->findings().all().at(0).message.find("stack overflow"), std::string::npos);
}

}  // namespace
}  // namespace echolo::vgpu
