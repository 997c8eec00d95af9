// All runs of a litmus test on the machine of model/machine.hpp.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "litmus/program.hpp"
#include "litmus/trace.hpp"

namespace echolo::litmus {

struct ExploreLimits {
  TraceLimits trace;
  double seconds = 10;  // for both questions together: what is reachable, can it hang
};

struct Answer {
  // Final states of the runs in which every thread finished, as values of Program::observed, with the number
  // of runs that end there (runs that differ in what some read reads).
  std::map<std::vector<std::int64_t>, std::uint64_t> outcomes;
  bool holds = false;      // the file's condition; true where it has none
  bool terminates = true;  // every run ends, when threads run fairly and strong loads become current
  std::string stuck;       // where it does not: which threads wait for what
  bool complete = true;    // nothing was cut off by a limit; else `why_incomplete` says by which
  std::string why_incomplete;
  std::uint64_t steps = 0;
};

// The condition as `outcomes` answer it.
bool condition_holds(const Program& program,
                     const std::map<std::vector<std::int64_t>, std::uint64_t>& outcomes);

Answer explore(const Program& program, const ExploreLimits& limits = {});

}  // namespace echolo::litmus
