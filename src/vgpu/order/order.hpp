// Happens-before of the executed trace: who knows of whose effects. Everything that orders two accesses goes
// through this class, everything that asks whether two accesses are ordered asks it.
//
// An agent is whatever has a program order of its own: a thread of a kernel, a PE's host, a stream, and
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
  struct Data;  // vgpu/order/order_state.hpp

 private:
  friend class Order;
  std::shared_ptr<const Data> data_;
};

// What an asynchronous operation is, for the words of a finding and for its kind: an unordered access of a
// delivery is `missing-order` or `source-reuse`, not a plain `data-race`.
enum class AgentKind : std::uint8_t {
  kThread,  // of a kernel
  kHost,    // the host of a PE
  kStream,  // a stream of a PE
  kPut,     // writes its target some time before fence or quiet; a non-blocking one reads its source too
  kGet,     // a non-blocking get: writes its target some time before quiet
  kRemoteAtomic,  // a non-fetching remote atomic, `p`, or a signal of its own
  kAsyncCopy,     // cp.async, cp.async.bulk, TMA: complete at wait_group or through an mbarrier
  kAsyncMma,      // wgmma: reads shared memory until wait_group
};

struct WarpOrder;  // vgpu/order/order_state.hpp
struct BlockOrder;

class Order {
 public:
  Order();
  ~Order();
  Order(const Order&) = delete;
  Order& operator=(const Order&) = delete;

  // ---- agents ----
  AgentId thread(const Warp& warp, int lane);
  // The host threads of a PE are one agent: what orders them among each other (joins, locks) makes no call.
  AgentId host(int pe);
  AgentId stream(int pe, std::uint64_t stream);
  // An operation that `parent` issues now: it knows what `parent` knows; `parent` does not know its effects
  // until it acquires release(child). `issued` is the site of the call (for findings), `what` its name
  // ("nvshmem_putmem").
  AgentId spawn(AgentId parent, AgentKind kind, const Site& issued, std::string_view what);
  // The same without a site: for operations that are too many to describe each (its findings name the
  // parent).
  AgentId spawn(AgentId parent, AgentKind kind, int pe, std::string_view what);
  // An operation that need not wait for its issuer's own stores, as a signal: it knows what `parent` was told
  // by others, and of the accesses of `parent` and its block those before `parent`'s last fence at system
  // scope. Hosts and streams fence all that they do.
  AgentId spawn_carrying(AgentId parent, AgentKind kind, int pe, std::string_view what);
  // It will access nothing any more; whoever has not acquired it by now races with what it did.
  void retire(AgentId agent);

  // ---- clocks ----
  // Everything that `agent` did and knew up to now; what it does next is not in it.
  Clock release(AgentId agent);
  // What `agent`, no thread, did itself up to now, and nothing that it knew.
  Clock own(AgentId agent);
  // What `thread`'s last fence at this scope or a wider one lets a relaxed operation after it release.
  Clock fenced(AgentId thread, ptx::Scope scope) const;
  // From now on everything in `clock` happened before what `agent` does.
  void acquire(AgentId agent, const Clock& clock);
  // The same for several lanes of a warp at once.
  void acquire(Warp& warp, std::uint32_t lanes, const Clock& clock);
  void merge(Clock& into, const Clock& from) const;
  // The clock value that `agent`'s events have now, and whether an event of `earlier` at that value happened
  // before what `now` does next.
  std::uint32_t time_of(AgentId agent) const;
  bool happened_before(AgentId earlier, std::uint32_t at, AgentId now) const;
  // Is everything that `agent` did up to now in `clock`?
  bool covers(const Clock& clock, AgentId agent) const;

  // ---- kernels; called by vgpu/core ----
  // `on`: the agent (a stream) in whose order the grid runs; it must have acquired what the grid comes after.
  // Nobody: the PE's stream 0. The number is kept in Grid::order.
  void begin_grid(Grid& grid, AgentId on);
  // Everything the grid's threads did now belongs to `on`.
  void end_grid(const Grid& grid);
  // Fills Block::order; warp i's is warps()[i]. `cluster`: 1 + the number of its cluster; 0: it is alone.
  void begin_block(Block& block, std::uint32_t n_warps, std::uint32_t cluster = 0);
  WarpOrder* warp_of(const Block& block, std::uint32_t index) const;
  void end_block(Block& block);
  // Others than the block's own threads may reach its shared memory from now on.
  void open_shared(const Block& block);
  // All threads of the block were at a barrier and go on (threads that have exited count as having arrived).
  void block_barrier(Block& block);
  // Barrier `number` of some of the block's threads: each that arrives, then each that waited and goes on;
  // `close` when the last one has gone.
  void arrive(Warp& warp, std::uint32_t mask, int number);
  void leave(Warp& warp, std::uint32_t mask, int number);
  void close(Block& block, int number);
  // bar.warp.sync of these lanes.
  void warp_sync(Warp& warp, std::uint32_t lanes);
  // fence.acq_rel or fence.sc of these lanes.
  void fence(Warp& warp, std::uint32_t lanes, ptx::Scope scope, bool sc = false);
  // fence.proxy.async of a thread of the block: what the block has written to its shared memory up to now may
  // be read through the async proxy. (Whose writes the fence is for is not followed: a fence that is missing
  // altogether is found, one by the wrong thread is not.)
  void proxy_fence(const Block& block);

  struct State;  // vgpu/order/order_state.hpp
  State& state() { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

}  // namespace echolo::vgpu
