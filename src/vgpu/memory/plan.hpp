// Private to vgpu/memory: how instructions that touch memory are planned and how their functions begin.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

#include "vgpu/exec.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::vgpu {

// Inst::aux[0] of a MemFn. aux[1] is the offset that is added to the address register.
struct MemoryCode {
  ptx::Space space{};
  ptx::Order order{};
  ptx::Scope scope{};
  std::uint8_t vector = 1;   // elements
  std::uint8_t address = 0;  // index of the address operand
  bool kernel_param = false;
  bool narrow_address = false;  // the address operand has 32 bits
  std::uint8_t extra = 0;       // the function's own

  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(space) | static_cast<std::uint64_t>(order) << 8U |
           static_cast<std::uint64_t>(scope) << 16U | std::uint64_t{vector} << 24U |
           std::uint64_t{address} << 32U | std::uint64_t{kernel_param} << 40U |
           std::uint64_t{narrow_address} << 41U | std::uint64_t{extra} << 48U;
  }
  static MemoryCode unpack(std::uint64_t bits) {
    MemoryCode code;
    code.space = static_cast<ptx::Space>(bits & 0xffU);
    code.order = static_cast<ptx::Order>((bits >> 8U) & 0xffU);
    code.scope = static_cast<ptx::Scope>((bits >> 16U) & 0xffU);
    code.vector = static_cast<std::uint8_t>(bits >> 24U);
    code.address = static_cast<std::uint8_t>(bits >> 32U);
    code.kernel_param = ((bits >> 40U) & 1U) != 0;
    code.narrow_address = ((bits >> 41U) & 1U) != 0;
    code.extra = static_cast<std::uint8_t>(bits >> 48U);
    return code;
  }
};

// A strong order, or volatile: what other threads may wait for.
inline bool is_strong(ptx::Order order) { return order != ptx::Order::kWeak; }

template <typename Visit>
inline void for_each_lane(std::uint32_t mask, Visit visit) {
  if (mask == kAllLanes) {
    for (int i = 0; i < kWarpSize; ++i) visit(i);
  } else {
    for (; mask != 0; mask &= mask - 1) visit(std::countr_zero(mask));
  }
}

inline std::uint8_t* host_pointer(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

// The host address of a lane after Memory::access.
inline std::uint64_t lane_address(const Memory::Access& access, int lane) {
  if (access.pattern == Memory::Pattern::kScattered) return access.addresses[lane];
  return access.pattern == Memory::Pattern::kUniform
             ? access.addresses[0]
             : access.addresses[0] + static_cast<std::uint64_t>(lane) * access.bytes;
}

// The lanes' addresses, those outside `mask` repeating an active lane's, and how they lie to each other when
// a lane accesses `bytes` bytes.
Memory::Pattern form_addresses(const Lanes& lanes, Slot slot, bool narrow, std::uint64_t offset,
                               std::uint32_t mask, std::uint32_t bytes, std::uint64_t* addresses);

// Fills in what an Access takes from the instruction, forms its addresses and passes the one place.
inline bool begin_access(Warp& warp, const Inst& inst, const MemoryCode& code, std::uint32_t mask,
                         Memory::AccessKind kind, std::uint32_t element_bytes, std::uint32_t alignment,
                         Memory::Access& access, std::uint64_t* addresses) {
  access.kind = kind;
  access.space = code.space;
  access.order = code.order;
  access.scope = code.scope;
  access.kernel_param = code.kernel_param;
  access.bytes = static_cast<std::uint16_t>(element_bytes * code.vector);
  access.element_bytes = static_cast<std::uint16_t>(element_bytes);
  access.alignment = static_cast<std::uint16_t>(alignment);
  access.mask = mask;
  access.addresses = addresses;
  access.pattern = form_addresses(warp.lanes, inst.operands[code.address], code.narrow_address, inst.aux[1],
                                  mask, access.bytes, addresses);
  return warp.block->grid->memory->access(warp, inst, access);
}

// Says that bytes changed, to whom it matters.
inline void note_change(Warp& warp, const Memory::Access& access) {
  if (access.thread_local_memory) {
    ++warp.local_changes;
  } else {
    const int lane = access.pattern == Memory::Pattern::kScattered ? std::countr_zero(access.mask) : 0;
    const std::size_t lanes = access.pattern == Memory::Pattern::kContiguous ? kWarpSize : 1;
    warp.block->grid->memory->note_change(host_pointer(access.addresses[lane]), access.bytes * lanes);
  }
}

// ---- planning ----

struct PlanContext {
  const ptx::Module& module;
  const ptx::Function& function;
  const ptx::Instruction& inst;

  std::string form() const;  // "atom.global.add.f16": mnemonic and modifiers as written
  bool has(std::string_view modifier) const;
  Error refuse(const std::string& why) const;  // "atom.global.add.f16: why"

  // Bits of storage of a register: 8-bit registers take 16.
  std::uint8_t register_width(std::int32_t reg) const;
  // An operand read or written with the storage width of its register; immediates take `width`.
  Result<PlanOperand> value(const ptx::Operand& operand, std::uint8_t width, bool destination) const;
  // Appends the address operand and sets code.space, .address, .narrow_address, .kernel_param, and the
  // offset.
  Status address(const ptx::Operand& operand, ptx::Space space, Plan& plan, MemoryCode& code) const;
};

// One a group of instructions; each sets the function, operands and aux of `plan`.
Result<Plan> plan_load(const PlanContext& context);
Result<Plan> plan_store(const PlanContext& context);
Result<Plan> plan_atomic(const PlanContext& context);        // atom and red
Result<Plan> plan_copy(const PlanContext& context);          // cp.async
Result<Plan> plan_bulk_copy(const PlanContext& context);     // cp.async.bulk, cp.reduce.async.bulk
Result<Plan> plan_tensor_copy(const PlanContext& context);   // the same with .tensor
Result<Plan> plan_remote_store(const PlanContext& context);  // st.async, red.async
Result<Plan> plan_multicast(const PlanContext& context);     // multimem
Result<Plan> plan_tensor_map(const PlanContext& context);    // tensormap
Result<Plan> plan_matrix(const PlanContext& context);        // ldmatrix, stmatrix
Result<Plan> plan_address(
    const PlanContext& context);  // cvta, isspacep, mapa, getctarank, createpolicy, prefetch, discard
Result<Plan> plan_barrier_object(const PlanContext& context);  // mbarrier

}  // namespace echolo::vgpu
