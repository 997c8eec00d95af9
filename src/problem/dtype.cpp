#include "problem/dtype.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

namespace echolo {
namespace {

struct Row {
  const char* name;
  std::size_t bytes;
  bool is_float;
};

// Indexed by DType.
constexpr Row kRows[] = {{"bool", 1, false}, {"u8", 1, false},  {"i8", 1, false},     {"i16", 2, false},
                         {"i32", 4, false},  {"i64", 8, false}, {"f16", 2, true},     {"bf16", 2, true},
                         {"f32", 4, true},   {"f64", 8, true},  {"f8_e4m3", 1, true}, {"f8_e5m2", 1, true}};
static_assert(std::size(kRows) == std::size(kAllDTypes));

const Row& row(DType dtype) { return kRows[static_cast<std::size_t>(dtype)]; }

template <typename T>
T load(const void* data, std::int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(data) + static_cast<std::size_t>(i) * sizeof(T),
              sizeof(T));
  return value;
}

// A binary floating-point number of 1 sign bit, `exponent_bits` and `mantissa_bits`, with subnormals and,
// where `has_infinity`, IEEE's infinities and NaNs; else only the all-ones pattern is NaN (OCP's e4m3).
double decode(std::uint32_t bits, int exponent_bits, int mantissa_bits, bool has_infinity) {
  const std::uint32_t mantissa = bits & ((1U << mantissa_bits) - 1U);
  const std::uint32_t exponent = (bits >> mantissa_bits) & ((1U << exponent_bits) - 1U);
  const bool negative = ((bits >> (mantissa_bits + exponent_bits)) & 1U) != 0;
  const std::uint32_t top = (1U << exponent_bits) - 1U;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  double value;
  if (exponent == top && has_infinity) {
    value =
        mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == top && !has_infinity && mantissa == (1U << mantissa_bits) - 1U) {
    value = std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(mantissa), 1 - bias - mantissa_bits);
  } else {
    value = std::ldexp(static_cast<double>(mantissa | (1U << mantissa_bits)),
                       static_cast<int>(exponent) - bias - mantissa_bits);
  }
  return negative ? -value : value;
}

}  // namespace

const char* dtype_name(DType dtype) { return row(dtype).name; }

std::optional<DType> dtype_from_name(std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (name == dtype_name(dtype)) return dtype;
  }
  return std::nullopt;
}

std::vector<std::string> dtype_names() {
  std::vector<std::string> out;
  for (const DType dtype : kAllDTypes) out.emplace_back(dtype_name(dtype));
  return out;
}

std::size_t dtype_bytes(DType dtype) { return row(dtype).bytes; }

bool dtype_is_float(DType dtype) { return row(dtype).is_float; }

double element_as_double(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::kF64:
      return load<double>(data, i);
    case DType::kF32:
      return static_cast<double>(load<float>(data, i));
    case DType::kBf16:
      return static_cast<double>(
          std::bit_cast<float>(static_cast<std::uint32_t>(load<std::uint16_t>(data, i)) << 16U));
    case DType::kF16:
      return decode(load<std::uint16_t>(data, i), 5, 10, true);
    case DType::kF8E4M3:
      return decode(load<std::uint8_t>(data, i), 4, 3, false);
    case DType::kF8E5M2:
      return decode(load<std::uint8_t>(data, i), 5, 2, true);
    default:
      return static_cast<double>(element_as_int(data, dtype, i));
  }
}

std::int64_t element_as_int(const void* data, DType dtype, std::int64_t i) {
  switch (dtype) {
    case DType::kBool:
    case DType::kU8:
      return load<std::uint8_t>(data, i);
    case DType::kI8:
      return load<std::int8_t>(data, i);
    case DType::kI16:
      return load<std::int16_t>(data, i);
    case DType::kI32:
      return load<std::int32_t>(data, i);
    case DType::kI64:
      return load<std::int64_t>(data, i);
    default:
      return static_cast<std::int64_t>(element_as_double(data, dtype, i));
  }
}

std::int64_t TensorInfo::elements() const {
  std::int64_t n = 1;
  for (const std::int64_t extent : shape) n *= extent;
  return n;
}

std::string shape_text(const std::vector<std::int64_t>& shape) {
  std::string out = "[";
  for (const std::int64_t extent : shape) {
    if (out.size() > 1) out += ", ";
    out += std::to_string(extent);
  }
  return out + "]";
}

}  // namespace echolo
