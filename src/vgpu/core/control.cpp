// Control instructions other than the plain branch.
#include <bit>

#include "vgpu/core/engine.hpp"
#include "vgpu/core/sites.hpp"
#include "vgpu/memory/async.hpp"

namespace echolo::vgpu {
namespace {

void write_lanes(const Lanes& lanes, Slot to, unsigned width, std::uint32_t mask, const auto& value_of) {
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    const std::uint64_t value = value_of(lane);
    if (width == 64) {
      lanes.write<std::uint64_t>(to)[lane] = value;
    } else if (width == 32) {
      lanes.write<std::uint32_t>(to)[lane] = static_cast<std::uint32_t>(value);
    } else if (width == 16) {
      lanes.write<std::uint16_t>(to)[lane] = static_cast<std::uint16_t>(value);
    } else if (width == 1) {
      std::uint32_t& word = *lanes.write<std::uint32_t>(to);
      const std::uint32_t bit = bits & -bits;  // lane's
      word = (value & 1U) != 0 ? word | bit : word & ~bit;
    }
  }
}

}  // namespace

bool Machine::State::control(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  Group& group = warp.groups[warp.current];
  switch (static_cast<Control>(inst.control)) {
    case Control::kNop:
      ++group.pc;
      return true;
    case Control::kFence:
      if (inst.aux[0] == kProxyFence) {
        memory->order().proxy_fence(*warp.block);
      } else {
        memory->order().fence(warp, mask, static_cast<ptx::Scope>(inst.aux[0] & ~kFenceSc),
                              (inst.aux[0] & kFenceSc) != 0);
      }
      ++group.pc;
      return true;
    case Control::kSpecial:
      special(warp, inst, mask);
      ++group.pc;
      return true;
    case Control::kFrameAddress:
      write_lanes(warp.lanes, inst.operands[0], static_cast<unsigned>(inst.aux[1]), mask,
                  [&](int) { return inst.aux[0] + group.frame->local_base; });
      ++group.pc;
      return true;
    case Control::kActivemask:
      write_lanes(warp.lanes, inst.operands[0], 32, mask, [&](int) { return mask; });
      ++group.pc;
      return true;
    case Control::kElect: {
      const auto* members = warp.lanes.read<std::uint32_t>(inst.operands[2]);
      const std::uint32_t named = members[std::countr_zero(mask)] & warp.live;
      if (!converged(warp, mask, named)) return false;
      const int leader = std::countr_zero(named & mask);
      write_lanes(warp.lanes, inst.operands[0], 32, mask,
                  [&](int) { return static_cast<std::uint64_t>(leader); });
      write_lanes(warp.lanes, inst.operands[1], 1, mask, [&](int lane) { return lane == leader ? 1U : 0U; });
      ++group.pc;
      return true;
    }
    case Control::kBra:
    case Control::kBrx: {
      // Lanes by target, in lane order.
      const auto& table = group.frame->image->branch_tables[inst.aux[0]];
      const auto* index = warp.lanes.read<std::uint32_t>(inst.operands[0]);
      const std::uint32_t passing = group.mask & ~mask;
      const std::int32_t from = group.pc;
      std::uint32_t open = mask;
      bool first = true;
      std::vector<std::pair<std::uint32_t, std::int32_t>> parts;
      while (open != 0) {
        const std::uint32_t value = index[std::countr_zero(open)];
        std::uint32_t part = 0;
        for (std::uint32_t bits = open; bits != 0; bits &= bits - 1) {
          const int lane = std::countr_zero(bits);
          if (index[lane] == value) part |= 1U << static_cast<unsigned>(lane);
        }
        open &= ~part;
        if (value >= table.size()) {
          trap(warp, inst, part,
               "brx.idx with index " + std::to_string(value) + ", but its table has " +
                   std::to_string(table.size()) + " entries");
          return false;
        }
        parts.emplace_back(part, table[value]);
      }
      if (passing != 0) split(warp, passing, from + 1);
      for (const auto& [part, target] : parts) {
        if (first) {
          warp.groups[warp.current].pc = target;
          first = false;
        } else {
          split(warp, part, target);
        }
      }
      Group& running = warp.groups[warp.current];
      if (running.pc <= from) {
        ++warp.back_branches;
        if (++running.track.visits >= running.track.next_visit && visit_back_branch(warp, from, running.pc))
          return false;
      }
      return warp.groups.size() == 1;
    }
    case Control::kCall:
    case Control::kCallIndirect:
      return call(warp, inst, mask);
    case Control::kCallDevice:
      return device_call(warp, inst, mask);
    case Control::kCallBuiltin:
      return builtin(warp, inst, group.frame->image->calls[inst.aux[0]], mask);
    case Control::kRet:
      return ret(warp, mask);
    case Control::kExit: {
      for (const Group& other : warp.groups) {
        if (&other != &group && other.state == GroupState::kConverge)
          report_skipped_barrier(warp, other, group, mask);
      }
      if (findings.has_fatal()) return false;
      const std::uint32_t rest = group.mask & ~mask;
      if (rest != 0) ++group.pc;
      exit_lanes(warp, mask);
      return false;
    }
    case Control::kTrap:
      trap(warp, inst, mask, "the kernel executed a trap instruction");
      return false;
    case Control::kBarrier:
      return barrier(warp, inst, mask);
    case Control::kWarpSync:
      return warp_sync(warp, inst, mask);
    case Control::kClusterArrive:
      return cluster_arrive(warp, inst, mask);
    case Control::kClusterWait:
      return cluster_wait(warp, inst, mask);
    case Control::kNanosleep: {
      const auto* ns = warp.lanes.read<std::uint32_t>(inst.operands[0]);
      const std::uint64_t cycles = to_cycles(ns[std::countr_zero(mask)]);
      const std::uint32_t passing = group.mask & ~mask;
      ++group.pc;
      if (cycles == 0) return true;
      const std::int32_t next = group.pc;
      put_to_sleep(warp, group, now_cycles_of(warp) + cycles);
      if (passing != 0) split(warp, passing, next);
      return false;
    }
  }
  return false;
}

void Machine::State::special(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  using ptx::SpecialReg;
  const CoreBlock& block = *warp.core_block;
  const CoreGrid& grid = *block.core_grid;
  const Dim3& block_dim = grid.block_dim;
  const Dim3& grid_dim = grid.grid_dim;
  const ClusterPlace place = memory->async().cluster_of(block);
  const Dim3 cluster = place.cluster != nullptr ? place.cluster->dim : Dim3{1, 1, 1};
  const auto reg = static_cast<SpecialReg>(inst.aux[0] & 0xffU);
  const std::uint64_t number = inst.aux[0] >> 16U;
  const auto width = static_cast<unsigned>(inst.aux[1]);
  const auto set = [&](std::uint64_t value) {
    write_lanes(warp.lanes, inst.operands[0], width, mask, [&](int) { return value; });
  };
  const auto set_each = [&](const auto& value_of) {
    write_lanes(warp.lanes, inst.operands[0], width, mask, value_of);
  };
  switch (reg) {
    case SpecialReg::kTidX:
      return set_each([&](int lane) { return warp.tid[0][lane]; });
    case SpecialReg::kTidY:
      return set_each([&](int lane) { return warp.tid[1][lane]; });
    case SpecialReg::kTidZ:
      return set_each([&](int lane) { return warp.tid[2][lane]; });
    case SpecialReg::kNtidX:
      return set(block_dim.x);
    case SpecialReg::kNtidY:
      return set(block_dim.y);
    case SpecialReg::kNtidZ:
      return set(block_dim.z);
    case SpecialReg::kCtaidX:
      return set(block.index.x);
    case SpecialReg::kCtaidY:
      return set(block.index.y);
    case SpecialReg::kCtaidZ:
      return set(block.index.z);
    case SpecialReg::kNctaidX:
      return set(grid_dim.x);
    case SpecialReg::kNctaidY:
      return set(grid_dim.y);
    case SpecialReg::kNctaidZ:
      return set(grid_dim.z);
    case SpecialReg::kLaneid:
      return set_each([](int lane) { return static_cast<std::uint64_t>(lane); });
    case SpecialReg::kWarpid:
      return set(warp.index_in_block);
    case SpecialReg::kNwarpid:
      return set(static_cast<std::uint64_t>(config.gpu.max_warps_per_sm));
    case SpecialReg::kSmid:
      return set(block.sm);
    case SpecialReg::kNsmid:
      return set(static_cast<std::uint64_t>(config.gpu.sms));
    case SpecialReg::kGridid:
      return set(grid.launch_id);
    case SpecialReg::kIsExplicitCluster:
      return set(place.cluster != nullptr ? 1 : 0);
    case SpecialReg::kClusteridX:
      return set(block.index.x / cluster.x);
    case SpecialReg::kClusteridY:
      return set(block.index.y / cluster.y);
    case SpecialReg::kClusteridZ:
      return set(block.index.z / cluster.z);
    case SpecialReg::kNclusteridX:
      return set(grid_dim.x / cluster.x);
    case SpecialReg::kNclusteridY:
      return set(grid_dim.y / cluster.y);
    case SpecialReg::kNclusteridZ:
      return set(grid_dim.z / cluster.z);
    case SpecialReg::kClusterCtaidX:
      return set(block.index.x % cluster.x);
    case SpecialReg::kClusterCtaidY:
      return set(block.index.y % cluster.y);
    case SpecialReg::kClusterCtaidZ:
      return set(block.index.z % cluster.z);
    case SpecialReg::kClusterCtarank:
      return set(place.rank);
    case SpecialReg::kClusterNctaidX:
      return set(cluster.x);
    case SpecialReg::kClusterNctaidY:
      return set(cluster.y);
    case SpecialReg::kClusterNctaidZ:
      return set(cluster.z);
    case SpecialReg::kClusterNctarank:
      return set(cluster.count());
    case SpecialReg::kLanemaskEq:
      return set_each([](int lane) { return 1ULL << static_cast<unsigned>(lane); });
    case SpecialReg::kLanemaskLe:
      return set_each([](int lane) { return (2ULL << static_cast<unsigned>(lane)) - 1; });
    case SpecialReg::kLanemaskLt:
      return set_each([](int lane) { return (1ULL << static_cast<unsigned>(lane)) - 1; });
    case SpecialReg::kLanemaskGe:
      return set_each([](int lane) { return 0xffffffffULL & ~((1ULL << static_cast<unsigned>(lane)) - 1); });
    case SpecialReg::kLanemaskGt:
      return set_each([](int lane) { return 0xffffffffULL & ~((2ULL << static_cast<unsigned>(lane)) - 1); });
    case SpecialReg::kClock:
    case SpecialReg::kClock64:
      ++warp.time_reads;
      return set(now_cycles_of(warp));
    case SpecialReg::kClockHi:
      ++warp.time_reads;
      return set(now_cycles_of(warp) >> 32U);
    case SpecialReg::kGlobaltimer:
    case SpecialReg::kGlobaltimerLo:
      ++warp.time_reads;
      return set(to_ns(now_cycles_of(warp)));
    case SpecialReg::kGlobaltimerHi:
      ++warp.time_reads;
      return set(to_ns(now_cycles_of(warp)) >> 32U);
    case SpecialReg::kAggrSmemSize:
    case SpecialReg::kTotalSmemSize:
      return set(grid.shared_bytes);
    case SpecialReg::kDynamicSmemSize:
      return set(grid.dynamic_shared);
    // The grid-sync workspace that cooperative groups read: high word, low word.
    case SpecialReg::kEnvreg:
      return set(number == 1 ? grid.workspace >> 32U : number == 2 ? grid.workspace : 0);
    case SpecialReg::kReservedSmemBegin:
    case SpecialReg::kReservedSmemEnd:
    case SpecialReg::kReservedSmemCap:
    case SpecialReg::kReservedSmemOffset0:
    case SpecialReg::kReservedSmemOffset1:
    case SpecialReg::kCurrentGraphExec:
    case SpecialReg::kPm:
      return set(0);
  }
}

void Machine::State::trap(CoreWarp& warp, const Inst& inst, std::uint32_t mask, std::string message) {
  Finding finding;
  finding.kind = FindingKind::kDeviceTrap;
  finding.fatal = true;
  finding.message = std::move(message);
  finding.sites.push_back(make_site(warp, std::countr_zero(mask), inst, "trap"));
  finding.count = static_cast<std::uint64_t>(std::popcount(mask));
  findings.add(std::move(finding));
}

}  // namespace echolo::vgpu
