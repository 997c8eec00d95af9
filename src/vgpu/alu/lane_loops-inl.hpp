// The loops over the lanes of a warp, once per SIMD target. A family writes plain functions of one lane's
// values
// (`T f(T a, T b)`), lanewise<f>() makes of them the two functions of an instruction: the compiler vectorises
// the loop. Included through Highway's foreach_target, so it has a guard that flips.
#if defined(ECHOLO_VGPU_ALU_LANE_LOOPS_INL_) == defined(HWY_TARGET_TOGGLE)
#ifdef ECHOLO_VGPU_ALU_LANE_LOOPS_INL_
#undef ECHOLO_VGPU_ALU_LANE_LOOPS_INL_
#else
#define ECHOLO_VGPU_ALU_LANE_LOOPS_INL_
#endif

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "hwy/highway.h"
#include "vgpu/alu/alu.hpp"

HWY_BEFORE_NAMESPACE();
namespace echolo::vgpu::alu {
namespace HWY_NAMESPACE {  // NOLINT(modernize-concat-nested-namespaces)

alignas(128) inline constexpr std::uint32_t kLaneBit[32] = {
    1U << 0U,  1U << 1U,  1U << 2U,  1U << 3U,  1U << 4U,  1U << 5U,  1U << 6U,  1U << 7U,
    1U << 8U,  1U << 9U,  1U << 10U, 1U << 11U, 1U << 12U, 1U << 13U, 1U << 14U, 1U << 15U,
    1U << 16U, 1U << 17U, 1U << 18U, 1U << 19U, 1U << 20U, 1U << 21U, 1U << 22U, 1U << 23U,
    1U << 24U, 1U << 25U, 1U << 26U, 1U << 27U, 1U << 28U, 1U << 29U, 1U << 30U, 1U << 31U};

template <std::size_t kBytes>
struct UnsignedOf;
template <>
struct UnsignedOf<1> {
  using type = std::uint8_t;
};
template <>
struct UnsignedOf<2> {
  using type = std::uint16_t;
};
template <>
struct UnsignedOf<4> {
  using type = std::uint32_t;
};
template <>
struct UnsignedOf<8> {
  using type = std::uint64_t;
};

// condition ? x : y by bits, both computed: what the compiler cannot turn into a branch, it can always
// vectorise.
template <typename T>
HWY_INLINE T pick(bool condition, T x, T y) {
  using U = typename UnsignedOf<sizeof(T)>::type;
  const U mask = static_cast<U>(U{0} - static_cast<U>(condition));
  const U x_bits = std::bit_cast<U>(x), y_bits = std::bit_cast<U>(y);
  return std::bit_cast<T>(static_cast<U>((x_bits & mask) | (y_bits & static_cast<U>(~mask))));
}

// Destination and sources are the same array or do not overlap, so no iteration depends on another: ivdep
// holds.
template <bool kFull, typename D, typename A, D (*kFunction)(A)>
void run_unary(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  D* d = lanes.write<D>(inst.operands[0]);
  const A* a = lanes.read<A>(inst.operands[1]);
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const D result = kFunction(a[i]);
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}

template <bool kFull, typename D, typename A, typename B, D (*kFunction)(A, B)>
void run_binary(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  D* d = lanes.write<D>(inst.operands[0]);
  const A* a = lanes.read<A>(inst.operands[1]);
  const B* b = lanes.read<B>(inst.operands[2]);
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const D result = kFunction(a[i], b[i]);
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}

template <bool kFull, typename D, typename A, typename B, typename C, D (*kFunction)(A, B, C)>
void run_ternary(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  D* d = lanes.write<D>(inst.operands[0]);
  const A* a = lanes.read<A>(inst.operands[1]);
  const B* b = lanes.read<B>(inst.operands[2]);
  const C* c = lanes.read<C>(inst.operands[3]);
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const D result = kFunction(a[i], b[i], c[i]);
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}

template <bool kFull, typename D, typename A, typename B, typename C, typename E, D (*kFunction)(A, B, C, E)>
void run_quaternary(const Lanes& lanes, const Inst& inst, std::uint32_t mask) {
  D* d = lanes.write<D>(inst.operands[0]);
  const A* a = lanes.read<A>(inst.operands[1]);
  const B* b = lanes.read<B>(inst.operands[2]);
  const C* c = lanes.read<C>(inst.operands[3]);
  const E* e = lanes.read<E>(inst.operands[4]);
#pragma GCC ivdep
  for (int i = 0; i < kWarpSize; ++i) {
    const D result = kFunction(a[i], b[i], c[i], e[i]);
    d[i] = kFull ? result : pick((mask & kLaneBit[i]) != 0, result, d[i]);
  }
}

template <auto kFunction, typename D, typename A>
Functions make_lanewise(D (* /*deduces*/)(A)) {
  return {run_unary<false, D, A, kFunction>, run_unary<true, D, A, kFunction>};
}
template <auto kFunction, typename D, typename A, typename B>
Functions make_lanewise(D (* /*deduces*/)(A, B)) {
  return {run_binary<false, D, A, B, kFunction>, run_binary<true, D, A, B, kFunction>};
}
template <auto kFunction, typename D, typename A, typename B, typename C>
Functions make_lanewise(D (* /*deduces*/)(A, B, C)) {
  return {run_ternary<false, D, A, B, C, kFunction>, run_ternary<true, D, A, B, C, kFunction>};
}
template <auto kFunction, typename D, typename A, typename B, typename C, typename E>
Functions make_lanewise(D (* /*deduces*/)(A, B, C, E)) {
  return {run_quaternary<false, D, A, B, C, E, kFunction>, run_quaternary<true, D, A, B, C, E, kFunction>};
}

// The two functions of an instruction whose lanes each compute d = kFunction(a, b, ...).
template <auto kFunction>
Functions lanewise() {
  return make_lanewise<kFunction>(kFunction);
}

// One function for both: for forms too rare to deserve two.
template <auto kFunction>
Functions lanewise_rare() {
  const Functions both = make_lanewise<kFunction>(kFunction);
  return {both.masked, both.masked};
}

inline Functions same(AluFn function) { return {function, function}; }

// A predicate destination: bits of `result` where `mask` says so.
HWY_INLINE void write_predicate(const Lanes& lanes, Slot slot, std::uint32_t result, std::uint32_t mask) {
  std::uint32_t* d = lanes.write<std::uint32_t>(slot);
  *d = (*d & ~mask) | (result & mask);
}

// Gathers one bit a lane of a comparison kFunction(a, b).
template <typename A, typename B, bool (*kFunction)(A, B)>
HWY_INLINE std::uint32_t compare_lanes(const A* a, const B* b) {
  std::uint32_t result = 0;
  for (int i = 0; i < kWarpSize; ++i) result |= kFunction(a[i], b[i]) ? kLaneBit[i] : 0U;
  return result;
}

}  // namespace HWY_NAMESPACE
}  // namespace echolo::vgpu::alu
HWY_AFTER_NAMESPACE();

#endif
