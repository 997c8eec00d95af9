#include "vgpu/memory/cluster.hpp"

#include <bit>
#include <string>
#include <utility>

#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

void report_no_owner(const Warp& warp, const Inst& inst, int lane, const char* role, std::uint64_t address) {
  const Cluster* const cluster = cluster_of(*warp.block).cluster;
  const std::uint64_t rank = (address >> kClusterRankShift) - 1;
  const std::size_t n_blocks = cluster == nullptr ? 1 : cluster->blocks.size();
  const std::string which = "block " + std::to_string(rank) + " of its cluster";
  Finding finding;
  finding.fatal = true;
  if (rank < n_blocks) {
    finding.kind = FindingKind::kEarlyExit;
    finding.message = "PE " + std::to_string(warp.block->grid->pe) + " uses shared memory of " + which +
                      " after that block has ended";
    finding.why = "a block's shared memory is gone when its threads have exited";
    finding.advice =
        "let every block of the cluster wait (barrier.cluster, cluster.sync()) after the last use of its "
        "shared memory by another";
  } else {
    finding.kind = FindingKind::kOutOfBounds;
    finding.message = "PE " + std::to_string(warp.block->grid->pe) + " uses shared memory of " + which +
                      ", which has " + std::to_string(n_blocks) + (n_blocks == 1 ? " block" : " blocks");
    finding.advice = "make the address with mapa (cluster.map_shared_rank()) from one of this block";
  }
  finding.sites.push_back(make_site(warp, lane, inst, role));
  warp.block->grid->findings->add(std::move(finding));
}

bool access_cluster(Memory& memory, Warp& warp, const Inst& inst, Memory::Access& access) {
  constexpr std::uint64_t kOffset = (1ULL << kClusterRankShift) - 1;
  const char* const role = access.kind == Memory::AccessKind::kLoad    ? "read"
                           : access.kind == Memory::AccessKind::kStore ? "write"
                                                                       : "atomic";
  const auto rank_of = [&](int lane) { return access.addresses[lane] >> kClusterRankShift; };
  bool same = true;
  if (access.pattern == Memory::Pattern::kScattered) {
    for (int i = 1; i < kWarpSize; ++i) same = same && rank_of(i) == rank_of(0);
  }
  if (same) {
    Block* const owner = shared_owner(*warp.block, access.addresses[0]);
    if (owner == nullptr) {
      report_no_owner(warp, inst, std::countr_zero(access.mask), role, access.addresses[0]);
      return false;
    }
    const int n = access.pattern == Memory::Pattern::kScattered ? kWarpSize : 1;
    for (int i = 0; i < n; ++i) access.addresses[i] &= kOffset;
    const ptx::Space space = std::exchange(access.space, ptx::Space::kShared);
    access.shared_block = owner;
    const bool good = memory.access(warp, inst, access);
    access.space = space;
    return good;
  }
  alignas(64) std::uint64_t resolved[kWarpSize] = {};
  for (std::uint32_t left = access.mask; left != 0;) {
    const int first = std::countr_zero(left);
    std::uint32_t group = 0;
    for_each_lane(left, [&](int lane) {
      if (rank_of(lane) == rank_of(first)) group |= 1U << static_cast<unsigned>(lane);
    });
    alignas(64) std::uint64_t addresses[kWarpSize];
    for (int i = 0; i < kWarpSize; ++i) {
      addresses[i] = access.addresses[((group >> static_cast<unsigned>(i)) & 1U) != 0 ? i : first];
    }
    Memory::Access part = access;
    part.space = ptx::Space::kSharedCluster;
    part.shared_block = nullptr;
    part.mask = group;
    part.addresses = addresses;
    if (!access_cluster(memory, warp, inst, part)) return false;
    for_each_lane(group, [&](int lane) { resolved[lane] = lane_address(part, lane); });
    left &= ~group;
  }
  const std::uint64_t filler = resolved[std::countr_zero(access.mask)];
  for (int i = 0; i < kWarpSize; ++i) {
    access.addresses[i] = ((access.mask >> static_cast<unsigned>(i)) & 1U) != 0 ? resolved[i] : filler;
  }
  return true;
}

}  // namespace echolo::vgpu
