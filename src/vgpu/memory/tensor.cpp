// TMA: cp.async.bulk.tensor, its reductions and prefetches, in tile mode (PTX ISA, "Data Movement and
// Conversion Instructions: Tensor copy").
#include <algorithm>
#include <cstring>
#include <memory>

#include "vgpu/memory/async_operands.hpp"
#include "vgpu/memory/tensor_map.hpp"
#include "vgpu/memory/updates.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint8_t kMaxRank = 5;
enum class TensorOp : std::uint8_t { kLoad, kStore, kReduce, kPrefetch };

// aux[0]: op | rank << 8 | first coordinate's operand << 16 | mask's operand << 24 | sub_op << 32.
struct TensorForm {
  TensorOp op{};
  std::uint8_t rank = 0, coordinates = 0, mask = 0;
  ptx::SubOp reduce{};
  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(op) | std::uint64_t{rank} << 8U | std::uint64_t{coordinates} << 16U |
           std::uint64_t{mask} << 24U | static_cast<std::uint64_t>(reduce) << 32U;
  }
  static TensorForm unpack(std::uint64_t bits) {
    return {static_cast<TensorOp>(bits & 0xffU), static_cast<std::uint8_t>(bits >> 8U),
            static_cast<std::uint8_t>(bits >> 16U), static_cast<std::uint8_t>(bits >> 24U),
            static_cast<ptx::SubOp>((bits >> 32U) & 0xffU)};
  }
};

// The tile that an instruction names.
struct Tile {
  TensorMap map;
  std::array<std::int64_t, kMaxRank> start{};
  std::array<std::uint32_t, kMaxRank> count{1, 1, 1, 1, 1};  // elements of each dimension in the tile
  std::uint64_t row_bytes() const { return std::uint64_t{count[0]} * map.element; }
  std::uint64_t bytes() const { return row_bytes() * count[1] * count[2] * count[3] * count[4]; }

  // Calls visit(offset in the tile, address, bytes) for what of each row lies within the tensor, and
  // outside(offset, bytes) for the rest. Both return false to stop.
  template <typename Inside, typename Outside>
  bool for_each_run(Inside inside, Outside outside) const;
};

template <typename Inside, typename Outside>
bool Tile::for_each_run(Inside inside, Outside outside) const {
  std::array<std::uint32_t, kMaxRank> at{};
  const std::uint64_t row = row_bytes();
  const std::int64_t size = std::int64_t{map.last[0]} + 1;
  const std::int64_t low = std::clamp<std::int64_t>(start[0], 0, size);
  const std::int64_t high = std::clamp<std::int64_t>(start[0] + count[0], 0, size);
  std::uint64_t offset = 0;
  for (;;) {
    bool within = high > low;
    std::uint64_t address = map.address;
    for (std::size_t d = 1; d < map.rank; ++d) {
      const std::int64_t index = start[d] + std::int64_t{at[d]} * map.steps[d];
      within = within && index >= 0 && index <= std::int64_t{map.last[d]};
      address += static_cast<std::uint64_t>(index) * map.strides[d - 1];
    }
    if (!within) {
      if (!outside(offset, row)) return false;
    } else {
      const auto before = static_cast<std::uint64_t>(low - start[0]) * map.element;
      const auto bytes = static_cast<std::uint64_t>(high - low) * map.element;
      if (before != 0 && !outside(offset, before)) return false;
      if (!inside(offset + before, address + static_cast<std::uint64_t>(low) * map.element, bytes))
        return false;
      if (before + bytes != row && !outside(offset + before + bytes, row - before - bytes)) return false;
    }
    offset += row;
    std::size_t d = 1;
    while (d < map.rank && ++at[d] == count[d]) at[d++] = 0;
    if (d >= map.rank) return true;
  }
}

// Calls visit(offset in the dense tile, offset in shared memory, bytes) for each part that keeps together.
template <typename Visit>
bool for_each_chunk(const Tile& tile, std::uint64_t base, Visit visit) {
  const std::uint64_t row = tile.row_bytes(), pitch = tile.map.row_pitch();
  if (tile.map.swizzle == TensorSwizzle::kNone) return visit(0, base, tile.bytes());
  for (std::uint64_t i = 0; i < tile.bytes(); i += 16) {
    if (!visit(i, swizzled(tile.map.swizzle, base + i / row * pitch + i % row), 16)) return false;
  }
  return true;
}

bool fill_outside(const TensorMap& map, std::uint8_t* to, std::uint64_t bytes) {
  std::memset(to, 0, bytes);
  if (!map.fills_nan) return true;
  for (std::uint64_t i = map.element - 1U; i < bytes; i += map.element) {
    to[i] = 0x7f;
    std::memset(to + i + 1 - map.element, 0xff, map.element - 1U);
  }
  return true;
}

// Reads the descriptor; false after a fatal finding.
bool read_map(Warp& warp, const Inst& inst, int lane, std::uint64_t address, const TensorForm& form,
              TensorMap& map) {
  std::uint64_t addresses[kWarpSize];
  std::fill(addresses, addresses + kWarpSize, address);
  Memory::Access access;
  access.kind = Memory::AccessKind::kLoad;
  access.space = ptx::Space::kGeneric;
  access.order = ptx::Order::kWeak;
  access.pattern = Memory::Pattern::kUniform;
  access.bytes = access.element_bytes = sizeof(TensorMap);
  access.alignment = 64;
  access.mask = 1U << static_cast<unsigned>(lane);
  access.addresses = addresses;
  if (!warp.block->grid->memory->access(warp, inst, access)) return false;
  std::memcpy(&map, host_pointer(lane_address(access, lane)), sizeof map);
  if (!map.valid()) {
    async_fault(warp, inst, lane, FindingKind::kDeviceTrap,
                "TMA is given an address where no tensor map lies",
                "the 128 bytes there were not made by cuTensorMapEncodeTiled",
                "pass the CUtensorMap as a `const __grid_constant__` parameter, or copy all of it");
    return false;
  }
  if (map.rank != form.rank) {
    async_fault(warp, inst, lane, FindingKind::kDeviceTrap,
                "a TMA instruction for " + std::to_string(form.rank) +
                    " dimensions is given a tensor map of " + std::to_string(map.rank),
                "", "use the instruction's form for the tensor's rank");
    return false;
  }
  return true;
}

// Operands: tensor map (2), shared memory (2) where there is any, mbarrier (2) of loads, coordinates, mask.
MemOutcome tensor_copy(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const TensorForm form = TensorForm::unpack(inst.aux[0]);
  Memory& memory = *warp.block->grid->memory;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    const auto tile = std::make_shared<Tile>();
    if (!read_map(warp, inst, lane, lane_address_at(warp, inst, 0, lane), form, tile->map))
      return MemOutcome::kFault;
    if (form.op == TensorOp::kPrefetch) continue;
    const TensorMap& map = tile->map;
    for (std::size_t d = 0; d < map.rank; ++d) {
      tile->start[d] = static_cast<std::int32_t>(
          warp.lanes.read<std::uint32_t>(inst.operands[form.coordinates + d])[lane]);
      tile->count[d] = (map.box[d] + map.steps[d] - 1U) / map.steps[d];
    }
    // An H200 calls it an illegal instruction.
    if (tile->start[0] * map.element % 16 != 0) {
      return async_fault(warp, inst, lane, FindingKind::kMisaligned,
                         "a TMA tile begins " + std::to_string(tile->start[0] * map.element) +
                             " bytes into its tensor's rows, which is no multiple of 16",
                         "the first coordinate is " + std::to_string(tile->start[0]) + ", of elements of " +
                             std::to_string(map.element) + " bytes",
                         "begin tiles at multiples of " + std::to_string(16 / map.element) + " elements");
    }
    const auto shared = shared_place(warp, inst, lane, form.op == TensorOp::kLoad ? "write" : "read",
                                     lane_address_at(warp, inst, 2, lane));
    if (!shared) return MemOutcome::kFault;
    if (!check_multiple(warp, inst, lane, "the address in shared memory of a TMA tile", shared->at, 128))
      return MemOutcome::kFault;
    AsyncOperation operation;
    operation.warp = &warp;
    operation.inst = &inst;
    operation.lane = lane;
    operation.uses.push_back(shared->block);
    if (form.op != TensorOp::kLoad) {
      ReduceFn reduce = nullptr;
      if (form.op == TensorOp::kReduce) {
        static constexpr ptx::Type kTypes[] = {
            ptx::Type::kNone, ptx::Type::kNone, ptx::Type::kU32, ptx::Type::kS32, ptx::Type::kU64,
            ptx::Type::kS64,  ptx::Type::kF16,  ptx::Type::kF32, ptx::Type::kF64, ptx::Type::kBf16,
            ptx::Type::kF32,  ptx::Type::kF32,  ptx::Type::kF32};
        ptx::Type type = map.type < std::size(kTypes) ? kTypes[map.type] : ptx::Type::kNone;
        const bool bitwise = form.reduce == ptx::SubOp::kAnd || form.reduce == ptx::SubOp::kOr ||
                             form.reduce == ptx::SubOp::kXor;
        if (bitwise) type = map.element == 8 ? ptx::Type::kB64 : map.element == 4 ? ptx::Type::kB32 : type;
        reduce = reduce_function(form.reduce, type);
        if (reduce == nullptr) {
          return async_fault(warp, inst, lane, FindingKind::kDeviceTrap,
                             "a TMA reduction on elements of a type that has none", "",
                             "make the tensor map with a type that the reduction exists for");
        }
      }
      operation.what = reduce != nullptr ? "cp.reduce.async.bulk.tensor" : "cp.async.bulk.tensor";
      operation.in_bulk_group = true;
      operation.move = [&memory, tile, place = *shared, reduce](const Memory::Accessor& issuer) {
        Memory::Accessor who = issuer;
        who.check_written = true;
        std::vector<std::uint8_t> dense(tile->bytes());
        const bool held =
            for_each_chunk(*tile, place.at, [&](std::uint64_t offset, std::uint64_t at, std::uint64_t n) {
              return memory.read_shared(*place.block, at, dense.data() + offset, n, who);
            });
        if (!held) return false;
        return tile->for_each_run(
            [&](std::uint64_t offset, std::uint64_t address, std::uint64_t bytes) {
              const AsyncPlace target{nullptr, address};
              return reduce != nullptr ? reduce_place(memory, target, dense.data() + offset, bytes,
                                                      tile->map.element, reduce, who)
                                       : memory.write(address, dense.data() + offset, bytes, who);
            },
            [](std::uint64_t, std::uint64_t) { return true; });
      };
      memory.async().issue(std::move(operation));
      continue;
    }
    std::vector<Block*> blocks = {shared->block};
    const auto barrier = shared_place(warp, inst, lane, "barrier", lane_address_at(warp, inst, 4, lane));
    if (!barrier) return MemOutcome::kFault;
    if (form.mask != 0) {
      const auto named =
          multicast_blocks(warp, inst, lane, warp.lanes.read<std::uint16_t>(inst.operands[form.mask])[lane]);
      if (!named) return MemOutcome::kFault;
      blocks = *named;
    }
    for (Block* block : blocks) {
      Block* const signalled = form.mask != 0 ? block : barrier->block;
      operation.uses.push_back(block);
      operation.signals.push_back({signalled, static_cast<std::uint32_t>(barrier->at),
                                   static_cast<std::uint32_t>(tile->bytes()), false});
    }
    operation.what = "cp.async.bulk.tensor";
    operation.move = [&memory, tile, blocks, at = shared->at](const Memory::Accessor& issuer) {
      Memory::Accessor who = issuer;
      who.check_written = true;
      std::vector<std::uint8_t> dense(tile->bytes());
      const bool good = tile->for_each_run(
          [&](std::uint64_t offset, std::uint64_t address, std::uint64_t bytes) {
            return memory.read(address, dense.data() + offset, bytes, who);
          },
          [&](std::uint64_t offset, std::uint64_t bytes) {
            return fill_outside(tile->map, dense.data() + offset, bytes);
          });
      if (!good) return false;
      return std::all_of(blocks.begin(), blocks.end(), [&](Block* block) {
        return for_each_chunk(*tile, at, [&](std::uint64_t offset, std::uint64_t place, std::uint64_t n) {
          return memory.write_shared(*block, place, dense.data() + offset, n, who);
        });
      });
    };
    memory.async().issue(std::move(operation));
  }
  return MemOutcome::kDone;
}

}  // namespace

Result<Plan> plan_tensor_copy(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  Plan plan;
  plan.kind = InstKind::kMemory;
  for (const char* mode :
       {"im2col", "im2col_no_offs", "im2col::w", "im2col::w::128", "tile::gather4", "tile::scatter4"}) {
    if (context.has(mode)) return context.refuse("only tile mode is executed by the virtual node");
  }
  TensorForm form;
  const bool reduces =
      inst.op == ptx::Opcode::kCp && inst.modifiers.size() > 1 && inst.modifiers[0] == "reduce";
  form.op = context.has("prefetch")     ? TensorOp::kPrefetch
            : reduces                   ? TensorOp::kReduce
            : context.has("bulk_group") ? TensorOp::kStore
                                        : TensorOp::kLoad;
  for (std::uint8_t rank = 1; rank <= kMaxRank; ++rank) {
    if (context.has(std::to_string(rank) + "d")) form.rank = rank;
  }
  form.reduce = inst.sub_op == ptx::SubOp::kTensor ? inst.sub_op2 : inst.sub_op;
  const bool load = form.op == TensorOp::kLoad;
  const std::size_t map = load ? 1 : 0;
  if (form.rank == 0 || operands.size() < (load ? 3U : form.op == TensorOp::kPrefetch ? 1U : 2U))
    return context.refuse("needs more operands");
  if (operands[map].elements.size() != form.rank)
    return context.refuse("needs as many coordinates as the tensor has dimensions");
  if (auto status = add_address(context, plan, operands[map], ptx::Space::kGeneric); !status)
    return status.error();
  if (form.op != TensorOp::kPrefetch) {
    if (auto status = add_address(context, plan, operands[load ? 0 : 1], ptx::Space::kShared); !status)
      return status.error();
  }
  std::size_t next = 2;
  if (load) {
    if (auto status = add_address(context, plan, operands[next++], ptx::Space::kShared); !status)
      return status.error();
  }
  form.coordinates = static_cast<std::uint8_t>(plan.operands.size());
  for (const ptx::Operand& coordinate : operands[map].elements) {
    if (auto status = add_value(context, plan, coordinate, 32); !status) return status.error();
  }
  if (inst.multicast) {
    if (operands.size() <= next) return context.refuse("needs the mask of blocks");
    form.mask = static_cast<std::uint8_t>(plan.operands.size());
    if (auto status = add_value(context, plan, operands[next], 16); !status) return status.error();
  }
  plan.memory = tensor_copy;
  plan.aux[0] = form.pack();
  plan.aux[1] = 0;
  return plan;
}

// tensormap.cp_fenceproxy and tensormap.replace change maps on the device.
Result<Plan> plan_tensor_map(const PlanContext& context) {
  return context.refuse("the virtual node does not change tensor maps on the device");
}

}  // namespace echolo::vgpu
