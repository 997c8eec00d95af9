#include "litmus/axioms.hpp"

#include <algorithm>
#include <chrono>
#include <set>

#include "litmus/candidate.hpp"

namespace echolo::litmus {
namespace {

using Clock = std::chrono::steady_clock;
using model::Event;
using model::Kind;
using Outcome = std::vector<std::int64_t>;
using Reads = std::vector<std::optional<std::int64_t>>;

class Enumerator {
 public:
  Enumerator(const Program& program, const ExploreLimits& limits, Answer& answer)
      : program_(program),
        limits_(limits),
        answer_(answer),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(limits.seconds))) {}

  void run() {
    find_traces();
    std::vector<const Trace*> chosen;
    choose_traces(chosen);
  }

 private:
  bool out_of_time() {
    if (!stop_ && (++answer_.steps & 63) == 0 && Clock::now() > deadline_) {
      answer_.complete = false;
      answer_.why_incomplete = "out of time";
      stop_ = true;
    }
    return stop_;
  }

  // All finished traces of every thread, over the values that any write could give a location. Those values
  // are found by running the threads over and over, as often as a value could pass from write to write.
  void find_traces() {
    values_.resize(program_.locations.size());
    written_.resize(program_.locations.size());
    for (std::size_t i = 0; i < program_.locations.size(); ++i)
      values_[i].insert(program_.locations[i].initial);
    std::size_t rounds = 1;
    for (const Thread& thread : program_.threads) {
      for (const Instruction& each : thread.code) {
        rounds += (each.address >= 0 && each.op != Op::kLoad ? 1U : 0U) + (each.signal >= 0 ? 1U : 0U);
      }
    }
    for (bool grown = true; grown && rounds > 0 && !stop_; --rounds) {
      grown = false;
      traces_.assign(program_.threads.size(), {});
      for (std::size_t t = 0; t < program_.threads.size(); ++t) extend(static_cast<int>(t), {});
      for (std::size_t i = 0; i < values_.size(); ++i) {
        const std::size_t before = values_[i].size();
        values_[i].insert(written_[i].begin(), written_[i].end());
        grown = grown || values_[i].size() > before;
      }
    }
  }

  void extend(int thread, const Reads& reads) {
    if (out_of_time()) return;
    constexpr int kAllBarriers = 1 << 20;
    Trace now = trace(program_, thread, reads, kAllBarriers, limits_.trace);
    for (std::size_t i = 0; i < now.events.size(); ++i) {
      const Event& event = now.events[i].event;
      if (event.kind != Kind::kRead || event.known) continue;
      for (const std::int64_t value : values_[event.location]) {
        Reads more = reads;
        more.resize(std::max(more.size(), i + 1));
        more[i] = value;
        extend(thread, more);
      }
      return;
    }
    // Also what a thread writes that then waits for something: another round may let it go on.
    for (const TraceEvent& traced : now.events) {
      const Event& event = traced.event;
      if (event.kind == Kind::kWrite && !event.absent && event.known)
        written_[event.location].insert(event.value);
    }
    if (now.progress == Progress::kLimit) {
      answer_.complete = false;
      answer_.why_incomplete = "a loop goes round more often than is followed";
    }
    if (now.progress == Progress::kFinished) traces_[thread].push_back(std::move(now));
  }

  void choose_traces(std::vector<const Trace*>& chosen) {
    if (out_of_time()) return;
    if (chosen.size() == program_.threads.size()) {
      Candidate candidate = join_traces(program_, chosen);
      if (candidate.n() > model::kMaxEvents) {
        answer_.complete = false;
        answer_.why_incomplete = "a run has more operations than are followed";
        return;
      }
      choose_sources(candidate, 0);
      return;
    }
    for (const Trace& each : traces_[chosen.size()]) {
      chosen.push_back(&each);
      choose_traces(chosen);
      chosen.pop_back();
    }
  }

  void choose_sources(Candidate& candidate, int from) {
    if (stop_) return;
    int read = from;
    while (read < candidate.n() && candidate.events[read].kind != Kind::kRead) ++read;
    if (read == candidate.n()) return choose_barriers(candidate);
    Event& event = candidate.events[read];
    if (event.value == program_.locations[event.location].initial) {
      event.source = model::kInitial;
      choose_sources(candidate, read + 1);
    }
    for (int write = 0; write < candidate.n(); ++write) {
      const Event& other = candidate.events[write];
      if (other.kind != Kind::kWrite || other.absent || other.location != event.location ||
          other.value != event.value || write == event.partner) {
        continue;
      }
      event.source = write;
      choose_sources(candidate, read + 1);
    }
  }

  void choose_barriers(const Candidate& candidate) {
    if (out_of_time()) return;
    Axioms axioms(candidate);
    if (!axioms.no_thin_air()) return;
    std::set<Outcome> found;
    open_barrier(candidate, axioms, 0, Relation(candidate.n()), found);
    for (const Outcome& outcome : found) ++answer_.outcomes[outcome];
  }

  // Orders the departures of barriers from the `index`th on after arrivals; with a quorum, after any that
  // many.
  void open_barrier(const Candidate& candidate, Axioms& axioms, std::size_t index, const Relation& orders,
                    std::set<Outcome>& found) {
    if (out_of_time()) return;
    if (index == candidate.barriers.size()) return choose_fences(candidate, axioms, orders, found);
    const Candidate::Use& use = candidate.barriers[index];
    std::vector<int> arrivals, departures;
    bool first = true;
    std::int64_t quorum = 0;
    for (std::size_t i = 0; i < candidate.barriers.size(); ++i) {
      const Candidate::Use& other = candidate.barriers[i];
      if (!(other.place == use.place) || other.instance != use.instance || other.resource != use.resource ||
          other.use != use.use) {
        continue;
      }
      if (i < index) first = false;
      arrivals.push_back(other.arrival);
      if (other.departure >= 0) departures.push_back(other.departure);
      quorum = std::max(quorum, other.quorum);
    }
    if (!first) return open_barrier(candidate, axioms, index + 1, orders, found);
    const auto n = static_cast<std::int64_t>(arrivals.size());
    if (departures.empty()) return open_barrier(candidate, axioms, index + 1, orders, found);
    if (n < quorum) return;
    const std::int64_t wanted = quorum == 0 ? n : quorum;
    std::vector<bool> on_time(arrivals.size(), false);
    std::fill(on_time.begin(), on_time.begin() + wanted, true);
    do {
      Relation more = orders;
      for (std::size_t i = 0; i < arrivals.size(); ++i) {
        if (!on_time[i]) continue;
        for (const int departure : departures) more.add(arrivals[i], departure);
      }
      open_barrier(candidate, axioms, index + 1, more, found);
    } while (std::prev_permutation(on_time.begin(), on_time.end()) && !stop_);
  }

  void choose_fences(const Candidate& candidate, Axioms& axioms, const Relation& barriers,
                     std::set<Outcome>& found) {
    std::vector<int> fences;
    for (int i = 0; i < candidate.n(); ++i) {
      if (candidate.events[i].kind == Kind::kFence && candidate.events[i].sc) fences.push_back(i);
    }
    std::vector<Relation> tried;
    do {
      const Relation order = strong_pairs(axioms, candidate.n(), fences);
      if (std::find(tried.begin(), tried.end(), order) != tried.end()) continue;
      tried.push_back(order);
      if (out_of_time()) return;
      if (axioms.set_orders(order, barriers))
        choose_coherence(candidate, axioms, 0, Relation(candidate.n()), found);
    } while (std::next_permutation(fences.begin(), fences.end()));
  }

  static Relation strong_pairs(const Axioms& axioms, int n, const std::vector<int>& in_order) {
    Relation order(n);
    for (std::size_t i = 0; i < in_order.size(); ++i) {
      for (std::size_t j = i + 1; j < in_order.size(); ++j) {
        if (axioms.morally_strong(in_order[i], in_order[j])) order.add(in_order[i], in_order[j]);
      }
    }
    return order;
  }

  void choose_coherence(const Candidate& candidate, Axioms& axioms, std::size_t location,
                        const Relation& order, std::set<Outcome>& found) {
    if (out_of_time()) return;
    if (location == program_.locations.size()) {
      if (axioms.allowed(order)) collect(candidate, axioms.coherence(), 0, {}, found);
      return;
    }
    std::vector<int> writes;
    for (int i = 0; i < candidate.n(); ++i) {
      const Event& event = candidate.events[i];
      if (event.kind == Kind::kWrite && !event.absent && event.location == static_cast<int>(location)) {
        writes.push_back(i);
      }
    }
    std::vector<Relation> tried;
    do {
      const Relation more = strong_pairs(axioms, candidate.n(), writes);
      if (std::find(tried.begin(), tried.end(), more) != tried.end()) continue;
      tried.push_back(more);
      choose_coherence(candidate, axioms, location + 1, order | more, found);
    } while (std::next_permutation(writes.begin(), writes.end()) && !stop_);
  }

  void collect(const Candidate& candidate, const Relation& coherence, std::size_t next, Outcome values,
               std::set<Outcome>& found) {
    if (next == program_.observed.size()) {
      if (holds(program_.filter, values)) found.insert(std::move(values));
      return;
    }
    const Observed& each = program_.observed[next];
    std::set<std::int64_t> last;
    if (each.thread >= 0) {
      last.insert(candidate.traces[each.thread]->registers[each.index].value_or(0));
    } else {
      for (int i = 0; i < candidate.n(); ++i) {
        const Event& event = candidate.events[i];
        if (event.kind != Kind::kWrite || event.absent || event.location != each.index) continue;
        bool overwritten = false;
        for (int j = 0; j < candidate.n(); ++j) overwritten = overwritten || coherence.has(i, j);
        if (!overwritten) last.insert(event.value);
      }
      if (last.empty()) last.insert(program_.locations[each.index].initial);
    }
    for (const std::int64_t value : last) {
      Outcome with = values;
      with.push_back(value);
      collect(candidate, coherence, next + 1, std::move(with), found);
    }
  }

  const Program& program_;
  const ExploreLimits& limits_;
  Answer& answer_;
  std::vector<std::set<std::int64_t>> values_;   // by location
  std::vector<std::set<std::int64_t>> written_;  // by location: in the round that is running
  std::vector<std::vector<Trace>> traces_;       // by thread
  Clock::time_point deadline_;
  bool stop_ = false;
};

}  // namespace

Answer enumerate(const Program& program, const ExploreLimits& limits) {
  Answer answer;
  Enumerator(program, limits, answer).run();
  answer.holds = condition_holds(program, answer.outcomes);
  return answer;
}

}  // namespace echolo::litmus
