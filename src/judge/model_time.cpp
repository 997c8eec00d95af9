#include "judge/model_time.hpp"

#include <algorithm>
#include <filesystem>

#include "timing/model.hpp"
#include "vgpu/work.hpp"

namespace echolo::judge {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Lines of the source under the name that the user knows.
void rename_places(vgpu::JobWork& work, const CompileRequest& compiled) {
  const std::string inside = std::string(kSandboxSource) + ":";
  const std::string shown = std::filesystem::path(compiled.path).filename().string() + ":";
  for (vgpu::Stretch& stretch : work.stretches) {
    if (stretch.waited_at.starts_with(inside)) stretch.waited_at.replace(0, inside.size(), shown);
  }
}

TimeModel summary(const timing::Timeline& timeline, const vgpu::JobWork& work) {
  TimeModel model;
  model.topology = timeline.topology;
  model.total_us = timeline.total_us;
  model.roofline_us = timeline.roofline_us;
  model.roofline = timing::name_of(timeline.roofline);
  const auto [resource, share] = timing::bottleneck(timeline);
  model.bottleneck = timing::name_of(resource);
  model.bottleneck_share = share;
  model.exposed_share = timing::exposed_share(timeline);
  model.longest_wait_us = timeline.longest_wait_us;
  model.longest_wait_at = timeline.longest_wait_at;
  for (const vgpu::Stretch& stretch : work.stretches) {
    for (const vgpu::PeerTraffic& peer : stretch.work.peers)
      model.link_bytes += peer.bytes_out + peer.bytes_in;
  }
  model.words = timing::in_words(timeline);
  return model;
}

}  // namespace

Result<timing::Topology> choose_topology(const TimeOptions& options, const std::string& fabric, int world) {
  timing::Topology none;
  if (!options.wanted) return none;
  std::string name = options.topology;
  if (name.empty())
    name = fabric == "rdma" ? "h200-rdma-x8" : world <= 2 ? "h200-nvlink-x2" : "h200-nvlink-x8";
  Result<timing::Topology> topology = timing::load_topology(name);
  if (!topology || world <= topology->max_pes) return topology;
  if (options.topology.empty() && !options.timeline) return none;
  return usage_error("topology " + topology->name + " has " + std::to_string(topology->max_pes) +
                         " PEs, and " + std::to_string(world) + " are to run",
                     "choose another with --topology");
}

Status model_times(const std::string& work_file, const timing::Topology& topology, int n_calls,
                   const CompileRequest& compiled, ModelledSize& out, std::string* timeline) {
  Result<vgpu::JobWork> work = vgpu::read_work(work_file);
  if (!work) return work.error();
  rename_places(*work, compiled);
  out.call_us.clear();
  const int last = n_calls == 0 ? 0 : n_calls;
  for (int call = n_calls == 0 ? 0 : 1; call <= last; ++call) {
    const vgpu::JobWork part = timing::only_call(*work, call);
    const Result<timing::Timeline> modelled = timing::simulate(part, topology);
    if (!modelled) return modelled.error();
    out.call_us.push_back(modelled->total_us);
    if (call != last) continue;
    out.model = summary(*modelled, part);
    if (timeline != nullptr) *timeline = timing::to_perfetto(*modelled, part);
  }
  out.median_us = median(out.call_us);
  return {};
}

}  // namespace echolo::judge
