// Element types: names, sizes and exact conversion to double. The enumeration is the candidate's
// (echolo/candidate.hpp).
#pragma once

#include <echolo/candidate.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace echolo {

inline constexpr DType kAllDTypes[] = {DType::kBool, DType::kU8,  DType::kI8,     DType::kI16,
                                       DType::kI32,  DType::kI64, DType::kF16,    DType::kBf16,
                                       DType::kF32,  DType::kF64, DType::kF8E4M3, DType::kF8E5M2};

// "bool", "u8", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64", "f8_e4m3", "f8_e5m2".
const char* dtype_name(DType dtype);
std::optional<DType> dtype_from_name(std::string_view name);
std::vector<std::string> dtype_names();
std::size_t dtype_bytes(DType dtype);
bool dtype_is_float(DType dtype);

// The element at index `i` of `data` as a double: exact for every type but i64 beyond 2^53.
double element_as_double(const void* data, DType dtype, std::int64_t i);
// The element as a 64-bit integer; valid for bool and integer types only.
std::int64_t element_as_int(const void* data, DType dtype, std::int64_t i);

// A tensor's name, type and shape; no data.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;

  std::int64_t elements() const;
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * dtype_bytes(dtype); }
  bool operator==(const TensorInfo&) const = default;
};

// "[64, 32]".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace echolo
