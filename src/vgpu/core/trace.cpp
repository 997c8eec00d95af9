#include "vgpu/core/trace.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/text.hpp"
#include "vgpu/core/engine.hpp"
#include "vgpu/core/sites.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::int64_t kWord = 16;  // bytes: the widest access of a thread

// An object's name without its source place, which is not known in full before the job ends.
std::string_view without_place(std::string_view object) { return object.substr(0, object.find(" at ")); }

std::uint64_t read_word(const std::uint8_t* at, std::uint32_t bytes) {
  std::uint64_t value = 0;
  std::memcpy(&value, at, std::min<std::uint32_t>(bytes, sizeof value));
  return value;
}

}  // namespace

std::uint32_t Tracer::named_lanes(const CoreWarp& warp, std::uint32_t mask) const {
  std::uint32_t named = 0;
  for (const TraceFilter::Thread& thread : filter_.threads) {
    if (thread.pe != warp.block->grid->pe || !(thread.block == warp.block->index)) continue;
    for (std::uint32_t bits = mask & ~named; bits != 0; bits &= bits - 1) {
      const int lane = std::countr_zero(bits);
      if (thread_index(warp, lane) == thread.thread) named |= 1U << static_cast<unsigned>(lane);
    }
  }
  return named;
}

bool Tracer::names_line(const CoreWarp& warp, const Inst& inst) const {
  if (filter_.lines.empty() || inst.source == nullptr) return false;
  const ptx::Function& function = *warp.groups[warp.current].frame->image->function;
  const Frame frame = frame_of(*warp.block->grid->module, function, inst.source, nullptr);
  return std::any_of(filter_.lines.begin(), filter_.lines.end(), [&](const auto& line) {
    return line.second == frame.line && frame.file.ends_with(line.first);
  });
}

bool Tracer::names_word(const Memory& memory, std::uint64_t address) const {
  if (filter_.objects.empty()) return false;
  const Allocation* in = memory.find(address);
  if (in == nullptr) return false;
  const auto offset = static_cast<std::int64_t>(address - in->base);
  for (const TraceFilter::Object& object : filter_.objects) {
    if (object.offset / kWord != offset / kWord || (object.pe >= 0 && object.pe != in->pe)) continue;
    const std::string here = in->describe();
    if (without_place(here) == without_place(object.object)) return true;
  }
  return false;
}

void Tracer::before_access(const CoreWarp& warp, const Inst& inst, std::uint32_t mask, const Memory& memory) {
  touched_.clear();
  if (inst.source == nullptr) return;
  const ptx::Space space = inst.source->space;
  if (space == ptx::Space::kLocal || space == ptx::Space::kParam) return;
  const Activation& frame = *warp.groups[warp.current].frame;
  const std::uint32_t named = named_lanes(warp, mask);
  const bool line = named != 0 && names_line(warp, inst);
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    const Operand64 at = memory_operand(warp, frame, *inst.source, lane, memory);
    if (!at.known) continue;
    const bool mine = (named >> static_cast<unsigned>(lane) & 1U) != 0;
    if (!(line && mine) && (at.shared || !names_word(memory, at.address))) continue;
    Touched touched;
    touched.lane = lane;
    touched.bytes = at.bytes;
    touched.host = at.host;
    touched.before = read_word(at.host, at.bytes);
    if (at.shared) {
      touched.address = "shared memory, byte " + with_commas(at.address);
    } else if (const Allocation* in = memory.find(at.address)) {
      touched.address = in->describe() + ", byte " + with_commas(at.address - in->base) + " on PE " +
                        std::to_string(in->pe);
    }
    touched_.push_back(std::move(touched));
  }
}

void Tracer::after_access(const CoreWarp& warp, const Inst& inst, std::uint64_t ns) {
  for (const Touched& touched : touched_) {
    TraceEvent event = this->event(warp, inst, touched.lane, ns);
    const std::uint64_t now = read_word(touched.host, touched.bytes);
    const ptx::Instruction& source = *inst.source;
    std::uint64_t value = touched.before;
    // What a load gave stands in its register: memory may say something else by now.
    if (source.op == ptx::Opcode::kLd && source.vector == 1 && !source.operands.empty() &&
        source.operands[0].kind == ptx::OperandKind::kRegister) {
      const Activation& frame = *warp.groups[warp.current].frame;
      value = register_value(frame, source.operands[0].reg, touched.lane);
    }
    const bool loads = source.op == ptx::Opcode::kLd || source.op == ptx::Opcode::kLdu;
    event.value = loads ? "reads " + std::to_string(value)
                        : std::to_string(touched.before) + " -> " + std::to_string(now);
    event.address = touched.address;
    event.what = std::string(source.text.substr(0, source.text.find_first_of(" \t")));
    keep(std::move(event));
  }
  touched_.clear();
}

void Tracer::note(const CoreWarp& warp, const Inst& inst, std::uint32_t mask, const std::string& what,
                  std::uint64_t ns) {
  const std::uint32_t named = named_lanes(warp, mask);
  if (named == 0) return;
  TraceEvent event = this->event(warp, inst, std::countr_zero(named), ns);
  event.threads = std::popcount(named);
  event.what = what;
  // A wait that is tried again says nothing new.
  const TraceEvent* before = last_.empty() ? (first_.empty() ? nullptr : &first_.back()) : &last_.back();
  if (before != nullptr && before->what == event.what && before->pe == event.pe &&
      before->block == event.block && before->thread == event.thread &&
      before->where.line == event.where.line && what.ends_with("waits"))
    return;
  keep(std::move(event));
}

TraceEvent Tracer::event(const CoreWarp& warp, const Inst& inst, int lane, std::uint64_t ns) const {
  TraceEvent out;
  const Site site = make_site(warp, lane, inst, "");
  out.ns = ns;
  out.pe = site.pe;
  out.block = site.block;
  out.thread = site.thread;
  out.where = site.where;
  out.call = site.call;
  return out;
}

void Tracer::keep(TraceEvent event) {
  if (first_.size() < filter_.most / 4) {
    first_.push_back(std::move(event));
    return;
  }
  last_.push_back(std::move(event));
  if (last_.size() > filter_.most - filter_.most / 4) {
    last_.pop_front();
    ++skipped_;
  }
}

std::vector<TraceEvent> Tracer::events() const {
  std::vector<TraceEvent> out = first_;
  out.insert(out.end(), last_.begin(), last_.end());
  return out;
}

}  // namespace echolo::vgpu
