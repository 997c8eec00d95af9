// wgmma: the very PTX that ran on an H200 (tests/gpu/golden/wgmma.hpp) runs on the virtual node and gives the
// same bits: all swizzles, both orders of either operand, A from registers, every type.
#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "../gpu/golden/wgmma.hpp"
#include "core_harness.hpp"
#include "ptx_forms.hpp"

namespace echolo::vgpu {
namespace {

TEST(MemoryWgmma, SameBitsAsAnH200) {
  std::map<std::string, std::uint64_t> hashes;
  std::ifstream file(std::string(ECHOLO_SOURCE_DIR) + "/tests/alu/golden/h200-wgmma.txt");
  for (std::string line; std::getline(file, line);)
    hashes[line.substr(17)] = std::stoull(line.substr(0, 16), nullptr, 16);
  const std::vector<golden::Wgmma> cases = golden::wgmma_cases();
  ASSERT_EQ(hashes.size(), cases.size());
  Node node(golden::wgmma_module(cases));
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::uint64_t in = node.upload(golden::wgmma_input(cases[i], i));
    const std::size_t n = static_cast<std::size_t>(cases[i].results) * 512;
    const std::uint64_t out = node.upload(std::vector<std::uint8_t>(n));
    node.launch("w" + std::to_string(i), {1, 1, 1}, {128, 1, 1}, Params().add(in).add(out));
    const Machine::Progress end = node.finish();
    ASSERT_EQ(end, Machine::Progress::kIdle) << node.explain(end);
    const std::vector<std::uint8_t> bytes = node.download<std::uint8_t>(out, n);
    const std::string name = golden::wgmma_name(cases[i], i);
    EXPECT_EQ(golden::hash_of(bytes.data(), bytes.size()), hashes[name]) << name;
  }
}

TEST(MemoryWgmma, WrongFormsAreRefused) {
  const char* const forms[] = {
      "wgmma.mma_async.sync.aligned.m64n12k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3, %r4, %r5}, %rd0, %rd1, 1, "
      "1, 1, 0, 0",
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 1, 2, 1, 0, 0",
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 1, 1, 1, 0",
      "wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 1, 1, 1, 0, 0",
      "wgmma.mma_async.sync.aligned.m64n8k32.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, %rd0, %rd1, 1, 1, 1, 0, 0"};
  for (const char* form : forms) EXPECT_NE(ptx_forms::refusal(form), "") << form;
}

// A descriptor that points past the block's shared memory is out of bounds as any load is.
TEST(MemoryWgmma, ReadsAreChecked) {
  Node node(R"(.version 9.2
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 out)
{
.shared .align 1024 .b8 sm[1024];
.reg .b32 %r<4>;
.reg .b64 %rd<4>;
mov.u64 %rd1, 0x4000004000100000;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r0, %r1, %r2, %r3}, %rd1, %rd1, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
ret;
})");
  const std::uint64_t out = node.upload(std::vector<int>(1));
  node.launch("k", {1, 1, 1}, {128, 1, 1}, Params().add(out));
  node.finish();
  EXPECT_TRUE(node.machine->findings().has_fatal());
}

}  // namespace
}  // namespace echolo::vgpu
