// A fixed slice of what fuzz/valid_kernels.cpp does without end.
#include <gtest/gtest.h>

#include "random_kernel_run.hpp"

namespace echolo::vgpu {
namespace {

TEST(RandomKernels, GiveWhatAScalarEvaluatorSaysUnderEveryPolicy) {
  const auto all = policies();
  int failures = 0;
  for (std::uint64_t seed = 1; seed <= 120 && failures < 3; ++seed) {
    Choices choices(seed);
    const RandomKernel kernel = make_random_kernel(choices);
    for (const Policy policy : {Policy::kFair, all[seed % all.size()].policy}) {
      const std::string wrong = run_random_kernel(kernel, policy, seed);
      if (wrong.empty()) continue;
      ++failures;
      ADD_FAILURE() << "seed " << seed << ", " << name_of(policy) << ":\n" << wrong << kernel.ptx;
      break;
    }
  }
}

// The comparison must be able to fail.
TEST(RandomKernels, ADifferenceIsSeen) {
  Choices choices(7);
  RandomKernel kernel = make_random_kernel(choices);
  kernel.out.back() ^= 1U;
  EXPECT_NE(run_random_kernel(kernel, Policy::kFair, 1).find("out["), std::string::npos);
}

TEST(RandomKernels, BytesDecideToo) {
  const std::uint8_t bytes[] = {3, 2, 9, 1, 2, 3, 4, 90, 0, 7, 7, 7};
  Choices choices{std::span<const std::uint8_t>(bytes)};
  const RandomKernel kernel = make_random_kernel(choices);
  EXPECT_EQ(kernel.threads, 128U);
  EXPECT_EQ(run_random_kernel(kernel, Policy::kRandom, 1), "");
}

}  // namespace
}  // namespace echolo::vgpu
