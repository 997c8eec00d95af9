// Integer arithmetic (PTX ISA 9.7.1) and extended-precision integer arithmetic with the carry flag (9.7.2).
#include <utility>

#include "vgpu/alu/alu.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "vgpu/alu/integer.cpp"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "vgpu/alu/lane_loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)
namespace {

using ptx::MulMode;
using ptx::Opcode;
using ptx::Type;
__extension__ using Int128 = __int128;
__extension__ using UInt128 = unsigned __int128;

template <typename T>
struct WiderOf;
template <>
struct WiderOf<std::uint16_t> {
  using type = std::uint32_t;
};
template <>
struct WiderOf<std::int16_t> {
  using type = std::int32_t;
};
template <>
struct WiderOf<std::uint32_t> {
  using type = std::uint64_t;
};
template <>
struct WiderOf<std::int32_t> {
  using type = std::int64_t;
};
template <>
struct WiderOf<std::uint64_t> {
  using type = UInt128;
};
template <>
struct WiderOf<std::int64_t> {
  using type = Int128;
};
template <typename T>
using Wider = typename WiderOf<T>::type;
template <typename T>
using Unsigned = std::make_unsigned_t<T>;
// Wide enough that the arithmetic is neither promoted to a signed type nor loses its wrap-around.
template <typename T>
using Wrapping = std::conditional_t<sizeof(T) < 4, std::uint32_t, Unsigned<T>>;

// Applies a function of 16-bit halves to both halves of a word.
template <typename T, typename F>
HWY_INLINE std::uint32_t by_halves(std::uint32_t a, std::uint32_t b, F f) {
  const auto lo = static_cast<std::uint16_t>(f(static_cast<T>(a & 0xffffU), static_cast<T>(b & 0xffffU)));
  const auto hi = static_cast<std::uint16_t>(f(static_cast<T>(a >> 16U), static_cast<T>(b >> 16U)));
  return lo | static_cast<std::uint32_t>(hi) << 16U;
}

struct Add {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) + static_cast<Wrapping<T>>(b));
  }
};
struct Sub {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) - static_cast<Wrapping<T>>(b));
  }
};
struct MulLo {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(static_cast<Wrapping<T>>(a) * static_cast<Wrapping<T>>(b));
  }
};
struct MulHi {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>((static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b)) >> (sizeof(T) * 8));
  }
};
struct MulWide {
  template <typename T>
  static HWY_INLINE Wider<T> f(T a, T b) {
    return static_cast<Wider<T>>(static_cast<Wider<T>>(a) * static_cast<Wider<T>>(b));
  }
};
struct MadLo {
  template <typename T>
  static HWY_INLINE T f(T a, T b, T c) {
    return Add::f(MulLo::f(a, b), c);
  }
};
struct MadHi {
  template <typename T>
  static HWY_INLINE T f(T a, T b, T c) {
    return Add::f(MulHi::f(a, b), c);
  }
};
struct MadWide {
  template <typename T>
  static HWY_INLINE Wider<T> f(T a, T b, Wider<T> c) {
    return Add::f(MulWide::f(a, b), c);
  }
};
struct Sad {
  template <typename T>
  static HWY_INLINE T f(T a, T b, T c) {
    return Add::f(c, a < b ? Sub::f(b, a) : Sub::f(a, b));
  }
};
struct Min {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return a < b ? a : b;
  }
};
struct Max {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return a < b ? b : a;
  }
};
struct Abs {
  template <typename T>
  static HWY_INLINE T f(T a) {
    return a < 0 ? Sub::f(T{0}, a) : a;
  }
};
struct Neg {
  template <typename T>
  static HWY_INLINE T f(T a) {
    return Sub::f(T{0}, a);
  }
};

HWY_INLINE std::int32_t saturate32(std::int64_t x) {
  x = x > 0x7fffffffLL ? 0x7fffffffLL : x;
  return static_cast<std::int32_t>(x < -0x80000000LL ? -0x80000000LL : x);
}
HWY_INLINE std::int32_t add_sat(std::int32_t a, std::int32_t b) { return saturate32(std::int64_t{a} + b); }
HWY_INLINE std::int32_t sub_sat(std::int32_t a, std::int32_t b) { return saturate32(std::int64_t{a} - b); }
HWY_INLINE std::int32_t mad_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate32(std::int64_t{MulHi::f(a, b)} + c);
}

// Small integers and doubles by their bits: conversions that every SIMD target vectorises.
HWY_INLINE double to_double(std::uint32_t a) {
  return std::bit_cast<double>(0x4330000000000000ULL | a) - 4503599627370496.0;
}
HWY_INLINE std::uint32_t low_word(double integral) {
  return static_cast<std::uint32_t>(std::bit_cast<std::uint64_t>(integral + 4503599627370496.0));
}
// The quotient of two 32-bit numbers, rounded to nearest in double, cannot round up to the next integer: 53 >
// 32 + 1.
HWY_INLINE std::uint32_t div_u32(std::uint32_t a, std::uint32_t b) {
  const std::uint32_t divisor = pick(b == 0, 1U, b);
  return pick(b == 0, 0xffffffffU, low_word(__builtin_trunc(to_double(a) / to_double(divisor))));
}
HWY_INLINE std::uint32_t rem_u32(std::uint32_t a, std::uint32_t b) {
  return pick(b == 0, 0xffffffffU, a - div_u32(a, b) * b);
}
HWY_INLINE std::uint32_t size_of(std::int32_t a) {
  const auto sign = static_cast<std::uint32_t>(a >> 31);
  return (static_cast<std::uint32_t>(a) ^ sign) - sign;
}
HWY_INLINE std::int32_t div_s32(std::int32_t a, std::int32_t b) {
  const auto sign = static_cast<std::uint32_t>((a ^ b) >> 31);
  const std::uint32_t quotient = (div_u32(size_of(a), size_of(b)) ^ sign) - sign;
  return static_cast<std::int32_t>(pick(b == 0, 0xffffffffU, quotient));
}
HWY_INLINE std::int32_t rem_s32(std::int32_t a, std::int32_t b) {
  return pick(b == 0, -1, Sub::f(a, MulLo::f(div_s32(a, b), b)));
}
struct Div {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return Neg::f(a);
    return static_cast<T>(a / b);
  }
};
struct Rem {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    if (b == 0) return static_cast<T>(~T{0});
    if (std::is_signed_v<T> && b == static_cast<T>(-1)) return 0;
    return static_cast<T>(a % b);
  }
};

template <typename T>
HWY_INLINE T low24(T a) {
  return std::is_signed_v<T>
             ? static_cast<T>(static_cast<std::int32_t>(static_cast<std::uint32_t>(a) << 8U) >> 8)
             : static_cast<T>(static_cast<std::uint32_t>(a) & 0xffffffU);
}
struct Mul24Lo {
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>(Wider<T>{low24(a)} * low24(b));
  }
};
struct Mul24Hi {  // bits 47..16 of the 48-bit product
  template <typename T>
  static HWY_INLINE T f(T a, T b) {
    return static_cast<T>((Wider<T>{low24(a)} * low24(b)) >> 16U);
  }
};
struct Mad24Lo {
  template <typename T>
  static HWY_INLINE T f(T a, T b, T c) {
    return Add::f(Mul24Lo::f(a, b), c);
  }
};
struct Mad24Hi {
  template <typename T>
  static HWY_INLINE T f(T a, T b, T c) {
    return Add::f(Mul24Hi::f(a, b), c);
  }
};
HWY_INLINE std::int32_t mad24_hi_sat(std::int32_t a, std::int32_t b, std::int32_t c) {
  return saturate32(std::int64_t{Mul24Hi::f(a, b)} + c);
}

// Packed halves and relu.
template <class Op, typename T>
HWY_INLINE std::uint32_t packed(std::uint32_t a, std::uint32_t b) {
  return by_halves<T>(a, b, [](T x, T y) HWY_ATTR { return Op::f(x, y); });
}
template <class Op>
HWY_INLINE std::int32_t relu32(std::int32_t a, std::int32_t b) {
  return Max::f(Op::f(a, b), 0);
}
template <class Op>
HWY_INLINE std::uint32_t relu_packed(std::uint32_t a, std::uint32_t b) {
  return by_halves<std::int16_t>(
      a, b, [](std::int16_t x, std::int16_t y) HWY_ATTR { return Max::f(Op::f(x, y), std::int16_t{0}); });
}

// ---- Carry. aux[0]: bit 0 reads CC.CF, bit 1 writes it. d = a + b + CF, or a - b less one where CF is
// clear: on the hardware a subtraction leaves the carry of a + ~b + 1, the opposite of a borrow.

template <typename T, bool kSubtract>
HWY_INLINE bool add_with_carry(T a, T b, bool carry, T* d) {
  const UInt128 wide = kSubtract ? UInt128{a} - b - carry : UInt128{a} + b + carry;
  *d = static_cast<T>(wide);
  return ((wide >> (sizeof(T) * 8)) & 1U) != 0;
}

template <typename T, bool kSubtract>
void run_carry(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  T* d = lanes.write<T>(inst.operands[0]);
  const T* a = lanes.read<T>(inst.operands[1]);
  const T* b = lanes.read<T>(inst.operands[2]);
  const std::uint32_t inverted = kSubtract ? kAllLanes : 0U;
  const std::uint32_t carry_in = (inst.aux[0] & 1U) != 0 ? *lanes.carry ^ inverted : 0;
  std::uint32_t carry_out = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask & kLaneBit[i]) == 0) continue;
    if (add_with_carry<T, kSubtract>(a[i], b[i], (carry_in & kLaneBit[i]) != 0, &d[i]) != kSubtract)
      carry_out |= kLaneBit[i];
  }
  if ((inst.aux[0] & 2U) != 0) *lanes.carry = (*lanes.carry & ~mask) | carry_out;
}

template <class Product, typename T>
void run_mad_carry(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  using U = Unsigned<T>;
  U* d = lanes.write<U>(inst.operands[0]);
  const T* a = lanes.read<T>(inst.operands[1]);
  const T* b = lanes.read<T>(inst.operands[2]);
  const U* c = lanes.read<U>(inst.operands[3]);
  const std::uint32_t carry_in = (inst.aux[0] & 1U) != 0 ? *lanes.carry : 0;
  std::uint32_t carry_out = 0;
  for (int i = 0; i < kWarpSize; ++i) {
    if ((mask & kLaneBit[i]) == 0) continue;
    const auto product = static_cast<U>(Product::f(a[i], b[i]));
    if (add_with_carry<U, false>(product, c[i], (carry_in & kLaneBit[i]) != 0, &d[i]))
      carry_out |= kLaneBit[i];
  }
  if ((inst.aux[0] & 2U) != 0) *lanes.carry = (*lanes.carry & ~mask) | carry_out;
}

// ---- Choosing
// ---------------------------------------------------------------------------------------------------

// For operations whose result does not depend on signedness.
template <class Op>
Functions any_sign(Type type) {
  switch (type) {
    case Type::kU16:
    case Type::kS16:
      return lanewise<&Op::template f<std::uint16_t>>();
    case Type::kU32:
    case Type::kS32:
      return lanewise<&Op::template f<std::uint32_t>>();
    case Type::kU64:
    case Type::kS64:
      return lanewise<&Op::template f<std::uint64_t>>();
    default:
      return {};
  }
}
template <class Op>
Functions by_sign(Type type) {
  switch (type) {
    case Type::kU16:
      return lanewise<&Op::template f<std::uint16_t>>();
    case Type::kS16:
      return lanewise<&Op::template f<std::int16_t>>();
    case Type::kU32:
      return lanewise<&Op::template f<std::uint32_t>>();
    case Type::kS32:
      return lanewise<&Op::template f<std::int32_t>>();
    case Type::kU64:
      return lanewise<&Op::template f<std::uint64_t>>();
    case Type::kS64:
      return lanewise<&Op::template f<std::int64_t>>();
    default:
      return {};
  }
}
template <class Op>
Functions wide_by_sign(Type type) {
  switch (type) {
    case Type::kU16:
      return lanewise<&Op::template f<std::uint16_t>>();
    case Type::kS16:
      return lanewise<&Op::template f<std::int16_t>>();
    case Type::kU32:
      return lanewise<&Op::template f<std::uint32_t>>();
    case Type::kS32:
      return lanewise<&Op::template f<std::int32_t>>();
    default:
      return {};
  }
}
template <class Op>
Functions signed_only(Type type) {
  switch (type) {
    case Type::kS16:
      return lanewise<&Op::template f<std::int16_t>>();
    case Type::kS32:
      return lanewise<&Op::template f<std::int32_t>>();
    case Type::kS64:
      return lanewise<&Op::template f<std::int64_t>>();
    default:
      return {};
  }
}

template <class Op>
Functions add_or_sub(const ptx::Instruction& inst) {
  constexpr bool kSubtract = std::is_same_v<Op, Sub>;
  if (inst.carry_in || inst.carry_out) {
    switch (inst.type) {
      case Type::kU32:
      case Type::kS32:
        return same(run_carry<std::uint32_t, kSubtract>);
      case Type::kU64:
      case Type::kS64:
        return same(run_carry<std::uint64_t, kSubtract>);
      default:
        return {};
    }
  }
  if (inst.sat) {
    if (inst.type != Type::kS32) return {};
    return kSubtract ? lanewise<&sub_sat>() : lanewise<&add_sat>();
  }
  if (inst.type == Type::kU16x2 || inst.type == Type::kS16x2) return lanewise<&packed<Op, std::uint16_t>>();
  return any_sign<Op>(inst.type);
}

template <class Op>
Functions min_or_max(const ptx::Instruction& inst) {
  if (inst.relu) {
    if (inst.type == Type::kS32) return lanewise<&relu32<Op>>();
    if (inst.type == Type::kS16x2) return lanewise<&relu_packed<Op>>();
    return {};
  }
  if (inst.type == Type::kU16x2) return lanewise<&packed<Op, std::uint16_t>>();
  if (inst.type == Type::kS16x2) return lanewise<&packed<Op, std::int16_t>>();
  return by_sign<Op>(inst.type);
}

template <class Product>
Functions mad_carry(Type type) {
  switch (type) {
    case Type::kU32:
      return same(run_mad_carry<Product, std::uint32_t>);
    case Type::kS32:
      return same(run_mad_carry<Product, std::int32_t>);
    case Type::kU64:
      return same(run_mad_carry<Product, std::uint64_t>);
    case Type::kS64:
      return same(run_mad_carry<Product, std::int64_t>);
    default:
      return {};
  }
}

Functions mad(const ptx::Instruction& inst) {
  if (inst.carry_in || inst.carry_out) {
    if (inst.mul_mode == MulMode::kLo) return mad_carry<MulLo>(inst.type);
    if (inst.mul_mode == MulMode::kHi) return mad_carry<MulHi>(inst.type);
    return {};
  }
  if (inst.sat) {
    return inst.mul_mode == MulMode::kHi && inst.type == Type::kS32 ? lanewise<&mad_hi_sat>() : Functions{};
  }
  switch (inst.mul_mode) {
    case MulMode::kLo:
      return any_sign<MadLo>(inst.type);
    case MulMode::kHi:
      return by_sign<MadHi>(inst.type);
    case MulMode::kWide:
      return wide_by_sign<MadWide>(inst.type);
    default:
      return {};
  }
}

template <class Lo, class Hi>
Functions with_24_bits(const ptx::Instruction& inst) {
  const bool is_signed = inst.type == Type::kS32;
  if (!is_signed && inst.type != Type::kU32) return {};
  switch (inst.mul_mode) {
    case MulMode::kLo:
      return is_signed ? lanewise<&Lo::template f<std::int32_t>>()
                       : lanewise<&Lo::template f<std::uint32_t>>();
    case MulMode::kHi:
      return is_signed ? lanewise<&Hi::template f<std::int32_t>>()
                       : lanewise<&Hi::template f<std::uint32_t>>();
    default:
      return {};
  }
}

Functions divide(const ptx::Instruction& inst) {
  const bool quotient = inst.op == Opcode::kDiv;
  switch (inst.type) {
    case Type::kU32:
      return quotient ? lanewise<&div_u32>() : lanewise<&rem_u32>();
    case Type::kS32:
      return quotient ? lanewise<&div_s32>() : lanewise<&rem_s32>();
    default:
      return quotient ? by_sign<Div>(inst.type) : by_sign<Rem>(inst.type);
  }
}

}  // namespace

Functions select_integer(const Form& form) {
  const ptx::Instruction& inst = form.inst;
  switch (inst.op) {
    case Opcode::kAdd:
    case Opcode::kAddc:
      return add_or_sub<Add>(inst);
    case Opcode::kSub:
    case Opcode::kSubc:
      return add_or_sub<Sub>(inst);
    case Opcode::kMul:
      switch (inst.mul_mode) {
        case MulMode::kLo:
          return any_sign<MulLo>(inst.type);
        case MulMode::kHi:
          return by_sign<MulHi>(inst.type);
        case MulMode::kWide:
          return wide_by_sign<MulWide>(inst.type);
        default:
          return {};
      }
    case Opcode::kMad:
    case Opcode::kMadc:
      return mad(inst);
    case Opcode::kMul24:
      return with_24_bits<Mul24Lo, Mul24Hi>(inst);
    case Opcode::kMad24:
      if (inst.sat) {
        return inst.mul_mode == MulMode::kHi && inst.type == Type::kS32 ? lanewise<&mad24_hi_sat>()
                                                                        : Functions{};
      }
      return with_24_bits<Mad24Lo, Mad24Hi>(inst);
    case Opcode::kSad:
      return by_sign<Sad>(inst.type);
    case Opcode::kDiv:
    case Opcode::kRem:
      return divide(inst);
    case Opcode::kAbs:
      return signed_only<Abs>(inst.type);
    case Opcode::kNeg:
      return signed_only<Neg>(inst.type);
    case Opcode::kMin:
      return min_or_max<Min>(inst);
    case Opcode::kMax:
      return min_or_max<Max>(inst);
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
HWY_EXPORT(select_integer);
}  // namespace
Functions find_integer(const Form& form) { return HWY_DYNAMIC_DISPATCH(select_integer)(form); }
}  // namespace echolo::vgpu::alu
#endif
