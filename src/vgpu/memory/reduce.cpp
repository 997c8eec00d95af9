#include <cstring>

#include "vgpu/memory/updates.hpp"

namespace echolo::vgpu {

namespace {

using namespace updates;  // NOLINT(google-build-using-namespace)
using ptx::SubOp;
using ptx::Type;

template <typename T, Update<T> kUpdate>
void apply(std::uint8_t* to, const std::uint8_t* from) {
  T a, b;
  std::memcpy(&a, to, sizeof a);
  std::memcpy(&b, from, sizeof b);
  a = kUpdate(a, b, T{}, false);
  std::memcpy(to, &a, sizeof a);
}

template <typename T>
ReduceFn bits(SubOp op) {
  switch (op) {
    case SubOp::kAnd:
      return apply<T, bit_and<T>>;
    case SubOp::kOr:
      return apply<T, bit_or<T>>;
    case SubOp::kXor:
      return apply<T, bit_xor<T>>;
    default:
      return nullptr;
  }
}

template <typename T>
ReduceFn integer(SubOp op, bool is_signed) {
  switch (op) {
    case SubOp::kAdd:
      return apply<T, add<T>>;
    case SubOp::kMin:
      return is_signed ? apply<T, minimum_signed<T>> : apply<T, minimum<T>>;
    case SubOp::kMax:
      return is_signed ? apply<T, maximum_signed<T>> : apply<T, maximum<T>>;
    default:
      return bits<T>(op);
  }
}

template <typename Format>
ReduceFn half(SubOp op) {
  switch (op) {
    case SubOp::kAdd:
      return apply<std::uint16_t, add_half<Format>>;
    case SubOp::kMin:
      return apply<std::uint16_t, pick_half<Format, false>>;
    case SubOp::kMax:
      return apply<std::uint16_t, pick_half<Format, true>>;
    default:
      return nullptr;
  }
}

template <typename Format>
ReduceFn half_pair(SubOp op) {
  switch (op) {
    case SubOp::kAdd:
      return apply<std::uint32_t, both_halves<add_half<Format>>>;
    case SubOp::kMin:
      return apply<std::uint32_t, both_halves<pick_half<Format, false>>>;
    case SubOp::kMax:
      return apply<std::uint32_t, both_halves<pick_half<Format, true>>>;
    default:
      return nullptr;
  }
}

}  // namespace

ReduceFn reduce_function(SubOp op, Type type) {
  switch (type) {
    case Type::kB32:
      return bits<std::uint32_t>(op);
    case Type::kB64:
      return bits<std::uint64_t>(op);
    case Type::kU32:
    case Type::kS32:
      if (op == SubOp::kInc && type == Type::kU32) return apply<std::uint32_t, increment>;
      if (op == SubOp::kDec && type == Type::kU32) return apply<std::uint32_t, decrement>;
      return integer<std::uint32_t>(op, type == Type::kS32);
    case Type::kU64:
    case Type::kS64:
      return integer<std::uint64_t>(op, type == Type::kS64);
    case Type::kF32:
      return op == SubOp::kAdd ? apply<std::uint32_t, add_f32> : nullptr;
    case Type::kF64:
      return op == SubOp::kAdd ? apply<std::uint64_t, add_f64> : nullptr;
    case Type::kF16:
      return half<F16Format>(op);
    case Type::kBf16:
      return half<Bf16Format>(op);
    case Type::kF16x2:
      return half_pair<F16Format>(op);
    case Type::kBf16x2:
      return half_pair<Bf16Format>(op);
    default:
      return nullptr;
  }
}

}  // namespace echolo::vgpu
