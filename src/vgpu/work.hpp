// What an executed job asked of the hardware, and in which order: the input of the time model. Counts, no
// times.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo::vgpu {

// Execution pipes of an SM that are counted apart.
enum class Pipe : std::uint8_t { kInteger, kFloat, kDouble, kSpecial, kTensor, kMemory, kControl };
inline constexpr std::size_t kPipes = 7;

struct PeerTraffic {
  int pe = 0;
  std::uint64_t bytes_out = 0, bytes_in = 0;  // stored to and loaded from that PE
  std::uint64_t messages = 0;
};

// What one stretch of one block did.
struct Work {
  std::array<std::uint64_t, kPipes> issued{};  // warp instructions
  std::uint64_t tensor_flops = 0;              // at the rate of bf16: tf32 counts twice, fp8 and int8 half
  // 128 bytes of shared memory or of the L1 cache each; bank conflicts make more.
  std::uint64_t shared_wavefronts = 0;
  std::uint64_t l2_bytes = 0;      // 32-byte sectors of the PE's own memory that were accessed
  std::uint64_t dram_bytes = 0;    // of them, those that the L2 did not hold any more
  std::vector<PeerTraffic> peers;  // sorted by PE
};

enum class Phase : std::uint8_t { kCompute, kPut, kGet };

// A block's life is cut where it saw what somebody else has done, and around what it moves for others to see.
struct Stretch {
  std::uint32_t block = 0;  // index into JobWork::blocks
  Work work;
  // Stretches of other blocks that must have ended before this one begins: those whose store, signal or
  // barrier arrival ended the wait before it.
  std::vector<std::uint32_t> causes;
  std::string waited_at;    // "kernel.cu:124" where there was a wait before this stretch; else empty
  bool at_barrier = false;  // that wait was for all members of a team
  Phase phase = Phase::kCompute;
};

struct BlockWork {
  std::uint32_t launch = 0;  // index into JobWork::launches
  std::uint32_t index = 0;   // linear, in the grid
  std::uint32_t warps = 1;
  std::vector<std::uint32_t> stretches;  // in order
};

struct LaunchWork {
  int pe = 0;
  int call = 0;  // of candidate_run, from 1; 0: outside of any
  std::string kernel;
  int blocks_per_sm = 1;
  std::vector<std::uint32_t> after;  // launches that end before this one begins (stream order)
  std::vector<std::uint32_t> blocks;
};

struct JobWork {
  int n_pes = 0;
  std::vector<LaunchWork> launches;
  std::vector<BlockWork> blocks;
  std::vector<Stretch> stretches;
};

// A file that only this version reads (CBOR). Errors: it can't be written or read, or is no such file.
Status write_work(const JobWork& work, const std::string& path);
Result<JobWork> read_work(const std::string& path);

}  // namespace echolo::vgpu
