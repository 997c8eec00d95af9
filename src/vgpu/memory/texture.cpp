// tex with unfiltered reads of linear memory (PTX ISA, "Texture Instructions"). The nearest texel is read, as
// cudaFilterModePoint says; sampling is refused when the object is made.
#include "vgpu/memory/texture.hpp"

#include <algorithm>
#include <cmath>

#include "vgpu/memory/async_operands.hpp"
#include "vgpu/memory/half.hpp"
#include "vgpu/memory/texture_object.hpp"

namespace echolo::vgpu {

namespace {

// aux[0]: coordinates | 16: they are f32 | 32: the result is f32.
constexpr std::uint64_t kFloatCoordinates = 16, kFloatResult = 32;

// The texel's number along one axis, or -1 where a border lies there.
std::int64_t texel_index(double coordinate, std::uint32_t size, TextureAddressing mode) {
  if (!(std::abs(coordinate) < 1e15)) return mode == TextureAddressing::kClamp ? 0 : -1;
  auto index = static_cast<std::int64_t>(std::floor(coordinate));
  const auto n = std::int64_t{size};
  if (index >= 0 && index < n) return index;
  switch (mode) {
    case TextureAddressing::kClamp:
      return std::clamp<std::int64_t>(index, 0, n - 1);
    case TextureAddressing::kBorder:
      return -1;
    case TextureAddressing::kWrap:
      return ((index % n) + n) % n;
    case TextureAddressing::kMirror:
      index = ((index % (2 * n)) + 2 * n) % (2 * n);
      return index < n ? index : 2 * n - 1 - index;
  }
  return -1;
}

// One channel as the 32 bits that the instruction returns.
std::uint32_t channel(const TextureObject& texture, const std::uint8_t* from, unsigned bits, bool as_float) {
  std::uint32_t raw = 0;
  std::memcpy(&raw, from, bits / 8U);
  if (texture.format == TexelFormat::kFloat)
    return bits == 16 ? std::bit_cast<std::uint32_t>(f16_to_float(static_cast<std::uint16_t>(raw))) : raw;
  const bool is_signed = texture.format == TexelFormat::kSigned;
  const auto value = static_cast<std::int32_t>(raw << (32U - bits)) >> (32U - bits);
  if (!texture.normalized_read || !as_float) return is_signed ? static_cast<std::uint32_t>(value) : raw;
  const double most = is_signed ? std::ldexp(1.0, static_cast<int>(bits) - 1) - 1
                                : std::ldexp(1.0, static_cast<int>(bits)) - 1;
  const double ratio = is_signed ? std::max(value / most, -1.0) : raw / most;
  return std::bit_cast<std::uint32_t>(static_cast<float>(ratio));
}

// Operands: four destinations, texture (2), coordinates.
MemOutcome fetch(Warp& warp, const Inst& inst, std::uint32_t mask) {
  const std::size_t n = inst.aux[0] & 3U;
  const bool floats = (inst.aux[0] & kFloatCoordinates) != 0;
  Memory& memory = *warp.block->grid->memory;
  for (std::uint32_t lanes = mask; lanes != 0; lanes &= lanes - 1) {
    const int lane = std::countr_zero(lanes);
    Memory::Accessor who;
    who.warp = &warp;
    who.inst = &inst;
    who.lane = lane;
    who.pe = warp.block->grid->pe;
    who.what = "a texture fetch";
    who.agent = memory.order().thread(warp, lane);
    TextureObject texture;
    if (!memory.read(lane_address_at(warp, inst, 4, lane), &texture, sizeof texture, who))
      return MemOutcome::kFault;
    if (!texture.valid() || (texture.shape == TextureShape::kLinear) != (n == 1)) {
      return async_fault(warp, inst, lane, FindingKind::kDeviceTrap,
                         "a texture fetch is given no texture object of its shape", "",
                         "pass the object that cudaCreateTextureObject made, and fetch with its dimensions");
    }
    std::int64_t at[2] = {0, 0};
    for (std::size_t d = 0; d < n; ++d) {
      const std::uint32_t bits = warp.lanes.read<std::uint32_t>(inst.operands[6 + d])[lane];
      double coordinate = floats ? std::bit_cast<float>(bits) : static_cast<std::int32_t>(bits);
      const std::uint32_t size = d == 0 ? texture.width : texture.height;
      if (floats && texture.normalized_coordinates) coordinate *= size;
      // Linear memory has no addressing mode: outside is zero.
      at[d] = texel_index(
          coordinate, size,
          texture.shape == TextureShape::kLinear ? TextureAddressing::kBorder : texture.addressing[d]);
    }
    std::uint8_t texel[16] = {};
    if (at[0] >= 0 && at[1] >= 0) {
      const std::uint32_t bytes = texture.texel_bytes();
      const std::uint64_t address = texture.address + static_cast<std::uint64_t>(at[1]) * texture.pitch +
                                    static_cast<std::uint64_t>(at[0]) * bytes;
      who.check_written = true;
      if (!memory.read(address, texel, bytes, who)) return MemOutcome::kFault;
    }
    unsigned offset = 0;
    for (std::size_t c = 0; c < 4; ++c) {
      const unsigned bits = texture.bits[c];
      warp.lanes.write<std::uint32_t>(inst.operands[c])[lane] =
          bits == 0 ? 0 : channel(texture, texel + offset, bits, (inst.aux[0] & kFloatResult) != 0);
      offset += bits / 8U;
    }
  }
  return MemOutcome::kDone;
}

}  // namespace

Result<Plan> plan_texture(const PlanContext& context) {
  const ptx::Instruction& inst = context.inst;
  const auto& operands = inst.operands;
  const bool one = context.has("1d"), two = context.has("2d");
  if (inst.op != ptx::Opcode::kTex || one == two || context.has("level") || context.has("grad") ||
      operands.size() != 2 || operands[1].reg < 0 || operands[0].kind != ptx::OperandKind::kVector ||
      operands[0].elements.size() != 4 || operands[1].elements.empty()) {
    return context.refuse(
        "the virtual node executes unfiltered fetches from texture objects of one and two dimensions only");
  }
  Plan plan;
  plan.kind = InstKind::kMemory;
  plan.memory = fetch;
  for (const ptx::Operand& element : operands[0].elements) {
    auto planned = context.value(element, 32, true);
    if (!planned) return planned.error();
    if (planned->width != 32) return context.refuse("needs registers of 32 bits");
    plan.operands.push_back(*planned);
  }
  if (auto status = add_address(context, plan, operands[1], ptx::Space::kGlobal); !status)
    return status.error();
  const std::size_t n = one ? 1 : 2;
  if (operands[1].elements.size() < n) return context.refuse("needs a coordinate for each dimension");
  for (std::size_t i = 0; i < n; ++i) {
    if (auto status = add_value(context, plan, operands[1].elements[i], 32); !status) return status.error();
  }
  plan.aux[0] = n | (inst.type2 == ptx::Type::kF32 ? kFloatCoordinates : 0) |
                (inst.type == ptx::Type::kF32 ? kFloatResult : 0);
  plan.aux[1] = 0;
  return plan;
}

}  // namespace echolo::vgpu
