// The warps that can run, and which of them does so next (policy.hpp). A warp is in the queue or not; the
// scheduler takes one out for each turn and puts it back where it can still run.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "base/rng.hpp"
#include "vgpu/core/policy.hpp"
#include "vgpu/core/warp.hpp"

namespace echolo::vgpu {

class ReadyQueue {
 public:
  ReadyQueue(Policy policy, std::uint64_t seed, int n_pes);

  bool empty() const { return size() == 0; }
  std::size_t size() const { return queue_.size() + slow_.size() + heap_.size(); }

  // All PEs were idle and a kernel begins: priorities and points of change are drawn anew.
  void begin_epoch();
  void born(CoreWarp& warp);  // before its first push
  void push(CoreWarp& warp);
  void erase(const CoreWarp& warp);
  // The next to run and the number of warp instructions that it may; not for an empty queue.
  CoreWarp& pop(std::uint64_t* quantum);
  // After its turn, before it is pushed again.
  void ran(CoreWarp& warp, std::uint64_t used);
  // A PE whose host threads are to go on last too; -1: none.
  int held_back_pe() const { return held_back_pe_; }
  bool reversed() const { return policy_ == Policy::kReversed; }

 private:
  bool by_priority() const { return change_points() >= 0 || policy_ == Policy::kReversed; }
  int change_points() const;  // -1: not PCT
  std::uint64_t group_of(const CoreWarp& warp) const;
  void demote_group(const CoreWarp& warp);
  struct Entry {
    std::uint64_t priority = 0;
    std::uint64_t id = 0;
    CoreWarp* warp = nullptr;
    bool operator<(const Entry& other) const {  // the earlier of equals is the higher one
      return priority != other.priority ? priority < other.priority : id > other.id;
    }
  };

  Policy policy_;
  int n_pes_;
  Rng rng_;
  std::deque<CoreWarp*> queue_;  // turn by turn
  // ---- one-slow-pe ----
  std::deque<CoreWarp*> slow_;
  int slow_pe_ = -1;
  int held_back_pe_ = -1;
  std::uint64_t interval_ = 0, turns_to_slow_ = 0;
  // ---- by priority ----
  enum class Unit : std::uint8_t { kWarp, kBlock, kPe };
  std::vector<Entry> heap_;
  Unit unit_ = Unit::kWarp;
  std::uint64_t epoch_salt_ = 0;
  std::uint64_t next_low_ = 0;          // priorities below all others, handed out downwards
  std::uint64_t executed_ = 0;          // in this epoch
  std::uint64_t patience_ = 0;          // instructions that a warp may run before it stands behind all others
  std::vector<std::uint64_t> changes_;  // points of change to come, the next one last
  std::map<std::uint64_t, std::uint64_t> demoted_;  // group -> its priority since
};

}  // namespace echolo::vgpu
