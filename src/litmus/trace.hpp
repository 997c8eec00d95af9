// What one thread of a litmus test does, given the values of its reads so far: the operations it issues, in
// program order, up to where it cannot go on without a value or another thread. A pure function, so that
// whoever explores the runs of a test only keeps the values.
#pragma once

#include <optional>
#include <vector>

#include "litmus/program.hpp"
#include "model/event_set.hpp"

namespace echolo::litmus {

struct TraceEvent {
  // Without thread and index. A write whose operands are unknown is not `known`; one of a compare-and-swap
  // that may not happen is `absent` as well. `partner` is an index into Trace::events.
  model::Event event;
  int strand =
      0;  // 0: the thread itself; others run beside it (a put in flight), each in an order of its own
  model::EventSet
      depends;  // reads of this thread (indices) that the value, or whether it happens, depends on
};

struct BarrierUse {
  std::int64_t instance = 0, resource = 0;
  std::int64_t quorum = 0;  // 0: all threads of the CTA that may still come to it
  int arrival = 0;          // index into Trace::events
  int departure = -1;       // -1: not passed yet, or bar.arrive, which waits for nobody
  bool waits = false;       // bar.sync
};

enum class Progress : std::uint8_t {
  kFinished,
  kNeedsValue,  // of one of `needed`
  kAtBarrier,   // the last of `barriers`
  kSpinning,    // the last iteration of a loop changed nothing: it can repeat forever
  kLimit,       // more operations than an exploration follows
};

struct Trace {
  struct Order {
    int before, after;
  };
  std::vector<TraceEvent> events;
  std::vector<Order> orders;  // beside program order
  std::vector<BarrierUse> barriers;
  int strands = 1;
  Progress progress = Progress::kFinished;
  int pc = 0;                                          // where it stopped
  model::EventSet needed;                              // reads
  model::EventSet spin_reads;                          // reads of the iteration that can repeat
  std::vector<std::optional<std::int64_t>> registers;  // at the end
};

struct TraceLimits {
  int events = 60;     // of one thread
  int iterations = 8;  // times that a thread jumps back
};

// `reads[i]` is the value of event i where that is a bound read; may be shorter than the trace. `passed` is
// how many barriers have let the thread go on.
Trace trace(const Program& program, int thread, const std::vector<std::optional<std::int64_t>>& reads,
            int passed, const TraceLimits& limits = {});

// Whether a thread that stands before instruction `pc` may still come to a barrier with this instance and
// resource. A barrier whose operands are registers counts as any.
bool may_reach_barrier(const Program& program, int thread, int pc, std::int64_t instance,
                       std::int64_t resource);
// Whether it may still write to `location` after `pc`.
bool may_write(const Program& program, int thread, int pc, int location);

}  // namespace echolo::litmus
