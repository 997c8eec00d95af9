// Tensors as safetensors files (8 bytes header length, JSON header, data), as the node reads inputs and
// writes outputs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "echolo/candidate.hpp"

namespace echolo::runtime {

struct TensorSpec {
  std::string name;
  DType dtype{};
  std::vector<std::int64_t> shape;
  std::uint64_t bytes() const;
};

struct TensorData {
  TensorSpec spec;
  std::vector<std::uint8_t> bytes;  // row-major, little-endian
};

std::uint64_t element_bytes(DType dtype);
// "F32", "BF16": the format's names.
std::string safetensors_name(DType dtype);

// Errors name the file: cannot be read, malformed, a type that tensors here don't have.
Result<std::vector<TensorData>> read_tensors(const std::string& path);
Status write_tensors(const std::string& path, const std::vector<TensorData>& tensors);

}  // namespace echolo::runtime
