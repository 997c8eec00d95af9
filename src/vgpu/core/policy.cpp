#include "vgpu/core/policy.hpp"

#include <array>
#include <vector>

#include "base/text.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::array kPolicies = {
    PolicyInfo{Policy::kFair, "fair", "turn and turn about"},
    PolicyInfo{Policy::kRandom, "random", "any warp next, for any time"},
    PolicyInfo{Policy::kLazyDelivery, "lazy-delivery", "as fair; messages as late as allowed"},
    PolicyInfo{Policy::kPct2, "pct2", "random priorities, one change of them"},
    PolicyInfo{Policy::kOneSlowPe, "one-slow-pe", "one PE goes on only when nobody else can"},
    PolicyInfo{Policy::kReversed, "reversed", "the last block first"},
    PolicyInfo{Policy::kEagerDelivery, "eager-delivery", "as fair; messages at once"},
    PolicyInfo{Policy::kPct3, "pct3", "random priorities, two changes of them"},
    PolicyInfo{Policy::kPct1, "pct1", "random priorities"},
};

}  // namespace

std::span<const PolicyInfo> policies() { return kPolicies; }

std::string_view name_of(Policy policy) {
  for (const PolicyInfo& info : kPolicies) {
    if (info.policy == policy) return info.name;
  }
  return "?";
}

std::string policy_names() {
  std::string text;
  for (const PolicyInfo& info : kPolicies) text += (text.empty() ? "" : ", ") + std::string(info.name);
  return text;
}

Result<Policy> parse_policy(std::string_view name) {
  std::vector<std::string> known;
  for (const PolicyInfo& info : kPolicies) {
    if (name == info.name) return info.policy;
    known.emplace_back(info.name);
  }
  const std::string meant = did_you_mean(name, known);
  return usage_error("no scheduling policy '" + std::string(name) + "'",
                     meant.empty() ? "one of " + policy_names() : meant);
}

}  // namespace echolo::vgpu
