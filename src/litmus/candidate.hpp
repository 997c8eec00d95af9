// A candidate execution: finished traces of all threads and a source for every read.
#pragma once

#include <vector>

#include "litmus/relation.hpp"
#include "litmus/trace.hpp"

namespace echolo::litmus {

struct Candidate {
  std::vector<const Trace*> traces;
  std::vector<model::Event> events;  // of all threads; `source` and `partner` index this
  std::vector<model::Place> places;  // by event
  std::vector<int> strands;          // by event: equal where program order relates them
  std::vector<int> first;            // by thread: its first event
  struct Use {
    int arrival, departure;  // events; departure -1 for bar.arrive
    model::Place place;
    std::int64_t instance, resource, quorum;
    int use;
  };
  std::vector<Use> barriers;

  int n() const { return static_cast<int>(events.size()); }
};

// Joins traces; the reads' sources are still open.
Candidate join_traces(const Program& program, const std::vector<const Trace*>& traces);

// The model's relations that don't depend on Fence-SC and coherence order, for one choice of sources.
class Axioms {
 public:
  explicit Axioms(const Candidate& candidate);

  // "No Thin Air".
  bool no_thin_air() const;
  // Given `sync_fence` (Fence-SC order) and `barriers`: whether what follows can be consistent at all; then
  // cause() is set.
  bool set_orders(const Relation& sync_fence, const Relation& barriers);
  // Given how morally strong writes are ordered: all other axioms. Then coherence() is set.
  bool allowed(const Relation& strong_order);

  bool morally_strong(int a, int b) const { return strong_.has(a, b); }
  const Relation& coherence() const { return coherence_; }

 private:
  template <typename F>
  Relation on(F holds) const {  // identity on the events that satisfy `holds`
    return Relation::where(n_, [&](int a, int b) { return a == b && holds(c_.events[a]); });
  }

  const Candidate& c_;
  int n_;
  Relation po_, location_, address_, same_proxy_, same_cta_, rf_, rmw_, strong_, observation_, sync_, given_;
  Relation reads_, writes_, memory_, generic_;
  Relation cause_, coherence_;
};

}  // namespace echolo::litmus
