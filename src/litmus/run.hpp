// One run of a litmus test in progress: the machine, and what ties its events to the threads' traces.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "litmus/program.hpp"
#include "litmus/trace.hpp"
#include "model/machine.hpp"

namespace echolo::litmus {

class Run {
 public:
  Run(const Program& program, const TraceLimits& limits);

  // Lets every thread issue what it can. False: an operation more than the machine holds.
  bool advance();

  // A read that is unbound and has sources it was not kept from: the one to bind next, or -1.
  model::EventId next_read() const;
  std::vector<model::EventId> sources(model::EventId read) const;  // with kInitial, without any check
  void bind(model::EventId read, model::EventId source);
  // The read takes none of its present sources but a write still to come. False: none can come.
  bool postpone(model::EventId read);
  bool all_bound() const;

  // Barriers that can let threads go on; several where a quorum can be reached by different threads. Each is
  // a set of arrivals.
  struct Opening {
    int thread = -1;  // one that waits there
    std::vector<model::EventId> on_time;
  };
  std::vector<Opening> openings() const;
  bool open(const Opening& opening);  // false as advance()

  bool all(Progress progress) const;
  bool any(Progress progress) const;
  // No strong load of a spinning thread could return something newer, by what is ordered so far.
  bool settled(const model::Relations& relations) const;
  std::string describe_stuck() const;

  model::Machine machine;
  std::vector<std::shared_ptr<const Trace>> traces;  // by thread

 private:
  struct ThreadState {
    std::vector<model::EventId> ids;  // by index into the trace
    std::vector<std::optional<std::int64_t>> reads;
    std::vector<int> strands;  // the machine's threads
    int passed = 0;
    std::size_t orders = 0;  // of the trace, that the machine knows
    bool stale = true;       // the trace wants a new look
  };
  struct Origin {
    int thread, index;
  };
  struct Phase {  // of a barrier: the n-th use of it by each thread
    model::Place place;
    std::int64_t instance, resource;
    int use;
    std::vector<model::EventId> on_time;
  };

  bool issue_new(int thread);
  int use_of(int thread, const BarrierUse& barrier) const;
  const Phase* complete(int thread) const;
  std::vector<std::pair<int, model::EventId>> arrivals(int thread) const;  // at the barrier where it waits
  bool let_pass(int thread, const std::vector<model::EventId>& on_time);

  const Program* program_;
  TraceLimits limits_;
  std::vector<ThreadState> threads_;
  std::vector<Origin> origins_;             // by event of the machine
  std::vector<model::EventSet> kept_from_;  // by read: writes that it was postponed past
  model::EventSet kept_from_initial_;       // reads
  std::vector<Phase> phases_;
};

}  // namespace echolo::litmus
