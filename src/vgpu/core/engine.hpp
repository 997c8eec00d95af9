// The inside of Machine. One object; its member functions are grouped by file:
//   machine.cpp    the public face          modules.cpp    loading, variables, pools
//   launch.cpp     grids, residency, blocks scheduler.cpp  turns, time, waking
//   policy.cpp, ready_queue.cpp             who runs next
//   execute.cpp    the inner loop           groups.cpp     divergence and reconvergence
//   defer.cpp      loads that are bound late
//   control.cpp    control instructions     barriers.cpp   barriers of a block
//   calls.cpp      calls and frames         device_calls.cpp, builtins.cpp
//   cluster.cpp    clusters and their barrier
//   spin.cpp       loops that repeat        explain*.cpp   findings about waiting
//
// Virtual time. A round gives every warp that can run one turn. It lasts as many cycles as its longest turn
// has instructions, or as all its instructions take on the SMs in use at four a cycle and SM, whichever is
// more. Time so defined depends on what was executed only.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.hpp"
#include "vgpu/core/machine.hpp"
#include "vgpu/core/ready_queue.hpp"
#include "vgpu/core/trace.hpp"
#include "vgpu/core/warp.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::vgpu {

struct PeModule {
  int pe = 0;
  std::string name;
  bool loaded = true;
  std::shared_ptr<Program> program;
  std::vector<std::uint64_t> addresses;  // of module variables; 0: not in memory
  std::map<std::int32_t, std::shared_ptr<const std::vector<std::uint8_t>>> pools;  // by entry
  std::map<std::int32_t, std::uint32_t> registers;  // by entry, where somebody said
};

struct SmUse {
  int threads = 0, blocks = 0, warps = 0, registers = 0, shared = 0;
};

struct PeState {
  std::vector<SmUse> sms;
  int sms_in_use = 0;
  std::vector<std::unique_ptr<CoreGrid>> grids;  // running, in order of launch
};

struct Machine::State {
  MachineConfig config;
  Machine* owner = nullptr;
  DeviceCallTable* calls = nullptr;
  FindingLog findings;
  std::unique_ptr<Memory> memory;
  std::function<void(int, const std::string&)> sink;
  Counters counters;
  std::unique_ptr<Tracer> tracer;  // null: nobody wants a trace
  std::unique_ptr<Meter> meter;    // null: nobody wants modelled times
  // Only where there is a tracer.
  void note_event(const CoreWarp& warp, const Inst& inst, std::uint32_t mask, const std::string& what) {
    tracer->note(warp, inst, mask, what, to_ns(now_cycles_of(warp)));
  }

  std::map<std::string, std::shared_ptr<Program>> programs;  // by content hash
  std::vector<std::unique_ptr<PeModule>> modules;            // by ModuleId
  std::vector<PeState> pes;
  std::map<LaunchId, std::uint64_t> finished;  // launch -> ns
  LaunchId next_launch = 1;

  // ---- scheduler ----
  ReadyQueue ready;
  std::vector<CoreWarp*> parked;    // some group waits in kSpin or kCall
  std::vector<CoreWarp*> sleepers;  // some group sleeps
  std::uint64_t now_cycles = 0;
  std::uint64_t round_left = 0, round_executed = 0, round_longest = 0;
  std::uint64_t executed = 0;   // warp instructions in all
  std::uint64_t last_scan = 0;  // `executed` when parked warps were last looked at
  std::uint64_t seen_changes = 0;
  std::uint64_t seen_news = 0, executed_at_news = 0;  // of memory; a block that ends is news too
  std::uint64_t executed_at_end = 0;                  // `executed` when a block last ended or began
  bool watches_news = false;
  std::uint64_t livelock_budget = 0;  // warp instructions without news that were too many; 0: no livelock
  std::uint64_t call_progress = 0;    // device calls that came on
  std::uint64_t next_warp_id = 1;
  std::uint64_t last_warp = 0;  // id of the one that had the last turn
  bool grid_ended = false;      // since run() was entered
  void note_end();
  bool goes_in_circles();
  std::vector<std::unique_ptr<CoreWarp>> warp_pool;

  // Of loops, by function and backward branch: see loop_time.cpp.
  struct LoopTime {
    bool harmless = false;            // the clock decides only how long the loop sleeps
    std::vector<std::uint32_t> skip;  // slots of registers that hold times, in order
  };
  std::map<std::pair<const KernelImage*, std::int32_t>, LoopTime> loop_times;
  const LoopTime& loop_time(const KernelImage& image, std::int32_t branch_pc, std::int32_t target);

  explicit State(MachineConfig given)
      : config(std::move(given)),
        ready(config.policy, config.seed, config.n_pes),
        hold_rng(config.seed ^ kHoldSalt) {}

  // modules.cpp
  Result<ModuleId> load(int pe, const std::string& ptx, const std::string& name);
  Status unload(int pe, ModuleId id);
  std::shared_ptr<const std::vector<std::uint8_t>> pool_for(PeModule& module, const KernelImage& entry);
  Result<const KernelImage*> entry(ModuleId id, const std::string& kernel) const;

  // launch.cpp
  BlockNeeds block_needs(const PeModule& module, const KernelImage& image, std::uint32_t threads,
                         std::uint32_t dynamic_shared) const;
  std::uint32_t registers_of(const PeModule& module, const KernelImage& image) const;
  int blocks_per_sm(const BlockNeeds& block) const;
  Result<LaunchId> launch(const LaunchRequest& request);
  void fill_sms(int pe);
  bool place_cluster(const PeState& pe, const CoreGrid& grid, std::vector<std::uint32_t>& sms_of) const;
  void start_block(CoreGrid& grid, std::uint32_t sm, const std::shared_ptr<CoreCluster>& cluster);
  void end_block(CoreBlock& block);
  void end_grid(CoreGrid& grid);

  // scheduler.cpp
  Progress run(std::uint64_t budget);
  std::uint64_t turn(CoreWarp& warp, std::uint64_t quantum);
  void make_ready(CoreWarp& warp);
  void park(CoreWarp& warp);
  void put_to_sleep(CoreWarp& warp, Group& group, std::uint64_t cycles);
  bool wake_parked(bool all_calls);
  bool wake_sleepers();
  void forget(CoreWarp& warp);  // takes an ended warp off every list
  std::uint64_t next_wake_cycle() const;
  std::uint64_t to_ns(std::uint64_t cycles) const;
  std::uint64_t to_cycles(std::uint64_t ns) const;
  std::uint64_t now_cycles_of(const CoreWarp& warp) const { return warp.turn_cycle + warp.turn_used; }

  // execute.cpp; `kMetered` where there is a meter
  template <bool kMetered>
  std::uint64_t execute(CoreWarp& warp, std::uint64_t budget);

  // defer.cpp
  std::uint32_t hold_share = 0;                           // of 256 loads that may be held, how many are
  static constexpr std::uint64_t kHoldSalt = 0x6c6f6164;  // no draw repeats those of other parts
  Rng hold_rng;
  // At a load that may be held: 0: do it now; else so many instructions have gone, some of them before it.
  std::uint64_t hold_load(CoreWarp& warp, Group& group, std::int32_t pc, std::uint32_t active);
  bool do_held_load(CoreWarp& warp, Group& group);  // false: a fault
  bool access(CoreWarp& warp, const Inst& inst, std::uint32_t mask);

  // groups.cpp
  bool pick(CoreWarp& warp);
  void enter(CoreWarp& warp, const Group& group);  // registers of the running group
  std::int32_t stop_pc(const CoreWarp& warp) const;
  void merge_here(CoreWarp& warp);  // groups at the running group's pc join it
  void split(CoreWarp& warp, std::uint32_t mask, std::int32_t pc);  // lanes of the running group go elsewhere
  void drop_group(CoreWarp& warp, std::size_t index);
  void merge_frames(CoreWarp& warp, Activation& into, Activation& from, std::uint32_t mask);
  void exit_lanes(CoreWarp& warp, std::uint32_t mask);
  // For an instruction that needs other lanes: true where all are here; else the running group waits.
  bool converged(CoreWarp& warp, std::uint32_t mask, std::uint32_t needed);
  // These two: true: done, go on behind the instruction; false: choose a group again.
  bool cross_lane(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  bool warp_sync(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  void settle(CoreWarp& warp);  // nothing of the warp runs: may lanes that wait for each other be joined?
  bool rendezvous(CoreWarp& warp);

  // control.cpp: true: go on with the running group at its (new) pc; false: choose a group again
  bool control(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  void special(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  void trap(CoreWarp& warp, const Inst& inst, std::uint32_t mask, std::string message);

  // barriers.cpp
  bool barrier(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  void check_barriers(CoreBlock& block);
  bool complete(const CoreBlock& block, const BarrierState& state) const;
  void release(CoreBlock& block, int number);

  // cluster.cpp
  Result<Dim3> cluster_of(const LaunchRequest& request, const KernelImage& image) const;
  bool cluster_arrive(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  bool cluster_wait(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  void check_cluster(CoreCluster& cluster);
  void leave_cluster_barrier(CoreWarp& warp, std::uint32_t lanes);  // lanes that exit

  // calls.cpp
  Activation* new_frame(CoreWarp& warp, const KernelImage& image);
  void leave_frame(CoreWarp& warp, Activation& frame, std::uint32_t mask);
  bool call(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  bool enter_function(CoreWarp& warp, const KernelImage& image, const CallSite& site, std::uint32_t mask);
  bool ret(CoreWarp& warp, std::uint32_t mask);
  bool grow_local(CoreWarp& warp, std::uint32_t needed);

  // device_calls.cpp
  bool device_call(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  CallOutcome attempt(CoreWarp& warp, const Group& group, const Inst& inst, const CallSite& site, int lane,
                      std::uint64_t& token, std::unique_ptr<WaitReason>& reason, std::uint8_t* result);
  bool block_call(CoreWarp& warp, const Inst& inst, const CallSite& site, std::uint32_t mask);
  void check_block_calls(CoreBlock& block);

  // builtins.cpp
  bool builtin(CoreWarp& warp, const Inst& inst, const CallSite& site, std::uint32_t mask);

  // spin.cpp: at a backward branch of the running group; true: it was parked
  bool visit_back_branch(CoreWarp& warp, std::int32_t branch_pc, std::int32_t target);
  bool block_repeats(CoreWarp& warp, const SpinTrack& track);
  void record_access(CoreWarp& warp, const Inst& inst, std::uint32_t mask);
  static bool watch_moved(const Watch& watch);

  // explain.cpp and its siblings (explain.hpp)
  void explain_stuck(const std::vector<HostWait>& hosts, bool livelock);
  void report_divergence(CoreWarp& warp);
  void report_skipped_barrier(CoreWarp& warp, const Group& waiting, const Group& leaving,
                              std::uint32_t lanes);
};

// The address of the memory operand of a ld, st, atom, red of `group`'s lane, and what lies there.
struct Operand64 {
  bool known = false;
  std::uint64_t address = 0;  // in the window of the instruction's space
  const std::uint8_t* host = nullptr;
  std::uint32_t bytes = 0;
  bool shared = false;
};
Operand64 memory_operand(const CoreWarp& warp, const Activation& frame, const ptx::Instruction& source,
                         int lane, const Memory& memory);

// The value of a register for a lane, zero-extended.
std::uint64_t register_value(const Activation& frame, std::int32_t reg, int lane);

}  // namespace echolo::vgpu
