// Private to vgpu/memory and vgpu/core: shared memory of the other blocks of a cluster (PTX ISA, "State
// Spaces: Shared State Space", .shared::cluster).
#pragma once

#include "vgpu/cluster.hpp"
#include "vgpu/memory/async.hpp"

namespace echolo::vgpu {

inline ClusterPlace cluster_of(const Block& block) { return block.grid->memory->async().cluster_of(block); }

// The block whose shared memory an address of .shared::cluster lies in, as a thread of `own` sees it;
// nullptr: there is no such block in the cluster, or it has ended.
inline Block* shared_owner(Block& own, std::uint64_t address) {
  const std::uint64_t rank = address >> kClusterRankShift;
  if (rank == 0) return &own;
  const Cluster* const cluster = cluster_of(own).cluster;
  if (cluster == nullptr) return rank == 1 ? &own : nullptr;
  return rank <= cluster->blocks.size() ? cluster->blocks[rank - 1] : nullptr;
}

// Memory::access for .shared::cluster: finds each lane's block, then goes on there. `access.addresses` are
// relative to the window.
bool access_cluster(Memory& memory, Warp& warp, const Inst& inst, Memory::Access& access);

// Logs what is wrong with an address of .shared::cluster that has no owner (fatal).
void report_no_owner(const Warp& warp, const Inst& inst, int lane, const char* role, std::uint64_t address);

}  // namespace echolo::vgpu
