// The oracle beside the machine: enumerates candidate executions of a litmus test and keeps those that the
// axioms of the PTX memory model allow, written as relations (PTX ISA, "Axioms"). Slow, and sharing nothing
// with the machine but the threads' traces, so that each can be held against the other.
#pragma once

#include "litmus/explore.hpp"

namespace echolo::litmus {

// `terminates` is left true: whether a test can hang is a question about runs, not about finished executions.
Answer enumerate(const Program& program, const ExploreLimits& limits = {});

}  // namespace echolo::litmus
