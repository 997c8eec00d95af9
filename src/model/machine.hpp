// The machine that executes PTX's memory model.
//
// Threads issue their operations in program order; memory keeps every write together with what orders it. A
// write is there for others as soon as it is issued, in an order of its own for every reader: nothing but
// coherence, causality and fences restricts which of the writes a read may return. A read stays unbound after
// it was issued until its value is needed, so that later operations of its thread which don't depend on it
// come first (load buffering). Where the model leaves an order open (two racing strong writes, two fence.sc),
// it stays open until someone decides it.
//
// Every step can be checked with consistent(): whether the run so far breaks none of the model's axioms. As
// later steps only add order, a run that broke one never mends.
//
// The class knows nothing of programs. `echolo litmus` drives it through all runs (litmus/explore.hpp); an
// executor drives it through one, and asks readable() what a load may return.
//
// Sources: PTX ISA 8.x, "Memory Consistency Model"; Lustig et al., ASPLOS 2019; for proxies Lustig, Cooksey,
// Giroux, "Mixed-Proxy Extensions for the NVIDIA PTX Memory Consistency Model" (ISCA 2022). Not thread-safe.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "model/event.hpp"
#include "model/event_set.hpp"

namespace echolo::model {

// What follows what, as sets of successors by event. Filled by Machine::relate().
struct Relations {
  int n = 0;
  EventSet base[kMaxEvents];       // base causality order
  EventSet cause[kMaxEvents];      // causality order, between memory operations on one location
  EventSet coherence[kMaxEvents];  // coherence order; initial values, which come first, are not in it
  bool consistent = false;         // no axiom is broken
};

class Machine {
 public:
  int add_thread(Place place);
  int add_location(std::int64_t initial);  // a physical location
  int add_address(int location);           // a virtual address of it

  // Issues an operation after all that its thread has issued; `thread` and the fields that its kind wants are
  // set by the caller, `index` and `location` here. The machine must not be full().
  EventId issue(Event event);
  // A read and the write of one read-modify-write; the write is absent until present() says otherwise, as
  // whether it happens can depend on what was read. Returns the read's id; the write's is the next one.
  EventId issue_rmw(const Event& read, const Event& write);
  bool full() const { return events_.size() + 2 > kMaxEvents; }

  // Something that is no memory operation orders `before` before `after`: a barrier, an asynchronous
  // operation's start or end ("synchronizes").
  void order(EventId before, EventId after);

  // A write's operands are known. An absent write appears.
  void present(EventId write, std::int64_t value);
  // The write of a read-modify-write whose value is not known yet is certain to happen.
  void appear(EventId write) { events_[write].absent = false; }

  // The sources a read may be bound to: kInitial and ids of writes whose value is known, such that the run
  // stays consistent.
  std::vector<EventId> readable(EventId read) const;
  // Binds a read; whether that is consistent is the caller's question.
  void bind(EventId read, EventId source);

  // An order that the model wants decided and nothing decides so far: two morally strong writes to one
  // location (coherence order), or two morally strong fence.sc (Fence-SC order).
  std::optional<std::pair<EventId, EventId>> undecided(const Relations& relations) const;
  std::optional<std::pair<EventId, EventId>> undecided_fences(const Relations& relations) const;
  void decide(EventId before, EventId after);

  void relate(Relations& out) const;
  bool consistent() const;

  // Forgets the past where that changes no future: every read is bound, what each thread did last comes after
  // all that was done (after a barrier of all threads, say), only the generic proxy and one address a
  // location were used, and no location was left to racing writes. What memory holds becomes its initial
  // value; ids start again at 0. False, and nothing happens, where some of that is not so.
  bool forget();

  // Writes to a location that no other write follows in coherence order: what memory holds in the end.
  // Several where writes race; empty where nothing was written.
  std::vector<EventId> last_writes(int location, const Relations& relations) const;

  // Two operations are related in program order, or each is strong and its scope includes the other's thread;
  // both use one proxy; and if both access memory, through the same address ("Morally strong operations").
  bool morally_strong(EventId a, EventId b) const;

  const Event& event(EventId id) const { return events_[id]; }
  int size() const { return static_cast<int>(events_.size()); }
  const Place& place(int thread) const { return threads_[thread].place; }
  std::int64_t initial(int location) const { return initial_[location]; }
  std::int64_t value_of(EventId source, int location) const {
    return source == kInitial ? initial_[location] : events_[source].value;
  }

 private:
  struct Thread {
    Place place;
    std::vector<EventId> events;
  };
  struct Decision {
    EventId before, after;
  };

  void synchronise(Relations& relations) const;
  void close_base(Relations& relations) const;
  void find_causes(Relations& relations, const EventSet* observed) const;
  bool proxy_preserved(const Relations& relations, EventId x, EventId y) const;
  bool order_coherence(Relations& relations) const;
  bool force_coherence(Relations& relations) const;
  bool atomic(const Relations& relations) const;
  bool causal(const Relations& relations) const;
  bool sequential_per_location(const Relations& relations) const;
  bool present_write(EventId id) const { return events_[id].kind == Kind::kWrite && !events_[id].absent; }
  // Whether `write` comes after a read's source in coherence order ("from-read").
  bool overtakes(const Relations& relations, EventId source, EventId write) const {
    return source == kInitial || (source != write && relations.coherence[source].has(write));
  }

  std::vector<Event> events_;
  std::vector<Thread> threads_;
  std::vector<std::int64_t> initial_;
  std::vector<int> location_of_address_;
  std::vector<Decision> orders_;     // between any events, part of base causality order
  std::vector<Decision> coherence_;  // decided between writes
};

}  // namespace echolo::model
