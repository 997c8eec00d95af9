// The video instructions (PTX ISA 9.7.18): what run_video finds in Inst::aux.
#pragma once

#include <cstdint>

#include "ptx/types.hpp"

namespace echolo::vgpu::alu {

enum class VideoOp : std::uint8_t { kAdd, kSub, kAbsDiff, kMin, kMax, kAverage, kShl, kShr, kMad, kSet };

struct VideoCode {
  VideoOp op{};
  ptx::Compare compare{};
  std::uint8_t lanes = 1;  // 1, 2 or 4
  bool d_signed = false, a_signed = false, b_signed = false;
  bool saturate = false;
  bool clamp = false;       // shifts: by at most 32; else modulo 32
  std::uint8_t second = 0;  // 0 none, 1 add, 2 min, 3 max
  bool merge = false;       // of one lane: the parts of C that D's selector leaves
  std::uint8_t shift = 0;   // vmad
  bool plus_one = false, negate_product = false, negate_c = false;
  // Of one lane: kWhole, a byte 0 .. 3 or a half 4, 5. Of several: which element each lane takes, counted
  // through A and then B.
  static constexpr std::uint8_t kWhole = 15;
  std::uint8_t a[4] = {kWhole, kWhole, kWhole, kWhole}, b[4] = {kWhole, kWhole, kWhole, kWhole};
  std::uint8_t d = kWhole;  // of one lane as a and b; of several, which lanes are written

  void pack(std::uint64_t* aux) const;
  static VideoCode unpack(const std::uint64_t* aux);
};

}  // namespace echolo::vgpu::alu
