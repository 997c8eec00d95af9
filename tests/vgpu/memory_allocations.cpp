// Allocations, addresses, written marks, transfers and leaks.
#include <set>

#include "memory_harness.hpp"
#include "vgpu/memory/allocator.hpp"
#include "vgpu/memory/shadow.hpp"

namespace echolo::vgpu {
namespace {

TEST(MemoryRegion, GuardsAndLateReuse) {
  Region region(0x1000, 0x10000, 0xf000);
  const std::uint64_t a = region.take(0x1000, 256), b = region.take(0x1000, 4096);
  EXPECT_GE(b, a + 0x1000 + Region::kGuard);
  EXPECT_EQ(b % 4096, 0U);
  region.give(a);
  const std::uint64_t c = region.take(0x1000, 256);
  EXPECT_GT(c, b);  // fresh addresses first
  EXPECT_EQ(region.used(), 0x2000U);
  EXPECT_EQ(region.take(0xe000, 256), 0U);  // more than is left of the capacity
  std::set<std::uint64_t> taken;
  std::uint64_t at = 0;
  while ((at = region.take(0x800, 256)) != 0) taken.insert(at);
  EXPECT_TRUE(*taken.begin() < b) << "the freed piece is used once fresh addresses have run out";
  region.give(*taken.begin());
  EXPECT_EQ(region.take(0x800, 256), *taken.begin());
}

TEST(MemoryShadow, AgreesWithOneBitAtATime) {
  std::uint8_t marks[16] = {};
  for (std::uint64_t from = 0; from < 40; ++from) {
    for (std::uint64_t n = 1; from + n < 120; n += 7) {
      std::memset(marks, 0, sizeof marks);
      shadow::assign(marks, from, n, true);
      for (std::uint64_t i = 0; i < 128; ++i) ASSERT_EQ(shadow::test(marks, i), i >= from && i < from + n);
      ASSERT_TRUE(shadow::all_set(marks, from, n));
      if (from > 0) {
        ASSERT_FALSE(shadow::all_set(marks, from - 1, n));
      }
      ASSERT_FALSE(shadow::all_set(marks, from, n + 1));
      shadow::assign(marks, from + n / 2, 1, false);
      ASSERT_FALSE(shadow::all_set(marks, from, n));
    }
  }
}

TEST(MemoryAllocations, PlacesDifferByPeAndSeed) {
  std::uint64_t first = 0, again = 0;
  std::set<std::uint64_t> strides;
  {
    MemoryHarness h(4);
    first = h.device(64);
    for (int pe = 0; pe < 3; ++pe)
      strides.insert(h.memory->symmetric_base(pe + 1) - h.memory->symmetric_base(pe));
    for (int pe = 0; pe < 4; ++pe) EXPECT_EQ(h.memory->pe_of(h.memory->symmetric_base(pe)), pe);
    EXPECT_EQ(h.memory->pe_of(0x1234), -1);
  }
  EXPECT_EQ(strides.size(), 3U);
  {
    MemoryHarness h(4);
    again = h.device(64);
  }
  EXPECT_EQ(first, again);
  MemoryHarness other(4, true, 2);
  EXPECT_NE(other.device(64), first);
}

TEST(MemoryAllocations, SymmetricOffsetsAreEqual) {
  MemoryHarness h(4);
  const auto a = *h.memory->allocate_symmetric(100, 256, "nvshmem_malloc", {});
  const auto b = *h.memory->allocate_symmetric(1 << 20, 4096, "nvshmem_malloc", {});
  for (int pe = 0; pe < 4; ++pe) {
    EXPECT_EQ(a[static_cast<std::size_t>(pe)] - h.memory->symmetric_base(pe),
              a[0] - h.memory->symmetric_base(0));
    EXPECT_EQ(h.memory->translate(b[1] + 77, pe), b[static_cast<std::size_t>(pe)] + 77);
    EXPECT_TRUE(h.memory->is_symmetric(a[static_cast<std::size_t>(pe)] + 99));
    EXPECT_FALSE(h.memory->is_symmetric(a[static_cast<std::size_t>(pe)] + 100));
  }
  EXPECT_EQ(h.memory->translate(b[1] + (1 << 20), 0), 0U);
  EXPECT_EQ(h.memory->translate(h.device(64), 1), 0U);
  for (const std::uint64_t base : a) ASSERT_TRUE(h.memory->release(base));
  EXPECT_FALSE(h.memory->is_symmetric(a[2]));
  ASSERT_NE(h.memory->find_freed(a[2]), nullptr);
}

TEST(MemoryAllocations, WrongFreesSayWhatTheyFree) {
  MemoryHarness h;
  const std::uint64_t buf = h.device(1024);
  EXPECT_EQ(h.memory->release(buf + 16).error().message,
            "frees an address 16 bytes into `buf`; only its start can be freed");
  ASSERT_TRUE(h.memory->release(buf));
  EXPECT_EQ(h.memory->release(buf).error().message, "frees `buf` a second time");
  EXPECT_EQ(h.memory->release(12345).error().message, "frees an address that is no allocation's");
}

TEST(MemoryAllocations, OutOfMemoryNamesWhatIsLeft) {
  MemoryHarness h;
  EXPECT_FALSE(h.memory->allocate(0, 0, 256, AllocationKind::kDevice, "", "cudaMalloc", ""));
  const auto huge = h.memory->allocate(0, 1ULL << 40U, 256, AllocationKind::kDevice, "", "cudaMalloc", "");
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().message,
            "out of memory: PE 0 asks for 1 TiB of device memory, and 141 GiB of 141 GiB are left");
  // Untouched memory costs nothing.
  EXPECT_TRUE(h.memory->allocate(0, 140ULL << 30U, 256, AllocationKind::kDevice, "", "cudaMalloc", ""));
}

TEST(MemoryTransfers, CopiesCarryTheMarks) {
  MemoryHarness h;
  const std::uint64_t a = h.device(64, "a"), b = h.device(64, "b");
  const std::uint32_t word = 42;
  h.fill(a + 5, &word, 4);
  Memory::Accessor who;
  ASSERT_TRUE(h.memory->copy(b + 2, a, 32, who));
  EXPECT_TRUE(h.log.empty());  // copying what was never written is no fault
  h.assemble("ld.global.u8 %h1, [%rd1];");
  h.set<std::uint64_t>("%rd1", b, 1);
  ASSERT_EQ(h.execute(0xf << 7), MemOutcome::kDone);
  EXPECT_TRUE(h.log.empty());
  ASSERT_EQ(h.execute(1 << 6), MemOutcome::kDone);
  EXPECT_EQ(h.log.all().size(), 1U);
}

TEST(MemoryTransfers, PoisonForgetsAndFreshMemoryAfterFreeIsUnwritten) {
  MemoryHarness h;
  const std::uint64_t a = h.device(64, "a");
  Memory::Accessor who;
  ASSERT_TRUE(h.memory->fill(a, 0, 64, who));
  h.assemble("ld.global.u32 %r1, [%rd1];");
  h.set<std::uint64_t>("%rd1", a);
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);
  EXPECT_TRUE(h.log.empty());
  h.memory->poison(a, 64);
  ASSERT_EQ(h.execute(1), MemOutcome::kDone);
  ASSERT_EQ(h.log.all().size(), 1U);
  EXPECT_EQ(h.reg<std::uint32_t>("%r1")[0], 0xfffbfffbU);
}

TEST(MemoryTransfers, BoundsAndRights) {
  MemoryHarness h;
  const std::uint64_t mine = h.device(64, "mine", 0);
  const auto symmetric = *h.memory->allocate_symmetric(64, 256, "nvshmem_malloc", {"a.cu:3", "a.cu:3"});
  const Site site = [] {
    Site made;
    made.role = "host";
    made.pe = 0;
    made.on_device = false;
    made.where = {"a.cu", 9, 0, "main"};
    return made;
  }();
  Memory::Accessor who;
  who.site = &site;
  who.pe = 0;
  who.what = "cudaMemcpy";
  std::uint8_t bytes[128] = {};
  EXPECT_TRUE(h.memory->write(mine, bytes, 64, who));
  EXPECT_FALSE(h.memory->write(mine + 1, bytes, 64, who));
  EXPECT_EQ(render(h.log.all().back(), {}),
            "a.cu:9: out-of-bounds: cudaMemcpy of PE 0 writes 64 bytes, the last 1 past the end of `mine`\n"
            "   a.cu:9: by PE 0's host code, in main()\n"
            "   memory: `mine`, 64 bytes from cudaMalloc at test.cu:7, byte 1 on PE 0\n"
            "   why: it is at byte 1; `mine` has 64 bytes\n"
            "   mend: make the length at most what is left behind the offset, or allocate more\n");
  EXPECT_TRUE(h.memory->write(symmetric[1], bytes, 64, who));
  who.pe = 1;
  EXPECT_FALSE(h.memory->read(mine, bytes, 4, who));
  std::uint64_t old = 0;
  who.pe = 0;
  who.any_pe = true;
  EXPECT_TRUE(h.memory->modify(
      symmetric[1] + 8, 8, [](std::uint64_t x) { return x + 5; }, &old, who));
  EXPECT_EQ(old, 0U);
  ASSERT_TRUE(h.memory->last_writer(symmetric[1] + 8));
  EXPECT_EQ(h.memory->last_writer(symmetric[1] + 8)->value, 5U);
  const std::uint64_t before = h.memory->changes();
  EXPECT_TRUE(h.memory->modify(
      symmetric[1] + 8, 8, [](std::uint64_t x) { return x; }, &old, who));
  EXPECT_EQ(h.memory->changes(), before);
  EXPECT_FALSE(h.memory->modify(
      symmetric[1] + 4, 8, [](std::uint64_t x) { return x; }, &old, who));
  EXPECT_EQ(h.log.all().back().kind, FindingKind::kMisaligned);
}

TEST(MemoryTransfers, PinnedMemoryIsSharedThroughItsFile) {
  MemoryHarness h;
  const std::uint64_t pinned =
      *h.memory->allocate(1, 4096, 256, AllocationKind::kPinned, "", "cudaMallocHost", "");
  EXPECT_GE(h.memory->host_fd(1), 0);
  EXPECT_EQ(h.memory->pe_of(pinned), 1);
  std::uint32_t value = 9;
  EXPECT_TRUE(h.memory->read(pinned, &value, 4, {}));
  EXPECT_EQ(value, 0U);
  EXPECT_TRUE(h.log.empty());
}

TEST(MemoryLeaks, GroupedByPlace) {
  MemoryHarness h;
  for (int i = 0; i < 3; ++i)
    ASSERT_TRUE(h.memory->allocate(0, 1024, 256, AllocationKind::kDevice, "", "cudaMalloc", "a.cu:5"));
  ASSERT_TRUE(h.memory->allocate_symmetric(64, 256, "nvshmem_malloc", {"a.cu:8", "a.cu:8"}));
  ASSERT_TRUE(h.memory->allocate(0, 64, 256, AllocationKind::kInternal, "", "", ""));
  report_leaks(*h.memory, h.log);
  ASSERT_EQ(h.log.all().size(), 2U);
  EXPECT_FALSE(h.log.has_fatal());
  EXPECT_EQ(h.log.all()[0].message, "3 allocations, 3 KiB in all, are never freed");
  EXPECT_EQ(h.log.all()[0].sites[0].where.line, 5);
  EXPECT_EQ(h.log.all()[1].message, "2 allocations, 128 bytes in all, are never freed");
  EXPECT_EQ(h.log.all()[1].advice, "nvshmem_free on every PE, before nvshmem_finalize");
}

}  // namespace
}  // namespace echolo::vgpu
