#include "judge/schedules.hpp"

#include "base/text.hpp"
#include "vgpu/core/policy.hpp"

namespace echolo::judge {

Result<std::vector<Schedule>> spread_schedules(int n_seeds, int n_schedules, const std::string& policy) {
  if (n_seeds < 1 || n_schedules < 1) return usage_error("--seeds and --schedules must be at least 1");
  if (!policy.empty()) {
    const Result<vgpu::Policy> known = vgpu::parse_policy(policy);
    if (!known) return known.error();
  }
  const auto all = vgpu::policies();
  std::vector<Schedule> out;
  for (int seed = 0; seed < n_seeds; ++seed) {
    for (int k = 0; k < n_schedules; ++k) {
      if (policy.empty()) {
        out.push_back({all[out.size() % all.size()].name, 1 + out.size() / all.size()});
      } else {
        out.push_back({policy, static_cast<std::uint64_t>(k) + 1});
      }
    }
  }
  return out;
}

std::string schedules_text(const std::vector<std::uint64_t>& seeds, const std::vector<Schedule>& schedules) {
  if (seeds.empty()) return {};
  const std::size_t per_seed = schedules.size() / seeds.size();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < seeds.size(); ++i) {
    std::vector<std::string> names;
    for (std::size_t k = i * per_seed; k < (i + 1) * per_seed; ++k)
      names.push_back(schedules[k].policy + " " + std::to_string(schedules[k].seed));
    parts.push_back("seed " + std::to_string(seeds[i]) + ": " + join(names, ", "));
  }
  return join(parts, "; ");
}

}  // namespace echolo::judge
