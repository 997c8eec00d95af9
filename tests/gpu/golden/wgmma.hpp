// Golden vectors of wgmma: a warpgroup multiplies matrices that lie in shared memory as a descriptor says.
// The kernels are PTX of their own; the test runs the very text that ran on the GPU.
#pragma once

#include <string>
#include <vector>

#include "golden.hpp"

namespace golden {

inline constexpr std::size_t kSharedBytes = 32768;

// How one operand lies: the descriptor's fields in bytes, and its swizzle mode (0 none, 1 128 B, 2 64 B, 3 32
// B).
struct Layout {
  unsigned start, leading, stride, swizzle;
  std::uint64_t bits() const {
    return (start >> 4U) | std::uint64_t{leading >> 4U} << 16U | std::uint64_t{stride >> 4U} << 32U |
           std::uint64_t{swizzle} << 62U;
  }
};

struct Wgmma {
  std::string shape_and_types;  // "m64n64k16.f32.bf16.bf16"
  std::string tail;             // what follows scale-d, with its comma
  int results;                  // registers of D
  bool a_in_registers;
  bool add;  // scale-d
  Layout a, b;
  Kind kind;  // of the elements
};

inline std::vector<Wgmma> wgmma_cases() {
  std::vector<Wgmma> all;
  constexpr unsigned kB = 16384;
  // Along K: no swizzle, then rows of 32, 64 and 128 bytes.
  const Layout a_k[] = {{0, 128, 256, 0}, {64, 0, 256, 3}, {32, 0, 512, 2}, {96, 0, 1024, 1}};
  const Layout b_k[] = {{kB, 1024, 128, 0}, {kB, 0, 256, 3}, {kB + 32, 0, 512, 2}, {kB + 64, 0, 1024, 1}};
  for (int i = 0; i < 4; ++i)
    all.push_back({"m64n64k16.f32.bf16.bf16", ", 1, 1, 0, 0", 32, false, true, a_k[i], b_k[i], Kind::kBf16});
  // Along M and N.
  const Layout a_m[] = {{0, 128, 256, 0}, {0, 2048, 256, 3}, {0, 4096, 512, 2}, {0, 0, 1024, 1}};
  const Layout b_n[] = {{kB, 2048, 128, 0}, {kB, 1024, 512, 3}, {kB, 1024, 4096, 2}, {kB, 2048, 4096, 1}};
  for (int i = 0; i < 4; ++i)
    all.push_back({"m64n128k16.f32.f16.f16", ", 1, -1, 1, 1", 64, false, true, a_m[i], b_n[i], Kind::kF16});
  all.push_back({"m64n8k16.f32.bf16.bf16", ", -1, 1, 1, 0", 4, false, false, a_m[3], b_k[1], Kind::kBf16});
  all.push_back({"m64n24k16.f16.f16.f16", ", 1, 1, 0, 1", 6, false, true, a_k[3], b_n[0], Kind::kF16});
  all.push_back({"m64n16k16.f16.f16.f16", ", 1, 1, 1", 4, true, true, a_k[0], b_n[1], Kind::kF16});
  all.push_back({"m64n256k16.f32.bf16.bf16", ", 1, 1, 0", 128, true, true, a_k[0], b_k[2], Kind::kBf16});
  all.push_back({"m64n32k8.f32.tf32.tf32", ", 1, 1", 16, false, true, a_k[3], b_k[3], Kind::kTf32});
  all.push_back({"m64n32k8.f32.tf32.tf32", ", 1, 1", 16, true, true, a_k[0], b_k[1], Kind::kTf32});
  for (const char* types : {"e4m3.e4m3", "e4m3.e5m2", "e5m2.e4m3", "e5m2.e5m2"}) {
    all.push_back(
        {std::string("m64n32k32.f32.") + types, ", 1, 1", 16, false, true, a_k[3], b_k[3], Kind::kE4m3});
    all.push_back(
        {std::string("m64n32k32.f32.") + types, ", 1, 1", 16, true, false, a_k[3], b_k[0], Kind::kE4m3});
    all.push_back(
        {std::string("m64n16k32.f16.") + types, ", 1, 1", 4, false, true, a_k[2], b_k[2], Kind::kE4m3});
  }
  for (const char* types : {"s8.s8", "s8.u8", "u8.s8", "u8.u8"}) {
    all.push_back({std::string("m64n32k32.s32.") + types, "", 16, false, true, a_k[3], b_k[3], Kind::kBits});
    all.push_back({std::string("m64n32k32.s32.") + types + ".satfinite", "", 16, true, true, a_k[3], b_k[1],
                   Kind::kBits});
  }
  all.push_back({"m64n16k256.s32.b1.b1.and.popc", "", 8, false, true, a_k[1], b_k[0], Kind::kBits});
  return all;
}

inline std::string wgmma_name(const Wgmma& c, std::size_t index) {
  return "wgmma." + c.shape_and_types + " " + std::to_string(index);
}

// Shared memory, then the registers of D (each for 128 threads), then four of A.
inline std::vector<unsigned char> wgmma_input(const Wgmma& c, std::size_t index) {
  Random random{0x5eed + index};
  const bool half = contains(c.shape_and_types, ".f16.f16.f16") || contains(c.shape_and_types, "k32.f16");
  const bool integer = c.kind == Kind::kBits;
  const auto word = [&](Kind kind, std::size_t at) {
    std::uint32_t bits = 0;
    if (kind == Kind::kBits) return static_cast<std::uint32_t>(random.next());
    const unsigned width = kind == Kind::kE4m3 ? 8 : (kind == Kind::kF16 || kind == Kind::kBf16 ? 16 : 32);
    for (unsigned shift = 0; shift < 32; shift += width) {
      const std::uint64_t choice = random.next(), value = random.next();
      const int regime = at / 1024 % 2 == 0 ? 3 : 2;
      bits |= static_cast<std::uint32_t>(make_float(kind, choice, value, regime)) << shift;
    }
    return bits;
  };
  const std::size_t n_words = kSharedBytes / 4 + static_cast<std::size_t>(c.results + 4) * 128;
  const std::size_t d_begin = kSharedBytes / 4, d_end = d_begin + static_cast<std::size_t>(c.results) * 128;
  std::vector<unsigned char> bytes(n_words * 4);
  for (std::size_t i = 0; i < n_words; ++i) {
    const bool in_d = i >= d_begin && i < d_end;
    const std::uint32_t value =
        in_d ? word(integer ? Kind::kBits : (half ? Kind::kF16 : Kind::kF32), i) : word(c.kind, i);
    std::memcpy(bytes.data() + 4 * i, &value, 4);
  }
  return bytes;
}

inline std::string wgmma_entry(const Wgmma& c, std::size_t index) {
  const auto registers = [](const char* name, int n) {
    std::string text = "{";
    for (int i = 0; i < n; ++i) text += (i == 0 ? "" : ", ") + std::string(name) + std::to_string(i);
    return text + "}";
  };
  const auto at = [](std::size_t word) { return "[%at+" + std::to_string(4 * word) + "]"; };
  std::string text =
      ".visible .entry w" + std::to_string(index) +
      "(.param .u64 in, .param .u64 out)\n{\n.shared .align 1024 .b8 sm[" + std::to_string(kSharedBytes) +
      "];\n.reg .pred %p<2>;\n.reg .b32 %d<128>, %a<4>, %v<4>, %thread, %s, %base;\n"
      ".reg .b64 %at, %to, %x, %desc_a, %desc_b, %wide;\n"
      "ld.param.u64 %at, [in];\nld.param.u64 %to, [out];\nmov.u32 %thread, %tid.x;\nmov.u32 %base, sm;\n"
      "mul.wide.u32 %x, %thread, 16;\nadd.u64 %at, %at, %x;\nshl.b32 %s, %thread, 4;\nadd.u32 %s, %s, "
      "%base;\n";
  for (std::size_t i = 0; i < kSharedBytes; i += 2048) {
    text += "ld.global.v4.b32 {%v0, %v1, %v2, %v3}, " + at(i / 4) + ";\nst.shared.v4.b32 [%s+" +
            std::to_string(i) + "], {%v0, %v1, %v2, %v3};\n";
  }
  text +=
      "fence.proxy.async;\nbar.sync 0;\nld.param.u64 %at, [in];\nmul.wide.u32 %x, %thread, 4;\nadd.u64 %at, "
      "%at, %x;\n"
      "add.u64 %to, %to, %x;\n";
  for (int i = 0; i < c.results; ++i)
    text += "ld.global.b32 %d" + std::to_string(i) + ", " +
            at(kSharedBytes / 4 + static_cast<std::size_t>(i) * 128) + ";\n";
  for (int i = 0; i < 4; ++i)
    text += "ld.global.b32 %a" + std::to_string(i) + ", " +
            at(kSharedBytes / 4 + static_cast<std::size_t>(c.results + i) * 128) + ";\n";
  text += "shr.u32 %base, %base, 4;\ncvt.u64.u32 %wide, %base;\nadd.u64 %desc_a, %wide, " +
          std::to_string(c.a.bits()) + "U;\nadd.u64 %desc_b, %wide, " + std::to_string(c.b.bits()) +
          "U;\nsetp." + (c.add ? "eq" : "ne") +
          ".u32 %p0, %thread, %thread;\nwgmma.fence.sync.aligned;\nwgmma.mma_async.sync.aligned." +
          c.shape_and_types + " " + registers("%d", c.results) + ", " +
          (c.a_in_registers ? registers("%a", 4) : "%desc_a") + ", %desc_b, %p0" + c.tail +
          ";\nwgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
  for (int i = 0; i < c.results; ++i)
    text += "st.global.b32 [%to+" + std::to_string(i * 512) + "], %d" + std::to_string(i) + ";\n";
  return text + "ret;\n}\n";
}

inline std::string wgmma_module(const std::vector<Wgmma>& cases) {
  std::string text = ".version 9.2\n.target sm_90a\n.address_size 64\n";
  for (std::size_t i = 0; i < cases.size(); ++i) text += wgmma_entry(cases[i], i);
  return text;
}

}  // namespace golden
