#include "litmus/run.hpp"

#include <algorithm>

namespace echolo::litmus {

using model::Event;
using model::EventId;
using model::Kind;

Run::Run(const Program& program, const TraceLimits& limits) : program_(&program), limits_(limits) {
  for (const Location& location : program.locations) machine.add_location(location.initial);
  for (const Address& address : program.addresses) machine.add_address(address.location);
  threads_.resize(program.threads.size());
  traces.resize(program.threads.size());
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    threads_[t].strands.push_back(machine.add_thread(program.threads[t].place));
  }
}

bool Run::issue_new(int thread) {
  ThreadState& state = threads_[thread];
  const Trace& now = *traces[thread];
  for (int strand = static_cast<int>(state.strands.size()); strand < now.strands; ++strand) {
    state.strands.push_back(machine.add_thread(program_->threads[thread].place));
  }
  const auto made = [&](EventId id) {
    origins_.push_back({thread, static_cast<int>(state.ids.size())});
    state.ids.push_back(id);
    kept_from_.emplace_back();
  };
  while (state.ids.size() < now.events.size()) {
    if (machine.full()) return false;
    const TraceEvent& next = now.events[state.ids.size()];
    Event event = next.event;
    const bool pair = event.partner >= 0;
    event.thread = static_cast<std::int16_t>(state.strands[next.strand]);
    event.partner = -1;
    event.known = false;
    event.absent = false;
    if (!pair) {
      made(machine.issue(event));
    } else {
      Event write = now.events[state.ids.size() + 1].event;
      write.thread = event.thread;
      write.known = false;
      const EventId read = machine.issue_rmw(event, write);
      made(read);
      made(read + 1);
    }
  }
  for (std::size_t i = 0; i < now.events.size(); ++i) {
    const Event& traced = now.events[i].event;
    const Event& issued = machine.event(state.ids[i]);
    if (traced.kind != Kind::kWrite || traced.absent) continue;
    if (traced.known && !issued.known) machine.present(state.ids[i], traced.value);
    if (issued.absent) machine.appear(state.ids[i]);
  }
  for (; state.orders < now.orders.size(); ++state.orders) {
    machine.order(state.ids[now.orders[state.orders].before], state.ids[now.orders[state.orders].after]);
  }
  return true;
}

bool Run::advance() {
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (!threads_[t].stale) continue;
    threads_[t].stale = false;
    traces[t] = std::make_shared<const Trace>(
        trace(*program_, static_cast<int>(t), threads_[t].reads, threads_[t].passed, limits_));
    if (!issue_new(static_cast<int>(t))) return false;
  }
  // Whoever comes late to a barrier that has opened goes on at once.
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    if (traces[t]->progress != Progress::kAtBarrier) continue;
    if (const Phase* phase = complete(static_cast<int>(t)); phase != nullptr) {
      const std::vector<EventId> on_time = phase->on_time;
      return let_pass(static_cast<int>(t), on_time) && advance();
    }
  }
  return true;
}

std::vector<EventId> Run::sources(EventId read) const {
  std::vector<EventId> found;
  const Event& event = machine.event(read);
  if (!kept_from_initial_.has(read)) found.push_back(model::kInitial);
  for (EventId id = 0; id < machine.size(); ++id) {
    const Event& write = machine.event(id);
    if (write.kind == Kind::kWrite && write.known && !write.absent && write.location == event.location &&
        id != event.partner && !kept_from_[read].has(id)) {
      found.push_back(id);
    }
  }
  return found;
}

EventId Run::next_read() const {
  const auto open = [&](EventId id) {
    const Event& event = machine.event(id);
    return event.kind == Kind::kRead && event.source == model::kUnbound && !sources(id).empty();
  };
  // Those first that a thread waits for.
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    EventId found = -1;
    traces[t]->needed.each([&](int index) {
      if (found < 0 && open(threads_[t].ids[index])) found = threads_[t].ids[index];
    });
    if (found >= 0) return found;
  }
  for (EventId id = 0; id < machine.size(); ++id) {
    if (open(id)) return id;
  }
  return -1;
}

void Run::bind(EventId read, EventId source) {
  machine.bind(read, source);
  const Origin origin = origins_[read];
  ThreadState& state = threads_[origin.thread];
  if (static_cast<int>(state.reads.size()) <= origin.index) state.reads.resize(origin.index + 1);
  state.reads[origin.index] = machine.event(read).value;
  state.stale = true;
}

bool Run::postpone(EventId read) {
  const int location = machine.event(read).location;
  bool more = false;
  for (EventId id = 0; id < machine.size() && !more; ++id) {
    const Event& event = machine.event(id);
    if (event.kind != Kind::kWrite || event.known || event.location != location) continue;
    // A compare-and-swap that has read something else never writes.
    const bool never =
        event.absent && event.partner >= 0 && machine.event(event.partner).source != model::kUnbound;
    more = !never && event.partner != read;
  }
  for (std::size_t t = 0; t < threads_.size() && !more; ++t) {
    more = traces[t]->progress != Progress::kFinished && traces[t]->progress != Progress::kSpinning &&
           may_write(*program_, static_cast<int>(t), traces[t]->pc, location);
  }
  if (!more) return false;
  for (const EventId source : sources(read)) {
    if (source == model::kInitial) {
      kept_from_initial_.add(read);
    } else {
      kept_from_[read].add(source);
    }
  }
  return true;
}

bool Run::all_bound() const {
  for (EventId id = 0; id < machine.size(); ++id) {
    if (machine.event(id).kind == Kind::kRead && machine.event(id).source == model::kUnbound) return false;
  }
  return true;
}

bool Run::all(Progress progress) const {
  return std::all_of(traces.begin(), traces.end(),
                     [&](const auto& each) { return each->progress == progress; });
}

bool Run::any(Progress progress) const {
  return std::any_of(traces.begin(), traces.end(),
                     [&](const auto& each) { return each->progress == progress; });
}

bool Run::settled(const model::Relations& relations) const {
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    bool current = true;
    traces[t]->spin_reads.each([&](int index) {
      const EventId id = threads_[t].ids[index];
      const Event& read = machine.event(id);
      if (!read.strong) return;
      for (EventId write = 0; write < machine.size(); ++write) {
        const Event& newer = machine.event(write);
        if (newer.kind != Kind::kWrite || newer.absent || newer.location != read.location ||
            write == read.partner) {
          continue;
        }
        const bool follows = read.source == model::kInitial ||
                             (read.source >= 0 && relations.coherence[read.source].has(write));
        if (follows && includes(read.scope, machine.place(read.thread), machine.place(newer.thread)))
          current = false;
      }
    });
    if (!current) return false;
  }
  return true;
}

std::string Run::describe_stuck() const {
  std::string text;
  for (std::size_t t = 0; t < threads_.size(); ++t) {
    const Trace& each = *traces[t];
    if (each.progress == Progress::kFinished) continue;
    const Thread& thread = program_->threads[t];
    if (!text.empty()) text += "; ";
    text += "P" + std::to_string(thread.id);
    text += each.progress == Progress::kSpinning ? " spins in the loop at line " : " waits at line ";
    text += std::to_string(thread.code[each.pc].line);
    if (each.progress == Progress::kSpinning) {
      each.spin_reads.each([&](int index) {
        const Event& read = machine.event(threads_[t].ids[index]);
        text += ", where " + program_->addresses[read.address].name + " reads " + std::to_string(read.value);
      });
    }
  }
  return text;
}

}  // namespace echolo::litmus
