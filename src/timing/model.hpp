// The time model: an event-driven simulation of SMs, L2, DRAM and links, fed with what was executed. Every
// time it gives is modelled, and must be labelled so.
//
// Each block's stretches run one after the other. A running stretch takes from its SM's issue slots, tensor
// cores and shared memory, from its PE's L2 and DRAM, and from the links; a resource is shared evenly among
// those who want it now, and a stretch goes as fast as its scarcest resource lets it. A stretch that waited
// for others begins when they have ended (a link's latency later, where they are on another PE).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "timing/topology.hpp"
#include "vgpu/work.hpp"

namespace echolo::timing {

enum class Resource : std::uint8_t { kIssue, kTensor, kShared, kL2, kDram, kLinkOut, kLinkIn, kLatency };
inline constexpr std::size_t kResources = 8;
std::string_view name_of(Resource resource);  // "tensor cores"

struct Span {
  int pe = 0, sm = 0;
  int slot = 0;  // of the SM: blocks that are resident together have different ones
  std::uint32_t block = 0;
  double begin_us = 0, end_us = 0;
  bool waiting = false;
  bool at_barrier = false;                    // of a wait: for all members of a team
  vgpu::Phase phase = vgpu::Phase::kCompute;  // of work
  Resource bound = Resource::kIssue;          // what it was slowest at; of a wait: kLatency
  std::string at;                             // where it waited; empty for work
};

struct Flow {  // what ended a wait: the end of somebody's stretch
  int from_pe = 0, from_sm = 0, from_slot = 0;
  double from_us = 0;
  int to_pe = 0, to_sm = 0, to_slot = 0;
  double to_us = 0;
};

enum class PeState : std::uint8_t { kIdle, kWorking, kExposed };
struct PeSpan {
  int pe = 0;
  PeState state{};
  double begin_us = 0, end_us = 0;
};

struct LinkSpan {  // bytes that a PE sent during a time
  int from = 0, to = 0;
  double begin_us = 0, end_us = 0;
  double bytes = 0;
};

struct PeTimes {
  double end_us = 0;
  double busy_us = 0;     // at least one block works
  double exposed_us = 0;  // blocks are resident and all of them wait, or all that work wait for a link
  std::array<double, kResources> bound_us{};  // block time by scarcest resource
};

struct Timeline {
  std::string topology;
  double total_us = 0;
  // The least time that each resource alone would need, and the largest of these.
  std::array<double, kResources> least_us{};
  Resource roofline = Resource::kIssue;
  double roofline_us = 0;
  std::vector<PeTimes> pes;
  std::vector<Span> spans;
  std::vector<LinkSpan> links;
  std::vector<Flow> flows;
  std::vector<PeSpan> states;   // of each PE, without gaps
  std::string longest_wait_at;  // where blocks waited longest in all
  double longest_wait_us = 0;   // mean over the resident blocks that waited there
};

// Errors: more PEs than the topology has; causes that go in a circle (names the stretch).
Result<Timeline> simulate(const vgpu::JobWork& work, const Topology& topology);

// What one call of candidate_run asks for, as if everything before it were over: its launches (call 0: all).
vgpu::JobWork only_call(const vgpu::JobWork& work, int call);

// "the link out": what holds blocks back for most of the time they work, and for how much of it (0 to 1).
std::pair<Resource, double> bottleneck(const Timeline& timeline);
// The largest exposed communication of a PE, as a share of the whole time.
double exposed_share(const Timeline& timeline);

// "bound by the link ...": a few sentences for people, each number labelled modelled.
std::string in_words(const Timeline& timeline);
// Chrome's trace event format, which Perfetto opens: a process a PE; in it a thread for the PE's state, one
// for each place of a block on an SM, one for each link to a peer (its events carry the bytes); an arrow from
// what ended a wait to the wait.
std::string to_perfetto(const Timeline& timeline, const vgpu::JobWork& work);

}  // namespace echolo::timing
