// One waiting group in words.
#include <bit>
#include <cstring>

#include "base/text.hpp"
#include "vgpu/core/explain.hpp"
#include "vgpu/core/sites.hpp"
#include "vgpu/memory/barrier_object.hpp"

namespace echolo::vgpu {
namespace {

std::string on_pe(const Memory& memory, std::uint64_t address) {
  const int pe = memory.pe_of(address);
  return pe < 0 ? std::string() : " on PE " + std::to_string(pe);
}

// "name[3]" where the offset is a whole number of elements, else "name, byte 13".
std::string element(const std::string& name, std::uint64_t offset, std::uint64_t size, std::uint32_t bytes) {
  if (bytes == 0 || offset % bytes != 0) return name + ", byte " + std::to_string(offset);
  if (size == bytes) return name;
  return name + "[" + std::to_string(offset / bytes) + "]";
}

std::uint64_t read_value(const std::uint8_t* at, std::uint32_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, std::min(bytes, 8U));
  return value;
}

std::string barrier_words(const CoreWarp& warp, const Group& group, const Inst& inst) {
  const BarrierForm form = BarrierForm::unpack(inst.aux[0]);
  if (group.state == GroupState::kConverge) return "the other lanes of its warp";
  const BarrierState& state = warp.core_block->barriers[static_cast<std::size_t>(group.barrier)];
  std::string words = form.has_count || group.barrier != 0
                          ? "barrier " + std::to_string(group.barrier) + ", where "
                          : std::string("the block's other threads; ");
  const std::uint32_t expected = state.expected == 0 ? warp.core_block->live_threads : state.expected;
  words += std::to_string(state.expected == 0 ? state.waiting_threads : state.arrived) + " of " +
           std::to_string(expected) + " threads have arrived";
  return words;
}

}  // namespace

const Inst& inst_at(const Group& group) {
  return group.frame->image->code[static_cast<std::size_t>(group.pc)];
}

std::string describe_word(const Memory& memory, std::uint64_t address, std::uint32_t bytes) {
  const Allocation* in = memory.find(address);
  if (in == nullptr) return "a word outside all allocations";
  const std::uint64_t offset = address - in->base;
  if (!in->name.empty()) return element(in->name, offset, in->size, bytes) + on_pe(memory, address);
  std::string what = "word " + std::to_string(bytes == 0 ? offset : offset / bytes);
  if (in->size == bytes) what = "the word";
  if (bytes != 0 && offset % bytes != 0) what = "byte " + std::to_string(offset);
  return what + " of " + in->describe() + on_pe(memory, address);
}

std::string describe_shared_word(const CoreWarp& warp, std::uint32_t offset, std::uint32_t bytes) {
  const CoreGrid& grid = *warp.core_block->core_grid;
  const SharedVariable* variable = nullptr;
  std::uint32_t start = 0;
  for (const auto& [key, at] : grid.shared_layout->offsets) {
    const SharedVariable& candidate = grid.program->shared[static_cast<std::size_t>(key)];
    if (at > offset || (!candidate.dynamic && offset >= at + candidate.size)) continue;
    if (variable != nullptr && at < start) continue;
    variable = &candidate;
    start = at;
  }
  if (variable == nullptr) return "shared memory at byte " + std::to_string(offset);
  return element(variable_name(variable->name), offset - start, variable->dynamic ? 0 : variable->size,
                 bytes) +
         " in shared memory";
}

Waiter describe_group(const Memory& memory, CoreWarp& warp, const Group& group) {
  Waiter waiter;
  waiter.warp = &warp;
  waiter.group = &group;
  waiter.inst = &inst_at(group);
  waiter.lane = std::countr_zero(group.mask);
  switch (group.state) {
    case GroupState::kBarrier:
      waiter.waits_for = barrier_words(warp, group, *waiter.inst);
      break;
    case GroupState::kConverge:
      waiter.waits_for = "the other lanes of its warp";
      break;
    case GroupState::kCluster: {
      std::uint32_t live = 0;
      for (const Block* block : warp.core_block->core_cluster->blocks) {
        if (block != nullptr) live += static_cast<const CoreBlock*>(block)->live_threads;
      }
      waiter.waits_for = "the cluster's other threads; " +
                         std::to_string(warp.core_block->core_cluster->arrived) + " of " +
                         std::to_string(live) + " threads have arrived";
      break;
    }
    case GroupState::kBlockCall:
      waiter.waits_for = "the block's other threads to make the same call";
      break;
    case GroupState::kAsleep:
      waiter.kind = Waiter::Kind::kSleep;
      waiter.waits_for = "its sleep to end";
      break;
    case GroupState::kCall: {
      waiter.lane = group.reason_lane;
      if (group.reason == nullptr || group.reason->address == 0) {
        waiter.kind = Waiter::Kind::kCollective;
        waiter.waits_for = group.reason == nullptr            ? "other PEs"
                           : group.reason->collective.empty() ? group.reason->waits_for
                                                              : group.reason->collective;
        break;
      }
      waiter.kind = Waiter::Kind::kWord;
      waiter.address = group.reason->address;
      waiter.waits_for =
          describe_word(memory, group.reason->address, group.reason->bytes) + " " + group.reason->comparison;
      waiter.holds = group.reason->holds;
      break;
    }
    case GroupState::kSpin:
    case GroupState::kRunnable: {
      waiter.kind = group.state == GroupState::kSpin ? Waiter::Kind::kWord : Waiter::Kind::kLoop;
      const std::optional<SpinCondition> condition = spin_condition(group);
      if (!condition) {
        waiter.waits_for = "the end of a loop";
        break;
      }
      waiter.inst = condition->load;
      std::string word;
      const std::uint8_t* host = nullptr;
      std::uint32_t bytes = 0;
      if (condition->watch != nullptr) {
        const Watch& watch = *condition->watch;
        waiter.lane = watch.lane;
        host = watch.at;
        bytes = watch.bytes;
        waiter.address = watch.address;
        word = watch.address != 0 ? describe_word(memory, watch.address, bytes)
                                  : describe_shared_word(warp, watch.shared_offset, bytes);
      } else {
        const Operand64 operand =
            memory_operand(warp, *group.frame, *condition->load->source, waiter.lane, memory);
        if (!operand.known) {
          waiter.waits_for = "the end of a loop";
          break;
        }
        host = operand.host;
        bytes = operand.bytes;
        waiter.address = operand.shared ? 0 : operand.address;
        word = operand.shared ? describe_shared_word(warp, static_cast<std::uint32_t>(operand.address), bytes)
                              : describe_word(memory, operand.address, bytes);
      }
      if (waiter.inst->source->op == ptx::Opcode::kMbarrier) {
        const BarrierObject object = BarrierObject::unpack(read_value(host, bytes));
        waiter.waits_for = "a phase of the mbarrier " + word + " to end; " + object.missing();
        break;
      }
      waiter.waits_for =
          condition->comparison.empty() ? "a change of " + word : word + " " + condition->comparison;
      waiter.holds = print_value(condition->type, read_value(host, bytes));
      break;
    }
  }
  return waiter;
}

}  // namespace echolo::vgpu
