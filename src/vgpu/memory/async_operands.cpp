#include "vgpu/memory/async_operands.hpp"
#include "vgpu/meter/meter.hpp"

#include <array>
#include <string>
#include <utility>

namespace echolo::vgpu {

Status add_address(const PlanContext& context, Plan& plan, const ptx::Operand& operand, ptx::Space space) {
  ptx::Operand plain = operand;
  plain.elements.clear();  // coordinates of a tensor
  MemoryCode code;
  if (auto status = context.address(plain, space, plan, code); !status) return status.error();
  PlanOperand offset;
  offset.kind = PlanOperand::Kind::kImmediate;
  offset.width = 64;
  offset.value[0] = (plan.aux[1] & ~kNarrowBase) | (code.narrow_address ? kNarrowBase : 0);
  plan.operands.push_back(offset);
  plan.aux[1] = 0;
  return {};
}

Status add_value(const PlanContext& context, Plan& plan, const ptx::Operand& operand, std::uint8_t width) {
  auto planned = context.value(operand, width, false);
  if (!planned) return planned.error();
  if (planned->width != width) return context.refuse("needs registers of " + std::to_string(width) + " bits");
  plan.operands.push_back(*planned);
  return {};
}

std::uint64_t lane_address_at(const Warp& warp, const Inst& inst, std::size_t operand, int lane) {
  const std::uint64_t packed = warp.lanes.read<std::uint64_t>(inst.operands[operand + 1])[0];
  const auto offset = static_cast<std::uint64_t>(static_cast<std::int64_t>(packed << 1U) >> 1);
  if ((packed & kNarrowBase) != 0) {
    const std::uint32_t base = warp.lanes.read<std::uint32_t>(inst.operands[operand])[lane];
    return static_cast<std::uint32_t>(base + static_cast<std::uint32_t>(offset));
  }
  return warp.lanes.read<std::uint64_t>(inst.operands[operand])[lane] + offset;
}

MemOutcome async_fault(const Warp& warp, const Inst& inst, int lane, FindingKind kind, std::string message,
                       std::string why, std::string advice) {
  Finding finding;
  finding.kind = kind;
  finding.fatal = true;
  finding.message = std::move(message);
  finding.why = std::move(why);
  finding.advice = std::move(advice);
  finding.sites.push_back(make_site(warp, lane, inst, "call"));
  warp.block->grid->findings->add(std::move(finding));
  return MemOutcome::kFault;
}

bool check_multiple(const Warp& warp, const Inst& inst, int lane, const char* what, std::uint64_t value,
                    std::uint64_t unit) {
  if (value % unit == 0) return true;
  async_fault(warp, inst, lane, FindingKind::kMisaligned,
              "PE " + std::to_string(warp.block->grid->pe) + ": " + what + " is no multiple of " +
                  std::to_string(unit) + " bytes",
              "it is " + std::to_string(value), "align it to " + std::to_string(unit) + " bytes");
  return false;
}

std::optional<AsyncPlace> shared_place(const Warp& warp, const Inst& inst, int lane, const char* role,
                                       std::uint64_t address) {
  if (address - kSharedWindow < kSharedClusterWindowBytes) address -= kSharedWindow;
  if (address >= kSharedClusterWindowBytes) {
    async_fault(warp, inst, lane, FindingKind::kOutOfBounds,
                "PE " + std::to_string(warp.block->grid->pe) +
                    " gives an address that lies in no block's shared memory",
                "the instruction takes an address of shared memory here",
                "convert a pointer to shared memory with __cvta_generic_to_shared()");
    return std::nullopt;
  }
  AsyncPlace place;
  place.block = shared_owner(*warp.block, address);
  if (place.block == nullptr) {
    report_no_owner(warp, inst, lane, role, address);
    return std::nullopt;
  }
  place.at = address & ((1ULL << kClusterRankShift) - 1U);
  return place;
}

bool read_place(Memory& memory, const AsyncPlace& from, void* to, std::uint64_t n,
                const Memory::Accessor& who) {
  if (from.block == nullptr && memory.meter() != nullptr) memory.meter()->moved(*who.warp, from.at, n, false);
  return from.block != nullptr ? memory.read_shared(*from.block, from.at, to, n, who)
                               : memory.read(from.at, to, n, who);
}

bool write_place(Memory& memory, const AsyncPlace& to, const void* from, std::uint64_t n,
                 const Memory::Accessor& who) {
  if (to.block == nullptr && memory.meter() != nullptr) memory.meter()->moved(*who.warp, to.at, n, true);
  return to.block != nullptr ? memory.write_shared(*to.block, to.at, from, n, who)
                             : memory.write(to.at, from, n, who);
}

bool reduce_place(Memory& memory, const AsyncPlace& to, const void* from, std::uint64_t n,
                  std::uint32_t element, void (*reduce)(std::uint8_t*, const std::uint8_t*),
                  const Memory::Accessor& who) {
  // Each element's reduction is an atomic of its own, relaxed at gpu scope (PTX ISA, "cp.reduce.async.bulk").
  Memory::Accessor atomic = who;
  atomic.order = ptx::Order::kRelaxed;
  atomic.scope = ptx::Scope::kGpu;
  std::array<std::uint8_t, 16> held{};
  const auto* const operand = static_cast<const std::uint8_t*>(from);
  for (std::uint64_t i = 0; i + element <= n; i += element) {
    AsyncPlace place = to;
    place.at += i;
    if (!read_place(memory, place, held.data(), element, atomic)) return false;
    reduce(held.data(), operand + i);
    if (!write_place(memory, place, held.data(), element, atomic)) return false;
  }
  return true;
}

std::optional<std::vector<Block*>> multicast_blocks(const Warp& warp, const Inst& inst, int lane,
                                                    std::uint32_t mask) {
  std::vector<Block*> out;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const std::uint64_t address = (std::uint64_t{static_cast<unsigned>(std::countr_zero(bits))} + 1)
                                  << kClusterRankShift;
    Block* const block = shared_owner(*warp.block, address);
    if (block == nullptr) {
      report_no_owner(warp, inst, lane, "write", address);
      return std::nullopt;
    }
    out.push_back(block);
  }
  return out;
}

}  // namespace echolo::vgpu
