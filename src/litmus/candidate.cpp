// The axioms as relations, each as the PTX ISA's chapter states it, under the section named beside it.
#include "litmus/candidate.hpp"

#include <map>

namespace echolo::litmus {

using model::Event;
using model::Kind;
using model::Proxy;

Candidate join_traces(const Program& program, const std::vector<const Trace*>& traces) {
  Candidate joined;
  joined.traces = traces;
  int strands = 0;
  for (std::size_t t = 0; t < traces.size(); ++t) {
    const int first = joined.n();
    joined.first.push_back(first);
    for (const TraceEvent& each : traces[t]->events) {
      Event event = each.event;
      if (event.partner >= 0) event.partner += first;
      joined.events.push_back(event);
      joined.places.push_back(program.threads[t].place);
      joined.strands.push_back(strands + each.strand);
    }
    strands += traces[t]->strands;
    std::map<std::pair<std::int64_t, std::int64_t>, int> uses;
    for (const BarrierUse& each : traces[t]->barriers) {
      joined.barriers.push_back({first + each.arrival, each.departure < 0 ? -1 : first + each.departure,
                                 program.threads[t].place, each.instance, each.resource, each.quorum,
                                 uses[{each.instance, each.resource}]++});
    }
  }
  return joined;
}

namespace {

bool is_memory(const Event& event) {
  return !event.absent && (event.kind == Kind::kRead || event.kind == Kind::kWrite);
}
bool is_write(const Event& event) { return event.kind == Kind::kWrite && !event.absent; }
bool is_read(const Event& event) { return event.kind == Kind::kRead; }
bool is_fence(const Event& event) { return event.kind == Kind::kFence; }

}  // namespace

Axioms::Axioms(const Candidate& candidate)
    : c_(candidate),
      n_(candidate.n()),
      po_(Relation::where(n_, [&](int a, int b) { return a < b && c_.strands[a] == c_.strands[b]; })),
      location_(Relation::where(n_,
                                [&](int a, int b) {
                                  return is_memory(c_.events[a]) && is_memory(c_.events[b]) &&
                                         c_.events[a].location == c_.events[b].location;
                                })),
      address_(Relation::where(
          n_,
          [&](int a, int b) { return location_.has(a, b) && c_.events[a].address == c_.events[b].address; })),
      same_proxy_(
          Relation::where(n_, [&](int a, int b) { return c_.events[a].proxy == c_.events[b].proxy; })),
      same_cta_(Relation::where(n_, [&](int a, int b) { return c_.places[a] == c_.places[b]; })),
      rf_(Relation::where(n_,
                          [&](int a, int b) { return is_read(c_.events[b]) && c_.events[b].source == a; })),
      rmw_(Relation::where(n_,
                           [&](int a, int b) {
                             return is_read(c_.events[a]) && c_.events[a].partner == b &&
                                    is_write(c_.events[b]);
                           })),
      strong_(n_),
      observation_(n_),
      sync_(n_),
      given_(n_),
      reads_(on(is_read)),
      writes_(on(is_write)),
      memory_(on(is_memory)),
      generic_(on([](const Event& e) { return is_memory(e) && e.proxy == Proxy::kGeneric; })),
      cause_(n_),
      coherence_(n_) {
  // "Morally strong operations"
  const auto operation = [](const Event& e) { return is_memory(e) || is_fence(e); };
  const Relation inclusive = Relation::where(n_, [&](int a, int b) {
    const Event& x = c_.events[a];
    const Event& y = c_.events[b];
    return x.strong && y.strong && includes(x.scope, c_.places[a], c_.places[b]) &&
           includes(y.scope, c_.places[b], c_.places[a]);
  });
  const Relation overlap = Relation::where(n_, [&](int a, int b) {
    return a != b && operation(c_.events[a]) && operation(c_.events[b]) &&
           (address_.has(a, b) || is_fence(c_.events[a]) || is_fence(c_.events[b]));
  });
  strong_ = (po_ | po_.inverse() | inclusive) & same_proxy_ & overlap;
  // "Observation order"
  observation_ = strong_ & rf_;
  for (;;) {
    const Relation longer = observation_ | observation_ * rmw_ * observation_;
    if (longer == observation_) break;
    observation_ = longer;
  }
  // "Release and Acquire Patterns", "Memory synchronization"
  const Relation strong_writes = on([](const Event& e) { return is_write(e) && e.strong; });
  const Relation strong_reads = on([](const Event& e) { return is_read(e) && e.strong; });
  const Relation releases = on([](const Event& e) { return is_write(e) && e.release; });
  const Relation acquires = on([](const Event& e) { return is_read(e) && e.acquire; });
  const Relation fences = on(is_fence);
  const Relation po_address = po_ & address_;
  const Relation release = releases * po_address.optional() * strong_writes | fences * po_ * strong_writes;
  const Relation acquire = strong_reads * po_address.optional() * acquires | strong_reads * po_ * fences;
  sync_ = strong_ & (release * observation_ * acquire);
  // What else orders: the start and end of asynchronous operations.
  for (std::size_t t = 0; t < c_.traces.size(); ++t) {
    for (const Trace::Order& each : c_.traces[t]->orders)
      given_.add(c_.first[t] + each.before, c_.first[t] + each.after);
  }
}

bool Axioms::no_thin_air() const {
  Relation depends = rmw_;
  for (std::size_t t = 0; t < c_.traces.size(); ++t) {
    for (std::size_t i = 0; i < c_.traces[t]->events.size(); ++i) {
      c_.traces[t]->events[i].depends.each(
          [&](int read) { depends.add(c_.first[t] + read, c_.first[t] + static_cast<int>(i)); });
    }
  }
  return (rf_ | depends).plus().irreflexive();
}

bool Axioms::set_orders(const Relation& sync_fence, const Relation& barriers) {
  // "Causality order": base causality
  const Relation base = (po_ | sync_ | sync_fence | barriers | given_).plus();
  // "Fence-SC", and barriers and completions that would wait for themselves
  if (!((sync_fence | barriers | given_).inverse() & base).empty()) return false;
  // "Proxy-preserved base causality order"
  const Relation proxy_fence = on([](const Event& e) { return e.kind == Kind::kProxyFence; });
  const Relation alias_fence = on([](const Event& e) { return e.kind == Kind::kAliasFence; });
  const Relation other = Relation::where(n_, [&](int a, int b) {
    return a == b && is_memory(c_.events[a]) && c_.events[a].proxy != Proxy::kGeneric;
  });
  const Relation serves = same_proxy_ & same_cta_;
  const Relation out = other * (base & serves) * proxy_fence;  // first access to a fence of its proxy
  const Relation in = proxy_fence * (base & serves) * other;   // a fence to the second access of its proxy
  const Relation to_generic = base * generic_;
  const Relation through_alias = base * alias_fence * base;
  const Relation same_address = generic_ * base * generic_ |
                                memory_ * (base & same_proxy_ & same_cta_) * memory_ | out * to_generic |
                                generic_ * base * in | out * base * in;
  const Relation any_address = generic_ * through_alias * generic_ | out * through_alias * generic_ |
                               generic_ * through_alias * in | out * through_alias * in;
  const Relation preserved = (same_address & address_) | (any_address & location_);
  // "Causality order"
  cause_ = preserved | observation_ * preserved;
  return (rf_ * cause_).irreflexive();
}

bool Axioms::allowed(const Relation& strong_order) {
  // "Coherence"
  coherence_ = ((writes_ * cause_ * writes_ & location_) | strong_order).plus();
  if (!coherence_.irreflexive()) return false;
  // "Communication order": a read of an initial value comes before every write to the location
  Relation fr = rf_.inverse() * coherence_;
  for (int a = 0; a < n_; ++a) {
    if (!is_read(c_.events[a]) || c_.events[a].source >= 0) continue;
    for (int b = 0; b < n_; ++b) {
      if (location_.has(a, b) && is_write(c_.events[b])) fr.add(a, b);
    }
  }
  // "Causality"
  if (!(fr * cause_).irreflexive()) return false;
  // "Atomicity"
  if (!(((strong_ & fr) * (strong_ & coherence_)) & rmw_).empty()) return false;
  // "Sequential Consistency Per Location"
  return ((strong_ & (rf_ | coherence_ | fr)) | (po_ & address_ & same_proxy_)).plus().irreflexive();
}

}  // namespace echolo::litmus
