// The orders of the PTX memory model over what a machine has issued, and its axioms. Section names are those
// of the PTX ISA, chapter "Memory Consistency Model".
#include "model/machine.hpp"

namespace echolo::model {
namespace {

bool is_memory(const Event& event) { return event.kind == Kind::kRead || event.kind == Kind::kWrite; }

void close(EventSet* rows, int n) {
  for (int k = 0; k < n; ++k) {
    for (int i = 0; i < n; ++i) {
      if (rows[i].has(k)) rows[i] |= rows[k];
    }
  }
}

bool irreflexive(const EventSet* rows, int n) {
  for (int i = 0; i < n; ++i) {
    if (rows[i].has(i)) return false;
  }
  return true;
}

}  // namespace

// "Release and Acquire Patterns", "Memory synchronization": adds an edge from the first operation of each
// release pattern to the last of each acquire pattern that observes it.
void Machine::synchronise(Relations& relations) const {
  EventSet heads[kMaxEvents];  // by strong write: where a release pattern that ends in it begins
  EventSet tails[kMaxEvents];  // by strong read: where an acquire pattern that begins with it ends
  for (const Thread& thread : threads_) {
    EventSet fences, releases;
    for (const EventId id : thread.events) {
      const Event& event = events_[id];
      if (event.kind == Kind::kFence) fences.add(id);
      if (event.kind != Kind::kWrite || event.absent) continue;
      if (event.release) releases.add(id);
      if (!event.strong) continue;
      heads[id] = fences;
      releases.each([&](EventId head) {
        if (events_[head].address == event.address) heads[id].add(head);
      });
    }
    fences = {};
    EventSet acquires;
    for (auto at = thread.events.rbegin(); at != thread.events.rend(); ++at) {
      const Event& event = events_[*at];
      if (event.kind == Kind::kFence) fences.add(*at);
      if (event.kind != Kind::kRead) continue;
      if (event.acquire) acquires.add(*at);
      if (!event.strong) continue;
      tails[*at] = fences;
      acquires.each([&](EventId tail) {
        if (events_[tail].address == event.address) tails[*at].add(tail);
      });
    }
  }
  for (EventId read = 0; read < size(); ++read) {
    if (tails[read].empty() || events_[read].source < 0) continue;
    // "Observation order": the write that is read, and further back through read-modify-writes.
    for (EventId at = read;;) {
      const EventId source = events_[at].source;
      if (source < 0 || !morally_strong(source, at)) break;
      heads[source].each([&](EventId head) {
        tails[read].each([&](EventId tail) {
          if (morally_strong(head, tail)) relations.base[head].add(tail);
        });
      });
      if (events_[source].partner < 0) break;
      at = events_[source].partner;
    }
  }
}

// "Causality order": program order, synchronisation, Fence-SC order and barriers, transitively.
void Machine::close_base(Relations& relations) const {
  for (const Thread& thread : threads_) {
    for (std::size_t i = 1; i < thread.events.size(); ++i)
      relations.base[thread.events[i - 1]].add(thread.events[i]);
  }
  for (const Decision& order : orders_) relations.base[order.before].add(order.after);
  close(relations.base, relations.n);
}

// "Proxy-preserved base causality order" of two operations on one location that base causality relates. A
// fence between the generic and another proxy serves accesses of its own CTA only; accesses through different
// virtual addresses want an alias fence on the way as well.
bool Machine::proxy_preserved(const Relations& relations, EventId x, EventId y) const {
  const Event& first = events_[x];
  const Event& second = events_[y];
  const bool generic_x = first.proxy == Proxy::kGeneric, generic_y = second.proxy == Proxy::kGeneric;
  const bool same_address = first.address == second.address;
  if (same_address) {
    if (generic_x && generic_y) return true;
    if (first.proxy == second.proxy && threads_[first.thread].place == threads_[second.thread].place)
      return true;
  }
  // What the first access has reached in the generic proxy, and from where the second can be reached.
  EventSet reached = generic_x ? relations.base[x] : EventSet{};
  EventSet exits, aliases;
  for (EventId id = 0; id < relations.n; ++id) {
    const Event& fence = events_[id];
    if (fence.kind == Kind::kAliasFence) aliases.add(id);
    if (fence.kind != Kind::kProxyFence) continue;
    const Place& at = threads_[fence.thread].place;
    if (!generic_x && fence.proxy == first.proxy && at == threads_[first.thread].place &&
        relations.base[x].has(id)) {
      reached |= relations.base[id];
    }
    if (!generic_y && fence.proxy == second.proxy && at == threads_[second.thread].place &&
        relations.base[id].has(y)) {
      exits.add(id);
    }
  }
  const auto arrives = [&](const EventSet& from) { return generic_y ? from.has(y) : from.intersects(exits); };
  if (same_address) return arrives(reached);
  bool linked = false;
  (reached & aliases).each([&](EventId alias) { linked = linked || arrives(relations.base[alias]); });
  return linked;
}

void Machine::find_causes(Relations& relations, const EventSet* observed) const {
  const int n = relations.n;
  for (EventId x = 0; x < n; ++x) {
    if (!is_memory(events_[x]) || events_[x].absent) continue;
    relations.base[x].each([&](EventId y) {
      const Event& second = events_[y];
      if (is_memory(second) && !second.absent && second.location == events_[x].location &&
          proxy_preserved(relations, x, y)) {
        relations.cause[x].add(y);
      }
    });
  }
  // X precedes Z in observation order and Z precedes Y in proxy-preserved base causality order. Reads first
  // appear with their own successors, so one pass over the observed reads is enough.
  EventSet through[kMaxEvents];
  for (EventId write = 0; write < n; ++write) {
    observed[write].each([&](EventId read) { through[write] |= relations.cause[read]; });
  }
  for (EventId write = 0; write < n; ++write) relations.cause[write] |= through[write];
}

// Axiom "Coherence": causality order and what was decided, without a cycle.
bool Machine::order_coherence(Relations& relations) const {
  for (EventId id = 0; id < relations.n; ++id) {
    if (!present_write(id)) continue;
    relations.cause[id].each([&](EventId after) {
      if (present_write(after)) relations.coherence[id].add(after);
    });
  }
  for (const Decision& decided : coherence_) relations.coherence[decided.before].add(decided.after);
  do {
    close(relations.coherence, relations.n);
    if (!irreflexive(relations.coherence, relations.n)) return false;
  } while (force_coherence(relations));
  return true;
}

// Where two morally strong writes must be ordered one way as the other way would break an axiom, orders them
// so.
bool Machine::force_coherence(Relations& relations) const {
  bool forced = false;
  const auto force = [&](EventId before, EventId after) {
    if (relations.coherence[before].has(after)) return;
    relations.coherence[before].add(after);
    forced = true;
  };
  for (EventId read = 0; read < relations.n; ++read) {
    const Event& event = events_[read];
    if (event.kind != Kind::kRead || event.source == kUnbound) continue;
    const EventId partner = event.partner >= 0 && present_write(event.partner) ? event.partner : -1;
    for (EventId write = 0; write < relations.n; ++write) {
      if (!present_write(write) || events_[write].location != event.location || write == event.source)
        continue;
      // Causality: a write before the read is not after what it returned.
      if (event.source >= 0 && relations.cause[write].has(read) && morally_strong(write, event.source)) {
        force(write, event.source);
      }
      // Atomicity: a write after what a read-modify-write read is after what it wrote.
      if (partner >= 0 && write != partner && overtakes(relations, event.source, write) &&
          morally_strong(read, write) && morally_strong(write, partner)) {
        force(partner, write);
      }
    }
  }
  return forced;
}

// Axiom "Atomicity": nothing morally strong comes between the two halves of a read-modify-write.
bool Machine::atomic(const Relations& relations) const {
  for (EventId read = 0; read < relations.n; ++read) {
    const Event& event = events_[read];
    if (event.kind != Kind::kRead || event.partner < 0 || event.source == kUnbound) continue;
    if (events_[event.partner].absent) continue;
    for (EventId between = 0; between < relations.n; ++between) {
      if (present_write(between) && events_[between].location == event.location &&
          relations.coherence[between].has(event.partner) && overtakes(relations, event.source, between) &&
          morally_strong(read, between) && morally_strong(between, event.partner)) {
        return false;
      }
    }
  }
  return true;
}

// Axiom "Causality": no read returns a write that it causes, or one that was overwritten before it in
// causality order.
bool Machine::causal(const Relations& relations) const {
  for (EventId id = 0; id < relations.n; ++id) {
    const Event& event = events_[id];
    if (event.kind == Kind::kRead && event.source >= 0 && relations.cause[id].has(event.source)) return false;
    if (!present_write(id)) continue;
    bool stale = false;
    relations.cause[id].each([&](EventId read) {
      const Event& second = events_[read];
      stale = stale || (second.kind == Kind::kRead && second.source != kUnbound &&
                        overtakes(relations, second.source, id));
    });
    if (stale) return false;
  }
  return true;
}

// Axiom "SC-per-Location": among morally strong operations, communication order and program order agree.
bool Machine::sequential_per_location(const Relations& relations) const {
  EventSet next[kMaxEvents];
  for (EventId x = 0; x < relations.n; ++x) {
    const Event& first = events_[x];
    if (!is_memory(first) || first.absent) continue;
    for (EventId y = 0; y < relations.n; ++y) {
      const Event& second = events_[y];
      if (x == y || !is_memory(second) || second.absent || first.address != second.address ||
          first.proxy != second.proxy) {
        continue;
      }
      const bool program = first.thread == second.thread && first.index < second.index;
      bool communicates = false;
      if (second.kind == Kind::kRead) {
        communicates = first.kind == Kind::kWrite && second.source == x;
      } else if (first.kind == Kind::kWrite) {
        communicates = relations.coherence[x].has(y);
      } else {
        communicates = first.source != kUnbound && overtakes(relations, first.source, y);
      }
      if (program || (communicates && morally_strong(x, y))) next[x].add(y);
    }
  }
  close(next, relations.n);
  return irreflexive(next, relations.n);
}

void Machine::relate(Relations& out) const {
  out.n = size();
  out.consistent = false;
  synchronise(out);
  close_base(out);
  // Axiom "Fence-SC", and barriers that cannot have completed: an order against base causality.
  for (const Decision& order : orders_) {
    if (out.base[order.after].has(order.before)) return;
  }
  EventSet observed[kMaxEvents];
  for (EventId read = 0; read < out.n; ++read) {
    if (events_[read].kind != Kind::kRead) continue;
    for (EventId at = read;;) {
      const EventId source = events_[at].source;
      if (source < 0 || !morally_strong(source, at)) break;
      observed[source].add(read);
      if (events_[source].partner < 0) break;
      at = events_[source].partner;
    }
  }
  find_causes(out, observed);
  out.consistent = order_coherence(out) && causal(out) && atomic(out) && sequential_per_location(out);
}

}  // namespace echolo::model
