// Each checker of Memory::access, with the whole text of its finding.
#include <cstdint>
#include <string>

#include "memory_harness.hpp"

namespace echolo::vgpu {
namespace {

std::string only(const FindingLog& log) {
  EXPECT_EQ(log.all().size(), 1U);
  return log.empty() ? "" : render(log.all().front(), {});
}

TEST(MemoryCheckers, PastTheEnd) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(4096 * 4);
  h.grid.pe = 0;
  h.assemble("st.global.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", buf + 4 * 4070, 4);  // lanes 26 .. 31 are past the end
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:20:5: out-of-bounds: PE 0 writes 4 bytes past the end of `buf`\n"
            "   test.cu:20: written by PE 0, block (0,0,0), thread (26,0,0), in k()\n"
            "   memory: `buf`, 16 KiB from cudaMalloc at test.cu:7, byte 16384 on PE 0\n"
            "   why: thread (26,0,0) of block (0,0,0) is at byte 16,384 (index 4,096 in elements of 4 "
            "bytes); `buf` has\n"
            "        16,384 bytes (4,096 elements)\n"
            "   mend: guard the access with the number of elements, or allocate more\n"
            "   6 times\n");
  EXPECT_TRUE(h.log.has_fatal());
}

TEST(MemoryCheckers, StraddlesTheEnd) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(24);
  h.assemble("ld.global.v4.u32 {%r1,%r2,%r3,%r4}, [%rd1];");
  h.set<std::uint64_t>("%rd1", buf + 16);
  ASSERT_EQ(h.execute(1), MemOutcome::kFault);
  EXPECT_EQ(h.log.all()[0].message, "PE 0 reads 16 bytes, the last 8 past the end of `buf`");
  EXPECT_EQ(h.log.all()[0].address.offset, 16);
}

TEST(MemoryCheckers, BeforeTheStart) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(64);
  h.assemble("ld.global.u32 %r1, [%rd1+-8];");
  h.set<std::uint64_t>("%rd1", buf);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all()[0].message, "PE 0 reads 4 bytes before the start of `buf`");
  EXPECT_EQ(h.log.all()[0].address.offset, -8);
  EXPECT_NE(only(h.log).find("64 bytes from cudaMalloc at test.cu:7, 8 bytes before its start on PE 0"),
            std::string::npos)
      << only(h.log);
}

TEST(MemoryCheckers, NullHostAndStrayPointers) {
  MemoryHarness h;
  h.device(64);
  h.assemble("ld.global.u32 %r1, [%rd1];");
  const auto message = [&](std::uint64_t address) {
    h.set<std::uint64_t>("%rd1", address);
    const std::size_t n = h.log.all().size();
    EXPECT_EQ(h.execute(1), MemOutcome::kFault);
    // All are at one line, so they merge; a fresh log shows each.
    const std::string text = h.log.all().back().message;
    (void)n;
    h.log = FindingLog();
    return text;
  };
  EXPECT_EQ(message(0), "PE 0 reads 4 bytes through a null pointer");
  EXPECT_EQ(message(16), "PE 0 reads 4 bytes through a null pointer");
  EXPECT_EQ(message(0x7f0012345678), "PE 0 reads 4 bytes at 0x7f0012345678, which is no memory of a GPU");
  EXPECT_EQ(message(~0ULL - 3), "PE 0 reads 4 bytes at 0xfffffffffffffffc, which is no memory of a GPU");
  EXPECT_EQ(message(kSharedWindow), "PE 0 reads 4 bytes at 0x400000000000, which is no memory of a GPU");
}

TEST(MemoryCheckers, FreedMemory) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(64);
  ASSERT_TRUE(h.memory->release(buf));
  h.assemble("ld.global.u32 %r1, [%rd1];");
  h.set<std::uint64_t>("%rd1", buf, 4);
  ASSERT_EQ(h.execute(1), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:20:5: out-of-bounds: PE 0 reads 4 bytes of freed memory, `buf`\n"
            "   test.cu:20: read by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: `buf`, 64 bytes from cudaMalloc at test.cu:7, byte 0 on PE 0\n"
            "   why: thread (0,0,0) of block (0,0,0) is at byte 0 of it; it was freed before this access\n"
            "   mend: free it only after all work that uses it has finished, on this PE and on its peers\n");
}

TEST(MemoryCheckers, PeersReachOnlySymmetricMemory) {
  MemoryHarness h;
  const std::uint64_t theirs = h.device(64, "theirs", 1);
  const auto symmetric = *h.memory->allocate_symmetric(64, 256, "nvshmem_malloc", {"a.cu:1", "a.cu:1"});
  const std::uint64_t pinned =
      *h.memory->allocate(1, 64, 256, AllocationKind::kPinned, "", "cudaMallocHost", "a.cu:2");
  h.assemble("st.global.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", symmetric[1], 0);
  EXPECT_EQ(h.execute(), MemOutcome::kDone);
  h.set<std::uint64_t>("%rd1", theirs, 0);
  EXPECT_EQ(h.execute(1), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message, "PE 0 writes 4 bytes of PE 1's own memory, `theirs`");
  h.log = FindingLog();
  h.set<std::uint64_t>("%rd1", pinned, 0);
  EXPECT_EQ(h.execute(1), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message,
            "PE 0 writes 4 bytes of PE 1's own memory, the 64 bytes from cudaMallocHost at a.cu:2");
}

TEST(MemoryCheckers, RdmaHasNoPlainPeerAccess) {
  MemoryHarness h(2, false);
  const auto symmetric = *h.memory->allocate_symmetric(64, 256, "nvshmem_malloc", {"a.cu:1", "a.cu:1"});
  h.assemble("st.global.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", symmetric[0]);
  EXPECT_EQ(h.execute(), MemOutcome::kDone);
  h.set<std::uint64_t>("%rd1", symmetric[1]);
  EXPECT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:20:5: out-of-bounds: PE 0 writes 4 bytes of PE 1's symmetric memory by a plain access, "
            "and the fabric has none\n"
            "   test.cu:20: written by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: 64 bytes from nvshmem_malloc at a.cu:1, byte 0 on PE 1\n"
            "   why: over rdma nvshmem_ptr of another PE is null: only NVSHMEM calls reach it\n"
            "   mend: use nvshmem_put, nvshmem_get, nvshmem_p or nvshmem_g where nvshmem_ptr gives null\n"
            "   32 times\n");
}

TEST(MemoryCheckers, Misaligned) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(4096);
  h.assemble("st.global.v4.f32 [%rd1], {%r1,%r1,%r1,%r1};");
  h.set<std::uint64_t>("%rd1", buf + 4, 16);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:20:5: misaligned: PE 0 writes 16 bytes at an address aligned to 4, but 16 is needed\n"
            "   test.cu:20: written by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: `buf`, 4 KiB from cudaMalloc at test.cu:7, byte 4 on PE 0\n"
            "   why: thread (0,0,0) of block (0,0,0) is at byte 4 of `buf`, no multiple of 16\n"
            "   mend: make the index of the vector's first element a multiple of 4, or access the elements "
            "one by one\n"
            "   32 times\n");
}

TEST(MemoryCheckers, UninitialisedReadsAreToldOnceALineAndReadPoison) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(4096);
  h.assemble("ld.global.u32 %r1, [%rd1];\nld.global.u32 %r2, [%rd1];");
  h.set<std::uint64_t>("%rd1", buf, 4);
  const std::uint32_t known = 5;
  h.fill(buf + 4, &known, 4);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  ASSERT_EQ(h.execute(0xf), MemOutcome::kDone);
  ASSERT_EQ(h.log.all().size(), 2U);
  EXPECT_FALSE(h.log.has_fatal());
  EXPECT_EQ(render(h.log.all()[0], {}),
            "test.cu:20:5: uninitialised-read: PE 0 reads `buf` before anybody has written it\n"
            "   test.cu:20: read by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: `buf`, 4 KiB from cudaMalloc at test.cu:7, byte 0 on PE 0\n"
            "   why: thread (0,0,0) of block (0,0,0) reads 4 bytes; byte 0 was never written\n"
            "   mend: write it before this line (and order the write before the read), or clear it first\n"
            "   34 times\n");
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[1], 5U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[2], 0xfffbfffbU);
}

TEST(MemoryCheckers, UninitialisedSharedAndPartOfAVector) {
  MemoryHarness h;
  h.assemble(
      "st.shared.u32 [%r1], %r2;\nst.shared.u32 [%r1+8], %r2;\nld.shared.v4.u32 {%r3,%r4,%r5,%r6}, [%r1];");
  h.set<std::uint32_t>("%r1", 0, 16);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  ASSERT_EQ(h.log.all().size(), 1U);
  EXPECT_EQ(h.log.all()[0].message, "PE 0 reads shared memory before anybody has written it");
  EXPECT_EQ(h.log.all()[0].address.object, "4 KiB of shared memory of block (0,0,0)");
  EXPECT_EQ(h.log.all()[0].address.offset, 4);
  EXPECT_EQ(h.log.all()[0].count, 32U);
}

TEST(MemoryCheckers, PaddingInLocalMemoryIsNoFault) {
  MemoryHarness h;
  // A structure {char; int} is copied as two words: the first is written only in part.
  h.assemble(
      "st.local.u8 [%rd1], %h1;\nst.local.u32 [%rd1+4], %r1;\nld.local.u32 %r2, [%rd1];\nld.local.v2.u32 "
      "{%r2,%r3}, [%rd1];");
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_TRUE(h.log.empty());
  h.assemble("ld.local.u32 %r2, [%rd1+8];");
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  ASSERT_EQ(h.log.all().size(), 1U);
  EXPECT_EQ(h.log.all()[0].kind, FindingKind::kUninitialisedRead);
  EXPECT_EQ(h.log.all()[0].address.object, "256 bytes of local memory of thread (0,0,0) of block (0,0,0)");
  EXPECT_EQ(h.log.all()[0].address.offset, 8);
}

TEST(MemoryCheckers, SharedLocalAndParameterBounds) {
  MemoryHarness h;
  h.grid.params.assign(12, 0);
  h.assemble("ld.shared.u32 %r1, [%r2];");
  h.set<std::uint32_t>("%r2", 4096 - 64, 4);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message, "PE 0 reads 4 bytes past the end of shared memory");
  EXPECT_EQ(h.log.all().back().why,
            "thread (16,0,0) of block (0,0,0) is at byte 4,096; there are 4,096 bytes");
  h.log = FindingLog();
  h.set<std::uint32_t>("%r2", 0xfffffff0U, 0);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message, "PE 0 reads 4 bytes before the start of shared memory");
  EXPECT_EQ(h.log.all().back().address.offset, -16);
  h.log = FindingLog();
  h.assemble("st.local.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", 256);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message, "PE 0 writes 4 bytes past the end of local memory");
  h.log = FindingLog();
  h.assemble("ld.param.u32 %r1, [pa+12];");
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message, "PE 0 reads 4 bytes past the end of the kernel's parameters");
  h.log = FindingLog();
  h.assemble("st.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", kParamWindow);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all().back().message,
            "PE 0 writes 4 bytes of the kernel's parameters, which can only be read");
}

TEST(MemoryCheckers, LocalMemoryEndsWithTheStack) {
  MemoryHarness h;
  h.set_local(32);
  h.assemble("st.local.u32 [%rd1], %r1;\nld.u32 %r1, [%rd2+4];");
  h.set<std::uint64_t>("%rd1", 28);
  h.set<std::uint64_t>("%rd2", kLocalWindow + 28);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:21:5: out-of-bounds: PE 0 reads 4 bytes past the end of local memory\n"
            "   test.cu:21: read by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: 32 bytes of local memory of thread (0,0,0) of block (0,0,0), byte 32 on PE 0\n"
            "   why: thread (0,0,0) of block (0,0,0) is at byte 32; there are 32 bytes\n"
            "   mend: guard the index into the local array with its length\n"
            "   32 times\n");
}

TEST(MemoryCheckers, ConstantMemoryIsReadOnly) {
  MemoryHarness h;
  const std::uint64_t table = *h.memory->allocate(0, 64, 64, AllocationKind::kConstant, "table", "", "");
  const std::uint64_t plain = h.device(64);
  std::uint8_t zeros[64] = {};
  h.fill(table, zeros, sizeof zeros);
  h.fill(plain, zeros, sizeof zeros);
  h.assemble("ld.const.u32 %r1, [%rd1];\nld.u32 %r1, [%rd1];\nst.u32 [%rd1], %r1;");
  h.set<std::uint64_t>("%rd1", table);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(only(h.log),
            "test.cu:22:5: out-of-bounds: PE 0 writes 4 bytes of constant memory, `table`\n"
            "   test.cu:22: written by PE 0, block (0,0,0), thread (0,0,0), in k()\n"
            "   memory: `table`, 64 bytes, a __constant__ variable, byte 0 on PE 0\n"
            "   why: a kernel can only read __constant__ variables\n"
            "   mend: make it a __device__ variable, or write it from the host with cudaMemcpyToSymbol\n"
            "   32 times\n");
  h.log = FindingLog();
  h.assemble("ld.const.u32 %r1, [%rd1];");
  h.set<std::uint64_t>("%rd1", plain);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all()[0].message, "PE 0 reads 4 bytes as constant memory, but `buf` is not constant");
}

TEST(MemoryCheckers, LanesInSeveralAllocations) {
  MemoryHarness h;
  const auto symmetric = *h.memory->allocate_symmetric(64, 256, "nvshmem_malloc", {});
  h.assemble("st.global.u32 [%rd1], %r1;\nld.global.u32 %r2, [%rd1];");
  for (int i = 0; i < 32; ++i)
    h.reg<std::uint64_t>("%rd1")[i] =
        symmetric[static_cast<std::size_t>(i % 2)] + static_cast<std::uint64_t>(i / 2 * 4);
  h.set<std::uint32_t>("%r1", 7, 3);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  EXPECT_EQ(h.reg<std::uint32_t>("%r2")[31], 7 + 93U);
  EXPECT_TRUE(h.log.empty());
}

}  // namespace
}  // namespace echolo::vgpu
