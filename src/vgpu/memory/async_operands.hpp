// Private to vgpu/memory: operands of asynchronous copies, which have several addresses, and where those lie.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "vgpu/memory/async.hpp"
#include "vgpu/memory/cluster.hpp"
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

// An address takes two operands: the base, and an immediate with the offset (bit 63: the base has 32 bits).
inline constexpr std::uint64_t kNarrowBase = 1ULL << 63U;

Status add_address(const PlanContext& context, Plan& plan, const ptx::Operand& operand, ptx::Space space);
Status add_value(const PlanContext& context, Plan& plan, const ptx::Operand& operand, std::uint8_t width);

std::uint64_t lane_address_at(const Warp& warp, const Inst& inst, std::size_t operand, int lane);

// A place in device memory (block null) or in the shared memory of a block of the cluster.
struct AsyncPlace {
  Block* block = nullptr;
  std::uint64_t at = 0;
};
// The place that an address of .shared::cluster (or .shared::cta, or a generic one of shared memory) names;
// nothing after a fatal finding.
std::optional<AsyncPlace> shared_place(const Warp& warp, const Inst& inst, int lane, const char* role,
                                       std::uint64_t address);

bool read_place(Memory& memory, const AsyncPlace& from, void* to, std::uint64_t n,
                const Memory::Accessor& who);
bool write_place(Memory& memory, const AsyncPlace& to, const void* from, std::uint64_t n,
                 const Memory::Accessor& who);
// Applies `reduce` to each element of `element` bytes.
bool reduce_place(Memory& memory, const AsyncPlace& to, const void* from, std::uint64_t n,
                  std::uint32_t element, void (*reduce)(std::uint8_t*, const std::uint8_t*),
                  const Memory::Accessor& who);

// Logs a fatal finding where `value` is no multiple of `unit`. `what`: "the source of cp.async.bulk".
bool check_multiple(const Warp& warp, const Inst& inst, int lane, const char* what, std::uint64_t value,
                    std::uint64_t unit);
MemOutcome async_fault(const Warp& warp, const Inst& inst, int lane, FindingKind kind, std::string message,
                       std::string why, std::string advice);

// The blocks that a multicast names, by the bits of its mask; nothing after a fatal finding.
std::optional<std::vector<Block*>> multicast_blocks(const Warp& warp, const Inst& inst, int lane,
                                                    std::uint32_t mask);

}  // namespace echolo::vgpu
