// Grids: what a launch refuses, which blocks are resident on which SM, and the life of a block.
#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.hpp"
#include "vgpu/core/engine.hpp"
#include "vgpu/memory/async.hpp"

namespace echolo::vgpu {
namespace {

constexpr int kRegisterUnit = 256;  // registers are given to warps in units of this (compute capability 9.0)
constexpr int kSharedUnit = 128;    // bytes
constexpr std::uint32_t kMaxRegisters = 255;
constexpr std::uint64_t kWorkspaceBytes = 256;

int round_up(int value, int unit) { return (value + unit - 1) / unit * unit; }

Error refused(const std::string& name, const std::string& message, std::string hint = {}) {
  return usage_error(name + ": " + message, std::move(hint));
}

}  // namespace

std::uint32_t Machine::State::registers_of(const PeModule& module, const KernelImage& image) const {
  if (const auto at = module.registers.find(image.index); at != module.registers.end()) return at->second;
  std::uint32_t registers = std::min(kMaxRegisters, (image.live_registers + 8 + 7) / 8 * 8);
  const ptx::Function& function = *image.function;
  if (function.max_registers != 0) registers = std::min(registers, function.max_registers);
  // The compiler keeps the promise of launch bounds.
  std::uint64_t threads = 1;
  for (int i = 0; i < 3; ++i) {
    threads *= std::max({function.max_threads[i], function.required_threads[i], 1U});
  }
  const std::uint64_t blocks = std::max(function.min_blocks_per_sm, 1U);
  const std::uint64_t bound = static_cast<std::uint64_t>(config.gpu.registers_per_sm) /
                              std::max<std::uint64_t>(blocks * ((threads + 31) / 32 * 32), 1) / 8 * 8;
  return static_cast<std::uint32_t>(
      std::clamp<std::uint64_t>(registers, 16, std::max<std::uint64_t>(bound, 16)));
}

BlockNeeds Machine::State::block_needs(const PeModule& module, const KernelImage& image,
                                       std::uint32_t threads, std::uint32_t dynamic_shared) const {
  BlockNeeds block;
  block.threads = static_cast<int>(threads);
  block.warps = static_cast<int>((threads + kWarpSize - 1) / kWarpSize);
  const int registers_of_warp =
      round_up(static_cast<int>(registers_of(module, image)) * kWarpSize, kRegisterUnit);
  block.registers = registers_of_warp * block.warps;
  const SharedLayout& layout = module.program->layouts.at(image.index);
  const std::uint32_t used =
      dynamic_shared == 0 ? layout.static_bytes : layout.dynamic_offset + dynamic_shared;
  block.shared = round_up(static_cast<int>(used) + config.gpu.reserved_shared_per_block, kSharedUnit);
  return block;
}

int Machine::State::blocks_per_sm(const BlockNeeds& block) const {
  const GpuModel& gpu = config.gpu;
  int n = gpu.max_blocks_per_sm;
  n = std::min(n, gpu.max_threads_per_sm / std::max(block.warps * kWarpSize, 1));
  n = std::min(n, gpu.max_warps_per_sm / std::max(block.warps, 1));
  n = std::min(n, gpu.registers_per_sm / std::max(block.registers, 1));
  n = std::min(n, gpu.shared_per_sm / std::max(block.shared, 1));
  return n;
}

Result<LaunchId> Machine::State::launch(const LaunchRequest& request) {
  Result<const KernelImage*> found = entry(request.module, request.kernel);
  if (!found.ok()) return found.error();
  PeModule& module = *modules[request.module];
  const KernelImage& image = **found;
  const GpuModel& gpu = config.gpu;
  const std::string name = "kernel '" + request.kernel + "'";
  const std::uint64_t threads = request.block.count();
  const Result<Dim3> cluster = cluster_of(request, image);
  if (!cluster.ok()) return cluster.error();
  if (threads == 0 || request.grid.count() == 0) {
    return refused("cudaErrorInvalidConfiguration", name + " is launched with an empty grid or block");
  }
  if (threads > static_cast<std::uint64_t>(gpu.max_threads_per_block) || request.block.z > 64 ||
      request.grid.y > 65535 || request.grid.z > 65535 || request.grid.x > 0x7fffffffU) {
    return refused("cudaErrorInvalidConfiguration",
                   name + " is launched with " + with_commas(threads) + " threads a block and a grid of " +
                       with_commas(request.grid.count()) + " blocks; a block has at most " +
                       with_commas(static_cast<unsigned long long>(gpu.max_threads_per_block)) +
                       " threads, and grid y and z at most 65,535");
  }
  const ptx::Function& function = *image.function;
  const std::uint32_t bounds[3] = {request.block.x, request.block.y, request.block.z};
  std::uint64_t allowed = 1;
  for (int i = 0; i < 3; ++i) {
    allowed *= std::max(function.max_threads[i], 1U);
    if (function.required_threads[0] != 0 && bounds[i] != std::max(function.required_threads[i], 1U)) {
      return refused("cudaErrorInvalidConfiguration", name + " requires another block size (.reqntid)");
    }
  }
  if (function.max_threads[0] != 0 && threads > allowed) {
    return refused("cudaErrorInvalidConfiguration", name + " is launched with " + with_commas(threads) +
                                                        " threads a block, but its __launch_bounds__ allow " +
                                                        with_commas(allowed));
  }
  const SharedLayout& layout = module.program->layouts.at(image.index);
  const std::uint64_t shared = (request.dynamic_shared == 0 ? layout.static_bytes : layout.dynamic_offset) +
                               std::uint64_t{request.dynamic_shared};
  if (shared > static_cast<std::uint64_t>(gpu.shared_per_block_optin)) {
    return refused("cudaErrorInvalidValue",
                   name + " needs " + human_bytes(shared) + " of shared memory a block; at most " +
                       human_bytes(static_cast<unsigned long long>(gpu.shared_per_block_optin)) + " exist");
  }
  if (request.params.size() < image.param_bytes) {
    return refused("cudaErrorInvalidValue", name + " takes " + std::to_string(image.param_bytes) +
                                                " bytes of parameters, " +
                                                std::to_string(request.params.size()) + " given");
  }
  const BlockNeeds block =
      block_needs(module, image, static_cast<std::uint32_t>(threads), request.dynamic_shared);
  const int per_sm = blocks_per_sm(block);
  if (per_sm == 0) {
    return refused("cudaErrorLaunchOutOfResources",
                   name + " needs " + with_commas(static_cast<unsigned long long>(block.registers)) +
                       " registers and " + human_bytes(static_cast<unsigned long long>(block.shared)) +
                       " of shared memory a block, more than an SM has");
  }
  const auto room = static_cast<std::uint64_t>(per_sm) * static_cast<std::uint64_t>(gpu.sms);
  if (request.cooperative && request.grid.count() > room) {
    return refused("cudaErrorCooperativeLaunchTooLarge", name + " is launched cooperatively with " +
                                                             with_commas(request.grid.count()) + " blocks; " +
                                                             with_commas(room) + " can be resident at once");
  }
  auto grid = std::make_unique<CoreGrid>();
  grid->memory = memory.get();
  grid->findings = &findings;
  grid->machine = owner;
  grid->module = module.program->module.get();
  grid->kernel = image.function;
  grid->pe = request.pe;
  grid->launch_id = next_launch++;
  grid->call = request.call;
  grid->grid_dim = request.grid;
  grid->block_dim = request.block;
  grid->params = request.params;
  grid->cooperative = request.cooperative;
  grid->cluster_dim = *cluster;
  grid->pe_module = &module;
  grid->program = module.program;
  grid->image = &image;
  grid->pool_storage = pool_for(module, image);
  const auto base = reinterpret_cast<std::uintptr_t>(grid->pool_storage->data());
  grid->pool = grid->pool_storage->data() + ((64 - base % 64) % 64);
  grid->shared_layout = &layout;
  grid->dynamic_shared = request.dynamic_shared;
  grid->shared_bytes = static_cast<std::uint32_t>(shared);
  grid->needs = block;
  grid->stack_bytes = module.program->stack_bytes.at(image.index);
  grid->n_blocks = request.grid.count();
  grid->where = request.where;
  if (request.cooperative) {
    Result<std::uint64_t> workspace = memory->allocate(
        request.pe, kWorkspaceBytes, 256, AllocationKind::kInternal, "grid-sync workspace", "the driver", "");
    if (!workspace.ok()) return workspace.error();
    grid->workspace = *workspace;
    Memory::Accessor who;
    const Site site = make_host_site(request.pe, "launch");
    who.site = &site;
    who.pe = request.pe;
    who.what = "the driver";
    if (!memory->fill(grid->workspace, 0, kWorkspaceBytes, who)) {
      return refused("cudaErrorUnknown", "the grid-sync workspace could not be cleared");
    }
  }
  memory->order().begin_grid(*grid, request.on);
  if (meter != nullptr) meter->begin_grid(*grid, request.kernel, per_sm);
  const LaunchId id = grid->launch_id;
  if (owner->idle()) ready.begin_epoch();
  ++counters.grids;
  pes[static_cast<std::size_t>(request.pe)].grids.push_back(std::move(grid));
  fill_sms(request.pe);
  return id;
}

// The SM with the fewest blocks that has room, or -1.
static int roomy_sm(const std::vector<SmUse>& sms, const GpuModel& gpu, const BlockNeeds& block) {
  int best = -1;
  for (int i = 0; i < gpu.sms; ++i) {
    const SmUse& sm = sms[static_cast<std::size_t>(i)];
    if (sm.blocks >= gpu.max_blocks_per_sm || sm.threads + block.warps * kWarpSize > gpu.max_threads_per_sm ||
        sm.warps + block.warps > gpu.max_warps_per_sm ||
        sm.registers + block.registers > gpu.registers_per_sm ||
        sm.shared + block.shared > gpu.shared_per_sm) {
      continue;
    }
    if (best < 0 || sm.blocks < sms[static_cast<std::size_t>(best)].blocks) best = i;
    if (sm.blocks == 0) break;
  }
  return best;
}

static void occupy(SmUse& sm, const BlockNeeds& block) {
  ++sm.blocks;
  sm.threads += block.warps * kWarpSize;
  sm.warps += block.warps;
  sm.registers += block.registers;
  sm.shared += block.shared;
}

// Where the blocks of the grid's next cluster can be resident together; false: not now.
bool Machine::State::place_cluster(const PeState& pe, const CoreGrid& grid,
                                   std::vector<std::uint32_t>& sms_of) const {
  std::vector<SmUse> sms = pe.sms;
  sms_of.clear();
  for (std::uint64_t i = 0; i < grid.cluster_dim.count(); ++i) {
    const int sm = roomy_sm(sms, config.gpu, grid.needs);
    if (sm < 0) return false;
    occupy(sms[static_cast<std::size_t>(sm)], grid.needs);
    sms_of.push_back(static_cast<std::uint32_t>(sm));
  }
  return true;
}

// Blocks go out in order (of a grid with clusters: cluster by cluster), each to the SM with the fewest blocks
// that has room; a grid waits until all blocks of the grids before it are out.
void Machine::State::fill_sms(int pe_index) {
  PeState& pe = pes[static_cast<std::size_t>(pe_index)];
  const auto start = [&](CoreGrid& grid, std::uint32_t at, const std::shared_ptr<CoreCluster>& cluster) {
    SmUse& sm = pe.sms[at];
    if (sm.blocks == 0) ++pe.sms_in_use;
    occupy(sm, grid.needs);
    start_block(grid, at, cluster);
  };
  std::vector<std::uint32_t> sms_of;
  for (const auto& grid : pe.grids) {
    while (grid->next_block < grid->n_blocks) {
      if (grid->cluster_dim.count() == 0) {
        const int best = roomy_sm(pe.sms, config.gpu, grid->needs);
        if (best < 0) return;
        start(*grid, static_cast<std::uint32_t>(best), nullptr);
        continue;
      }
      if (!place_cluster(pe, *grid, sms_of)) return;
      const auto cluster = std::make_shared<CoreCluster>();
      cluster->dim = grid->cluster_dim;
      for (const std::uint32_t sm : sms_of) start(*grid, sm, cluster);
    }
  }
}

void Machine::State::start_block(CoreGrid& grid, std::uint32_t sm,
                                 const std::shared_ptr<CoreCluster>& cluster) {
  auto block = std::make_unique<CoreBlock>();
  block->grid = &grid;
  block->core_grid = &grid;
  const Dim3& dim = grid.grid_dim;
  const std::uint64_t nth = grid.next_block++;
  const std::uint64_t together = cluster == nullptr ? 1 : grid.cluster_dim.count();
  const auto number = static_cast<std::uint32_t>(
      ready.reversed() ? (grid.n_blocks / together - 1 - nth / together) * together + nth % together : nth);
  if (cluster == nullptr) {
    block->index = {number % dim.x, number / dim.x % dim.y, number / dim.x / dim.y};
  } else {
    const Dim3& size = grid.cluster_dim;
    const auto n = static_cast<std::uint32_t>(size.count());
    const std::uint32_t across = dim.x / size.x, down = dim.y / size.y;
    const std::uint32_t which = number / n, rank = number % n;
    cluster->index = {which % across, which / across % down, which / across / down};
    block->index = {cluster->index.x * size.x + rank % size.x,
                    cluster->index.y * size.y + rank / size.x % size.y,
                    cluster->index.z * size.z + rank / size.x / size.y};
    block->core_cluster = cluster;
    memory->async().join(*block, {cluster.get(), rank});
    cluster->blocks.push_back(block.get());
  }
  block->linear_index = (block->index.z * dim.y + block->index.y) * dim.x + block->index.x;
  block->sm = sm;
  block->shared.resize(grid.shared_bytes);
  block->shared_written.resize((grid.shared_bytes + 7U) / 8U);
  const auto threads = static_cast<std::uint32_t>(grid.block_dim.count());
  const std::uint32_t n_warps = (threads + kWarpSize - 1) / kWarpSize;
  block->live_threads = threads;
  block->live_warps = n_warps;
  ++counters.blocks;
  const auto cluster_blocks = static_cast<std::uint32_t>(grid.cluster_dim.count());
  if (meter != nullptr) meter->begin_block(*block, n_warps);
  memory->order().begin_block(*block, n_warps, cluster_blocks > 1 ? 1 + number / cluster_blocks : 0);
  for (std::uint32_t i = 0; i < n_warps; ++i) {
    std::unique_ptr<CoreWarp> warp;
    if (!warp_pool.empty()) {
      warp = std::move(warp_pool.back());
      warp_pool.pop_back();
    } else {
      warp = std::make_unique<CoreWarp>();
    }
    warp->block = block.get();
    warp->core_block = block.get();
    warp->index_in_block = i;
    warp->order = memory->order().warp_of(*block, i);
    const std::uint32_t lanes = std::min<std::uint32_t>(kWarpSize, threads - i * kWarpSize);
    warp->live = lanes == kWarpSize ? kAllLanes : (1U << lanes) - 1;
    warp->lanes.pool = grid.pool;
    warp->lanes.carry = &warp->carry;
    for (int lane = 0; lane < kWarpSize; ++lane) {
      const std::uint32_t linear = i * kWarpSize + static_cast<std::uint32_t>(lane);
      warp->tid[0][lane] = linear % grid.block_dim.x;
      warp->tid[1][lane] = linear / grid.block_dim.x % grid.block_dim.y;
      warp->tid[2][lane] = linear / grid.block_dim.x / grid.block_dim.y;
    }
    warp->local_changes = warp->older_reads = warp->effects = warp->time_reads = warp->barriers =
        warp->stamp = 0;
    warp->repeats_at = ~0ULL;
    warp->cluster_arrived = 0;
    warp->carry = warp->back_branches = 0;
    warp->rotate = warp->free_run = warp->trace = false;
    warp->tokens.fill(0);
    warp->id = next_warp_id++;
    warp->current = 0;
    warp->groups.clear();
    if (warp->local_bytes == grid.stack_bytes) {
      std::fill(warp->local_written_storage.begin(), warp->local_written_storage.end(), 0);
    } else {
      warp->local_bytes = 0;
      grow_local(*warp, grid.stack_bytes);
    }
    Group group;
    group.mask = warp->live;
    group.frame = new_frame(*warp, *grid.image);
    group.frame->lanes = warp->live;
    warp->groups.push_back(std::move(group));
    block->warps.push_back(warp.get());
    ready.born(*warp);
    make_ready(*warp);
    block->owned.push_back(std::move(warp));
  }
  grid.resident.push_back(std::move(block));
}

void Machine::State::end_block(CoreBlock& block) {
  CoreGrid& grid = *block.core_grid;
  AsyncCopies& copies = memory->async();
  const ClusterPlace place = copies.cluster_of(block);
  bool good = copies.block_ends(block);
  for (auto& warp : block.owned) good = good && copies.warp_ends(*warp);
  if (!good) return;  // a fatal finding stops the machine
  if (place.cluster != nullptr) place.cluster->blocks[place.rank] = nullptr;
  PeState& pe = pes[static_cast<std::size_t>(grid.pe)];
  SmUse& sm = pe.sms[block.sm];
  const BlockNeeds& needed = grid.needs;
  memory->order().end_block(block);
  if (meter != nullptr) meter->end_block(block);
  if (calls != nullptr) calls->block_finished(block);
  --sm.blocks;
  if (sm.blocks == 0) --pe.sms_in_use;
  sm.threads -= needed.warps * kWarpSize;
  sm.warps -= needed.warps;
  sm.registers -= needed.registers;
  sm.shared -= needed.shared;
  for (auto& warp : block.owned) {
    forget(*warp);
    warp->order = nullptr;
    warp->groups.clear();
    while (!warp->frames.empty()) {
      warp->free_frames.push_back(std::move(warp->frames.back()));
      warp->frames.pop_back();
    }
    if (warp->free_frames.size() > 2) warp->free_frames.resize(2);
    warp_pool.push_back(std::move(warp));
  }
  const auto at = std::find_if(grid.resident.begin(), grid.resident.end(),
                               [&](const auto& b) { return b.get() == &block; });
  grid.resident.erase(at);
  ++grid.finished_blocks;
  note_end();
  const int pe_index = grid.pe;
  if (grid.finished_blocks == grid.n_blocks) end_grid(grid);
  fill_sms(pe_index);
}

void Machine::State::end_grid(CoreGrid& grid) {
  PeState& pe = pes[static_cast<std::size_t>(grid.pe)];
  if (calls != nullptr) calls->grid_finished(grid);
  memory->order().end_grid(grid);
  if (grid.workspace != 0) {
    const Status status = memory->release(grid.workspace);
    static_cast<void>(status.ok());  // it was allocated at the launch, nobody else frees it
  }
  finished[grid.launch_id] = to_ns(now_cycles + round_longest);
  const auto at =
      std::find_if(pe.grids.begin(), pe.grids.end(), [&](const auto& g) { return g.get() == &grid; });
  pe.grids.erase(at);
  grid_ended = true;
}

}  // namespace echolo::vgpu
