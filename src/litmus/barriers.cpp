// Barriers of a CTA. Without a number of threads a barrier opens when every thread of the CTA that may still
// come to it has come. With a number it opens when that many have come; whoever comes later goes on at once,
// after all that those who were in time had done before. The n-th use of a barrier by one thread meets the
// n-th of others.
#include "litmus/run.hpp"

namespace echolo::litmus {

using model::EventId;

int Run::use_of(int thread, const BarrierUse& barrier) const {
  int use = 0;
  for (const BarrierUse& each : traces[thread]->barriers) {
    if (&each == &barrier) break;
    if (each.instance == barrier.instance && each.resource == barrier.resource) ++use;
  }
  return use;
}

const Run::Phase* Run::complete(int thread) const {
  const BarrierUse& barrier = traces[thread]->barriers.back();
  const int use = use_of(thread, barrier);
  for (const Phase& phase : phases_) {
    if (phase.place == program_->threads[thread].place && phase.instance == barrier.instance &&
        phase.resource == barrier.resource && phase.use == use) {
      return &phase;
    }
  }
  return nullptr;
}

std::vector<std::pair<int, EventId>> Run::arrivals(int thread) const {
  const BarrierUse& barrier = traces[thread]->barriers.back();
  const int use = use_of(thread, barrier);
  std::vector<std::pair<int, EventId>> found;
  for (int t = 0; t < static_cast<int>(threads_.size()); ++t) {
    if (!(program_->threads[t].place == program_->threads[thread].place)) continue;
    for (const BarrierUse& each : traces[t]->barriers) {
      if (each.instance == barrier.instance && each.resource == barrier.resource && use_of(t, each) == use) {
        found.emplace_back(t, threads_[t].ids[each.arrival]);
      }
    }
  }
  return found;
}

std::vector<Run::Opening> Run::openings() const {
  for (int t = 0; t < static_cast<int>(threads_.size()); ++t) {
    if (traces[t]->progress != Progress::kAtBarrier) continue;
    const BarrierUse& barrier = traces[t]->barriers.back();
    const auto arrived = arrivals(t);
    std::vector<Opening> found;
    if (barrier.quorum == 0) {
      bool all = true;
      for (int other = 0; other < static_cast<int>(threads_.size()) && all; ++other) {
        bool here = !(program_->threads[other].place == program_->threads[t].place);
        for (const auto& [who, id] : arrived) here = here || who == other;
        // Who waits at a barrier has read its operands: it comes here only later, if at all.
        const int from = traces[other]->pc + (traces[other]->progress == Progress::kAtBarrier ? 1 : 0);
        all = here || traces[other]->progress == Progress::kFinished ||
              !may_reach_barrier(*program_, other, from, barrier.instance, barrier.resource);
      }
      if (!all) continue;
      found.push_back({t, {}});
      for (const auto& [who, id] : arrived) found.back().on_time.push_back(id);
      return found;
    }
    const auto n = static_cast<std::int64_t>(arrived.size());
    if (n < barrier.quorum) continue;
    for (std::uint32_t chosen = 0; chosen < (1U << n); ++chosen) {
      if (std::popcount(chosen) != barrier.quorum) continue;
      Opening opening{t, {}};
      for (std::int64_t i = 0; i < n; ++i) {
        if ((chosen >> i & 1) != 0) opening.on_time.push_back(arrived[i].second);
      }
      found.push_back(std::move(opening));
    }
    return found;
  }
  return {};
}

bool Run::let_pass(int thread, const std::vector<EventId>& on_time) {
  ThreadState& state = threads_[thread];
  const std::size_t barrier = traces[thread]->barriers.size() - 1;
  ++state.passed;
  traces[thread] =
      std::make_shared<const Trace>(trace(*program_, thread, state.reads, state.passed, limits_));
  if (!issue_new(thread)) return false;
  const EventId departure = state.ids[traces[thread]->barriers[barrier].departure];
  for (const EventId arrival : on_time) machine.order(arrival, departure);
  return true;
}

bool Run::open(const Opening& opening) {
  const BarrierUse& barrier = traces[opening.thread]->barriers.back();
  phases_.push_back({program_->threads[opening.thread].place, barrier.instance, barrier.resource,
                     use_of(opening.thread, barrier), opening.on_time});
  return advance();
}

}  // namespace echolo::litmus
