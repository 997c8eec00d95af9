// Runs the jobs of a check over the cores, and stops early in a way that does not show: the result is what
// running them one after another up to the first bad one would have given.
#pragma once

#include <cstddef>
#include <functional>

#include "base/result.hpp"

namespace echolo::judge {

// `run(i)` does job i and says whether it is good; it is called from several threads, each i at most once,
// and an error ends everything. Returns n_jobs when all are good, else the index of the first bad one: every
// job before it has been run and is good, and nothing after it counts. `n_parallel` 0: one a core.
Result<std::size_t> run_until_bad(std::size_t n_jobs, int n_parallel,
                                  const std::function<Result<bool>(std::size_t)>& run);

}  // namespace echolo::judge
