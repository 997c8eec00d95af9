// Comparison and selection (PTX ISA 9.7.6 for integers and f32/f64, 9.7.7 for f16 and bf16) and testp
// (9.7.3.1).
#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/compare.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/half-inl.hpp"
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::Compare;
using ptx::Opcode;
using ptx::Type;

struct Eq {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return a == b;
  }
};
struct Ne {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return (a < b) | (a > b);
  }
};  // false for NaN
struct Lt {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return a < b;
  }
};
struct Le {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return a <= b;
  }
};
struct Gt {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return a > b;
  }
};
struct Ge {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return a >= b;
  }
};
struct Num {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return (a == a) & (b == b);  // NOLINT(misc-redundant-expression): false for NaN
  }
};
// The unordered comparisons are the negations of the ordered opposite ones.
template <class Op>
struct Negated {
  template <typename T>
  static HWY_INLINE bool f(T a, T b) {
    return !Op::f(a, b);
  }
};

// How a lane's bits become the value to compare.
template <typename T>
struct Plain {
  using Storage = T;
  static HWY_INLINE T value(T x) { return x; }
};
struct FlushedF32 {
  using Storage = float;
  static HWY_INLINE float value(float x) { return flush(x); }
};
template <class H, bool kFtz>
struct Half {
  using Storage = std::uint16_t;
  static HWY_INLINE float value(std::uint16_t x) { return H::to_f32(kFtz ? flush_half<H>(x) : x); }
};

// The lanes for which the comparison of two arrays holds.
using WordFn = std::uint32_t (*)(const void* a, const void* b);

template <class Op, class V>
HWY_INLINE std::uint32_t compare_arrays(const void* a_lanes, const void* b_lanes) {
  const auto* a = static_cast<const typename V::Storage*>(a_lanes);
  const auto* b = static_cast<const typename V::Storage*>(b_lanes);
  std::uint32_t result = 0;
  for (int i = 0; i < kWarpSize; ++i) result |= Op::f(V::value(a[i]), V::value(b[i])) ? kLaneBit[i] : 0U;
  return result;
}
template <class Op, class V>
std::uint32_t compare_word(const void* a, const void* b) {
  return compare_arrays<Op, V>(a, b);
}

// setp with one destination and no third operand: p, a, b.
template <class Op, class V>
void run_setp(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const std::uint32_t result = compare_arrays<Op, V>(lanes.read<std::uint8_t>(inst.operands[1]),
                                                     lanes.read<std::uint8_t>(inst.operands[2]));
  write_predicate(lanes, inst.operands[0], result, mask);
}
// The same by way of aux[1], a WordFn: for types that are compared less often.
void run_setp_by_word(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const auto word = reinterpret_cast<WordFn>(inst.aux[1]);
  write_predicate(
      lanes, inst.operands[0],
      word(lanes.read<std::uint8_t>(inst.operands[1]), lanes.read<std::uint8_t>(inst.operands[2])), mask);
}

// Two words of lanes: for packed types (aux[0] bit 3) of the low and of the high halves, else of the
// comparison and of its negation.
void compare_both(const Lanes& lanes, const Inst& inst, int first_source, std::uint32_t* words) {
  const auto word = reinterpret_cast<WordFn>(inst.aux[1]);
  const Slot a = inst.operands[first_source], b = inst.operands[first_source + 1];
  if ((inst.aux[0] & 8U) == 0) {
    words[0] = word(lanes.read<std::uint8_t>(a), lanes.read<std::uint8_t>(b));
    words[1] = ~words[0];
    return;
  }
  alignas(64) std::uint16_t halves[2][2][kWarpSize];
  for (int i = 0; i < kWarpSize; ++i) {
    const std::uint32_t x = lanes.read<std::uint32_t>(a)[i], y = lanes.read<std::uint32_t>(b)[i];
    halves[0][0][i] = static_cast<std::uint16_t>(x);
    halves[0][1][i] = static_cast<std::uint16_t>(y);
    halves[1][0][i] = static_cast<std::uint16_t>(x >> 16U);
    halves[1][1][i] = static_cast<std::uint16_t>(y >> 16U);
  }
  for (int half = 0; half < 2; ++half) words[half] = word(halves[half][0], halves[half][1]);
}

HWY_INLINE std::uint32_t combine(std::uint32_t compared, std::uint32_t c, std::uint64_t bool_op) {
  switch (bool_op & 3U) {
    case 1:
      return compared & c;
    case 2:
      return compared | c;
    case 3:
      return compared ^ c;
    default:
      return compared;
  }
}
HWY_INLINE std::uint32_t third_operand(const Lanes& lanes, const Inst& inst, int index) {
  if ((inst.aux[0] & 3U) == 0) return 0;
  const std::uint32_t c = *lanes.read<std::uint32_t>(inst.operands[index]);
  return (inst.aux[0] & 4U) != 0 ? ~c : c;
}

// setp p|q, a, b, c. aux[0]: bits 0-1 the boolean operation (0 none), bit 2: c negated, bit 3: packed.
// aux[1]: WordFn. q is the same with the comparison negated; for packed types p and q are of the low and the
// high halves.
void run_setp_pair(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  std::uint32_t words[2] = {0, 0};
  compare_both(lanes, inst, 2, words);
  const std::uint32_t c = third_operand(lanes, inst, 4);
  write_predicate(lanes, inst.operands[0], combine(words[0], c, inst.aux[0]), mask);
  write_predicate(lanes, inst.operands[1], combine(words[1], c, inst.aux[0]), mask);
}

// set d, a, b, c. aux[0] as above, bit 4: 16-bit destination, bits 32-63: what stands for true (in both
// halves for packed types). aux[1]: WordFn.
void run_set(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  std::uint32_t words[2] = {0, 0};
  compare_both(lanes, inst, 1, words);
  const std::uint32_t c = third_operand(lanes, inst, 3);
  const auto yes = static_cast<std::uint32_t>(inst.aux[0] >> 32U);
  const std::uint32_t low = combine(words[0], c, inst.aux[0]), high = combine(words[1], c, inst.aux[0]);
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask & kLaneBit[i]) == 0) continue;
    std::uint32_t value = (low & kLaneBit[i]) != 0 ? yes : 0;
    if ((inst.aux[0] & 8U) != 0)
      value = (value & 0xffffU) | ((high & kLaneBit[i]) != 0 ? yes & 0xffff0000U : 0);
    if ((inst.aux[0] & 16U) != 0) {
      lanes.write<std::uint16_t>(inst.operands[0])[i] = static_cast<std::uint16_t>(value);
    } else {
      lanes.write<std::uint32_t>(inst.operands[0])[i] = value;
    }
  }
}

template <typename T, bool kFull>
void run_selp(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  T* d = lanes.write<T>(inst.operands[0]);
  const T* a = lanes.read<T>(inst.operands[1]);
  const T* b = lanes.read<T>(inst.operands[2]);
  std::uint32_t c = *lanes.read<std::uint32_t>(inst.operands[3]);
  if (inst.aux[0] != 0) c = ~c;
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const T result = pick((c & kLaneBit[i]) != 0, a[i], b[i]);
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}

template <typename T>
HWY_INLINE T slct_s32(T a, T b, std::int32_t c) {
  return c >= 0 ? a : b;
}
template <typename T>
HWY_INLINE T slct_f32(T a, T b, float c) {
  return c >= 0.0F ? a : b;
}  // NaN selects b
template <typename T>
HWY_INLINE T slct_f32_ftz(T a, T b, float c) {
  return flush(c) >= 0.0F ? a : b;
}

// testp. aux[0]: 0 finite, 1 infinite, 2 number, 3 notanumber, 4 normal, 5 subnormal.
template <typename U, unsigned kFractionBits>
void run_testp(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  const U* a = lanes.read<U>(inst.operands[1]);
  constexpr U kMagnitude = static_cast<U>(~U{0} >> 1U);
  constexpr U kInfinity = static_cast<U>(kMagnitude >> kFractionBits << kFractionBits);
  std::uint32_t result = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    const U x = a[i] & kMagnitude;
    bool holds = false;
    switch (inst.aux[0]) {
      case 0:
        holds = x < kInfinity;
        break;
      case 1:
        holds = x == kInfinity;
        break;
      case 2:
        holds = x <= kInfinity;
        break;
      case 3:
        holds = x > kInfinity;
        break;
      case 4:
        holds = x < kInfinity && (x == 0 || (x >> kFractionBits) != 0);  // zeros count as normal
        break;
      default:
        holds = x != 0 && (x >> kFractionBits) == 0;
        break;
    }
    if (holds) result |= kLaneBit[i];
  }
  write_predicate(lanes, inst.operands[0], result, mask);
}

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

struct Comparison {
  AluFn simple = nullptr;
  WordFn word = nullptr;
};
template <class Op, class V>
Comparison comparison() {
  constexpr bool kOften =
      sizeof(typename V::Storage) >= 4 && !std::is_same_v<V, FlushedF32> && !std::is_same_v<V, Plain<double>>;
  if constexpr (kOften)
    return {run_setp<Op, V>, compare_word<Op, V>};
  else
    return {run_setp_by_word, compare_word<Op, V>};
}

template <typename S>
Comparison ordered_integers(Compare compare) {
  using V = Plain<S>;
  switch (compare) {
    case Compare::kEq:
      return comparison<Eq, V>();
    case Compare::kNe:
      return comparison<Negated<Eq>, V>();
    case Compare::kLt:
      return comparison<Lt, V>();
    case Compare::kLe:
      return comparison<Le, V>();
    case Compare::kGt:
      return comparison<Gt, V>();
    case Compare::kGe:
      return comparison<Ge, V>();
    default:
      return {};
  }
}
template <typename U>
Comparison unsigned_integers(Compare compare) {
  switch (compare) {  // lo, ls, hi, hs: the same for unsigned numbers
    case Compare::kLo:
      return ordered_integers<U>(Compare::kLt);
    case Compare::kLs:
      return ordered_integers<U>(Compare::kLe);
    case Compare::kHi:
      return ordered_integers<U>(Compare::kGt);
    case Compare::kHs:
      return ordered_integers<U>(Compare::kGe);
    default:
      return ordered_integers<U>(compare);
  }
}
template <typename U>
Comparison bits(Compare compare) {
  return compare == Compare::kEq || compare == Compare::kNe ? ordered_integers<U>(compare) : Comparison{};
}
template <class V>
Comparison floats(Compare compare) {
  const auto make = []<class Op>(Op /*tag*/) { return comparison<Op, V>(); };
  switch (compare) {
    case Compare::kEq:
      return make(Eq{});
    case Compare::kNe:
      return make(Ne{});
    case Compare::kLt:
      return make(Lt{});
    case Compare::kLe:
      return make(Le{});
    case Compare::kGt:
      return make(Gt{});
    case Compare::kGe:
      return make(Ge{});
    case Compare::kEqu:
      return make(Negated<Ne>{});
    case Compare::kNeu:
      return make(Negated<Eq>{});
    case Compare::kLtu:
      return make(Negated<Ge>{});
    case Compare::kLeu:
      return make(Negated<Gt>{});
    case Compare::kGtu:
      return make(Negated<Le>{});
    case Compare::kGeu:
      return make(Negated<Lt>{});
    case Compare::kNum:
      return make(Num{});
    case Compare::kNan:
      return make(Negated<Num>{});
    default:
      return {};
  }
}

Comparison choose(Type type, Compare compare, bool ftz) {
  switch (type) {
    case Type::kU16:
      return unsigned_integers<std::uint16_t>(compare);
    case Type::kU32:
      return unsigned_integers<std::uint32_t>(compare);
    case Type::kU64:
      return unsigned_integers<std::uint64_t>(compare);
    case Type::kS16:
      return ordered_integers<std::int16_t>(compare);
    case Type::kS32:
      return ordered_integers<std::int32_t>(compare);
    case Type::kS64:
      return ordered_integers<std::int64_t>(compare);
    case Type::kB16:
      return bits<std::uint16_t>(compare);
    case Type::kB32:
      return bits<std::uint32_t>(compare);
    case Type::kB64:
      return bits<std::uint64_t>(compare);
    case Type::kF32:
      return ftz ? floats<FlushedF32>(compare) : floats<Plain<float>>(compare);
    case Type::kF64:
      return floats<Plain<double>>(compare);
    case Type::kF16:
      return ftz ? floats<Half<F16, true>>(compare) : floats<Half<F16, false>>(compare);
    case Type::kF16x2:
      return ftz ? floats<Half<F16, true>>(compare) : floats<Half<F16, false>>(compare);
    case Type::kBf16:
      return floats<Half<Bf16, false>>(compare);
    case Type::kBf16x2:
      return floats<Half<Bf16, false>>(compare);
    default:
      return {};
  }
}

template <typename T>
Functions slct(const ptx::Instruction& inst) {
  if (inst.type2 == Type::kS32) return lanewise_rare<&slct_s32<T>>();
  if (inst.type2 != Type::kF32) return {};
  return inst.ftz ? lanewise_rare<&slct_f32_ftz<T>>() : lanewise_rare<&slct_f32<T>>();
}

}  // namespace

Functions select_compare(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  switch (inst.op) {
    case Opcode::kSetp: {
      const Comparison found = choose(inst.type, inst.compare, inst.ftz);
      if (found.word == nullptr) return {};
      // The planner leaves q and c out where they are not written and the type is not packed.
      const bool packed = inst.type == Type::kF16x2 || inst.type == Type::kBf16x2;
      const bool simple = !packed && inst.operands[0].kind == ptx::OperandKind::kRegister &&
                          inst.bool_op == ptx::BoolOp::kNone;
      if (simple) return {found.simple, found.simple, reinterpret_cast<std::uint64_t>(found.word)};
      return {run_setp_pair, run_setp_pair, reinterpret_cast<std::uint64_t>(found.word)};
    }
    case Opcode::kSet: {
      const Comparison found = choose(inst.type2, inst.compare, inst.ftz);
      if (found.word == nullptr) return {};
      return {run_set, run_set, reinterpret_cast<std::uint64_t>(found.word)};
    }
    case Opcode::kSelp:
      switch (ptx::bits_of(inst.type)) {
        case 16:
          return {run_selp<std::uint16_t, false>, run_selp<std::uint16_t, true>};
        case 32:
          return {run_selp<std::uint32_t, false>, run_selp<std::uint32_t, true>};
        case 64:
          return {run_selp<std::uint64_t, false>, run_selp<std::uint64_t, true>};
        default:
          return {};
      }
    case Opcode::kSlct:
      switch (ptx::bits_of(inst.type)) {
        case 16:
          return slct<std::uint16_t>(inst);
        case 32:
          return slct<std::uint32_t>(inst);
        case 64:
          return slct<std::uint64_t>(inst);
        default:
          return {};
      }
    case Opcode::kTestp:
      if (inst.type == Type::kF32) return same(run_testp<std::uint32_t, 23>);
      if (inst.type == Type::kF64) return same(run_testp<std::uint64_t, 52>);
      return {};
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
HWY_EXPORT(select_compare);
}  // namespace
Functions find_compare(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_compare)(form); }
}  // namespace echolo::vgpu::alu
#endif
