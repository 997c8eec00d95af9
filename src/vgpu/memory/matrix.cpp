// ldmatrix and stmatrix (PTX ISA, "Warp-level Matrix Load/Store Instruction: ldmatrix, stmatrix"), .m8n8 with
// .b16: lanes 8j .. 8j+7 give the addresses of the eight 16-byte rows of matrix j; lane 4r + c holds elements
// 2c and 2c + 1 of row r (of column r, with .trans).
#include "vgpu/memory/plan.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint32_t kRowBytes = 16;
constexpr std::uint8_t kTrans = 1;

// Rows that are addressed: those of the lanes below 8 * count, on the host, one access for all.
bool begin_rows(Warp& warp, const Inst& inst, const MemoryCode& code, std::uint32_t mask,
                Memory::AccessKind kind, Memory::Access& access, std::uint64_t* at) {
  const unsigned rows = 8U * code.vector;
  const std::uint32_t named = rows == 32 ? kAllLanes : (1U << rows) - 1U;
  MemoryCode one = code;
  one.vector = 1;
  return begin_access(warp, inst, one, mask & named, kind, kRowBytes, kRowBytes, access, at);
}

MemOutcome load_matrix(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if ((mask & 0xffU) == 0 || !begin_rows(warp, inst, code, mask, Memory::AccessKind::kLoad, access, at))
    return MemOutcome::kFault;
  for (unsigned j = 0; j < code.vector; ++j) {
    std::uint32_t* const out = warp.lanes.write<std::uint32_t>(inst.operands[j]);
    alignas(64)
        std::uint32_t rows[kWarpSize];  // lane 4r + c has words c of row r: the rows one after the other
    for (unsigned r = 0; r < 8; ++r) {
      std::memcpy(rows + 4 * r, host_pointer(lane_address(access, static_cast<int>(8 * j + r))), kRowBytes);
    }
    alignas(64) std::uint32_t turned[kWarpSize];
    if (code.extra == kTrans) {
      std::uint16_t matrix[8][8];
      std::memcpy(matrix, rows, sizeof matrix);
      for (unsigned r = 0; r < 8; ++r) {
        for (unsigned c = 0; c < 4; ++c)
          turned[4 * r + c] = matrix[2 * c][r] | std::uint32_t{matrix[2 * c + 1][r]} << 16U;
      }
    }
    const std::uint32_t* const from = code.extra == kTrans ? turned : rows;
    if (mask == kAllLanes) {
      std::memcpy(out, from, sizeof rows);
    } else {
      for_each_lane(mask, [&](int lane) { out[lane] = from[lane]; });
    }
  }
  return MemOutcome::kDone;
}

MemOutcome store_matrix(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const MemoryCode code = MemoryCode::unpack(inst.aux[0]);
  alignas(64) std::uint64_t at[kWarpSize];
  Memory::Access access;
  if ((mask & 0xffU) == 0 || !begin_rows(warp, inst, code, mask, Memory::AccessKind::kStore, access, at))
    return MemOutcome::kFault;
  bool changed = false;
  for (unsigned j = 0; j < code.vector; ++j) {
    std::uint16_t matrix[8][8];
    const std::uint32_t* from = warp.lanes.read<std::uint32_t>(inst.operands[code.address + 1U + j]);
    for (unsigned lane = 0; lane < kWarpSize; ++lane) {
      const unsigned r = lane / 4, c = 2 * (lane % 4);
      const auto low = static_cast<std::uint16_t>(from[lane]),
                 high = static_cast<std::uint16_t>(from[lane] >> 16U);
      (code.extra == kTrans ? matrix[c][r] : matrix[r][c]) = low;
      (code.extra == kTrans ? matrix[c + 1][r] : matrix[r][c + 1]) = high;
    }
    for (unsigned r = 0; r < 8; ++r) {
      std::uint8_t* to = host_pointer(lane_address(access, static_cast<int>(8 * j + r)));
      changed |= std::memcmp(to, matrix[r], kRowBytes) != 0;
      std::memcpy(to, matrix[r], kRowBytes);
    }
  }
  if (changed) note_change(warp, access);
  return MemOutcome::kDone;
}

}  // namespace

Result<Plan> plan_matrix(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const bool load = inst.op == ptx::Opcode::kLdmatrix;
  if (inst.type != ptx::Type::kB16 || inst.shape.m != 8 || inst.shape.n != 8) {
    return context.refuse("the virtual node executes .m8n8 with .b16 only");
  }
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.converge = true;
  plan.memory = load ? load_matrix : store_matrix;
  MemoryCode code;
  code.vector = inst.shape.count;
  code.extra = inst.shape.trans ? kTrans : 0;
  const auto add_values = [&](const ptx::Operand& operand, bool destination) -> Status {
    const std::vector<ptx::Operand> single = {operand};
    const auto& elements = operand.kind == ptx::OperandKind::kVector ? operand.elements : single;
    if (elements.size() != code.vector) return context.refuse("the vector has another number of registers");
    for (const ptx::Operand& element : elements) {
      auto planned = context.value(element, 32, destination);
      if (!planned) return planned.error();
      if (planned->width != 32) return context.refuse("needs 32-bit registers");
      plan.operands.push_back(*planned);
    }
    return {};
  };
  if (load) {
    if (auto status = add_values(inst.operands[0], true); !status) return status.error();
    if (auto status = context.address(inst.operands[1], ptx::Space::kShared, plan, code); !status)
      return status.error();
  } else {
    if (auto status = context.address(inst.operands[0], ptx::Space::kShared, plan, code); !status)
      return status.error();
    if (auto status = add_values(inst.operands[1], false); !status) return status.error();
  }
  // Without a state space the address is a generic one.
  code.space = inst.space;
  plan.aux[0] = code.pack();
  return plan;
}

}  // namespace echolo::vgpu
