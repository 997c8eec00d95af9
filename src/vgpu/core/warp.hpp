// Warps at work: groups of converged lanes, frames of called functions, and what a group can wait for.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vgpu/cluster.hpp"
#include "vgpu/core/image.hpp"
#include "vgpu/device_calls.hpp"
#include "vgpu/exec.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

struct CoreBlock;
struct CoreGrid;
struct PeModule;

// One activation of a function for the lanes that called it together. Registers are a warp-wide block, so
// lanes in different activations never share one.
struct Activation {
  const KernelImage* image = nullptr;
  std::vector<std::uint8_t> storage;  // aligned_registers() lies in it
  std::uint8_t* registers = nullptr;  // 64-byte aligned
  std::uint32_t local_base = 0;       // in each lane's local memory
  std::uint32_t depth = 0;
  std::uint32_t lanes = 0;  // lanes with this activation on their stack
  std::array<Activation*, kWarpSize> caller{};
  std::array<std::int32_t, kWarpSize> return_pc{};
};

enum class GroupState : std::uint8_t {
  kRunnable,
  kConverge,   // for other lanes of the warp to come to this instruction (cross-lane, aligned barrier, warp
               // call)
  kBarrier,    // at a barrier of the block, counted as arrived
  kCall,       // a device call that is to be tried again
  kBlockCall,  // for the other threads of the block to come to the same device call, or for it to be done
  kSpin,       // in a loop that repeats exactly until memory changes
  kAsleep,     // nanosleep
  kCluster,    // barrier.cluster.wait: for the other threads of the cluster
};

struct Watch {  // a word whose change ends a wait
  const std::uint8_t* at = nullptr;
  std::uint32_t bytes = 0;
  std::uint64_t value[2] = {0, 0};
  std::uint64_t address = 0;  // device address; 0: shared memory
  std::uint32_t shared_offset = 0;
  std::int32_t pc = -1;  // the load
  int lane = 0;
};

// Finds loops that repeat exactly, at backward branches: the same registers twice, while every word that the
// loop read still holds what it read and it changed nothing itself. First one lane's registers are compared
// (cheap: ordinary loops end here), then all, with the loads recorded in between.
struct SpinTrack {
  enum class Phase : std::uint8_t { kIdle, kOneLane, kWholeGroup };
  Phase phase = Phase::kIdle;
  std::int32_t branch = -1;  // where the comparison began
  std::uint32_t compares_left = 0;
  std::uint64_t hash = 0;
  std::uint64_t effects = 0;      // CoreWarp::effects + local_changes + older_reads when it began
  std::uint64_t changes = 0;      // Memory::changes() when it began
  std::uint32_t visits = 0;       // of backward branches
  std::uint32_t next_visit = 16;  // when the next comparison begins
  std::uint64_t barriers = 0, time_reads = 0;  // CoreWarp's when it began
  bool follower = false;    // of a group that left another's loop for a while: only records for it
  bool own_change = false;  // the loop itself changed memory
  bool complete = true;     // `watches` is everything that the loop read
  std::vector<Watch> watches;
};

struct Group {
  std::uint32_t mask = 0;
  std::int32_t pc = 0;
  Activation* frame = nullptr;
  GroupState state = GroupState::kRunnable;
  std::int16_t barrier = -1;          // kBarrier: its number
  std::int32_t held_until = -1;       // the load at `pc` is held: its lanes have come so far without it
  std::uint32_t held_lanes = 0;       // which of them do it
  std::uint64_t stamp = 0;            // when it last ran, for rotation
  std::uint64_t wake_cycle = 0;       // kAsleep
  std::uint64_t parked_changes = 0;   // kSpin, kCall: Memory::changes() when it was parked
  std::uint64_t parked_progress = 0;  // kCall: how far all device calls had come then
  SpinTrack track;
  std::unique_ptr<WaitReason> reason;  // kCall, kBlockCall
  int reason_lane = 0;
};

struct CoreWarp : Warp {
  CoreBlock* core_block = nullptr;
  std::vector<Group> groups;
  std::size_t current = 0;  // index into groups of the one that runs
  std::vector<std::unique_ptr<Activation>> frames;
  std::vector<std::unique_ptr<Activation>> free_frames;
  std::array<std::uint64_t, kWarpSize> tokens{};  // DeviceCallContext::token of each lane
  std::vector<std::uint8_t> local_storage, local_written_storage;
  std::uint32_t tid[3][kWarpSize] = {};
  std::uint64_t effects =
      0;  // grows with what makes a loop not a mere spin: something printed, a call of the block
  std::uint64_t time_reads = 0;
  std::uint64_t barriers = 0;         // passed or arrived at
  std::uint32_t cluster_arrived = 0;  // lanes that arrived at the cluster's barrier and have not waited yet
  std::array<std::uint64_t, kWarpSize> cluster_phase{};  // of them: CoreCluster::phase when they arrived
  // Memory::changes() when a loop with barriers in it was last seen to repeat; see spin.cpp.
  std::uint64_t repeats_at = ~0ULL;
  bool repeats_reading_memory = false;
  std::uint64_t stamp = 0;
  std::uint64_t turn_cycle = 0;     // cycle when the present turn began
  std::uint64_t turn_used = 0;      // instructions in it so far (kept exact where time is read)
  std::uint32_t carry = 0;          // CC.CF
  std::uint32_t back_branches = 0;  // since the running group changed
  bool rotate = false;              // the next group to run is the one that waited longest
  bool free_run = false;            // the running group was chosen by rotation: it need not be the lowest
  bool give_way = false;            // the turn ends here
  bool trace = false;               // the running group's loads are being recorded
  bool ready = false;               // in the scheduler's queue
  bool parked = false;              // in the scheduler's list of parked warps
  bool asleep = false;              // in the scheduler's list of sleepers
  std::uint64_t id = 0;             // in order of creation
  std::uint64_t priority = 0;       // ReadyQueue's: the highest runs first
  std::uint64_t executed = 0;       // ReadyQueue's: since it got its priority

  std::uint8_t* lane_local(int lane) const {
    return local + std::size_t{local_bytes} * static_cast<std::size_t>(lane);
  }
};

struct BarrierState {                 // one of a block's 16 barriers
  std::uint32_t expected = 0;         // threads; 0: all live ones
  bool open = false;                  // somebody has arrived
  std::uint32_t arrived = 0;          // thread count by the rule of PTX ISA 9.7.13.1
  std::uint32_t waiting_threads = 0;  // threads that wait (not mere arrivals)
  std::vector<std::uint32_t> at;      // lanes that arrived in this phase, by warp
  std::vector<std::uint8_t> padded;   // warp's missing lanes were counted
  std::uint32_t popc = 0;
  bool all = true, any = false;
};

struct BlockCall {  // a _block device call being gathered
  const Inst* inst = nullptr;
  std::uint32_t arrived = 0;
  std::uint64_t token = 0;
  bool gathered = false;  // everybody is there and it was tried at least once
};

// A cluster and its one barrier (PTX ISA, "barrier.cluster").
struct CoreCluster : Cluster {
  std::uint64_t phase = 0;    // phases that are complete
  std::uint32_t arrived = 0;  // live threads that arrived in this phase
  Clock pending, completed;   // what arrivals released: in this phase, in the last one
};

struct CoreBlock : Block {
  std::shared_ptr<CoreCluster> core_cluster;  // null: no clusters
  CoreGrid* core_grid = nullptr;
  std::vector<CoreWarp*> warps;
  std::vector<std::unique_ptr<CoreWarp>> owned;
  std::uint32_t live_threads = 0;
  std::uint32_t live_warps = 0;
  std::array<BarrierState, 16> barriers;
  std::vector<BlockCall> calls;
};

// What a block of a kernel takes of an SM.
struct BlockNeeds {
  int threads = 0, warps = 0, registers = 0, shared = 0;
};

struct CoreGrid : Grid {
  const PeModule* pe_module = nullptr;
  std::shared_ptr<Program> program;
  const KernelImage* image = nullptr;
  std::shared_ptr<const std::vector<std::uint8_t>> pool_storage;
  const std::uint8_t* pool = nullptr;
  const SharedLayout* shared_layout = nullptr;
  std::uint32_t dynamic_shared = 0;
  std::uint32_t shared_bytes = 0;
  BlockNeeds needs;
  std::uint32_t stack_bytes = 0;  // local memory a thread starts with
  Dim3 cluster_dim{0, 0, 0};      // in blocks; zeros: no clusters
  std::uint64_t n_blocks = 0, next_block = 0, finished_blocks = 0;
  std::uint64_t workspace = 0;  // grid-sync workspace; 0: not cooperative
  std::string where;
  std::vector<std::unique_ptr<CoreBlock>> resident;  // in order of launch
};

}  // namespace echolo::vgpu
