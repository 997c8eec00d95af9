// Happens-before of the executed trace: who knows of whose effects. Everything that orders two accesses goes
// through this class, everything that asks whether two accesses are ordered asks it.
//
// An agent is whatever has a program order of its own: a thread of a kernel, a host thread, a stream, and
// each asynchronous operation (a put on its way, a bulk copy, an asynchronous MMA). An agent's clock is what
// happened before its present point; clocks are compressed by structure (PE, grid, block, warp, thread), so
// that a million threads that are ordered alike cost what their blocks cost.
//
// Sources: PTX ISA, "Memory Consistency Model" (causality order; release and acquire patterns; scopes);
// Lustig, Sahasrabuddhe and Giroux, "A Formal Analysis of the NVIDIA PTX Memory Consistency Model", ASPLOS
// 2019; NVSHMEM documentation, "Memory Ordering"; OpenSHMEM 1.5, "Memory Model" and "Memory Ordering
// Routines".
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "vgpu/exec.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

struct AgentId {
  std::uint32_t value = 0;  // 0: nobody (its accesses are ordered with everything: the judge's own)
  bool operator==(const AgentId&) const = default;
};

// What an agent knows: an immutable snapshot, cheap to copy (one shared pointer).
class Clock {
 public:
  Clock() = default;  // knows of nothing
  bool empty() const { return data_ == nullptr; }

 private:
  friend class Order;
  struct Data;
  std::shared_ptr<const Data> data_;
};

// What an asynchronous operation is, for the words of a finding and for its kind: an unordered access of a
// delivery is `missing-order` or `source-reuse`, not a plain `data-race`.
enum class AgentKind : std::uint8_t {
  kThread,  // of a kernel
  kHost,    // a host thread of a PE
  kStream,  // a stream of a PE
  kPut,     // writes its target some time before fence or quiet; a non-blocking one reads its source too
  kGet,     // a non-blocking get: writes its target some time before quiet
  kRemoteAtomic,  // a non-fetching remote atomic, `p`, or a signal of its own
  kAsyncCopy,     // cp.async, cp.async.bulk, TMA: complete at wait_group or through an mbarrier
  kAsyncMma,      // wgmma: reads shared memory until wait_group
};

class Order {
 public:
  Order();
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  // ---- agents ----
  AgentId thread(const Warp& warp, int lane);
  AgentId host(int pe, int host_thread = 0);
  AgentId stream(int pe, std::uint64_t stream);
  // An operation that `parent` issues now: it knows what `parent` knows; `parent` does not know its effects
  // until it acquires release(child). `issued` is the site of the call (for findings), `what` its name
  // ("nvshmem_putmem").
  AgentId spawn(AgentId parent, AgentKind kind, const Site& issued, std::string_view what);
  // It will access nothing any more; whoever has not acquired it by now races with what it did.
  void retire(AgentId agent);

  // ---- clocks ----
  // Everything that `agent` did and knew up to now; what it does next is not in it.
  Clock release(AgentId agent);
  // From now on everything in `clock` happened before what `agent` does.
  void acquire(AgentId agent, const Clock& clock);
  static void merge(Clock& into, const Clock& from);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echolo::vgpu
