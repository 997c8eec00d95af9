#include "judge/memory_need.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "base/text.hpp"

namespace echolo::judge {
namespace {

constexpr std::uint64_t kNodeItself = 64ULL << 20U;
// A rank's process with PyTorch loaded, as seen with torch 2.15 on CPUs.
constexpr std::uint64_t kRankItself = 260ULL << 20U;
constexpr std::uint64_t kOracleBytes = 8;  // float64

std::string gib(std::uint64_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1ULL << 30U));
}

// "MemTotal:   24000000 kB" and the like.
std::uint64_t kilobytes_after(const std::string& text, const std::string& key) {
  const std::size_t at = text.find(key);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + key.size(), nullptr, 10) * 1024U;
}

}  // namespace

Result<MemoryNeed> memory_need(const Problem& problem, const Params& params, int world, DType dtype,
                               int n_parallel, std::size_t n_jobs) {
  MemoryNeed need;
  std::uint64_t inputs = 0, outputs = 0, oracle = 0;
  for (int rank = 0; rank < world; ++rank) {
    const auto in = problem.input_infos(params, world, rank, dtype);
    if (!in) return in.error();
    const auto out = problem.output_infos(params, world, rank, dtype);
    if (!out) return out.error();
    for (const TensorInfo& tensor : *in) {
      inputs += tensor.bytes();
      oracle += static_cast<std::uint64_t>(tensor.elements()) * kOracleBytes;
    }
    for (const TensorInfo& tensor : *out) {
      outputs += tensor.bytes();
      oracle += static_cast<std::uint64_t>(tensor.elements()) * kOracleBytes;
    }
  }
  // Beside inputs and outputs the symmetric buffers of the candidate, which mostly hold what one of the two
  // does; a bit of shadow a byte, and 32 bytes about races for each line of 128.
  const std::uint64_t device = inputs + outputs + std::max(inputs, outputs);
  need.node = kNodeItself + device + device / 8 + device / 4;
  // The oracle's tensors, the same in the problem's type, and what is gathered from other ranks once more.
  need.reference = static_cast<std::uint64_t>(world) * kRankItself + 2 * oracle + inputs + outputs;
  const auto cores = std::max(1U, std::thread::hardware_concurrency());
  need.jobs = static_cast<int>(std::clamp<std::size_t>(
      n_parallel > 0 ? static_cast<std::size_t>(n_parallel) : cores, 1, std::max<std::size_t>(n_jobs, 1)));
  return need;
}

std::uint64_t machine_memory() {
  std::uint64_t least = 0;
  if (const Result<std::string> info = read_file("/proc/meminfo"))
    least = kilobytes_after(*info, "MemTotal:");
  if (const Result<std::string> limit = read_file("/sys/fs/cgroup/memory.max")) {
    const std::uint64_t bytes = std::strtoull(limit->c_str(), nullptr, 10);  // "max" gives 0
    if (bytes != 0 && (least == 0 || bytes < least)) least = bytes;
  }
  return least;
}

Status fits_memory(const Problem& problem, const CheckPlan& plan, const CheckOptions& options) {
  const std::uint64_t limit = options.memory_limit != 0 ? options.memory_limit : machine_memory();
  if (limit == 0) return {};
  for (const PlannedSize& size : plan.sizes) {
    const Result<MemoryNeed> need =
        memory_need(problem, size.params, plan.world, plan.dtype, options.n_parallel, plan.n_jobs());
    if (!need) return need.error();
    if (need->total() <= limit) continue;
    const std::string jobs = need->jobs == 1 ? "a job" : std::to_string(need->jobs) + " jobs at once, each";
    const MemoryNeed alone{need->node, need->reference, 1};
    return machine_error("size " + size.name + " (" + params_text(size.params) + ") on " +
                             std::to_string(plan.world) + " PEs needs about " + gib(need->total()) +
                             " of memory, and " + gib(limit) +
                             (options.memory_limit != 0 ? " are allowed" : " are there") + ": " + jobs + " " +
                             gib(need->node) + ", the reference in PyTorch " + gib(need->reference),
                         alone.total() <= limit ? "--jobs 1 needs " + gib(alone.total())
                                                : "choose a smaller size or fewer PEs, or raise --memory");
  }
  return {};
}

}  // namespace echolo::judge
