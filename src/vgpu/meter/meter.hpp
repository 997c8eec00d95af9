// What a run asks of the hardware, counted while it is executed: the feed of the time model (vgpu/work.hpp).
// There is no meter where nobody asks for times; then nothing of this runs.
//
// A block's work is summed up between two points at which it learned of others: a strong load or a wait that
// saw what another block wrote cuts it, and names the stretches that had to end before. Which write a load
// saw decides that, not whether it had to wait for it in this schedule. What a block publishes (strong
// stores, atomics, signals) ends its stretch a little later, so that whoever saw it need not wait for all
// that the block does afterwards; kLinger bounds that error. A relaxed read-modify-write that returns orders
// nothing here; an acquiring one and every strong load do.
//
// Memory: sectors of 32 bytes. A block sees its own recent lines in the L1 cache; lines whose last use lies
// further back than the L2 is large are fetched from DRAM again.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "vgpu/device_calls.hpp"
#include "vgpu/exec.hpp"
#include "vgpu/memory/memory.hpp"
#include "vgpu/work.hpp"

namespace echolo::vgpu {

inline constexpr std::uint64_t kModelledL2Bytes = 50ULL << 20U;  // H100 and H200

class Meter {
 public:
  Meter(const Memory& memory, int n_pes, std::uint64_t l2_bytes = kModelledL2Bytes);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  // ---- vgpu/core ----
  void begin_grid(const Grid& grid, const std::string& kernel, int blocks_per_sm);
  void begin_block(Block& block, std::uint32_t warps);  // sets Block::meter
  void end_block(Block& block);
  void instruction(Warp& warp, const Inst& inst);

  // ---- vgpu/memory ----
  // An access that was resolved: addresses of device memory, or of the host where `shared` holds the bytes.
  void access(Warp& warp, const Inst& inst, const Memory::Access& access, const Block* shared);
  // After a strong store or an atomic.
  void wrote(Warp& warp, const Memory::Access& access);
  // A bulk copy of this block reads or writes device memory.
  void moved(const Warp& warp, std::uint64_t address, std::uint64_t bytes, bool write);

  // ---- shmem: `warp` null: a stream's operation (or a host's, which takes no modelled time) ----
  struct Sent {
    int to = 0;
    std::uint64_t bytes = 0;
    bool get = false;
    std::uint64_t local = 0;  // its own side of the data, where that is device memory
    Granularity by = Granularity::kThread;
    std::uint64_t word = 0;  // that it updates
    bool sets = true;        // the update forgets what was there
  };
  void sent(const Warp* warp, const Sent& what);
  void saw(Warp* warp, const Inst* inst, int lane, std::uint64_t word, std::string_view what);
  // The caller's stretch, which ends here: to be given to depend() of everybody who waits for it.
  // kNoStretch: it has none.
  static constexpr std::uint32_t kNoStretch = ~0U;
  std::uint32_t arrive(const Warp* warp);
  void depend(Warp* warp, const Inst* inst, int lane, const std::vector<std::uint32_t>& on,
              std::string_view what);

  // ---- runtime: operations of streams, by number ----
  void order_op(std::uint64_t op, const std::vector<std::uint64_t>& after);
  void order_after_host(std::uint64_t op, int pe);
  void host_learned(int pe, const std::vector<std::uint64_t>& ops);
  void enter_op(std::uint64_t op, int pe, int call, const std::string& what);
  void leave_op();

  JobWork take();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echolo::vgpu
