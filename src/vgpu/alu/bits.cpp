// Bit manipulation (PTX ISA 9.7.1: popc ... dp2a), logic and shifts (9.7.8), prmt (9.7.9.7).
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/bits.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::MulMode;
using ptx::Opcode;
using ptx::SubOp;
using ptx::Type;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <typename T>
constexpr std::uint32_t kBits = sizeof(T) * 8;
template <typename T>
using Wide = std::conditional_t<sizeof(T) == 4, std::uint64_t, UInt128>;
template <typename T>
using SignedWide = std::conditional_t<sizeof(T) == 4, std::int64_t, Int128>;

struct And {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(a & b);
  }
};
struct Or {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(a | b);
  }
};
struct Xor {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(a ^ b);
  }
};
struct Not {
  template <typename T>
  static HWY_INLINE T f(T a) {
    return static_cast<T>(~a);
  }
};
struct Cnot {
  template <typename T>
  static HWY_INLINE T f(T a) {
    return a == 0 ? T{1} : T{0};
  }
};
// Shift amounts above the width are clamped to it (9.7.8.8, 9.7.8.9).
struct Shl {
  template <typename T>
  static HWY_INLINE T f(T a, std::uint32_t n) {
    return n >= kBits<T>
               ? T{0}
               : static_cast<T>(static_cast<std::conditional_t<sizeof(T) < 4, std::uint32_t, T>>(a) << n);
  }
};
struct Shr {
  template <typename T>
  static HWY_INLINE T f(T a, std::uint32_t n) {
    if constexpr (std::is_signed_v<T>) {
      return static_cast<T>(a >> (n >= kBits<T> ? kBits<T> - 1 : n));
    } else {
      return n >= kBits<T> ? T{0} : static_cast<T>(a >> n);
    }
  }
};

// Funnel shifts: the 64-bit value b:a, shifted (9.7.8.7).
template <bool kWrap>
HWY_INLINE std::uint32_t amount(std::uint32_t n) {
  return kWrap ? n & 31U : (n > 32 ? 32U : n);
}
template <bool kWrap>
HWY_INLINE std::uint32_t shf_left(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return static_cast<std::uint32_t>(((std::uint64_t{b} << 32U | a) << amount<kWrap>(c)) >> 32U);
}
template <bool kWrap>
HWY_INLINE std::uint32_t shf_right(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return static_cast<std::uint32_t>((std::uint64_t{b} << 32U | a) >> amount<kWrap>(c));
}

struct Popc {
  template <typename T>
  static HWY_INLINE std::uint32_t f(T x) {
    constexpr T kFives = static_cast<T>(0x5555555555555555ULL),
                kThrees = static_cast<T>(0x3333333333333333ULL);
    constexpr T kFifteens = static_cast<T>(0x0f0f0f0f0f0f0f0fULL),
                kOnes = static_cast<T>(0x0101010101010101ULL);
    x = x - ((x >> 1U) & kFives);
    x = (x & kThrees) + ((x >> 2U) & kThrees);
    x = (x + (x >> 4U)) & kFifteens;
    return static_cast<std::uint32_t>((x * kOnes) >> (kBits<T> - 8));
  }
};
struct Clz {
  template <typename T>
  static HWY_INLINE std::uint32_t f(T x) {
    return static_cast<std::uint32_t>(std::countl_zero(x));
  }
};
struct Brev {
  template <typename T>
  static HWY_INLINE T f(T x) {
    constexpr T kFives = static_cast<T>(0x5555555555555555ULL),
                kThrees = static_cast<T>(0x3333333333333333ULL);
    constexpr T kFifteens = static_cast<T>(0x0f0f0f0f0f0f0f0fULL);
    x = ((x >> 1U) & kFives) | ((x & kFives) << 1U);
    x = ((x >> 2U) & kThrees) | ((x & kThrees) << 2U);
    x = ((x >> 4U) & kFifteens) | ((x & kFifteens) << 4U);
    if constexpr (sizeof(T) == 4) {
      return __builtin_bswap32(x);
    } else {
      return __builtin_bswap64(x);
    }
  }
};
// The most significant bit that is not a sign bit; all ones where there is none (9.7.1.17).
template <typename T, bool kShiftAmount>
HWY_INLINE std::uint32_t bfind(T a) {
  using U = std::make_unsigned_t<T>;
  const U x = std::is_signed_v<T> && a < 0 ? static_cast<U>(~a) : static_cast<U>(a);
  const auto zeros = static_cast<std::uint32_t>(std::countl_zero(x));
  if (x == 0) return 0xffffffffU;
  return kShiftAmount ? zeros : kBits<T> - 1 - zeros;
}
HWY_INLINE std::uint32_t fns(std::uint32_t mask, std::uint32_t base, std::int32_t offset) {
  if (offset == std::numeric_limits<std::int32_t>::min()) return 0;  // as an H200 has it
  if (base > 31) return 0xffffffffU;
  if (offset == 0) return ((mask >> base) & 1U) != 0 ? base : 0xffffffffU;
  const int step = offset > 0 ? 1 : -1;
  std::int64_t left = offset > 0 ? offset : -std::int64_t{offset};
  for (auto at = static_cast<int>(base); at >= 0 && at < 32; at += step) {
    if (((mask >> static_cast<unsigned>(at)) & 1U) != 0 && --left == 0) return static_cast<std::uint32_t>(at);
  }
  return 0xffffffffU;
}

struct Bfe {
  template <typename T>
  static HWY_INLINE T f(T a, std::uint32_t b, std::uint32_t c) {
    using U = std::make_unsigned_t<T>;
    constexpr std::uint32_t kTop = kBits<T> - 1;
    // Of the 64-bit forms, which are several instructions, the hardware reads whole words.
    constexpr std::uint32_t kRead = sizeof(T) == 8 ? 0xffffffffU : 0xffU;
    const std::uint32_t position = b & kRead, length = c & kRead;
    const std::uint32_t shift = pick(position > kTop, kTop, position);
    const std::uint32_t spare = pick(length > kTop, 0U, kBits<T> - length) & kTop;
    if constexpr (std::is_signed_v<T>) {
      // Bits past the top repeat the sign, as an arithmetic shift gives them; past the top by more is all
      // sign.
      const T field =
          static_cast<T>(pick(position > kTop, static_cast<U>(a >> kTop), static_cast<U>(a >> shift)));
      const T extended = static_cast<T>(static_cast<T>(static_cast<U>(field) << spare) >> spare);
      return static_cast<T>(pick(length == 0, U{0}, static_cast<U>(extended)));
    } else {
      const U field = pick(position > kTop, U{0}, static_cast<U>(a >> shift));
      return static_cast<T>(pick(length == 0, U{0}, static_cast<U>(static_cast<U>(field << spare) >> spare)));
    }
  }
};
struct Bfi {
  template <typename T>
  static HWY_INLINE T f(T a, T b, std::uint32_t c, std::uint32_t d) {
    constexpr std::uint32_t kRead = sizeof(T) == 8 ? 0xffffffffU : 0xffU;
    const std::uint32_t position = (c & kRead) > kBits<T> ? kBits<T> : c & kRead;
    const std::uint32_t length = (d & kRead) > kBits<T> ? kBits<T> : d & kRead;
    const auto mask = static_cast<T>(((Wide<T>{1} << length) - 1) << position);
    return (b & ~mask) | (static_cast<T>(Wide<T>{a} << position) & mask);
  }
};
// Ones from bit a on, b of them (9.7.1.22).
template <bool kWrap>
HWY_INLINE std::uint32_t bmsk(std::uint32_t a, std::uint32_t b) {
  const std::uint64_t ones = (std::uint64_t{1} << amount<kWrap>(b)) - 1;
  return static_cast<std::uint32_t>(ones << amount<kWrap>(a));
}
template <bool kWrap, bool kSigned>
HWY_INLINE std::uint32_t szext(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t length = amount<kWrap>(b);
  const std::uint32_t spare = length == 0 ? 31U : 32U - length;
  const std::uint32_t up = a << spare;
  const std::uint32_t result =
      kSigned ? static_cast<std::uint32_t>(static_cast<std::int32_t>(up) >> spare) : up >> spare;
  return length == 0 ? 0 : result;
}

template <bool kSigned>
HWY_INLINE std::uint32_t part(std::uint32_t x, std::uint32_t width, std::uint32_t index) {
  const std::uint32_t up = x << (32U - width * (index + 1));
  return kSigned ? static_cast<std::uint32_t>(static_cast<std::int32_t>(up) >> (32U - width))
                 : up >> (32U - width);
}
template <bool kSignedA, bool kSignedB>
HWY_INLINE std::uint32_t dp4a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (std::uint32_t i = 0; i < 4; ++i) c += part<kSignedA>(a, 8, i) * part<kSignedB>(b, 8, i);
  return c;
}
template <bool kSignedA, bool kSignedB, bool kHigh>
HWY_INLINE std::uint32_t dp2a(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  for (std::uint32_t i = 0; i < 2; ++i)
    c += part<kSignedA>(a, 16, i) * part<kSignedB>(b, 8, i + (kHigh ? 2 : 0));
  return c;
}

HWY_INLINE std::uint32_t permuted_byte(std::uint32_t word, std::uint32_t pick_bits) {
  const std::uint32_t byte = (word >> (8 * (pick_bits & 3U))) & 0xffU;
  const std::uint32_t sign = (0U - (byte >> 7U)) & 0xffU;
  return pick((pick_bits & 8U) != 0, sign, byte);
}
HWY_INLINE std::uint32_t permute(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  std::uint32_t result = 0;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t bits = selector >> (4 * i);
    result |= permuted_byte(pick((bits & 4U) != 0, b, a), bits) << (8 * i);
  }
  return result;
}
// prmt as compilers write it: the selector is a constant, the same for all lanes.
template <bool kFull>
void run_permute(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  if ((inst.operands[3].bits & Slot::kPool) == 0) {
    run_ternary<kFull, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, permute>(lanes, inst,
                                                                                            mask);
    return;
  }
  const std::uint32_t selector = *lanes.read<std::uint32_t>(inst.operands[3]);
  const auto* a = lanes.read<std::uint32_t>(inst.operands[1]);
  const auto* b = lanes.read<std::uint32_t>(inst.operands[2]);
  std::uint32_t* d = lanes.write<std::uint32_t>(inst.operands[0]);
  const std::uint32_t s0 = selector, s1 = selector >> 4U, s2 = selector >> 8U, s3 = selector >> 12U;
  const std::uint32_t *w0 = (s0 & 4U) != 0 ? b : a, *w1 = (s1 & 4U) != 0 ? b : a;
  const std::uint32_t *w2 = (s2 & 4U) != 0 ? b : a, *w3 = (s3 & 4U) != 0 ? b : a;
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const std::uint32_t result = permuted_byte(w0[i], s0) | permuted_byte(w1[i], s1) << 8U |
                                 permuted_byte(w2[i], s2) << 16U | permuted_byte(w3[i], s3) << 24U;
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}
// Selectors of prmt's special modes, by the low two bits of c (9.7.9.7).
constexpr std::uint32_t kForward4[4] = {0x3210, 0x4321, 0x5432, 0x6543};
constexpr std::uint32_t kBackward4[4] = {0x5670, 0x6701, 0x7012, 0x0123};
constexpr std::uint32_t kReplicate8[4] = {0x0000, 0x1111, 0x2222, 0x3333};
constexpr std::uint32_t kEdgeLeft[4] = {0x3210, 0x3211, 0x3222, 0x3333};
constexpr std::uint32_t kEdgeRight[4] = {0x0000, 0x1110, 0x2210, 0x3210};
constexpr std::uint32_t kReplicate16[4] = {0x1010, 0x3232, 0x1010, 0x3232};
template <const std::uint32_t (&kSelectors)[4]>
HWY_INLINE std::uint32_t permute_mode(std::uint32_t a, std::uint32_t b, std::uint32_t c) {
  return permute(a, b, kSelectors[c & 3U]);
}

// Any function of three bits, aux[0] its truth table: selects by c, then b, then a. aux[1]: 0, or the
// operation of lop3.BoolOp d|p, ..., q: p = (d != 0) op q (1 and, 2 or, 3 xor), plus 4 where q is negated.
template <bool kFull>
void run_lop3(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const bool with_predicate = inst.aux[1] != 0;
  const int first = with_predicate ? 2 : 1;
  std::uint32_t* d = lanes.write<std::uint32_t>(inst.operands[0]);
  const auto* a = lanes.read<std::uint32_t>(inst.operands[first]);
  const auto* b = lanes.read<std::uint32_t>(inst.operands[first + 1]);
  const auto* c = lanes.read<std::uint32_t>(inst.operands[first + 2]);
  std::uint32_t base[4], flip[4];
  for (std::uint32_t i = 0; i < 4; ++i) {
    base[i] = 0U - static_cast<std::uint32_t>((inst.aux[0] >> (2 * i)) & 1U);
    flip[i] = base[i] ^ (0U - static_cast<std::uint32_t>((inst.aux[0] >> (2 * i + 1)) & 1U));
  }
  std::uint32_t nonzero = 0;
  const std::uint32_t b0 = base[0], b1 = base[1], b2 = base[2], b3 = base[3];
  const std::uint32_t f0 = flip[0], f1 = flip[1], f2 = flip[2], f3 = flip[3];
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const std::uint32_t t0 = b0 ^ (c[i] & f0), t1 = b1 ^ (c[i] & f1), t2 = b2 ^ (c[i] & f2),
                        t3 = b3 ^ (c[i] & f3);
    const std::uint32_t u0 = t0 ^ (b[i] & (t0 ^ t1)), u1 = t2 ^ (b[i] & (t2 ^ t3));
    const std::uint32_t result = u0 ^ (a[i] & (u0 ^ u1));
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
  if (!with_predicate) return;
  for (int i = 0; i < kWarpSize; ++i) nonzero |= d[i] != 0 ? kLaneBit[i] : 0U;
  std::uint32_t q = *lanes.read<std::uint32_t>(inst.operands[first + 3]);
  if ((inst.aux[1] & 4U) != 0) q = ~q;
  const std::uint64_t op = inst.aux[1] & 3U;
  write_predicate(lanes, inst.operands[1], op == 1 ? nonzero & q : op == 2 ? nonzero | q : nonzero ^ q, mask);
}

template <class Op>
void run_predicate(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const std::uint32_t a = *lanes.read<std::uint32_t>(inst.operands[1]);
  if constexpr (std::is_same_v<Op, Not>) {
    write_predicate(lanes, inst.operands[0], Op::f(a), mask);
  } else {
    write_predicate(lanes, inst.operands[0], Op::f(a, *lanes.read<std::uint32_t>(inst.operands[2])), mask);
  }
}

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

template <class Op>
Functions logic(Type type) {
  switch (type) {
    case Type::kPred:
      if constexpr (std::is_same_v<Op, Cnot>)
        return {};
      else
        return same(run_predicate<Op>);
    case Type::kB16:
      return lanewise<&Op::template f<std::uint16_t>>();
    case Type::kB32:
      return lanewise<&Op::template f<std::uint32_t>>();
    case Type::kB64:
      return lanewise<&Op::template f<std::uint64_t>>();
    default:
      return {};
  }
}
template <class Op>
Functions unsigned_shift(Type type) {
  switch (type) {
    case Type::kB16:
    case Type::kU16:
      return lanewise<&Op::template f<std::uint16_t>>();
    case Type::kB32:
    case Type::kU32:
      return lanewise<&Op::template f<std::uint32_t>>();
    case Type::kB64:
    case Type::kU64:
      return lanewise<&Op::template f<std::uint64_t>>();
    default:
      return {};
  }
}
Functions shift_right(Type type) {
  switch (type) {
    case Type::kS16:
      return lanewise<&Shr::f<std::int16_t>>();
    case Type::kS32:
      return lanewise<&Shr::f<std::int32_t>>();
    case Type::kS64:
      return lanewise<&Shr::f<std::int64_t>>();
    default:
      return unsigned_shift<Shr>(type);
  }
}
template <class Op>
Functions words(Type type) {
  if (type == Type::kB32) return lanewise<&Op::template f<std::uint32_t>>();
  if (type == Type::kB64) return lanewise<&Op::template f<std::uint64_t>>();
  return {};
}
template <bool kShiftAmount>
Functions find_first(Type type) {
  switch (type) {
    case Type::kU32:
      return lanewise_rare<&bfind<std::uint32_t, kShiftAmount>>();
    case Type::kS32:
      return lanewise_rare<&bfind<std::int32_t, kShiftAmount>>();
    case Type::kU64:
      return lanewise_rare<&bfind<std::uint64_t, kShiftAmount>>();
    case Type::kS64:
      return lanewise_rare<&bfind<std::int64_t, kShiftAmount>>();
    default:
      return {};
  }
}
Functions extract(Type type) {
  switch (type) {
    case Type::kU32:
      return lanewise<&Bfe::f<std::uint32_t>>();
    case Type::kS32:
      return lanewise<&Bfe::f<std::int32_t>>();
    case Type::kU64:
      return lanewise_rare<&Bfe::f<std::uint64_t>>();
    case Type::kS64:
      return lanewise_rare<&Bfe::f<std::int64_t>>();
    default:
      return {};
  }
}
bool is_integer32(Type type) { return type == Type::kU32 || type == Type::kS32; }

Functions dot4(const ptx::Instruction& inst) {
  if (!is_integer32(inst.type) || !is_integer32(inst.type2)) return {};
  const bool b_signed = inst.type2 == Type::kS32;
  if (inst.type == Type::kS32)
    return b_signed ? lanewise<&dp4a<true, true>>() : lanewise<&dp4a<true, false>>();
  return b_signed ? lanewise<&dp4a<false, true>>() : lanewise<&dp4a<false, false>>();
}
template <bool kHigh>
Functions dot2(const ptx::Instruction& inst) {
  if (!is_integer32(inst.type) || !is_integer32(inst.type2)) return {};
  const bool b_signed = inst.type2 == Type::kS32;
  if (inst.type == Type::kS32) {
    return b_signed ? lanewise_rare<&dp2a<true, true, kHigh>>() : lanewise_rare<&dp2a<true, false, kHigh>>();
  }
  return b_signed ? lanewise_rare<&dp2a<false, true, kHigh>>() : lanewise_rare<&dp2a<false, false, kHigh>>();
}
Functions funnel(const ptx::Instruction& inst) {
  if (inst.type != Type::kB32) return {};
  const bool wrap = inst.sub_op2 == SubOp::kWrap;
  if (inst.sub_op == SubOp::kShiftL) return wrap ? lanewise<&shf_left<true>>() : lanewise<&shf_left<false>>();
  return wrap ? lanewise<&shf_right<true>>() : lanewise<&shf_right<false>>();
}
Functions sign_or_zero_extend(const ptx::Instruction& inst) {
  const bool wrap = inst.sub_op == SubOp::kWrap;
  if (inst.type == Type::kS32)
    return wrap ? lanewise_rare<&szext<true, true>>() : lanewise_rare<&szext<false, true>>();
  if (inst.type == Type::kU32)
    return wrap ? lanewise_rare<&szext<true, false>>() : lanewise_rare<&szext<false, false>>();
  return {};
}
Functions permutation(const ptx::Instruction& inst) {
  if (inst.type != Type::kB32) return {};
  if (inst.mode.empty()) return {run_permute<false>, run_permute<true>};
  if (inst.mode == "f4e") return lanewise_rare<&permute_mode<kForward4>>();
  if (inst.mode == "b4e") return lanewise_rare<&permute_mode<kBackward4>>();
  if (inst.mode == "rc8") return lanewise_rare<&permute_mode<kReplicate8>>();
  if (inst.mode == "ecl") return lanewise_rare<&permute_mode<kEdgeLeft>>();
  if (inst.mode == "ecr") return lanewise_rare<&permute_mode<kEdgeRight>>();
  if (inst.mode == "rc16") return lanewise_rare<&permute_mode<kReplicate16>>();
  return {};
}

}  // namespace

Functions select_bits(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  switch (inst.op) {
    case Opcode::kAnd:
      return logic<And>(inst.type);
    case Opcode::kOr:
      return logic<Or>(inst.type);
    case Opcode::kXor:
      return logic<Xor>(inst.type);
    case Opcode::kNot:
      return logic<Not>(inst.type);
    case Opcode::kCnot:
      return logic<Cnot>(inst.type);
    case Opcode::kLop3:
      return inst.type == Type::kB32 ? Functions{run_lop3<false>, run_lop3<true>} : Functions{};
    case Opcode::kShl:
      return unsigned_shift<Shl>(inst.type);
    case Opcode::kShr:
      return shift_right(inst.type);
    case Opcode::kShf:
      return funnel(inst);
    case Opcode::kPopc:
      return words<Popc>(inst.type);
    case Opcode::kClz:
      return words<Clz>(inst.type);
    case Opcode::kBrev:
      return words<Brev>(inst.type);
    case Opcode::kBfind:
      return inst.mode == "shiftamt" ? find_first<true>(inst.type) : find_first<false>(inst.type);
    case Opcode::kFns:
      return inst.type == Type::kB32 ? lanewise_rare<&fns>() : Functions{};
    case Opcode::kBfe:
      return extract(inst.type);
    case Opcode::kBfi:
      return words<Bfi>(inst.type);
    case Opcode::kBmsk:
      if (inst.type != Type::kB32) return {};
      return inst.sub_op == SubOp::kWrap ? lanewise_rare<&bmsk<true>>() : lanewise_rare<&bmsk<false>>();
    case Opcode::kSzext:
      return sign_or_zero_extend(inst);
    case Opcode::kDp4a:
      return dot4(inst);
    case Opcode::kDp2a:
      return inst.mul_mode == MulMode::kHi ? dot2<true>(inst) : dot2<false>(inst);
    case Opcode::kPrmt:
      return permutation(inst);
    default:
      return {};
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace echolo::vgpu::alu {
namespace {
HWY_EXPORT(select_bits);
}  // namespace
Functions find_bits(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_bits)(form); }
}  // namespace echolo::vgpu::alu
#endif
