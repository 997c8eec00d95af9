// Random kernels that are right by construction must give, under every scheduling policy, what a plain scalar
// evaluator says, and no finding. A failure prints the kernel and stops.
#include <cstdio>
#include <cstdlib>

#include "random_kernel_run.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace echolo::vgpu;
  if (size == 0) return 0;
  // The first byte chooses: bytes as choices, so that the fuzzer can steer, or as a seed, so that it leaps.
  Choices choices = [&] {
    if (data[0] % 2 == 0) return Choices(std::span(data + 1, size - 1));
    std::uint64_t seed = 14695981039346656037ULL;
    for (std::size_t i = 0; i < size; ++i) seed = (seed ^ data[i]) * 1099511628211ULL;
    return Choices(seed);
  }();
  const RandomKernel kernel = make_random_kernel(choices);
  const auto all = policies();
  const Policy policy = all[data[0] / 2 % all.size()].policy;
  const std::string wrong = run_random_kernel(kernel, policy, 1 + size);
  if (wrong.empty()) return 0;
  std::fprintf(stderr, "policy %s:\n%s\n%s\n", std::string(name_of(policy)).c_str(), wrong.c_str(),
               kernel.ptx.c_str());
  std::abort();
}
