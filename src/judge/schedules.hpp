// Which schedules a check runs: `--schedules N` schedules for each seed, or one policy only.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "judge/verdict.hpp"

namespace echolo::judge {

// For each seed in turn, `n_schedules` of them. The policies follow each other in their order in
// vgpu/core/policy.cpp (fair first) and begin again where they are used up, with the next policy seed; the
// second seed goes on where the first one stopped. So three seeds with two schedules each try six policies.
// With `policy` every one has that policy, and policy seeds count from 1 for each seed. Error (kUsage): no
// such policy, a number below 1.
Result<std::vector<Schedule>> spread_schedules(int n_seeds, int n_schedules, const std::string& policy);

// "seed 1: fair 1, random 1; seed 2: ..." for people.
std::string schedules_text(const std::vector<std::uint64_t>& seeds, const std::vector<Schedule>& schedules);

}  // namespace echolo::judge
