#include "shmem/elements.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>

namespace echolo::shmem {
namespace {

constexpr Element integer(std::string_view name, std::uint8_t bytes, bool is_signed, bool wait,
                          bool bitwise_amo, bool standard_amo, bool bitwise_reduce,
                          bool arith_reduce = true) {
  Element e;
  e.name = name;
  e.bytes = bytes;
  e.kind = is_signed ? ElementClass::kSigned : ElementClass::kUnsigned;
  e.rma = true;
  e.wait = wait;
  e.bitwise_amo = bitwise_amo;
  e.standard_amo = standard_amo;
  e.bitwise_reduce = bitwise_reduce;
  e.arith_reduce = arith_reduce;
  return e;
}

constexpr Element floating(std::string_view name, std::uint8_t bytes, ElementClass kind, bool extended_amo) {
  Element e;
  e.name = name;
  e.bytes = bytes;
  e.kind = kind;
  e.rma = true;
  e.extended_amo = extended_amo;
  e.arith_reduce = true;
  return e;
}

constexpr Element untyped(std::string_view name, std::uint8_t bytes) {
  Element e;
  e.name = name;
  e.bytes = bytes;
  return e;
}

// NVSHMEM documentation, tables of standard RMA, AMO, comparison and reduction types (include/nvshmem/
// nvshmem_types_list.h has the same lists for the headers; a test holds the two against each other).
constexpr Element kElements[] = {
    integer("uchar", 1, false, false, false, false, true),
    integer("ushort", 2, false, true, false, false, true),
    integer("uint", 4, false, true, true, true, true),
    integer("ulong", 8, false, true, true, true, true),
    integer("ulonglong", 8, false, true, true, true, true),
    integer("int8", 1, true, false, false, false, true),
    integer("int16", 2, true, false, false, false, true),
    integer("int32", 4, true, true, true, true, true),
    integer("int64", 8, true, true, true, true, true),
    integer("uint8", 1, false, false, false, false, true),
    integer("uint16", 2, false, false, false, false, true),
    integer("uint32", 4, false, true, true, true, true),
    integer("uint64", 8, false, true, true, true, true),
    integer("size", 8, false, true, false, true, true),
    integer("char", 1, true, false, false, false, false),
    integer("schar", 1, true, false, false, false, false),
    integer("short", 2, true, true, false, false, false),
    integer("int", 4, true, true, false, true, false),
    integer("long", 8, true, true, false, true, false),
    integer("longlong", 8, true, true, false, true, false),
    integer("ptrdiff", 8, true, true, false, true, false, false),
    floating("bfloat16", 2, ElementClass::kBfloat16, false),
    floating("half", 2, ElementClass::kHalf, true),
    floating("float", 4, ElementClass::kFloat, true),
    floating("double", 8, ElementClass::kDouble, true),
    untyped("mem", 1),
    untyped("8", 1),
    untyped("16", 2),
    untyped("32", 4),
    untyped("64", 8),
    untyped("128", 16),
};

std::uint64_t truncate(std::uint64_t bits, int bytes) {
  return bytes >= 8 ? bits : bits & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

float half_to_float(std::uint16_t h) {
  const std::uint32_t sign = std::uint32_t{h} >> 15U << 31U;
  const std::uint32_t exponent = (h >> 10U) & 31U;
  const std::uint32_t mantissa = h & 1023U;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | mantissa << 13U);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23U | mantissa << 13U);
  const float subnormal = static_cast<float>(mantissa) * 0x1p-24F;  // exact
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

// Round to nearest, ties to even.
std::uint16_t float_to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = bits >> 16U & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  if (magnitude > 0x7f800000U) return 0x7fff;
  if (magnitude >= 0x477ff000U) return static_cast<std::uint16_t>(sign | 0x7c00U);  // 65520 and up
  if (magnitude < 0x38800000U) {  // below 2^-14: the addition of 0.5 rounds to a multiple of 2^-24
    const float aligned = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(aligned) - 0x3f000000U));
  }
  const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13U & 1U);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000U) >> 13U));
}

float bfloat16_to_float(std::uint16_t b) { return std::bit_cast<float>(std::uint32_t{b} << 16U); }

std::uint16_t float_to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
  return static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16U & 1U)) >> 16U);
}

template <typename T>
T apply(Reduction op, T a, T b) {
  switch (op) {
    case Reduction::kMax:
      return std::isnan(a) ? b : (a < b ? b : a);
    case Reduction::kMin:
      return std::isnan(a) ? b : (b < a ? b : a);
    case Reduction::kSum:
      return a + b;
    case Reduction::kProd:
      return a * b;
    default:
      return a;
  }
}

}  // namespace

std::int64_t sign_extend(std::uint64_t bits, std::size_t bytes) {
  const auto shift = static_cast<unsigned>(64 - 8 * bytes);
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

namespace {
const Element& find_element(std::string_view name) {
  for (const Element& element : kElements) {
    if (element.name == name) return element;
  }
  return kElements[0];
}
}  // namespace

const Element& signal_element() {
  static const Element& element = find_element("uint64");
  return element;
}

const Element& unsigned_element(std::uint8_t bytes) {
  static const Element* const by_width[] = {&find_element("uint8"), &find_element("uint16"),
                                            &find_element("uint32"), &find_element("uint64")};
  return *by_width[bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3];
}

std::span<const Element> elements() { return kElements; }

std::string_view name_of(Reduction op) {
  static constexpr std::string_view kNames[] = {"", "and", "or", "xor", "max", "min", "sum", "prod"};
  return kNames[static_cast<std::size_t>(op)];
}

std::uint64_t reduce(const Element& element, Reduction op, std::uint64_t a, std::uint64_t b) {
  const auto a16 = static_cast<std::uint16_t>(a);
  const auto b16 = static_cast<std::uint16_t>(b);
  switch (element.kind) {
    case ElementClass::kFloat:
      return std::bit_cast<std::uint32_t>(apply(op, std::bit_cast<float>(static_cast<std::uint32_t>(a)),
                                                std::bit_cast<float>(static_cast<std::uint32_t>(b))));
    case ElementClass::kDouble:
      return std::bit_cast<std::uint64_t>(apply(op, std::bit_cast<double>(a), std::bit_cast<double>(b)));
    case ElementClass::kHalf:
      return float_to_half(apply(op, half_to_float(a16), half_to_float(b16)));
    case ElementClass::kBfloat16:
      return float_to_bfloat16(apply(op, bfloat16_to_float(a16), bfloat16_to_float(b16)));
    default:
      break;
  }
  std::uint64_t result = a;
  switch (op) {
    case Reduction::kAnd:
      result = a & b;
      break;
    case Reduction::kOr:
      result = a | b;
      break;
    case Reduction::kXor:
      result = a ^ b;
      break;
    case Reduction::kSum:
      result = a + b;
      break;
    case Reduction::kProd:
      result = a * b;
      break;
    case Reduction::kMax:
    case Reduction::kMin: {
      const bool less = element.kind == ElementClass::kSigned
                            ? sign_extend(a, element.bytes) < sign_extend(b, element.bytes)
                            : truncate(a, element.bytes) < truncate(b, element.bytes);
      result = (op == Reduction::kMax) == less ? b : a;
      break;
    }
    case Reduction::kNone:
      break;
  }
  return truncate(result, element.bytes);
}

bool compare(const Element& element, int cmp, std::uint64_t value, std::uint64_t with) {
  int order = 0;
  if (element.kind == ElementClass::kSigned) {
    const std::int64_t a = sign_extend(value, element.bytes);
    const std::int64_t b = sign_extend(with, element.bytes);
    order = a < b ? -1 : (a > b ? 1 : 0);
  } else {
    const std::uint64_t a = truncate(value, element.bytes);
    const std::uint64_t b = truncate(with, element.bytes);
    order = a < b ? -1 : (a > b ? 1 : 0);
  }
  switch (cmp) {  // NVSHMEM_CMP_EQ, NE, GT, LE, LT, GE
    case 0:
      return order == 0;
    case 1:
      return order != 0;
    case 2:
      return order > 0;
    case 3:
      return order <= 0;
    case 4:
      return order < 0;
    case 5:
      return order >= 0;
    default:
      return false;
  }
}

std::string_view comparison_sign(int cmp) {
  static constexpr std::string_view kSigns[] = {"==", "!=", ">", "<=", "<", ">="};
  return cmp >= 0 && cmp < 6 ? kSigns[cmp] : "?";
}

std::string print(const Element& element, std::uint64_t bits) {
  switch (element.kind) {
    case ElementClass::kSigned:
      return std::to_string(sign_extend(bits, element.bytes));
    case ElementClass::kFloat:
      return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case ElementClass::kDouble:
      return fmt::format("{}", std::bit_cast<double>(bits));
    case ElementClass::kHalf:
      return fmt::format("{}", half_to_float(static_cast<std::uint16_t>(bits)));
    case ElementClass::kBfloat16:
      return fmt::format("{}", bfloat16_to_float(static_cast<std::uint16_t>(bits)));
    default:
      return std::to_string(truncate(bits, element.bytes));
  }
}

}  // namespace echolo::shmem
