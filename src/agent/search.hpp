// The search proposer: every knob setting of every library kernel of a problem, without those that break a
// constraint, ranked by modelled cost.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "agent/cost.hpp"
#include "base/result.hpp"
#include "judge/check.hpp"
#include "judge/library.hpp"

namespace echolo::agent {

struct Proposal {
  judge::KernelLibrary library;
  judge::Knobs knobs;
  ModelledCost cost;  // at the target size
};

struct Proposals {
  std::vector<Proposal> ranked;  // best first
  std::size_t n_settings = 0;    // looked at
  std::size_t n_dropped = 0;     // of those, break a constraint at some size
};

inline constexpr std::size_t kMaxSettings = 1'000'000;

// Deterministic. Settings that cost the same keep the order in which kernel.toml lists their values. Errors
// (kUsage): no kernel of the library solves the problem in this world, dtype and fabric; too many settings.
Result<Proposals> search_proposals(const Problem& problem, const judge::CheckPlan& plan,
                                   const std::string& fabric);

// The `budget` settings to judge: the best ones, but of several that cost the same only the first as long as
// others are left, because the model cannot tell them apart and the judge should see what differs.
std::vector<Proposal> choose(const Proposals& proposals, std::size_t budget);

}  // namespace echolo::agent
