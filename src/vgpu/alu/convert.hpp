// cvt (PTX ISA 9.7.9.21): what its functions find in Inst::aux[0].
#pragma once

#include <cstdint>

#include "ptx/types.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu::alu {

struct ConvertCode {
  ptx::Type to{}, from{};
  ptx::Rounding rounding{};
  bool ftz = false, sat = false, relu = false;
  bool finite = false;                      // .satfinite, which `sat` is not set for
  std::uint8_t to_bits = 0, from_bits = 0;  // of the registers

  static ConvertCode unpack(std::uint64_t code) {
    ConvertCode c;
    c.to = static_cast<ptx::Type>(code & 0xffU);
    c.from = static_cast<ptx::Type>((code >> 8U) & 0xffU);
    c.rounding = static_cast<ptx::Rounding>((code >> 16U) & 0xffU);
    c.ftz = ((code >> 24U) & 1U) != 0;
    c.sat = ((code >> 25U) & 1U) != 0;
    c.relu = ((code >> 26U) & 1U) != 0;
    c.finite = ((code >> 27U) & 1U) != 0;
    c.to_bits = static_cast<std::uint8_t>(code >> 32U);
    c.from_bits = static_cast<std::uint8_t>(code >> 40U);
    return c;
  }
};

// Any conversion, one lane after the other: for the forms that have no loop of their own.
void run_convert_any(const Lanes& lanes, const Inst& inst, std::uint32_t mask);
// Those with two narrow floats in the destination (d, a, b or d, packed a).
void run_convert_packed(const Lanes& lanes, const Inst& inst, std::uint32_t mask);

// cvt.pack: d, a, b and maybe c. aux[0]: see plan_pack.
void run_pack(const Lanes& lanes, const Inst& inst, std::uint32_t mask);

// Whether the two above can do it.
bool can_convert_any(const ConvertCode& code);
bool can_convert_packed(const ConvertCode& code, std::size_t n_sources);

}  // namespace echolo::vgpu::alu
