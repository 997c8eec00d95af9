#include "litmus/explore.hpp"

#include <chrono>
#include <set>

#include "litmus/run.hpp"

namespace echolo::litmus {
namespace {

using Clock = std::chrono::steady_clock;
using model::EventId;
using model::Relations;
using Outcome = std::vector<std::int64_t>;

bool can_wait(const Program& program) {
  for (const Thread& thread : program.threads) {
    for (std::size_t pc = 0; pc < thread.code.size(); ++pc) {
      const Instruction& each = thread.code[pc];
      if (each.op == Op::kBarrierSync) return true;
      if (each.target >= 0 && each.target <= static_cast<int>(pc)) return true;
    }
  }
  return false;
}

// Walks through all runs, depth first. A read is bound to each write that is there, or put off until another
// comes; so every assignment of writes to reads that can be built without values out of thin air is met
// exactly once. Orders that the model leaves open are decided last.
class Explorer {
 public:
  Explorer(const Program& program, const ExploreLimits& limits, Answer& answer)
      : program_(program), limits_(limits), answer_(answer) {
    for (const Observed& each : program.observed) memory_seen_ = memory_seen_ || each.thread < 0;
  }

  void outcomes() { begin(false); }
  void hangs() { begin(true); }

 private:
  void begin(bool hunting_hangs) {
    hunting_hangs_ = hunting_hangs;
    stop_ = false;
    // Where there are two questions, the first leaves time for the second.
    const double share = hunting_hangs || !can_wait(program_) ? 1 : 0.7;
    deadline_ = start_ + std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(limits_.seconds * share));
    Run run(program_, limits_.trace);
    if (!run.advance()) return cut("the test has more operations than a machine holds");
    walk(std::move(run));
  }

  void cut(const char* why) {
    answer_.complete = false;
    answer_.why_incomplete = why;
  }

  bool out_of_time() {
    if ((++answer_.steps & 63) == 0 && Clock::now() > deadline_) {
      cut("out of time");
      stop_ = true;
    }
    return stop_;
  }

  // Takes a run in which every thread has issued what it can.
  void walk(Run run) {
    if (out_of_time()) return;
    if (run.any(Progress::kLimit)) return cut("a loop goes round more often than is followed");
    if (!hunting_hangs_ && run.any(Progress::kSpinning)) return;  // as good as not having gone round
    {
      Relations relations;
      run.machine.relate(relations);
      if (!relations.consistent) return;
      if (hunting_hangs_ && !run.settled(relations)) return;
    }
    const EventId read = run.next_read();
    if (read >= 0) {
      for (const EventId source : run.sources(read)) {
        Run next = run;
        next.bind(read, source);
        if (!next.machine.consistent()) continue;
        if (next.advance()) {
          walk(std::move(next));
        } else {
          cut("a run has more operations than a machine holds");
        }
        if (stop_) return;
      }
      if (run.postpone(read)) walk(std::move(run));
      return;
    }
    const std::vector<Run::Opening> openings = run.openings();
    for (const Run::Opening& opening : openings) {
      Run next = run;
      if (next.open(opening)) {
        walk(std::move(next));
      } else {
        cut("a run has more operations than a machine holds");
      }
      if (stop_) return;
    }
    if (openings.empty() && run.all_bound()) finish(run);
  }

  void finish(const Run& run) {
    const bool finished = run.all(Progress::kFinished);
    if (finished == hunting_hangs_) return;
    std::set<Outcome> found;
    decide(run, run.machine, found);
    if (hunting_hangs_) return;
    for (const Outcome& outcome : found) ++answer_.outcomes[outcome];
  }

  // Tries both ways of every order that is still open. True: enough was seen.
  bool decide(const Run& run, const model::Machine& machine, std::set<Outcome>& found) {
    if (out_of_time()) return true;
    Relations relations;
    machine.relate(relations);
    if (!relations.consistent) return false;
    if (hunting_hangs_ && !run.settled(relations)) return false;
    if (const auto open = machine.undecided(relations)) {
      for (const auto& [before, after] : {*open, std::pair{open->second, open->first}}) {
        model::Machine decided = machine;
        decided.decide(before, after);
        if (decide(run, decided, found)) return true;
      }
      return false;
    }
    if (hunting_hangs_) {
      answer_.terminates = false;
      answer_.stuck = run.describe_stuck();
      stop_ = true;
      return true;
    }
    collect(run, machine, relations, 0, {}, found);
    return !memory_seen_;
  }

  void collect(const Run& run, const model::Machine& machine, const Relations& relations, std::size_t next,
               Outcome values, std::set<Outcome>& found) {
    if (next == program_.observed.size()) {
      if (holds(program_.filter, values)) found.insert(std::move(values));
      return;
    }
    const Observed& each = program_.observed[next];
    if (each.thread >= 0) {
      values.push_back(run.traces[each.thread]->registers[each.index].value_or(0));
      return collect(run, machine, relations, next + 1, std::move(values), found);
    }
    std::vector<EventId> last = machine.last_writes(each.index, relations);
    if (last.empty()) last.push_back(model::kInitial);
    for (const EventId write : last) {
      Outcome with = values;
      with.push_back(machine.value_of(write, each.index));
      collect(run, machine, relations, next + 1, std::move(with), found);
    }
  }

  const Program& program_;
  const ExploreLimits& limits_;
  Answer& answer_;
  bool memory_seen_ = false;  // final values of locations are asked for
  bool hunting_hangs_ = false;
  bool stop_ = false;
  const Clock::time_point start_ = Clock::now();
  Clock::time_point deadline_;
};

}  // namespace

bool condition_holds(const Program& program, const std::map<Outcome, std::uint64_t>& outcomes) {
  bool some = false, all = true;
  for (const auto& [values, count] : outcomes) {
    const bool here = holds(program.condition, values);
    some = some || here;
    all = all && here;
  }
  if (!program.has_condition) return true;
  switch (program.quantifier) {
    case Quantifier::kExists:
      return some;
    case Quantifier::kNotExists:
      return !some;
    case Quantifier::kForall:
      return all;
  }
  return false;
}

Answer explore(const Program& program, const ExploreLimits& limits) {
  Answer answer;
  Explorer explorer(program, limits, answer);
  explorer.outcomes();
  answer.holds = condition_holds(program, answer.outcomes);
  if (can_wait(program)) explorer.hangs();
  return answer;
}

}  // namespace echolo::litmus
