// Loops that wait by reading memory again and again. A loop that would repeat exactly as long as the words it
// reads stay as they are is parked until one of them changes: so waiting costs nothing, and a program in
// which everybody waits is known to be stuck at once.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vgpu/core/engine.hpp"
#include "vgpu/memory/cluster.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::uint32_t kCompares = 4;  // visits that a comparison lasts: loops of up to four turns are found
constexpr std::uint32_t kLongestPause = 1024;  // visits between comparisons
constexpr std::size_t kMaxWatches = 128;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash ^= value;
  hash *= 0x9fb21c651e98df25ULL;
  return hash ^ (hash >> 32U);
}

std::uint64_t read_lane(const std::uint8_t* lanes, std::uint32_t bytes, int lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, lanes + static_cast<std::size_t>(lane) * bytes, bytes);
  return value;
}

// The registers of one lane, or of every lane of the group.
std::uint64_t hash_registers(const CoreWarp& warp, const Group& group, bool all_lanes,
                             const std::vector<std::uint32_t>& skip) {
  const Activation& frame = *group.frame;
  std::uint64_t hash = group.mask;
  const int leader = std::countr_zero(group.mask);
  hash = mix(hash, warp.carry);
  for (const KernelImage::Region& region : frame.image->regions) {
    if (region.lane_bytes == 0) {
      const std::uint32_t lanes = all_lanes ? group.mask : 1U << static_cast<unsigned>(leader);
      for (std::uint32_t at = region.begin; at < region.end; at += 4) {
        if (std::binary_search(skip.begin(), skip.end(), at)) continue;
        std::uint32_t bits = 0;
        std::memcpy(&bits, frame.registers + at, sizeof bits);
        hash = mix(hash, bits & lanes);
      }
      continue;
    }
    const std::uint32_t step = region.lane_bytes < 8 ? region.lane_bytes : 8;
    for (std::uint32_t at = region.begin; at < region.end; at += step * kWarpSize) {
      if (std::binary_search(skip.begin(), skip.end(), at)) continue;
      const std::uint8_t* lanes = frame.registers + at;
      if (!all_lanes) {
        hash = mix(hash, read_lane(lanes, step, leader));
        continue;
      }
      for (std::uint32_t bits = group.mask; bits != 0; bits &= bits - 1) {
        hash = mix(hash, read_lane(lanes, step, std::countr_zero(bits)));
      }
    }
  }
  return hash;
}

}  // namespace

std::uint64_t register_value(const Activation& frame, std::int32_t reg, int lane) {
  const std::uint32_t at = frame.image->register_slots[static_cast<std::size_t>(reg)].bits;
  const unsigned width = frame.image->register_bits[static_cast<std::size_t>(reg)];
  if (width == 1) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, frame.registers + at, sizeof bits);
    return bits >> static_cast<unsigned>(lane) & 1U;
  }
  return read_lane(frame.registers + at, std::min(width / 8, 8U), lane);
}

Operand64 memory_operand(const CoreWarp& warp, const Activation& frame, const ptx::Instruction& source,
                         int lane, const Memory& memory) {
  using ptx::Opcode;
  Operand64 operand;
  std::size_t index = 0;
  if (source.op == Opcode::kLd || source.op == Opcode::kAtom || source.op == Opcode::kLdu) {
    index = 1;
  } else if (source.op == Opcode::kMbarrier &&
             (source.sub_op == ptx::SubOp::kTestWait || source.sub_op == ptx::SubOp::kTryWait)) {
    index = 1;
  } else if (source.op != Opcode::kSt && source.op != Opcode::kRed) {
    return operand;
  }
  if (index >= source.operands.size() || source.operands[index].kind != ptx::OperandKind::kAddress)
    return operand;
  const ptx::Operand& at = source.operands[index];
  const CoreGrid& grid = *warp.core_block->core_grid;
  std::uint64_t address = static_cast<std::uint64_t>(at.value);
  ptx::Space space = source.space;
  if (at.reg >= 0) {
    address += register_value(frame, at.reg, lane);
  } else if (at.variable >= 0) {
    const ptx::Variable& variable = grid.module->variable(*frame.image->function, at.variable);
    if (variable.space != ptx::Space::kGlobal && variable.space != ptx::Space::kConst) {
      if (variable.space != ptx::Space::kShared) return operand;
      space = ptx::Space::kShared;
      bool found = false;
      for (const auto& [key, offset] : grid.shared_layout->offsets) {
        const SharedVariable& shared = grid.program->shared[static_cast<std::size_t>(key)];
        if (shared.variable != at.variable || (shared.function >= 0 && shared.function != frame.image->index))
          continue;
        address += offset;
        found = true;
      }
      if (!found) return operand;
    } else {
      address += grid.pe_module->addresses[static_cast<std::size_t>(at.variable)];
    }
  }
  operand.bytes = static_cast<std::uint32_t>(ptx::bytes_of(source.type)) * source.vector;
  operand.address = address;
  if (space == ptx::Space::kGeneric && address >= kSharedWindow &&
      address < kSharedWindow + kSharedClusterWindowBytes) {
    operand.address = address - kSharedWindow;
    space = ptx::Space::kShared;
  }
  if (space == ptx::Space::kShared || space == ptx::Space::kSharedCluster) {
    const Block* const owner = shared_owner(*warp.block, operand.address);
    operand.address &= (1U << kClusterRankShift) - 1U;
    if (owner == nullptr || operand.address + operand.bytes > owner->shared.size()) return operand;
    operand.shared = true;
    operand.host = owner->shared.data() + operand.address;
    operand.known = true;
    return operand;
  }
  if (space != ptx::Space::kGlobal && space != ptx::Space::kGeneric && space != ptx::Space::kConst)
    return operand;
  const Allocation* in = memory.find(address);
  if (in == nullptr || address + operand.bytes > in->base + in->size) return operand;
  // Device memory lies at its own address in this process.
  operand.host = reinterpret_cast<const std::uint8_t*>(address);
  operand.known = true;
  return operand;
}

bool Machine::State::watch_moved(const Watch& watch) {
  return std::memcmp(watch.at, watch.value, watch.bytes) != 0;
}

void Machine::State::record_access(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  Group& group = warp.groups[warp.current];
  SpinTrack& track = group.track;
  const ptx::Space space = inst.source->space;
  // What only this thread can change is in its registers or counted in local_changes.
  if (space == ptx::Space::kLocal || space == ptx::Space::kParam) return;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    const Operand64 operand = memory_operand(warp, *group.frame, *inst.source, lane, *memory);
    if (!operand.known || operand.bytes > sizeof(Watch::value) || track.watches.size() >= kMaxWatches) {
      track.complete = false;
      return;
    }
    Watch watch;
    watch.at = operand.host;
    watch.bytes = operand.bytes;
    std::memcpy(watch.value, operand.host, operand.bytes);
    watch.address = operand.shared ? 0 : operand.address;
    watch.shared_offset = operand.shared ? static_cast<std::uint32_t>(operand.address) : 0;
    watch.pc = static_cast<std::int32_t>(&inst - group.frame->image->code.data());
    watch.lane = lane;
    bool known = false;
    for (const Watch& other : track.watches) {
      if (other.at != watch.at || other.bytes != watch.bytes) continue;
      known = true;
      // The word moved between two reads of one turn: not a turn that repeats.
      if (std::memcmp(other.value, watch.value, watch.bytes) != 0) track.own_change = true;
    }
    if (!known) track.watches.push_back(watch);
  }
}

// A loop with barriers depends on the other warps of the block: they might count rounds and do something in
// the end. Only when every warp of the block has been seen to repeat while memory stood still does the block
// repeat for ever. Then one warp is parked, and the others wait for it at the barrier.
bool Machine::State::block_repeats(CoreWarp& warp, const SpinTrack& track) {
  const std::uint64_t changes = memory->changes();
  warp.repeats_at = changes;
  warp.repeats_reading_memory = std::any_of(track.watches.begin(), track.watches.end(),
                                            [](const Watch& watch) { return watch.address != 0; });
  bool others_read_memory = false;
  for (const CoreWarp* other : warp.core_block->warps) {
    if (other->live == 0) continue;
    if (other->repeats_at != changes) return false;
    others_read_memory = others_read_memory || other->repeats_reading_memory;
  }
  // The one to park is one that reads what other blocks or PEs can write.
  return warp.repeats_reading_memory || !others_read_memory;
}

bool Machine::State::visit_back_branch(CoreWarp& warp, std::int32_t branch_pc, std::int32_t target) {
  Group& group = warp.groups[warp.current];
  SpinTrack& track = group.track;
  const std::uint64_t effects = warp.effects + warp.local_changes + warp.older_reads;
  if (track.follower) {  // it has a loop of its own
    track = SpinTrack{};
    warp.trace = false;
    return false;
  }
  const LoopTime& time = loop_time(*group.frame->image, branch_pc, target);
  const auto begin = [&](SpinTrack::Phase phase, std::uint64_t hash) {
    track.phase = phase;
    track.branch = branch_pc;
    track.compares_left = kCompares;
    track.hash = hash;
    track.effects = effects;
    track.changes = memory->changes();
    track.barriers = warp.barriers;
    track.time_reads = warp.time_reads;
    track.own_change = false;
    track.complete = true;
    track.watches.clear();
    track.next_visit = track.visits + 1;
    warp.trace = phase == SpinTrack::Phase::kWholeGroup;
  };
  const auto give_up = [&] {
    track.phase = SpinTrack::Phase::kIdle;
    track.next_visit = track.visits + std::clamp(track.visits, 16U, kLongestPause);
    warp.trace = false;
    return false;
  };
  if (track.phase == SpinTrack::Phase::kIdle) {
    begin(SpinTrack::Phase::kOneLane, hash_registers(warp, group, false, time.skip));
    return false;
  }
  track.next_visit = track.visits + 1;
  if (branch_pc != track.branch) return --track.compares_left == 0 ? give_up() : false;
  if (effects != track.effects || (warp.time_reads != track.time_reads && !time.harmless)) return give_up();
  if (track.phase == SpinTrack::Phase::kOneLane) {
    if (hash_registers(warp, group, false, time.skip) != track.hash)
      return --track.compares_left == 0 ? give_up() : false;
    begin(SpinTrack::Phase::kWholeGroup, hash_registers(warp, group, true, time.skip));
    return false;
  }
  if (track.own_change) return give_up();
  if (hash_registers(warp, group, true, time.skip) != track.hash)
    return --track.compares_left == 0 ? give_up() : false;
  const std::uint64_t changes = memory->changes();
  if (warp.barriers != track.barriers) {
    if (changes != track.changes || !block_repeats(warp, track)) return give_up();
    track.complete = false;  // what the other warps read counts too
  } else if (changes != track.changes) {
    if (!track.complete) return give_up();
    for (const Watch& watch : track.watches) {
      if (watch_moved(watch)) return give_up();
    }
  }
  warp.trace = false;
  if (tracer != nullptr && !track.watches.empty()) {
    const Inst& load = group.frame->image->code[static_cast<std::size_t>(track.watches.front().pc)];
    note_event(warp, load, group.mask, "loop: waits");
  }
  group.pc = target;
  group.state = GroupState::kSpin;
  group.parked_changes = memory->changes();
  park(warp);
  return true;
}

}  // namespace echolo::vgpu
