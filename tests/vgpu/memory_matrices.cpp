// ldmatrix, stmatrix and cp.async.
#include "memory_harness.hpp"

namespace echolo::vgpu {
namespace {

// Shared memory holds 32 rows of 8 halves; element (row, column) is row * 100 + column.
void fill_rows(MemoryHarness& h) {
  for (unsigned row = 0; row < 32; ++row) {
    for (unsigned column = 0; column < 8; ++column) {
      const auto value = static_cast<std::uint16_t>(row * 100 + column);
      std::memcpy(h.block.shared.data() + row * 16 + column * 2, &value, 2);
    }
  }
  std::fill(h.block.shared_written.begin(), h.block.shared_written.end(), 0xff);
}

TEST(MemoryMatrices, LoadPutsRowsAndColumnsWhereMmaWantsThem) {
  MemoryHarness h;
  fill_rows(h);
  h.assemble(
      "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r10];\n"
      "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r5,%r6}, [%r10];\nldmatrix.sync.aligned.m8n8.x1.b16 "
      "{%r7}, [%rd1];");
  h.set<std::uint32_t>("%r10", 0, 16);
  h.set<std::uint64_t>("%rd1", kSharedWindow, 16);
  for (int i = 16; i < 32; ++i) h.reg<std::uint64_t>("%rd1")[i] = 12345;  // x1 looks at eight addresses only
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned r = lane / 4, c = 2 * (lane % 4);
    for (unsigned j = 0; j < 4; ++j) {
      const std::uint32_t row = (8 * j + r) * 100;
      EXPECT_EQ(h.reg<std::uint32_t>("%r" + std::to_string(j + 1))[lane], (row + c) | (row + c + 1) << 16U);
    }
    for (unsigned j = 0; j < 2; ++j) {
      EXPECT_EQ(h.reg<std::uint32_t>("%r" + std::to_string(j + 5))[lane],
                ((8 * j + c) * 100 + r) | ((8 * j + c + 1) * 100 + r) << 16U);
    }
    EXPECT_EQ(h.reg<std::uint32_t>("%r7")[lane], (r * 100 + c) | (r * 100 + c + 1) << 16U);
  }
}

TEST(MemoryMatrices, StoreIsTheInverse) {
  for (const char* trans : {"", ".trans"}) {
    MemoryHarness h;
    fill_rows(h);
    const std::string form = std::string(".sync.aligned.m8n8.x4") + trans + ".shared.b16 ";
    h.assemble("ldmatrix" + form + "{%r1,%r2,%r3,%r4}, [%r10];\nstmatrix" + form +
               "[%r10+1024], {%r1,%r2,%r3,%r4};");
    h.set<std::uint32_t>("%r10", 0, 16);
    ASSERT_EQ(h.execute(), MemOutcome::kDone);
    EXPECT_EQ(std::memcmp(h.block.shared.data(), h.block.shared.data() + 1024, 512), 0);
  }
}

TEST(MemoryMatrices, RowsMustBeAligned) {
  MemoryHarness h;
  fill_rows(h);
  h.assemble("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1,%r2,%r3,%r4}, [%r10];");
  h.set<std::uint32_t>("%r10", 8, 16);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all()[0].kind, FindingKind::kMisaligned);
}

TEST(MemoryAsyncCopy, CopiesAndFillsWithZeros) {
  MemoryHarness h;
  const std::uint64_t from = h.device(1024);
  std::uint8_t bytes[1024];
  for (std::size_t i = 0; i < sizeof bytes; ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  h.fill(from, bytes, sizeof bytes);
  h.assemble(
      "cp.async.cg.shared.global [%r1], [%rd1+16], 16;\ncp.async.ca.shared.global [%r1+512], [%rd1], 16, "
      "%r2;\n"
      "cp.async.ca.shared.global.L2::128B [%r1+1024], [%rd1], 4, %p1;\n"
      "cp.async.commit_group;\ncp.async.wait_group 0;\ncp.async.wait_all;");
  for (int i = 0; i < 32; ++i) {
    h.reg<std::uint64_t>("%rd1")[i] = from + static_cast<std::uint64_t>(16 * (i % 16));
    h.reg<std::uint32_t>("%r1")[i] = static_cast<std::uint32_t>(16 * i);
    h.reg<std::uint32_t>("%r2")[i] = static_cast<std::uint32_t>(i % 3 * 8);  // 0, 8 or 16 bytes of the source
  }
  *h.reg<std::uint32_t>("%p1") = 0xff;
  ASSERT_EQ(h.execute(), MemOutcome::kDone) << render(h.log.all().back(), {});
  for (int i = 0; i < 32; ++i) {
    const std::uint8_t* source = bytes + 16 * (i % 16);
    const std::uint8_t* shared = h.block.shared.data() + 16 * i;
    EXPECT_EQ(std::memcmp(shared, source + 16, 16), 0);
    std::uint8_t expected[16] = {};
    std::memcpy(expected, source, static_cast<std::size_t>(i % 3 * 8));
    EXPECT_EQ(std::memcmp(shared + 512, expected, 16), 0);
    std::uint8_t four[4] = {};
    if (i >= 8) std::memcpy(four, source, 4);
    EXPECT_EQ(std::memcmp(shared + 1024, four, 4), 0);
  }
}

TEST(MemoryAsyncCopy, AZeroSizeNeverTouchesTheSource) {
  MemoryHarness h;
  h.assemble("cp.async.cg.shared.global [%r1], [%rd1], 16, %r2;\ncp.async.wait_all;");
  h.set<std::uint32_t>("%r1", 0, 16);
  h.set<std::uint64_t>("%rd1", 0);
  ASSERT_EQ(h.execute(), MemOutcome::kDone);
  h.set<std::uint32_t>("%r2", 4);
  ASSERT_EQ(h.execute(), MemOutcome::kFault);
  EXPECT_EQ(h.log.all()[0].message, "PE 0 reads 4 bytes through a null pointer");
}

}  // namespace
}  // namespace echolo::vgpu
