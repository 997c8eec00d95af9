// How a PE is kept from everything but its node: bubblewrap for what it sees, seccomp for what it may ask.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "runtime/node/process.hpp"

namespace echolo::runtime {

// The bubblewrap command line that runs `plan`; the filter is read from descriptor `seccomp_fd`.
std::vector<std::string> sandbox_command(const LaunchPlan& plan, int seccomp_fd);
// A descriptor that holds the filter program; the caller owns it.
Result<int> seccomp_program(bool may_fork);

}  // namespace echolo::runtime
