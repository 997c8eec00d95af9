// What a timeline says, for people and for Perfetto.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "timing/model.hpp"

namespace echolo::timing {
namespace {

using nlohmann::json;

// Thread numbers within a PE: its own state first, the links to its peers, then the places on its SMs.
constexpr int kPeRow = 0, kLinkRow = 1, kSmRow = 1000;

int row_of(int sm, int slot) { return kSmRow + sm * 64 + slot; }

const char* phase_of(const Span& span) {
  if (span.waiting) return span.at_barrier ? "barrier" : "wait";
  switch (span.phase) {
    case vgpu::Phase::kPut:
      return "put";
    case vgpu::Phase::kGet:
      return "get";
    case vgpu::Phase::kCompute:
      break;
  }
  return "compute";
}

// Several blocks send at once, so a link's slices are what lies between two changes of its rate.
template <typename NameRow, typename Slice>
void add_links(const Timeline& timeline, json& events, const NameRow& name_row, const Slice& slice) {
  constexpr double kLeast = 1e-3;  // us: what is sent at once is sent in this time
  std::map<std::pair<int, int>, std::map<double, double>> steps;  // MB/s, by link and time
  std::map<int, std::map<double, double>> out;
  for (const LinkSpan& link : timeline.links) {
    const double end = std::max(link.end_us, link.begin_us + kLeast);
    const double rate = link.bytes / (end - link.begin_us);
    for (auto* level : {&steps[{link.from, link.to}], &out[link.from]}) {
      (*level)[link.begin_us] += rate;
      (*level)[end] -= rate;
    }
  }
  for (const auto& [link, changes] : steps) {
    name_row(link.first, kLinkRow + link.second, fmt::format("link to PE {}", link.second));
    double rate = 0;
    for (auto at = changes.begin(); at != changes.end(); ++at) {
      rate += at->second;
      const auto next = std::next(at);
      // What rounding leaves behind is no traffic.
      if (next == changes.end() || rate < 1e-3) continue;
      slice(link.first, kLinkRow + link.second, fmt::format("to PE {}", link.second), "link", at->first,
            next->first, {{"bytes", rate * (next->first - at->first)}, {"GB/s", rate * 1e-3}});
    }
  }
  for (const auto& [pe, changes] : out) {
    double level = 0;
    for (const auto& [at, step] : changes) {
      level += step;
      events.push_back({{"ph", "C"},
                        {"name", "link out, GB/s (modelled)"},
                        {"pid", pe},
                        {"tid", kLinkRow},
                        {"ts", at},
                        {"args", {{"GB/s", std::max(0.0, level * 1e-3)}}}});
    }
  }
}

}  // namespace

std::string in_words(const Timeline& timeline) {
  std::string out =
      fmt::format("modelled on {}: {:.1f} us in all; no schedule needs less than {:.1f} us, for {}\n",
                  timeline.topology, timeline.total_us, timeline.roofline_us, name_of(timeline.roofline));
  if (const auto [resource, share] = bottleneck(timeline); share > 0) {
    out +=
        fmt::format("bottleneck (modelled): {}, which holds blocks back for {:.0f} % of the time they work\n",
                    name_of(resource), 100 * share);
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
  const auto slice = [&](int pe, int row, std::string name, const char* category, double begin, double end,
                         json args) {
    args["provenance"] = "modelled";
    events.push_back({{"ph", "X"},
                      {"name", std::move(name)},
                      {"cat", category},
                      {"pid", pe},
                      {"tid", row},
                      {"ts", begin},
                      {"dur", end - begin},
                      {"args", std::move(args)}});
  };
  for (int pe = 0; pe < work.n_pes; ++pe) {
    events.push_back({{"ph", "M"},
                      {"name", "process_name"},
                      {"pid", pe},
                      {"args", {{"name", fmt::format("PE {} (modelled, {})", pe, timeline.topology)}}}});
    name_row(pe, kPeRow, "the PE");
  }
  for (const PeSpan& span : timeline.states) {
    if (span.state == PeState::kIdle) continue;
    const bool exposed = span.state == PeState::kExposed;
    slice(span.pe, kPeRow, exposed ? "exposed communication" : "work", exposed ? "exposed" : "work",
          span.begin_us, span.end_us, json::object());
  }
  std::map<std::pair<int, int>, std::pair<int, int>> rows;
  for (const Span& span : timeline.spans)
    rows.try_emplace({span.pe, row_of(span.sm, span.slot)}, span.sm, span.slot);
  for (const auto& [row, place] : rows)
    name_row(row.first, row.second, fmt::format("SM {} slot {}", place.first, place.second));
  for (const Span& span : timeline.spans) {
    const vgpu::BlockWork& block = work.blocks[span.block];
    const vgpu::LaunchWork& launch = work.launches[block.launch];
    const char* phase = phase_of(span);
    slice(span.pe, row_of(span.sm, span.slot),
          span.waiting ? std::string(phase) + " at " + span.at : std::string(phase) + " in " + launch.kernel,
          phase, span.begin_us, span.end_us,
          {{"block", block.index},
           {"call", launch.call},
           {"kernel", launch.kernel},
           {"slowest at", span.waiting ? "-" : std::string(name_of(span.bound))}});
  }
  add_links(timeline, events, name_row, slice);
  int id = 0;
  for (const Flow& flow : timeline.flows) {
    ++id;
    // The beginning lies within the slice that ended, the end where the released block goes on.
    events.push_back({{"ph", "s"},
                      {"name", "releases"},
                      {"cat", "wait"},
                      {"id", id},
                      {"pid", flow.from_pe},
                      {"tid", row_of(flow.from_sm, flow.from_slot)},
                      {"ts", flow.from_us}});
    events.push_back({{"ph", "f"},
                      {"bp", "e"},
                      {"name", "releases"},
                      {"cat", "wait"},
                      {"id", id},
                      {"pid", flow.to_pe},
                      {"tid", row_of(flow.to_sm, flow.to_slot)},
                      {"ts", flow.to_us}});
  }
  return json{{"displayTimeUnit", "ns"},
              {"otherData", {{"provenance", "modelled"}, {"topology", timeline.topology}}},
              {"traceEvents", std::move(events)}}
      .dump();
}

}  // namespace echolo::timing
