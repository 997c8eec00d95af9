// Copies on their way: cp.async, cp.async.bulk, TMA, st.async, red.async (PTX ISA, "Data Movement and
// Conversion Instructions: Asynchronous Copy" and "Asynchronous Operations"). An asynchronous copy reads its
// source and writes its target at some moment between its issue and its completion, which a thread learns of
// by waiting for its groups or through an mbarrier, and by nothing else.
//
// When that moment comes: cp.async moves its bytes when its thread waits for it (as late as it may); all
// others after a while drawn from the seed, when their thread waits for their group, or when no warp can run.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "vgpu/cluster.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

// Bytes that an operation announces to an mbarrier when it is complete; or, with `arrives`, arrivals.
struct AsyncSignal {
  Block* block = nullptr;
  std::uint32_t offset = 0;
  std::uint32_t count = 0;
  bool arrives = false;
};

struct AsyncOperation {
  Warp* warp = nullptr;  // who issued it
  const Inst* inst = nullptr;
  int lane = 0;
  const char* what = "";  // "cp.async.bulk"
  // Moves the bytes; false: a fatal finding was logged.
  std::function<bool(const Memory::Accessor&)> move;
  std::vector<AsyncSignal> signals;
  std::vector<const Block*> uses;  // blocks whose shared memory it reads or writes
  bool in_bulk_group = false;      // completion by bulk_group, else by `signals`
  std::uint32_t group = 0;         // the thread's bulk group
  std::uint32_t rounds_left = 0;
  AgentId agent;  // an operation of its own (vgpu/order)
};

// One cp.async of a warp: addresses as issued, checked when the bytes move.
struct CopyEntry {
  const Inst* inst = nullptr;
  std::uint32_t mask = 0;
  std::uint32_t group = 0;
  bool (*move)(Warp& warp, CopyEntry& entry) = nullptr;
  Memory::Pattern from_pattern{}, to_pattern{};
  std::array<std::uint64_t, kWarpSize> from{}, to{};
  std::uint8_t size = 0;                        // bytes a lane writes
  std::array<std::uint8_t, kWarpSize> bytes{};  // of them, read of the source; the rest is zero
};

class AsyncCopies {
 public:
  explicit AsyncCopies(Memory& memory) : memory_(memory) {}

  void seed(std::uint64_t seed) { rng_ = Rng(seed ^ 0x61737963ULL); }

  // ---- cp.async ----
  void issue(Warp& warp, CopyEntry entry);
  void commit(const Warp& warp, std::uint32_t mask);
  // Moves what these lanes issued, except for their `newest` last groups. False: a fatal finding was logged.
  bool wait(Warp& warp, std::uint32_t mask, std::uint32_t newest);
  bool wait_all(Warp& warp, std::uint32_t mask);
  // cp.async.mbarrier.arrive: what the lane issued so far arrives at the mbarrier when it is done.
  void arrive_when_done(Warp& warp, const Inst& inst, int lane, AsyncSignal signal);

  // ---- bulk ----
  void issue(AsyncOperation operation);
  void commit_bulk(const Warp& warp, std::uint32_t mask);
  bool wait_bulk(Warp& warp, int lane, std::uint32_t newest);

  // ---- what mbarriers order: arrivals release, waiting for their phase acquires ----
  void begin_barrier(const Block* block, std::uint64_t offset);  // mbarrier.init, mbarrier.inval
  void release_to(const Block* block, std::uint64_t offset, const Clock& clock);
  void end_phase(const Block* block, std::uint64_t offset);
  const Clock* acquire_from(const Block* block, std::uint64_t offset) const;  // nullptr: nothing

  // ---- clusters (their blocks have no other place to be found by) ----
  void join(const Block& block, const ClusterPlace& place) { clusters_[&block] = place; }
  ClusterPlace cluster_of(const Block& block) const {
    const auto found = clusters_.find(&block);
    return found == clusters_.end() ? ClusterPlace{} : found->second;
  }

  // ---- the scheduler's ----
  bool empty() const { return pending_.empty(); }
  // A round has passed: moves what is due. False: a fatal finding was logged.
  bool tick();
  // Moves the operation that is due first. There must be one.
  bool deliver_next();
  // The block's threads have all exited: what it has issued is moved, and what others move to or from it.
  bool block_ends(Block& block);
  bool warp_ends(Warp& warp);  // called for each of its warps after that

 private:
  struct WarpCopies {
    std::vector<CopyEntry> entries;
    std::array<std::uint32_t, kWarpSize> committed{};       // groups of cp.async so far
    std::array<std::uint32_t, kWarpSize> bulk_committed{};  // bulk groups so far
    struct Done {  // an operation of a bulk group that is over and that its thread has not waited for
      int lane = 0;
      std::uint32_t group = 0;
      Clock clock;
    };
    std::vector<Done> done;
  };
  struct BarrierClocks {
    Clock pending, completed;  // what arrivals released: in this phase, in the last one
  };
  bool perform(AsyncOperation& operation);
  bool perform_at(std::size_t index);
  template <typename Done>
  bool move_entries(Warp& warp, WarpCopies& copies, std::uint32_t mask, Done done);

  Memory& memory_;
  Rng rng_{1};
  std::unordered_map<const Warp*, WarpCopies> warps_;
  std::deque<AsyncOperation> pending_;
  std::unordered_map<const Block*, ClusterPlace> clusters_;
  std::map<std::pair<const Block*, std::uint64_t>, BarrierClocks> barriers_;
};

// Bytes, or an arrival, come to an mbarrier after everything in `clock`. False: a fatal finding was logged,
// made from `who`.
bool signal_barrier(Memory& memory, const AsyncSignal& signal, const Clock& clock,
                    const Memory::Accessor& who);

}  // namespace echolo::vgpu
