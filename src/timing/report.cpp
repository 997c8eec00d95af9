// What a timeline says, for people and for Perfetto.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "timing/model.hpp"

namespace echolo::timing {
namespace {

using nlohmann::json;

constexpr int kLinkRow = 1'000'000;  // thread number of a PE's row for its link, behind all SM slots

int row_of(const Span& span) { return span.sm * 64 + span.slot; }

}  // namespace

std::string in_words(const Timeline& timeline) {
  std::string out =
      fmt::format("modelled on {}: {:.1f} us in all; no schedule needs less than {:.1f} us, for {}\n",
                  timeline.topology, timeline.total_us, timeline.roofline_us, name_of(timeline.roofline));
  std::array<double, kResources> bound{};
  for (const PeTimes& pe : timeline.pes) {
    for (std::size_t r = 0; r < kResources; ++r) bound[r] += pe.bound_us[r];
  }
  const double all = std::accumulate(bound.begin(), bound.end(), 0.0);
  if (all > 0) {
    const auto most = std::max_element(bound.begin(), bound.end());
    out +=
        fmt::format("bottleneck (modelled): {}, which holds blocks back for {:.0f} % of the time they work\n",
                    name_of(static_cast<Resource>(most - bound.begin())), 100 * *most / all);
  }
  const auto worst =
      std::max_element(timeline.pes.begin(), timeline.pes.end(),
                       [](const PeTimes& a, const PeTimes& b) { return a.exposed_us < b.exposed_us; });
  if (worst != timeline.pes.end() && worst->exposed_us > 0) {
    out += fmt::format("exposed communication (modelled): {:.1f} us on PE {}, {:.0f} % of its time\n",
                       worst->exposed_us, worst - timeline.pes.begin(),
                       100 * worst->exposed_us / timeline.total_us);
  }
  if (!timeline.longest_wait_at.empty()) {
    out += fmt::format("longest wait (modelled): {:.1f} us a block at {}\n", timeline.longest_wait_us,
                       timeline.longest_wait_at);
  }
  return out;
}

std::string to_perfetto(const Timeline& timeline, const vgpu::JobWork& work) {
  json events = json::array();
  const auto name_row = [&](int pe, int row, const std::string& name) {
    events.push_back(
        {{"ph", "M"}, {"name", "thread_name"}, {"pid", pe}, {"tid", row}, {"args", {{"name", name}}}});
    events.push_back({{"ph", "M"},
                      {"name", "thread_sort_index"},
                      {"pid", pe},
                      {"tid", row},
                      {"args", {{"sort_index", row}}}});
  };
  for (int pe = 0; pe < work.n_pes; ++pe) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", pe},
                      {"args", {{"name", fmt::format("PE {} (modelled, {})", pe, timeline.topology)}}}});
  }
  std::map<std::pair<int, int>, std::pair<int, int>> rows;
  for (const Span& span : timeline.spans) rows.try_emplace({span.pe, row_of(span)}, span.sm, span.slot);
  for (const auto& [row, place] : rows) {
    name_row(row.first, row.second, fmt::format("SM {} slot {}", place.first, place.second));
  }
  for (const Span& span : timeline.spans) {
    const vgpu::BlockWork& block = work.blocks[span.block];
    const vgpu::LaunchWork& launch = work.launches[block.launch];
    events.push_back({{"ph", "X"},
                      {"name", span.waiting ? "wait at " + span.at : launch.kernel},
                      {"cat", span.waiting ? "wait" : "work"},
                      {"pid", span.pe},
                      {"tid", row_of(span)},
                      {"ts", span.begin_us},
                      {"dur", span.end_us - span.begin_us},
                      {"args",
                       {{"block", block.index},
                        {"call", launch.call},
                        {"slowest at", span.waiting ? "-" : std::string(name_of(span.bound))}}}});
  }
  for (int pe = 0; pe < work.n_pes; ++pe) {
    // Bytes a microsecond are MB/s: steps at the ends of the spans.
    std::map<double, double> steps;
    for (const LinkSpan& link : timeline.links) {
      if (link.from != pe) continue;
      const double rate = link.bytes / std::max(link.end_us - link.begin_us, 1e-3) * 1e-3;
      steps[link.begin_us] += rate;
      steps[std::max(link.end_us, link.begin_us + 1e-3)] -= rate;
    }
    if (steps.empty()) continue;
    double level = 0;
    for (const auto& [at, step] : steps) {
      level += step;
      events.push_back({{"ph", "C"},
                        {"name", "link out, GB/s (modelled)"},
                        {"pid", pe},
                        {"tid", kLinkRow},
                        {"ts", at},
                        {"args", {{"GB/s", std::max(0.0, level)}}}});
    }
  }
  return json{{"displayTimeUnit", "ns"},
              {"otherData", {{"provenance", "modelled"}, {"topology", timeline.topology}}},
              {"traceEvents", std::move(events)}}
      .dump();
}

}  // namespace echolo::timing
