#include "agent/search.hpp"

#include <algorithm>
#include <cmath>

namespace echolo::agent {
namespace {

template <typename T>
bool holds(const std::vector<T>& list, const T& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

Status enumerate(const judge::KernelLibrary& library, const judge::CheckPlan& plan, const std::string& fabric,
                 Proposals& out) {
  std::vector<Bindings> sizes;
  for (const judge::PlannedSize& size : plan.sizes) {
    sizes.push_back(judge::problem_bindings(size.params, plan.world, plan.dtype));
  }
  std::vector<std::size_t> at(library.knobs.size(), 0);
  while (true) {
    if (++out.n_settings > kMaxSettings) {
      return usage_error(library.toml_path + " has more than " + std::to_string(kMaxSettings) + " settings");
    }
    judge::Knobs knobs;
    for (std::size_t k = 0; k < at.size(); ++k) {
      knobs.push_back({library.knobs[k].name, library.knobs[k].values[at[k]]});
    }
    bool valid = true;
    for (const Bindings& size : sizes) {
      Result<std::string> broken = library.broken_constraint(knobs, size);
      if (!broken) return broken.error();
      valid = valid && broken->empty();
    }
    if (valid) {
      // The last size by name is what is optimised for; the drawn one only widens the check.
      std::size_t target = 0;
      for (std::size_t i = 0; i < plan.sizes.size(); ++i) {
        if (plan.sizes[i].name != "drawn") target = i;
      }
      Result<ModelledCost> cost = modelled_cost(library, knobs, sizes[target], plan.dtype, fabric);
      if (!cost) return cost.error();
      out.ranked.push_back({library, std::move(knobs), *cost});
    } else {
      ++out.n_dropped;
    }
    std::size_t k = at.size();
    while (k > 0 && ++at[k - 1] == library.knobs[k - 1].values.size()) at[--k] = 0;
    if (k == 0) return {};
  }
}

}  // namespace

Result<Proposals> search_proposals(const Problem& problem, const judge::CheckPlan& plan,
                                   const std::string& fabric) {
  Result<std::vector<judge::KernelLibrary>> libraries = judge::kernel_library(problem.name);
  if (!libraries) return libraries.error();
  Proposals out;
  for (const judge::KernelLibrary& library : *libraries) {
    if (!holds(library.worlds, plan.world) || !holds(library.dtypes, plan.dtype) ||
        !holds(library.fabrics, fabric)) {
      continue;
    }
    if (Status status = enumerate(library, plan, fabric, out); !status) return status.error();
  }
  if (out.ranked.empty()) {
    return usage_error("no kernel of the library solves " + problem.name + " for a world of " +
                           std::to_string(plan.world) + " in " + dtype_name(plan.dtype) + " over " + fabric,
                       "write one, and give it with --start FILE");
  }
  std::stable_sort(out.ranked.begin(), out.ranked.end(), [](const Proposal& a, const Proposal& b) {
    return a.cost.microseconds < b.cost.microseconds;
  });
  return out;
}

std::vector<Proposal> choose(const Proposals& proposals, std::size_t budget) {
  std::vector<Proposal> chosen;
  std::vector<const Proposal*> alike;
  for (const Proposal& one : proposals.ranked) {
    const bool seen = std::any_of(chosen.begin(), chosen.end(), [&](const Proposal& other) {
      return std::abs(other.cost.microseconds - one.cost.microseconds) <= 1e-9 * one.cost.microseconds &&
             other.library.name == one.library.name;
    });
    if (seen) {
      if (alike.size() < budget) alike.push_back(&one);
    } else if (chosen.size() < budget) {
      chosen.push_back(one);
    }
    if (chosen.size() == budget) break;
  }
  for (const Proposal* one : alike) {
    if (chosen.size() == budget) break;
    chosen.push_back(*one);
  }
  return chosen;
}

}  // namespace echolo::agent
