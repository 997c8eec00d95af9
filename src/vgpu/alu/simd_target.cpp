#include <cstdlib>
#include <mutex>
#include <string>
#include <vector>

#include "hwy/highway.h"
#include "vgpu/alu/alu.hpp"

namespace echolo::vgpu::alu {
namespace {

std::string_view name_of(std::int64_t target) {
#if HWY_ARCH_X86
  if (target == HWY_SSE4) return "sse4";
  if (target == HWY_AVX2) return "avx2";
  if (target == HWY_AVX3) return "avx512";
#endif
  return hwy::TargetName(target);
}

// The targets that are compiled in and that this machine can run, best first (Highway numbers them so).
std::vector<std::int64_t> usable() {
  std::vector<std::int64_t> targets;
  for (std::int64_t left = hwy::SupportedTargets() & HWY_TARGETS; left != 0; left &= left - 1)
    targets.push_back(left & -left);
  return targets;
}

std::int64_t chosen = 0;
std::once_flag initialised;

Status choose(std::string_view name) {
  std::string known;
  for (const std::int64_t target : usable()) {
    if (name.empty() || name_of(target) == name) {
      chosen = target;
      hwy::GetChosenTarget().Update(target);
      return {};
    }
    known = std::string(name_of(target)) + (known.empty() ? "" : ", ") + known;
  }
  return usage_error("this machine has no SIMD target '" + std::string(name) + "'", "it has " + known);
}

}  // namespace

Status use_simd_target_of_environment() {
  Status status;
  std::call_once(initialised, [&status] {
    const char* wanted =
        std::getenv("ECHOLO_SIMD");  // NOLINT(concurrency-mt-unsafe): read once, before any plan
    status = choose(wanted == nullptr ? "" : wanted);
    if (!status.ok() && chosen == 0) static_cast<void>(choose(""));
  });
  return status;
}

Status set_simd_target(std::string_view name) {
  std::call_once(initialised, [] {});
  return choose(name);
}

std::string_view simd_target() {
  static_cast<void>(use_simd_target_of_environment());
  if (chosen == 0) static_cast<void>(choose(""));
  return name_of(chosen);
}

std::vector<std::string_view> simd_targets() {
  std::vector<std::string_view> names;
  for (const std::int64_t target : usable()) names.insert(names.begin(), name_of(target));
  return names;
}

}  // namespace echolo::vgpu::alu
