// How much memory of this machine a check needs, before it starts.
#pragma once

#include <cstdint>

#include "base/result.hpp"
#include "judge/check.hpp"

namespace echolo::judge {

struct MemoryNeed {
  std::uint64_t node = 0;       // bytes of one job's virtual node
  std::uint64_t reference = 0;  // of PyTorch and the oracle, in all
  int jobs = 1;                 // at once
  std::uint64_t total() const { return node * static_cast<std::uint64_t>(jobs) + reference; }
};

// An estimate from the shapes of one size. Inputs that only reference.py knows count nothing.
Result<MemoryNeed> memory_need(const Problem& problem, const Params& params, int world, DType dtype,
                               int n_parallel, std::size_t n_jobs);

// What this process may use: the machine's memory, or its control group's limit. 0: unknown.
std::uint64_t machine_memory();

// Error (kMachine): a size of the plan needs more than `limit` bytes (0: machine_memory()); names size and
// figures.
Status fits_memory(const Problem& problem, const CheckPlan& plan, const CheckOptions& options);

}  // namespace echolo::judge
