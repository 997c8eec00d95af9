// Compares an instruction with a reference written on single values, on every SIMD target of this machine,
// over edge values and random ones, with all lanes and with some; inactive lanes must keep what they held.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "alu_harness.hpp"

namespace echolo::vgpu::alu_test {

// From the sources' bits to the destination's; nothing where any result will do.
using Reference = std::function<std::optional<std::uint64_t>(const std::uint64_t* sources)>;

// `text` has one register as destination, then registers as sources; their names tell what values they get.
// 16-bit registers (and both halves of 32-bit ones, where the type ends in x2) hold halves if the text names
// f16 or bf16.
void check(const std::string& text, const Reference& reference, int rounds = 48);
// The same, with a judge of (sources, result) in place of a reference; results must agree between targets.
void check_by(const std::string& text,
              const std::function<bool(const std::uint64_t* sources, std::uint64_t result)>& judge,
              int rounds = 48);

__extension__ using Quad = __float128;

// Rounds to nearest even in a format of so many exponent and fraction bits; overflow is infinity, NaN all
// ones below the sign.
std::uint64_t round_to_format(Quad value, int exponent_bits, int fraction_bits);
Quad from_format(std::uint64_t bits, int exponent_bits, int fraction_bits);
bool is_nan_f32(std::uint64_t bits);

}  // namespace echolo::vgpu::alu_test
