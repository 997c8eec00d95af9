// The options of a run as the store keeps them.
#pragma once

#include <string>

#include "agent/optimize.hpp"

namespace echolo::agent {

std::string options_to_text(const OptimizeOptions& options);
// Error (kMachine): damaged.
Result<OptimizeOptions> options_from_text(const std::string& text);

// The folders of the store that a check works in.
Status use_store(store::Store& store, judge::CheckOptions& options);

}  // namespace echolo::agent
