// Parts of recorded work, and figures of a timeline.
#include <algorithm>
#include <numeric>

#include "timing/model.hpp"

namespace echolo::timing {

vgpu::JobWork only_call(const vgpu::JobWork& work, int call) {
  constexpr std::uint32_t kGone = ~0U;
  std::vector<std::uint32_t> launch_of(work.launches.size(), kGone), stretch_of(work.stretches.size(), kGone);
  vgpu::JobWork out;
  out.n_pes = work.n_pes;
  for (std::size_t i = 0; i < work.launches.size(); ++i) {
    if (call != 0 && work.launches[i].call != call) continue;
    launch_of[i] = static_cast<std::uint32_t>(out.launches.size());
    out.launches.push_back(work.launches[i]);
    out.launches.back().blocks.clear();
  }
  // In the order in which they came to be, so that causes are known before what they cause.
  std::vector<std::uint32_t> block_of(work.blocks.size(), kGone);
  for (std::size_t i = 0; i < work.blocks.size(); ++i) {
    const std::uint32_t launch = launch_of[work.blocks[i].launch];
    if (launch == kGone) continue;
    block_of[i] = static_cast<std::uint32_t>(out.blocks.size());
    out.launches[launch].blocks.push_back(block_of[i]);
    out.blocks.push_back({launch, work.blocks[i].index, work.blocks[i].warps, {}});
  }
  for (std::size_t i = 0; i < work.stretches.size(); ++i) {
    const std::uint32_t block = block_of[work.stretches[i].block];
    if (block == kGone) continue;
    stretch_of[i] = static_cast<std::uint32_t>(out.stretches.size());
    out.blocks[block].stretches.push_back(stretch_of[i]);
    out.stretches.push_back(work.stretches[i]);
    out.stretches.back().block = block;
  }
  const auto rename = [&](std::vector<std::uint32_t>& list, const std::vector<std::uint32_t>& names) {
    std::vector<std::uint32_t> kept;
    for (const std::uint32_t old : list) {
      if (names[old] != kGone) kept.push_back(names[old]);
    }
    list = std::move(kept);
  };
  for (vgpu::LaunchWork& launch : out.launches) rename(launch.after, launch_of);
  for (vgpu::Stretch& stretch : out.stretches) rename(stretch.causes, stretch_of);
  return out;
}

std::pair<Resource, double> bottleneck(const Timeline& timeline) {
  std::array<double, kResources> bound{};
  for (const PeTimes& pe : timeline.pes) {
    for (std::size_t r = 0; r < kResources; ++r) bound[r] += pe.bound_us[r];
  }
  const double all = std::accumulate(bound.begin(), bound.end(), 0.0);
  const auto most = std::max_element(bound.begin(), bound.end());
  return {static_cast<Resource>(most - bound.begin()), all > 0 ? *most / all : 0};
}

double exposed_share(const Timeline& timeline) {
  double most = 0;
  for (const PeTimes& pe : timeline.pes) most = std::max(most, pe.exposed_us);
  return timeline.total_us > 0 ? most / timeline.total_us : 0;
}

}  // namespace echolo::timing
