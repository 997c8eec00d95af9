#include "model/machine.hpp"

namespace echolo::model {

int Machine::add_thread(Place place) {
  threads_.push_back({place, {}});
  return static_cast<int>(threads_.size()) - 1;
}

int Machine::add_location(std::int64_t initial) {
  initial_.push_back(initial);
  return static_cast<int>(initial_.size()) - 1;
}

int Machine::add_address(int location) {
  location_of_address_.push_back(location);
  return static_cast<int>(location_of_address_.size()) - 1;
}

EventId Machine::issue(Event event) {
  const EventId id = size();
  Thread& thread = threads_[event.thread];
  event.index = static_cast<std::int16_t>(thread.events.size());
  if (event.kind == Kind::kRead || event.kind == Kind::kWrite) {
    event.location = static_cast<std::int16_t>(location_of_address_[event.address]);
  }
  thread.events.push_back(id);
  events_.push_back(event);
  return id;
}

EventId Machine::issue_rmw(const Event& read, const Event& write) {
  const EventId first = issue(read);
  const EventId second = issue(write);
  events_[first].partner = second;
  events_[second].partner = first;
  events_[second].absent = true;
  return first;
}

void Machine::order(EventId before, EventId after) { orders_.push_back({before, after}); }

void Machine::present(EventId write, std::int64_t value) {
  Event& event = events_[write];
  event.absent = false;
  event.known = true;
  event.value = value;
}

void Machine::bind(EventId read, EventId source) {
  Event& event = events_[read];
  event.source = source;
  event.value = value_of(source, event.location);
  event.known = true;
}

void Machine::decide(EventId before, EventId after) {
  if (events_[before].kind == Kind::kFence) {
    orders_.push_back({before, after});
  } else {
    coherence_.push_back({before, after});
  }
}

std::vector<EventId> Machine::readable(EventId read) const {
  std::vector<EventId> sources;
  const Event& event = events_[read];
  const auto try_source = [&](EventId source) {
    Machine tried = *this;
    tried.bind(read, source);
    if (tried.consistent()) sources.push_back(source);
  };
  try_source(kInitial);
  for (EventId id = 0; id < size(); ++id) {
    const Event& write = events_[id];
    if (present_write(id) && write.known && write.location == event.location && id != event.partner)
      try_source(id);
  }
  return sources;
}

bool Machine::morally_strong(EventId a, EventId b) const {
  const Event& x = events_[a];
  const Event& y = events_[b];
  if (a == b || x.proxy != y.proxy) return false;
  const bool memory_x = x.kind != Kind::kFence, memory_y = y.kind != Kind::kFence;
  if (memory_x && memory_y && x.address != y.address) return false;
  if (x.thread == y.thread) return true;
  if (!x.strong || !y.strong) return false;
  const Place& at_x = threads_[x.thread].place;
  const Place& at_y = threads_[y.thread].place;
  return includes(x.scope, at_x, at_y) && includes(y.scope, at_y, at_x);
}

std::optional<std::pair<EventId, EventId>> Machine::undecided_fences(const Relations& relations) const {
  for (EventId a = 0; a < size(); ++a) {
    if (events_[a].kind != Kind::kFence || !events_[a].sc) continue;
    for (EventId b = a + 1; b < size(); ++b) {
      if (events_[b].kind == Kind::kFence && events_[b].sc && !relations.base[a].has(b) &&
          !relations.base[b].has(a) && morally_strong(a, b)) {
        return std::pair{a, b};
      }
    }
  }
  return std::nullopt;
}

std::optional<std::pair<EventId, EventId>> Machine::undecided(const Relations& relations) const {
  if (const auto fences = undecided_fences(relations)) return fences;
  for (EventId a = 0; a < size(); ++a) {
    if (!present_write(a)) continue;
    for (EventId b = a + 1; b < size(); ++b) {
      if (present_write(b) && events_[a].location == events_[b].location && !relations.coherence[a].has(b) &&
          !relations.coherence[b].has(a) && morally_strong(a, b)) {
        return std::pair{a, b};
      }
    }
  }
  return std::nullopt;
}

std::vector<EventId> Machine::last_writes(int location, const Relations& relations) const {
  std::vector<EventId> last;
  for (EventId id = 0; id < size(); ++id) {
    if (present_write(id) && events_[id].location == location && relations.coherence[id].empty())
      last.push_back(id);
  }
  return last;
}

bool Machine::forget() {
  Relations relations;
  relate(relations);
  if (!relations.consistent) return false;
  for (const Thread& thread : threads_) {
    if (thread.events.empty()) return false;
    for (EventId id = 0; id < size(); ++id) {
      if (id != thread.events.back() && !relations.base[id].has(thread.events.back())) {
        // Another thread's last event need not come before this one's if it is no memory operation.
        const bool end = id == threads_[events_[id].thread].events.back();
        if (!end || events_[id].kind != Kind::kPoint) return false;
      }
    }
  }
  std::vector<std::int64_t> values = initial_;
  std::vector<int> address(initial_.size(), -1);
  for (EventId id = 0; id < size(); ++id) {
    const Event& event = events_[id];
    if (event.kind == Kind::kRead && event.source == kUnbound) return false;
    if (event.kind != Kind::kRead && !present_write(id)) continue;
    if (event.proxy != Proxy::kGeneric) return false;
    if (event.kind == Kind::kWrite && !event.known) return false;
    if (address[event.location] >= 0 && address[event.location] != event.address) return false;
    address[event.location] = event.address;
  }
  for (std::size_t location = 0; location < values.size(); ++location) {
    const std::vector<EventId> last = last_writes(static_cast<int>(location), relations);
    if (last.size() > 1) return false;
    if (!last.empty()) values[location] = events_[last[0]].value;
  }
  initial_ = std::move(values);
  events_.clear();
  orders_.clear();
  coherence_.clear();
  for (Thread& thread : threads_) thread.events.clear();
  return true;
}

bool Machine::consistent() const {
  Relations relations;
  relate(relations);
  return relations.consistent;
}

}  // namespace echolo::model
