// Where the registers and the local memory of a function lie.
#include <algorithm>
#include <array>

#include "ptx/liveness.hpp"
#include "vgpu/core/decode_function.hpp"

namespace echolo::vgpu {
namespace {

std::uint32_t align_up(std::uint32_t value, std::uint32_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

struct UseRange {
  std::int32_t first = -1, last = -1;
  void see(std::int32_t at) {
    if (first < 0) first = at;
    last = at;
  }
};

void collect_uses(const ptx::Operand& operand, std::int32_t at, std::map<std::int32_t, UseRange>& uses) {
  if (operand.variable >= 0) uses[operand.variable].see(at);
  for (const ptx::Operand& element : operand.elements) collect_uses(element, at, uses);
}

// Variables of .param space that carry the arguments of a call live from the first store to the last load
// around the call; those of different calls share their bytes.
struct Placed {
  UseRange range;
  std::uint32_t begin = 0, end = 0;
};

}  // namespace

std::vector<ParamPiece> lay_out_parameters(const std::vector<ptx::Variable>& parameters, std::uint32_t& at) {
  std::vector<ParamPiece> pieces;
  for (const ptx::Variable& parameter : parameters) {
    const auto natural = static_cast<std::uint32_t>(std::max(1, ptx::bytes_of(parameter.type)));
    at = align_up(at, std::max({1U, parameter.align, std::min(natural, 16U)}));
    pieces.push_back({0, at, static_cast<std::uint32_t>(parameter.size)});
    at += static_cast<std::uint32_t>(parameter.size);
  }
  return pieces;
}

Status lay_out_frame(KernelImage& image) {
  const ptx::Module& module = *image.module;
  const ptx::Function& function = *image.function;
  const auto n_module = static_cast<std::int32_t>(module.variables.size());
  const auto n_parameters = static_cast<std::int32_t>(function.parameters.size());
  const auto n_results = static_cast<std::int32_t>(function.results.size());
  std::uint32_t at = 0;
  if (function.is_entry) {
    const std::vector<ParamPiece> pieces = lay_out_parameters(function.parameters, image.param_bytes);
    for (const ParamPiece& piece : pieces) {
      image.param_offsets.push_back(piece.callee_at);
      image.param_sizes.push_back(piece.bytes);
    }
  } else {
    for (const auto* list : {&function.parameters, &function.results}) {
      for (const ptx::Variable& variable : *list) {
        if (variable.space != ptx::Space::kParam) {
          return error_at_position(module, function.position,
                                   "function '" + function.name +
                                       "' passes parameters in registers (.reg), which is not executed");
        }
      }
    }
    image.results = lay_out_parameters(function.results, at);
    image.parameters = lay_out_parameters(function.parameters, at);
    for (std::int32_t i = 0; i < n_parameters; ++i) {
      image.local_offsets[n_module + i] = image.parameters[static_cast<std::size_t>(i)].callee_at;
    }
    for (std::int32_t i = 0; i < n_results; ++i) {
      image.local_offsets[n_module + n_parameters + i] = image.results[static_cast<std::size_t>(i)].callee_at;
    }
  }
  std::map<std::int32_t, UseRange> uses;
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction& instruction = function.body[i];
    const auto index = static_cast<std::int32_t>(i);
    for (const auto* list : {&instruction.operands, &instruction.call_results, &instruction.call_arguments}) {
      for (const ptx::Operand& operand : *list) collect_uses(operand, index, uses);
    }
  }
  const std::int32_t first_own = n_module + n_parameters + n_results;
  for (std::size_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable& variable = function.variables[i];
    if (variable.space != ptx::Space::kLocal) continue;
    image.has_local_variables = true;
    at = align_up(at, std::max(variable.align, 1U));
    image.local_offsets[first_own + static_cast<std::int32_t>(i)] = at;
    at += static_cast<std::uint32_t>(variable.size);
  }
  at = align_up(at, 16);
  std::vector<Placed> placed;
  std::uint32_t end = at;
  for (std::size_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable& variable = function.variables[i];
    const std::int32_t index = first_own + static_cast<std::int32_t>(i);
    if (variable.space != ptx::Space::kParam || !uses.contains(index)) continue;
    const UseRange range = uses[index];
    const auto natural = static_cast<std::uint32_t>(std::max(1, ptx::bytes_of(variable.type)));
    const std::uint32_t alignment = std::max({1U, variable.align, std::min(natural, 16U)});
    const auto size = static_cast<std::uint32_t>(variable.size);
    std::uint32_t begin = align_up(at, alignment);
    for (bool moved = true; moved;) {
      moved = false;
      for (const Placed& other : placed) {
        const bool together = other.range.first <= range.last && range.first <= other.range.last;
        if (!together || other.end <= begin || begin + size <= other.begin) continue;
        begin = align_up(other.end, alignment);
        moved = true;
      }
    }
    placed.push_back({range, begin, begin + size});
    image.local_offsets[index] = begin;
    end = std::max(end, begin + size);
  }
  image.local_bytes = align_up(end, 16);
  return {};
}

void assign_registers(KernelImage& image) {
  const ptx::Function& function = *image.function;
  constexpr std::array<unsigned, ptx::kSlotClasses> kWidths = {1, 16, 32, 64, 128};
  const ptx::Liveness liveness = ptx::compute_liveness(function);
  const ptx::SlotAssignment assignment = ptx::assign_slots(function, liveness);
  std::array<std::uint32_t, ptx::kSlotClasses> begin{};
  std::uint32_t at = kScratchBytes;
  for (std::size_t c = 0; c < kWidths.size(); ++c) {
    KernelImage::Region region;
    begin[c] = region.begin = at;
    region.lane_bytes = kWidths[c] == 1 ? 0 : kWidths[c] / 8;
    at += lanes_bytes(kWidths[c]) * assignment.n_slots_by_class[c];
    region.end = at;
    if (region.end > region.begin) image.regions.push_back(region);
    at = align_up(at, 64);
  }
  image.register_bytes = at;
  // 32-bit registers that the busiest instruction needs at once, from the ends of live ranges.
  std::vector<std::int64_t> steps(function.body.size() + 2, 0);
  for (std::size_t i = 0; i < function.registers.size(); ++i) {
    const auto c = static_cast<std::size_t>(ptx::slot_class(function.registers[i].type));
    image.register_bits.push_back(static_cast<std::uint8_t>(kWidths[c]));
    const std::uint32_t slot = assignment.slot_of_register[i];
    image.register_slots.push_back(
        Slot{slot == ptx::kNoSlot ? 0 : begin[c] + slot * lanes_bytes(kWidths[c])});
    const ptx::Liveness::Interval& range = liveness.intervals[i];
    if (range.empty() || kWidths[c] == 1) continue;
    const auto words = static_cast<std::int64_t>(std::max(1U, kWidths[c] / 32));
    steps[static_cast<std::size_t>(range.first)] += words;
    steps[static_cast<std::size_t>(range.last) + 1] -= words;
  }
  std::int64_t live = 0;
  std::int64_t most = 0;
  for (const std::int64_t step : steps) most = std::max(most, live += step);
  image.live_registers = static_cast<std::uint32_t>(most);
}

}  // namespace echolo::vgpu
