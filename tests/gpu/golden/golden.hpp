// What the recorder on a GPU and the test on the virtual node share: the operands of a form, made from its
// text alone, and how a form is run (which registers go in and come out, what stands around it). Standard
// library only, so that the recorder builds by itself.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace golden {

inline constexpr int kThreads = 1024;  // operands of a form; a warp takes 32 that follow each other

// What a source register holds; the elements of packed ones are made one by one.
enum class Kind : std::uint8_t {
  kPredicate,
  kInteger,
  kF16,
  kBf16,
  kTf32,
  kF32,
  kF64,
  kE4m3,
  kE5m2,
  kBits,          // any bits
  kPairMetadata,  // mma.sp: which two of four
  kOneOfTwo,      // mma.sp with tf32: which one of two
};

struct Source {
  std::string name;  // "%r4"
  Kind kind = Kind::kInteger;
  int element_bits = 32;
  bool matrix = false;  // an element of a matrix: of moderate size more often
};

struct Case {
  std::string before, form, after;  // instructions; `before` and `after` may be empty
  std::vector<Source> sources;
  std::vector<std::string> destinations;
};

inline int register_bits(const std::string& name) {
  if (name.starts_with("%p")) return 1;
  if (name.starts_with("%rs")) return 16;
  if (name.starts_with("%rd") || name.starts_with("%fd")) return 64;
  if (name.starts_with("%q")) return 128;
  return 32;
}

inline bool contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

inline std::vector<std::string> registers_of(const std::string& text) {
  std::vector<std::string> names;
  for (std::size_t at = text.find('%'); at != std::string::npos; at = text.find('%', at + 1)) {
    std::size_t end = at + 1;
    while (end < text.size() && std::isalnum(static_cast<unsigned char>(text[end])) != 0) ++end;
    names.push_back(text.substr(at, end - at));
  }
  return names;
}

// The operands as written, split at the commas outside of braces.
inline std::vector<std::string> operands_of(const std::string& form) {
  std::vector<std::string> operands(1);
  int depth = 0;
  for (const char c : form.substr(form.find(' '))) {
    depth += c == '{' ? 1 : (c == '}' ? -1 : 0);
    if (c == ',' && depth == 0)
      operands.emplace_back();
    else
      operands.back() += c;
  }
  return operands;
}

inline std::vector<std::string> words_of(const std::string& form) {
  std::vector<std::string> words(1);
  for (const char c : form.substr(0, form.find(' '))) {
    if (c == '.')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

// Elements of the fragments A, B and C of mma, mma.sp and wmma.mma.
inline void matrix_kinds(const std::vector<std::string>& words, Kind* kinds, int* bits) {
  std::vector<std::pair<Kind, int>> types;
  for (const std::string& word : words) {
    if (word == "f16") types.emplace_back(Kind::kF16, 16);
    if (word == "bf16") types.emplace_back(Kind::kBf16, 16);
    if (word == "tf32") types.emplace_back(Kind::kTf32, 32);
    if (word == "f32") types.emplace_back(Kind::kF32, 32);
    if (word == "f64") types.emplace_back(Kind::kF64, 64);
    if (word == "e4m3") types.emplace_back(Kind::kE4m3, 8);
    if (word == "e5m2") types.emplace_back(Kind::kE5m2, 8);
    if (word == "s32") types.emplace_back(Kind::kInteger, 32);
    if (word == "u8" || word == "s8" || word == "u4" || word == "s4" || word == "b1")
      types.emplace_back(Kind::kBits, 32);
  }
  if (types.size() == 2) {  // wmma.mma on halves names D and C
    types = {types[0], {Kind::kF16, 16}, {Kind::kF16, 16}, types[1]};
  }
  for (std::size_t i = 0; i < 3; ++i) {
    kinds[i] = types.at(i + 1).first;
    bits[i] = types.at(i + 1).second;
  }
}

inline Source scalar_source(const std::string& name, const std::string& form) {
  const int bits = register_bits(name);
  if (bits == 1) return {name, Kind::kPredicate, 1};
  if (name.starts_with("%fd")) return {name, Kind::kF64, 64};
  if (name.starts_with("%f")) return {name, Kind::kF32, 32};
  const std::string opcode = form.substr(0, form.find(' '));
  const bool bf16 = contains(opcode, "bf16");
  if (contains(opcode, "e4m3x2") && bits == 16) return {name, Kind::kE4m3, 8};
  if (contains(opcode, "e5m2x2") && bits == 16) return {name, Kind::kE5m2, 8};
  if ((contains(opcode, "f16x2") || (bits == 16 && contains(opcode, "f16"))) && !opcode.starts_with("mov"))
    return {name, bf16 && !contains(opcode, ".f16") ? Kind::kBf16 : Kind::kF16, 16};
  if (contains(opcode, "16x2")) return {name, Kind::kInteger, 16};
  return {name, Kind::kInteger, bits > 64 ? 64 : bits};
}

inline Case make_case(const std::string& form) {
  Case out;
  out.form = form;
  const std::vector<std::string> words = words_of(form);
  const std::vector<std::string> operands = operands_of(form);
  const bool matrix = words[0] == "mma" || words[0] == "wmma";
  for (const std::string& name : registers_of(operands[0])) out.destinations.push_back(name);
  // The fourth operand is merged into a part of the destination: its own value is read too.
  if (operands[0].find('.') != std::string::npos || (words[0][0] == 'v' && words[0] != "vote"))
    out.destinations.resize(1);
  for (std::size_t i = 1; i < operands.size(); ++i) {
    for (const std::string& name : registers_of(operands[i])) {
      Source source = scalar_source(name, form);
      if (matrix && i <= 3) {
        Kind kinds[3];
        int bits[3];
        matrix_kinds(words, kinds, bits);
        source = {name, kinds[i - 1], bits[i - 1], true};
      } else if (matrix) {
        source = {name, contains(form, "tf32") ? Kind::kOneOfTwo : Kind::kPairMetadata, 4};
      }
      out.sources.push_back(source);
    }
  }
  const std::string& op = words[0];
  const bool cc = op.back() == 'c' && (op == "addc" || op == "subc" || op == "madc");
  if (cc) {
    out.before = "add.cc.u32 %r31, %r30, -1";
    out.sources.push_back({"%r30", Kind::kPredicate, 1});
  }
  bool carries = false;
  for (const std::string& word : words) carries = carries || word == "cc";
  if (carries) {
    out.after = "addc.u32 %r29, 0, 0";
    out.destinations.emplace_back("%r29");
  }
  return out;
}

// Splitmix64.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15ULL;
    std::uint64_t x = state;
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31U);
  }
};

inline std::uint64_t hash_of(const void* data, std::size_t n, std::uint64_t hash = 0xcbf29ce484222325ULL) {
  const auto* bytes = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i < n; ++i) hash = (hash ^ bytes[i]) * 0x100000001b3ULL;
  return hash;
}

// Forms whose results the ISA bounds only: their values are recorded, of all others a hash.
inline bool is_approximate(const std::string& form) {
  const std::string opcode = form.substr(0, form.find(' '));
  return contains(opcode, ".approx") || contains(opcode, ".full");
}

struct Format {
  int exponent_bits, fraction_bits;
};
inline Format format_of(Kind kind) {
  switch (kind) {
    case Kind::kF16:
      return {5, 10};
    case Kind::kBf16:
      return {8, 7};
    case Kind::kTf32:
    case Kind::kF32:
      return {8, 23};
    case Kind::kF64:
      return {11, 52};
    case Kind::kE4m3:
      return {4, 3};
    default:
      return {5, 2};
  }
}

// A number of the format: by turns any bits, an edge, near 1, of a wide range, a small whole number.
inline std::uint64_t make_float(Kind kind, std::uint64_t choice, std::uint64_t value, int regime) {
  const Format f = format_of(kind);
  const auto fraction = static_cast<unsigned>(f.fraction_bits),
             total = static_cast<unsigned>(1 + f.exponent_bits) + fraction;
  const std::uint64_t one = 1, most = (one << static_cast<unsigned>(f.exponent_bits)) - 1;
  const std::uint64_t bias = most >> 1U;
  const std::uint64_t sign = (choice >> 60U & 1U) << (total - 1);
  std::uint64_t digits = value & ((one << fraction) - 1);
  switch (regime) {
    case 0: {  // edges
      const std::uint64_t edges[] = {0,
                                     1,
                                     (one << fraction) - 1,  // the largest subnormal
                                     one << fraction,        // the smallest normal number
                                     (one << fraction) + 1,
                                     bias << fraction,  // 1
                                     (bias << fraction) + 1,
                                     (bias << fraction) - 1,
                                     (bias - 1) << fraction,                    // 0.5
                                     bias << fraction | one << (fraction - 1),  // 1.5
                                     (bias + fraction) << fraction | 1U,
                                     (bias + 1) << fraction | one << (fraction - 1),
                                     most << fraction,                          // infinity
                                     (most << fraction) - 1,                    // the largest number
                                     most << fraction | 1U,                     // a signalling NaN
                                     most << fraction | one << (fraction - 1),  // a quiet NaN
                                     most << fraction | digits | 1U,
                                     ((most - 1) << fraction) | digits};
      return sign | edges[choice % std::size(edges)];
    }
    case 1:  // any bits
      return value & ((one << (total - 1)) | ((one << (total - 1)) - 1));
    case 2: {  // near 1
      const std::uint64_t exponent = bias - 2 + choice % 4;
      return sign | exponent << fraction | digits;
    }
    case 3: {  // a wide range, finite and normal
      const std::uint64_t span = most - 2 < 24 ? most - 2 : 24;
      const std::uint64_t exponent = bias - span / 2 + choice % span;
      return sign | (exponent == 0 ? 1 : exponent) << fraction | digits;
    }
    case 4: {  // small whole numbers
      const auto whole = static_cast<unsigned>(choice % 9);
      if (whole == 0) return sign;
      unsigned log = 0;
      while (whole >> (log + 1) != 0) ++log;
      const std::uint64_t rest = (std::uint64_t{whole} << fraction >> log) & ((one << fraction) - 1);
      return sign | (bias + log) << fraction | rest;
    }
    default: {  // few digits, a middling range
      digits &= ~((one << (fraction / 2)) - 1);
      const std::uint64_t exponent = bias - (most < 32 ? 4 : 8) + choice % (most < 32 ? 8 : 16);
      return sign | exponent << fraction | digits;
    }
  }
}

inline std::uint64_t make_element(const Source& source, Random& random, int thread) {
  const std::uint64_t choice = random.next(), value = random.next();
  const auto bits = static_cast<unsigned>(source.element_bits);
  const std::uint64_t mask = bits >= 64 ? ~0ULL : (1ULL << bits) - 1;
  switch (source.kind) {
    case Kind::kPredicate:
      return choice & 1U;
    case Kind::kBits:
      return value & mask;
    case Kind::kPairMetadata: {
      const std::uint64_t pairs[] = {0x4, 0x8, 0xc, 0x9, 0xd, 0xe};
      return pairs[choice % 6];
    }
    case Kind::kOneOfTwo:
      return (choice & 1U) != 0 ? 0x4 : 0xe;
    case Kind::kInteger: {
      if (source.matrix) return thread / 32 % 4 == 0 ? value & mask : value >> 40U & mask;
      const std::uint64_t edges[] = {0,          1,          2,      31,         32,
                                     33,         63,         64,     0x7f,       0x80,
                                     0xff,       0x7fff,     0x8000, 0xffff,     0x7fffffff,
                                     0x80000000, 0xffffffff, mask,   mask >> 1U, (mask >> 1U) + 1,
                                     mask - 1};
      switch (choice % 4) {
        case 0:
          return edges[(choice >> 8U) % std::size(edges)] & mask;
        case 1:
          return (value >> (choice >> 8U) % 64) & mask;
        case 2:
          return (choice >> 8U) % 40 & mask;
        default:
          return value & mask;
      }
    }
    default: {
      // In a matrix one element decides many results: whole warps stay clear of what is not finite.
      static constexpr int kWarps[8] = {2, 3, 4, 5, 3, 2, 5, 6};
      int regime = static_cast<int>((choice >> 32U) % 6);
      if (source.matrix) {
        regime = kWarps[thread / 32 % 8];
        if (regime == 6) regime = (choice >> 32U) % 16 == 0 ? 0 : 2;
      }
      return make_float(source.kind, choice, value, regime);
    }
  }
}

// The value of a source register for a thread: up to 128 bits. `index`: which of the sources.
inline std::array<std::uint64_t, 2> make_operand(const std::string& form, const Source& source,
                                                 std::size_t index, int thread) {
  Random random{hash_of(form.data(), form.size()) + 0x10001ULL * index +
                (static_cast<std::uint64_t>(thread) << 40U)};
  random.next();
  std::array<std::uint64_t, 2> value{};
  const int bits = register_bits(source.name);
  for (int at = 0; at < bits; at += source.element_bits)
    value[static_cast<std::size_t>(at / 64)] |= make_element(source, random, thread)
                                                << static_cast<unsigned>(at % 64);
  if (source.name == "%r30") value[0] &= 1U;
  return value;
}

}  // namespace golden
