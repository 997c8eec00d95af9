// Clusters of blocks and the addresses of their shared memory (PTX ISA, "Thread Hierarchy: Cluster of
// Cooperative Thread Arrays"; "State Spaces: Shared State Space").
#pragma once

#include <cstdint>
#include <vector>

#include "vgpu/exec.hpp"

namespace echolo::vgpu {

// Blocks that are resident together and reach each other's shared memory.
struct Cluster {
  Dim3 dim;  // in blocks
  Dim3 index{0, 0, 0};
  std::vector<Block*> blocks;  // by rank; null once the block has ended
};

struct ClusterPlace {
  Cluster* cluster = nullptr;  // null: the grid was launched without clusters
  std::uint32_t rank = 0;
};

// An address of .shared::cluster: offset in the low 24 bits; above them 0 for the thread's own block, or 1 +
// the rank of a block of its cluster (what mapa makes). The first part is the window of .shared::cta.
inline constexpr unsigned kClusterRankShift = 24;
inline constexpr std::uint32_t kMaxClusterBlocks = 16;
inline constexpr std::uint64_t kSharedClusterWindowBytes = (kMaxClusterBlocks + 1ULL) << kClusterRankShift;

}  // namespace echolo::vgpu
