// Calls between device functions: frames of registers, and the stack in each lane's local memory.
#include <algorithm>
#include <bit>
#include <cstring>

#include "vgpu/core/engine.hpp"

namespace echolo::vgpu {
namespace {

// A thread's stack may grow this far; a GPU would fault at cudaLimitStackSize, by default far below.
constexpr std::uint32_t kMaxStackBytes = 512U << 10U;

void copy_piece(const CoreWarp& warp, std::uint32_t to, std::uint32_t from, std::uint32_t bytes,
                std::uint32_t mask) {
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    std::memmove(warp.lane_local(lane) + to, warp.lane_local(lane) + from, bytes);
  }
}

// Marks bytes of each lane's local memory as written or not.
void mark(const CoreWarp& warp, std::uint32_t at, std::uint32_t bytes, std::uint32_t mask, bool written) {
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
    const std::size_t first = lane * warp.local_bytes + at;
    for (std::size_t i = first; i < first + bytes;) {
      std::uint8_t& word = warp.local_written[i / 8];
      if (i % 8 == 0 && i + 8 <= first + bytes) {
        word = written ? 0xff : 0;
        i += 8;
        continue;
      }
      const auto bit = static_cast<std::uint8_t>(1U << (i % 8));
      word = static_cast<std::uint8_t>(written ? word | bit : word & ~bit);
      ++i;
    }
  }
}

}  // namespace

Activation* Machine::State::new_frame(CoreWarp& warp, const KernelImage& image) {
  std::unique_ptr<Activation> frame;
  const std::size_t needed = image.register_bytes + 64U;
  for (std::size_t i = warp.free_frames.size(); i-- > 0;) {
    if (warp.free_frames[i]->storage.size() < needed) continue;
    frame = std::move(warp.free_frames[i]);
    warp.free_frames.erase(warp.free_frames.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  if (frame == nullptr) frame = std::make_unique<Activation>();
  if (frame->storage.size() < needed) frame->storage.resize(needed);
  const auto base = reinterpret_cast<std::uintptr_t>(frame->storage.data());
  frame->registers = frame->storage.data() + ((64 - base % 64) % 64);
  std::memset(frame->registers, 0, image.register_bytes);
  frame->image = &image;
  frame->lanes = 0;
  frame->depth = 0;
  frame->local_base = 0;
  frame->caller.fill(nullptr);
  frame->return_pc.fill(-1);
  warp.frames.push_back(std::move(frame));
  return warp.frames.back().get();
}

void Machine::State::leave_frame(CoreWarp& warp, Activation& frame, std::uint32_t mask) {
  frame.lanes &= ~mask;
  if (frame.lanes != 0) return;
  const auto at =
      std::find_if(warp.frames.begin(), warp.frames.end(), [&](const auto& f) { return f.get() == &frame; });
  warp.free_frames.push_back(std::move(*at));
  warp.frames.erase(at);
}

bool Machine::State::grow_local(CoreWarp& warp, std::uint32_t needed) {
  if (needed <= warp.local_bytes) return true;
  if (needed > kMaxStackBytes) return false;
  // At first just what the kernel needs, so that an index past its last local array is out of bounds;
  // recursion, whose need nobody knows, doubles it.
  const std::uint32_t wanted = std::max(needed, warp.local_bytes * 2);
  const std::uint32_t bytes = std::min(kMaxStackBytes, (wanted + 15U) / 16U * 16U);
  std::vector<std::uint8_t> storage(std::size_t{bytes} * kWarpSize);
  std::vector<std::uint8_t> written(std::size_t{bytes} * kWarpSize / 8);
  const std::uint32_t old = warp.local_bytes;
  for (std::size_t lane = 0; lane < kWarpSize && old != 0; ++lane) {
    std::memcpy(storage.data() + lane * bytes, warp.local + lane * old, old);
    std::memcpy(written.data() + lane * bytes / 8, warp.local_written + lane * old / 8, old / 8);
  }
  warp.local_storage = std::move(storage);
  warp.local_written_storage = std::move(written);
  warp.local = warp.local_storage.data();
  warp.local_written = warp.local_written_storage.data();
  warp.local_bytes = bytes;
  return true;
}

bool Machine::State::call(CoreWarp& warp, const Inst& inst, std::uint32_t mask) {
  const Group& group = warp.groups[warp.current];
  const KernelImage& caller = *group.frame->image;
  const CallSite& site = caller.calls[inst.aux[0]];
  const Program& program = *warp.core_block->core_grid->program;
  if (site.callee >= 0) {
    return enter_function(warp, *program.functions[static_cast<std::size_t>(site.callee)], site, mask);
  }
  // Through a pointer: lanes by target, in lane order.
  const auto* targets = warp.lanes.read<std::uint64_t>(inst.operands[0]);
  const std::uint64_t target = targets[std::countr_zero(mask)];
  std::uint32_t part = 0;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    if (targets[lane] == target) part |= 1U << static_cast<unsigned>(lane);
  }
  const std::uint64_t index = (target - kCodeWindow) / 16 - 1;
  const KernelImage* image = nullptr;
  if (target > kCodeWindow && target % 16 == 0 && index < program.functions.size()) {
    image = program.functions[index].get();
  }
  if (image == nullptr || image->function->is_entry || image->parameters.size() != site.arguments.size() ||
      image->results.size() != site.results.size()) {
    trap(warp, inst, part,
         image == nullptr ? "a call through a pointer that is not a device function's address"
                          : "a call through a pointer to a function of another signature");
    return false;
  }
  if (part != mask) split(warp, mask & ~part, warp.groups[warp.current].pc);  // the others call in their turn
  return enter_function(warp, *image, site, part);
}

bool Machine::State::enter_function(CoreWarp& warp, const KernelImage& image, const CallSite& site,
                                    std::uint32_t mask) {
  Group* group = &warp.groups[warp.current];
  Activation& caller = *group->frame;
  const std::int32_t return_pc = group->pc + 1;
  const std::uint32_t passing = group->mask & ~mask;
  if (passing != 0) {
    split(warp, passing, return_pc);
    group = &warp.groups[warp.current];
  }
  const std::uint32_t local_base = caller.local_base + caller.image->local_bytes;
  if (!grow_local(warp, local_base + image.local_bytes)) {
    trap(warp, caller.image->code[static_cast<std::size_t>(group->pc)], mask,
         "stack overflow: calls nest deeper than " + std::to_string(kMaxStackBytes >> 10U) +
             " KiB of a thread's stack");
    return false;
  }
  Activation& frame = *new_frame(warp, image);
  frame.local_base = local_base;
  frame.depth = caller.depth + 1;
  frame.lanes = mask;
  if (image.local_bytes != 0) mark(warp, local_base, image.local_bytes, mask, false);
  for (std::size_t i = 0; i < image.parameters.size(); ++i) {
    const std::uint32_t bytes = std::min(image.parameters[i].bytes, site.arguments[i].bytes);
    const std::uint32_t to = local_base + image.parameters[i].callee_at;
    copy_piece(warp, to, caller.local_base + site.arguments[i].at, bytes, mask);
    mark(warp, to, bytes, mask, true);
  }
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
    frame.caller[lane] = &caller;
    frame.return_pc[lane] = return_pc;
  }
  group->frame = &frame;
  group->pc = 0;
  if (warp.groups.size() > 1) return false;
  enter(warp, *group);
  return true;
}

bool Machine::State::ret(CoreWarp& warp, std::uint32_t mask) {
  Group* group = &warp.groups[warp.current];
  Activation& frame = *group->frame;
  const std::uint32_t passing = group->mask & ~mask;
  if (passing != 0) {
    const std::int32_t next = group->pc + 1;
    split(warp, passing, next);
  }
  // Lanes that came from one place go back together.
  std::uint32_t open = mask;
  bool first = true;
  const KernelImage& image = *frame.image;
  while (open != 0) {
    const auto leader = static_cast<std::size_t>(std::countr_zero(open));
    Activation* caller = frame.caller[leader];
    const std::int32_t pc = frame.return_pc[leader];
    std::uint32_t part = 0;
    for (std::uint32_t bits = open; bits != 0; bits &= bits - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(bits));
      if (frame.caller[lane] == caller && frame.return_pc[lane] == pc) part |= 1U << lane;
    }
    open &= ~part;
    const CallSite& site = caller->image->calls[caller->image->code[static_cast<std::size_t>(pc) - 1].aux[0]];
    for (std::size_t i = 0; i < image.results.size(); ++i) {
      const std::uint32_t bytes = std::min(image.results[i].bytes, site.results[i].bytes);
      const std::uint32_t to = caller->local_base + site.results[i].at;
      copy_piece(warp, to, frame.local_base + image.results[i].callee_at, bytes, part);
      mark(warp, to, bytes, part, true);
    }
    if (first) {
      group = &warp.groups[warp.current];
      group->frame = caller;
      group->pc = pc;
      group->mask = part;
      first = false;
    } else {
      Group other;
      other.mask = part;
      other.pc = pc;
      other.frame = caller;
      warp.groups.push_back(std::move(other));
    }
  }
  leave_frame(warp, frame, mask);
  if (warp.groups.size() > 1) return false;
  enter(warp, warp.groups[warp.current]);
  return true;
}

}  // namespace echolo::vgpu
