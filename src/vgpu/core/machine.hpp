// The virtual node's engine: modules, kernel launches, warps and one seeded scheduler for all PEs. Everything
// is single-threaded and depends only on its configuration and the order of calls: same calls, same seed,
// same run.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "vgpu/core/policy.hpp"
#include "vgpu/core/trace.hpp"
#include "vgpu/device_calls.hpp"
#include "vgpu/exec.hpp"
#include "vgpu/finding.hpp"
#include "vgpu/memory/memory.hpp"
#include "vgpu/work.hpp"

namespace echolo::vgpu {

// The modelled GPU: limits that decide how many blocks are resident (an H200's by default).
struct GpuModel {
  std::string name = "NVIDIA H200 (virtual)";
  int sms = 132;
  int max_threads_per_sm = 2048, max_blocks_per_sm = 32, max_warps_per_sm = 64;
  int registers_per_sm = 65536;
  int shared_per_sm = 233472, shared_per_block_optin = 232448, shared_per_block = 49152;
  int reserved_shared_per_block = 1024;
  int max_threads_per_block = 1024;
  int clock_khz = 1980000;
};

struct MachineConfig {
  int n_pes = 1;
  std::uint64_t seed = 1;
  Policy policy = Policy::kFair;
  GpuModel gpu;
  bool peers_reachable = true;
  Checkers checkers;
  std::uint64_t spin_budget =
      200'000'000;  // most warp instructions without any news in memory before `livelock`
};

using ModuleId = std::uint32_t;
using LaunchId = std::uint64_t;

struct KernelInfo {
  std::string name;
  std::vector<std::uint32_t> param_offsets, param_sizes;  // bytes, in the parameter block
  std::uint32_t param_bytes = 0;
  std::uint32_t static_shared = 0, local_bytes = 0, registers = 0, const_bytes = 0;
  std::uint32_t max_threads = 1024;
};

struct LaunchRequest {
  int pe = 0;
  ModuleId module = 0;
  std::string kernel;
  Dim3 grid, block;
  std::uint32_t dynamic_shared = 0;
  std::vector<std::uint8_t> params;
  bool cooperative = false;
  Dim3 cluster{0, 0, 0};  // in blocks; zeros: as the kernel says (__cluster_dims__), else none
  int call = 0;           // of candidate_run
  std::string where;      // host source line of the launch, where known
  AgentId on;             // the stream whose order it runs in (vgpu/order); nobody: the PE's stream 0
};

class Machine {
 public:
  // `calls` may be null (no device function is known then) and must outlive the machine.
  static Result<std::unique_ptr<Machine>> create(const MachineConfig& config, DeviceCallTable* calls);
  ~Machine();

  Memory& memory();
  FindingLog& findings();
  const MachineConfig& config() const;
  std::uint64_t now_ns() const;       // virtual time
  void advance_to(std::uint64_t ns);  // when nothing is runnable but somebody sleeps until `ns`

  // Parses and decodes (cached by content across PEs) and places the module's variables in the PE's memory.
  // Errors carry source positions: unknown form, undefined device function, no such file.
  Result<ModuleId> load_module(int pe, const std::string& ptx, const std::string& name);
  Status unload_module(int pe, ModuleId module);
  // Registers per thread as ptxas counts them (occupancy); where nobody says, they are estimated from live
  // ranges.
  void set_register_count(ModuleId module, const std::string& kernel, std::uint32_t registers);
  Result<KernelInfo> kernel_info(ModuleId module, const std::string& kernel) const;
  std::vector<std::string> kernel_names(ModuleId module) const;
  // Address and size of a module variable on this PE.
  Result<std::pair<std::uint64_t, std::uint64_t>> variable(int pe, ModuleId module,
                                                           const std::string& name) const;
  // How many blocks of this kernel one SM holds at once (0: can't run).
  Result<int> blocks_per_sm(ModuleId module, const std::string& kernel, std::uint32_t threads,
                            std::uint32_t dynamic_shared) const;

  // Error: what a CUDA launch would refuse (too many threads, too much shared memory, cooperative grid too
  // large): message begins with the cudaError name ("cudaErrorInvalidConfiguration: ...").
  Result<LaunchId> launch(const LaunchRequest& request);
  bool finished(LaunchId id) const;
  std::uint64_t finished_at_ns(LaunchId id) const;

  enum class Progress : std::uint8_t {
    kRan,       // something executed
    kIdle,      // no grid is running
    kAsleep,    // only sleepers (nanosleep): next_wake_ns() says until when
    kStuck,     // grids run, but every warp waits for something that no warp will do
    kFaulted,   // a fatal finding was logged; nothing executes any more
    kLivelock,  // the spin budget is used up
  };
  // Executes at most about `budget` warp instructions; returns early when a grid finishes or nothing can run.
  Progress run(std::uint64_t budget);
  std::uint64_t next_wake_ns() const;
  bool idle() const;

  // A host thread that waits, for the wait graph.
  struct HostWait {
    int pe = 0;
    bool gone = false;      // the process has ended
    std::string in;         // "cudaStreamSynchronize", "nvshmem_barrier_all"
    std::string waits_for;  // "a kernel", "PE 2 to arrive"
    Frame where;
  };
  // A PE whose host threads the policy wants to go on last; -1: none.
  int held_back_pe() const;

  // After kStuck (and no host can go on) or kLivelock: logs one `deadlock`, `residency`, `barrier-divergence`
  // or `livelock` finding with the wait graph: who waits where for what, what is there, who could have
  // written it.
  void explain_stuck(const std::vector<HostWait>& hosts, bool livelock);

  // From now on records what the filter asks for; what was recorded, in order, and how many events between
  // the first and the last of them were too many to keep.
  void start_trace(const TraceFilter& filter);
  std::vector<TraceEvent> trace() const;
  std::uint64_t trace_skipped() const;

  // From now on counts what kernels and NVSHMEM operations ask of the hardware; what was counted.
  void start_meter();
  JobWork metered();

  // printf and assert output of kernels, per PE; where nothing is set it goes nowhere.
  void on_output(std::function<void(int pe, const std::string& text)> sink);

  struct Counters {
    std::uint64_t warp_instructions = 0, lane_instructions = 0, blocks = 0, grids = 0;
    std::uint64_t switches = 0;  // turns of another warp than the one before
  };
  Counters counters() const;

 private:
  Machine();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echolo::vgpu
