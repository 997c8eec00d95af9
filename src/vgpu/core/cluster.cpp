// Clusters of blocks: how large they may be, and the barrier of all their threads (PTX ISA,
// "barrier.cluster"). Arriving and waiting are two instructions; a thread arrives once a phase and waits for
// the phase in which it arrived. Threads that have exited are not waited for.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/text.hpp"
#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::uint64_t kAligned = 1, kReleases = 2;

std::string text_of(const Dim3& dim) {
  return "(" + std::to_string(dim.x) + "," + std::to_string(dim.y) + "," + std::to_string(dim.z) + ")";
}

}  // namespace

// The cluster's dimensions in blocks, zeros where the launch has none. Sixteen blocks are the most that any
// device of this kind takes (8 of them portably; the runtime asks for the kernel's consent to more).
Result<Dim3> Machine::State::cluster_of(const LaunchRequest& request, const KernelImage& image) const {
  const ptx::Function& function = *image.function;
  const std::string name = "kernel '" + request.kernel + "'";
  Dim3 cluster = request.cluster;
  if (function.cluster[0] != 0) {
    const Dim3 required{function.cluster[0], std::max(function.cluster[1], 1U),
                        std::max(function.cluster[2], 1U)};
    if (cluster.count() != 0 && !(cluster == required)) {
      return usage_error("cudaErrorInvalidClusterSize: " + name + " is launched in clusters of " +
                         text_of(cluster) + " blocks, but its __cluster_dims__ are " + text_of(required));
    }
    cluster = required;
  }
  if (cluster.count() == 0) return Dim3{0, 0, 0};
  if (cluster.count() > kMaxClusterBlocks) {
    return usage_error("cudaErrorInvalidClusterSize: " + name + " is launched in clusters of " +
                       text_of(cluster) + " blocks; a cluster has at most " +
                       std::to_string(kMaxClusterBlocks));
  }
  const Dim3& grid = request.grid;
  if (grid.x % cluster.x != 0 || grid.y % cluster.y != 0 || grid.z % cluster.z != 0) {
    return usage_error("cudaErrorInvalidClusterSize: " + name + " is launched with a grid of " +
                       text_of(grid) + " blocks, which clusters of " + text_of(cluster) + " do not divide");
  }
  return cluster;
}

bool Machine::State::cluster_arrive(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  if ((inst.aux[0] & kAligned) != 0 && !converged(warp, mask, warp.live)) return false;
  ++warp.barriers;
  Group& group = warp.groups[warp.current];
  CoreCluster* cluster = warp.core_block->core_cluster.get();
  if (cluster == nullptr) {  // a cluster of one block: nothing but its own barrier is asked for
    cluster = (warp.core_block->core_cluster = std::make_shared<CoreCluster>()).get();
    cluster->blocks.push_back(warp.core_block);
  }
  if ((warp.cluster_arrived & mask) != 0) {
    trap(warp, inst, warp.cluster_arrived & mask,
         "a thread arrives at the cluster's barrier again without having waited (barrier.cluster.wait)");
    return false;
  }
  warp.cluster_arrived |= mask;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    warp.cluster_phase[static_cast<std::size_t>(lane)] = cluster->phase;
    Order& order = memory->order();
    const AgentId thread = order.thread(warp, lane);
    order.merge(cluster->pending, (inst.aux[0] & kReleases) != 0
                                      ? order.release(thread)
                                      : order.fenced(thread, ptx::Scope::kCluster));
  }
  cluster->arrived += static_cast<std::uint32_t>(std::popcount(mask));
  ++group.pc;
  check_cluster(*cluster);
  return true;
}

bool Machine::State::cluster_wait(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  if ((inst.aux[0] & kAligned) != 0 && !converged(warp, mask, warp.live)) return false;
  if ((mask & ~warp.cluster_arrived) != 0) {
    trap(warp, inst, mask & ~warp.cluster_arrived,
         "a thread waits at the cluster's barrier without having arrived (barrier.cluster.arrive)");
    return false;
  }
  ++warp.barriers;
  const CoreCluster& cluster = *warp.core_block->core_cluster;
  std::uint32_t waiting = 0;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
    if (warp.cluster_phase[lane] == cluster.phase) waiting |= 1U << lane;
  }
  Group& group = warp.groups[warp.current];
  warp.cluster_arrived &= ~(mask & ~waiting);
  if (waiting != mask) memory->order().acquire(warp, mask & ~waiting, cluster.completed);
  if (waiting == 0) {
    ++group.pc;
    return true;
  }
  const std::uint32_t passing = group.mask & ~waiting;
  group.state = GroupState::kCluster;
  if (passing != 0) split(warp, passing, group.pc + 1);
  return false;
}

void Machine::State::check_cluster(CoreCluster& cluster) {
  std::uint32_t live = 0;
  for (const Block* block : cluster.blocks) {
    if (block != nullptr) live += static_cast<const CoreBlock*>(block)->live_threads;
  }
  if (cluster.arrived < live || cluster.arrived == 0) return;
  ++cluster.phase;
  cluster.arrived = 0;
  cluster.completed = std::exchange(cluster.pending, Clock());
  for (Block* block : cluster.blocks) {
    if (block == nullptr) continue;
    for (CoreWarp* warp : static_cast<CoreBlock*>(block)->warps) {
      bool freed = false;
      for (Group& group : warp->groups) {
        if (group.state != GroupState::kCluster) continue;
        warp->cluster_arrived &= ~group.mask;
        memory->order().acquire(*warp, group.mask, cluster.completed);
        group.state = GroupState::kRunnable;
        ++group.pc;
        freed = true;
      }
      if (freed) make_ready(*warp);
    }
  }
}

void Machine::State::leave_cluster_barrier(CoreWarp& warp, std::uint32_t lanes) {
  CoreCluster* const cluster = warp.core_block->core_cluster.get();
  if (cluster == nullptr) return;
  for (std::uint32_t bits = lanes & warp.cluster_arrived; bits != 0; bits &= bits - 1) {
    if (warp.cluster_phase[static_cast<std::size_t>(std::countr_zero(bits))] == cluster->phase)
      --cluster->arrived;
  }
  warp.cluster_arrived &= ~lanes;
  check_cluster(*cluster);
}

}  // namespace echolo::vgpu
