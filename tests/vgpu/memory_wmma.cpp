// wmma.load, wmma.mma and wmma.store together against sums worked out in whole numbers: every shape and type,
// rows and columns, with strides wider than the matrices. wmma.mma alone is among the golden vectors.
#include <gtest/gtest.h>

#include <bit>

#include "core_harness.hpp"
#include "ptx_forms.hpp"

namespace echolo::vgpu {
namespace {

struct Type {
  const char* name;
  std::size_t bytes;
};

std::uint64_t encode(const Type& type, int value) {
  const std::string name = type.name;
  if (name == "f64") return std::bit_cast<std::uint64_t>(static_cast<double>(value));
  if (name == "s32" || name == "s8" || name == "u8") return static_cast<std::uint32_t>(value);
  const auto single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (name == "bf16") return single >> 16U;
  if (name != "f16") return single;
  if (value == 0) return 0;
  const int size = std::bit_width(static_cast<unsigned>(std::abs(value))) - 1;
  const auto fraction = static_cast<unsigned>(std::abs(value)) << (10 - size) & 0x3ffU;
  return (value < 0 ? 0x8000U : 0U) | static_cast<unsigned>(size + 15) << 10U | fraction;
}

struct Matrix {
  int rows, columns;
  bool by_column;
  Type type;
  int stride() const { return (by_column ? rows : columns) + 16; }
  std::size_t at(int row, int column) const {
    return static_cast<std::size_t>(by_column ? column * stride() + row : row * stride() + column);
  }
  std::size_t size() const { return static_cast<std::size_t>((by_column ? columns : rows) * stride()); }
};

struct Case {
  int m, n, k;
  Type input, result;
  int a, b, d;  // registers
  bool wide;    // of 64 bits
};

std::string registers(const char* name, int n) {
  std::string text = "{";
  for (int i = 0; i < n; ++i) text += (i == 0 ? "" : ", ") + std::string(name) + std::to_string(i);
  return text + "}";
}

void check(const Case& c, bool a_by_column, bool b_by_column, bool d_by_column) {
  const Matrix a{c.m, c.k, a_by_column, c.input}, b{c.k, c.n, b_by_column, c.input},
      d{c.m, c.n, d_by_column, c.result};
  const auto layout = [](const Matrix& m) { return std::string(m.by_column ? ".col" : ".row"); };
  const std::string shape =
      ".m" + std::to_string(c.m) + "n" + std::to_string(c.n) + "k" + std::to_string(c.k);
  const std::string in = std::string(".") + c.input.name, out = std::string(".") + c.result.name;
  const std::string types = in == ".f16" ? out + out : out + in + in + out;
  const std::string bits = c.wide ? ".b64" : ".b32";
  const auto fragment = [&](const char* what, const Matrix& m, const std::string& type) {
    return std::string("wmma.load.") + what + ".sync.aligned" + layout(m) + shape + ".global" + type + " ";
  };
  const std::string text =
      ".version 9.2\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 pa, .param .u64 pb, "
      ".param .u64 "
      "pc, .param .u64 pd)\n{\n.reg .b64 %rd<4>;\n.reg .b32 %r<4>;\n.reg " +
      bits +
      " %a<8>, %b<8>, %c<8>, %d<8>;\n"
      "ld.param.u64 %rd0, [pa];\nld.param.u64 %rd1, [pb];\nld.param.u64 %rd2, [pc];\nld.param.u64 %rd3, "
      "[pd];\n"
      "mov.u32 %r1, " +
      std::to_string(b.stride()) + ";\n" + fragment("a", a, in) + registers("%a", c.a) + ", [%rd0], " +
      std::to_string(a.stride()) + ";\n" + fragment("b", b, in) + registers("%b", c.b) + ", [%rd1], %r1;\n" +
      fragment("c", d, out) + registers("%c", c.d) + ", [%rd2], " + std::to_string(d.stride()) + ";\n" +
      "wmma.mma.sync.aligned" + layout(a) + layout(b) + shape + types + " " + registers("%d", c.d) + ", " +
      registers("%a", c.a) + ", " + registers("%b", c.b) + ", " + registers("%c", c.d) + ";\n" +
      "wmma.store.d.sync.aligned" + layout(d) + shape + ".global" + out + " [%rd3], " + registers("%d", c.d) +
      ", " + std::to_string(d.stride()) + ";\nret;\n}\n";
  Node node(text);
  const bool is_unsigned = std::string(c.input.name) == "u8";
  const auto value_a = [&](int i, int j) { return (i * 5 + j * 3) % 7 - (is_unsigned ? 0 : 3); };
  const auto value_b = [&](int i, int j) { return (i * 2 + j * 5) % 5 - (is_unsigned ? 0 : 2); };
  const auto value_c = [](int i, int j) { return i - 2 * j; };
  const auto upload = [&](const Matrix& m, const auto& value_of) {
    std::vector<std::uint8_t> bytes(m.size() * m.type.bytes);
    for (int i = 0; i < m.rows; ++i) {
      for (int j = 0; j < m.columns; ++j) {
        const std::uint64_t word = encode(m.type, value_of(i, j));
        std::memcpy(&bytes[m.at(i, j) * m.type.bytes], &word, m.type.bytes);
      }
    }
    return node.upload(bytes);
  };
  const std::uint64_t pd = node.upload(std::vector<std::uint8_t>(d.size() * d.type.bytes, 0xee));
  node.launch("k", {1, 1, 1}, {32, 1, 1},
              Params().add(upload(a, value_a)).add(upload(b, value_b)).add(upload(d, value_c)).add(pd));
  const Machine::Progress end = node.finish();
  ASSERT_EQ(end, Machine::Progress::kIdle) << node.explain(end);
  const std::vector<std::uint8_t> got = node.download<std::uint8_t>(pd, d.size() * d.type.bytes);
  std::vector<std::uint8_t> want(got.size(), 0xee);
  for (int i = 0; i < c.m; ++i) {
    for (int j = 0; j < c.n; ++j) {
      int sum = value_c(i, j);
      for (int k = 0; k < c.k; ++k) sum += value_a(i, k) * value_b(k, j);
      const std::uint64_t word = encode(d.type, sum);
      std::memcpy(&want[d.at(i, j) * d.type.bytes], &word, d.type.bytes);
    }
  }
  EXPECT_EQ(got, want) << text;
}

constexpr Type kF16{"f16", 2}, kBf16{"bf16", 2}, kTf32{"tf32", 4}, kF32{"f32", 4}, kF64{"f64", 8},
    kS8{"s8", 1}, kU8{"u8", 1}, kS32{"s32", 4};

TEST(MemoryWmma, EveryShapeTypeAndLayout) {
  const Case cases[] = {{16, 16, 16, kF16, kF32, 8, 8, 8, false},  {8, 32, 16, kF16, kF32, 8, 8, 8, false},
                        {32, 8, 16, kF16, kF32, 8, 8, 8, false},   {16, 16, 16, kF16, kF16, 8, 8, 4, false},
                        {8, 32, 16, kF16, kF16, 8, 8, 4, false},   {32, 8, 16, kF16, kF16, 8, 8, 4, false},
                        {16, 16, 16, kBf16, kF32, 4, 4, 8, false}, {8, 32, 16, kBf16, kF32, 2, 8, 8, false},
                        {32, 8, 16, kBf16, kF32, 8, 2, 8, false},  {16, 16, 8, kTf32, kF32, 4, 4, 8, false},
                        {16, 16, 16, kS8, kS32, 2, 2, 8, false},   {8, 32, 16, kS8, kS32, 1, 4, 8, false},
                        {32, 8, 16, kU8, kS32, 4, 1, 8, false},    {8, 8, 4, kF64, kF64, 1, 1, 2, true}};
  for (const Case& c : cases) {
    for (int layouts = 0; layouts < 8; ++layouts)
      check(c, (layouts & 1) != 0, (layouts & 2) != 0, (layouts & 4) != 0);
  }
}

TEST(MemoryWmma, WrongFormsAreRefused) {
  for (const char* form : {"wmma.load.a.sync.aligned.row.m16n16k8.f16 {%r0, %r1, %r2, %r3}, [%rd0], %r8",
                           "wmma.load.a.sync.aligned.row.m16n16k16.f16 {%r0, %r1, %r2, %r3}, [%rd0], %r8",
                           "wmma.load.a.sync.aligned.col.m8n8k32.s4 {%r0}, [%rd0], %r8"})
    EXPECT_NE(ptx_forms::refusal(form), "") << form;
}

}  // namespace
}  // namespace echolo::vgpu
