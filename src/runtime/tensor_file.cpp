#include "runtime/tensor_file.hpp"

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/text.hpp"

namespace echolo::runtime {
namespace {

struct TypeRow {
  DType dtype;
  const char* name;
  std::uint64_t bytes;
};
constexpr TypeRow kTypes[] = {
    {DType::kBool, "BOOL", 1}, {DType::kU8, "U8", 1},          {DType::kI8, "I8", 1},
    {DType::kI16, "I16", 2},   {DType::kI32, "I32", 4},        {DType::kI64, "I64", 8},
    {DType::kF16, "F16", 2},   {DType::kBf16, "BF16", 2},      {DType::kF32, "F32", 4},
    {DType::kF64, "F64", 8},   {DType::kF8E4M3, "F8_E4M3", 1}, {DType::kF8E5M2, "F8_E5M2", 1}};

const TypeRow* row_of(DType dtype) {
  for (const TypeRow& row : kTypes) {
    if (row.dtype == dtype) return &row;
  }
  return nullptr;
}

Error malformed(const std::string& path, const std::string& why) {
  return machine_error(path + ": not a safetensors file: " + why);
}

}  // namespace

std::uint64_t element_bytes(DType dtype) {
  const TypeRow* row = row_of(dtype);
  return row == nullptr ? 0 : row->bytes;
}

std::string safetensors_name(DType dtype) {
  const TypeRow* row = row_of(dtype);
  return row == nullptr ? "" : row->name;
}

std::uint64_t TensorSpec::bytes() const {
  std::uint64_t n = element_bytes(dtype);
  for (const std::int64_t extent : shape) n *= static_cast<std::uint64_t>(extent);
  return n;
}

Result<std::vector<TensorData>> read_tensors(const std::string& path) {
  Result<std::string> file = read_file(path);
  if (!file.ok()) return file.error();
  const std::string& bytes = *file;
  std::uint64_t header_bytes = 0;
  if (bytes.size() < 8) return malformed(path, "too short");
  std::memcpy(&header_bytes, bytes.data(), 8);
  if (header_bytes > bytes.size() - 8) return malformed(path, "the header is longer than the file");
  const auto header = nlohmann::json::parse(
      bytes.begin() + 8, bytes.begin() + 8 + static_cast<std::ptrdiff_t>(header_bytes), nullptr, false);
  if (!header.is_object()) return malformed(path, "the header is no JSON object");
  const std::uint64_t data = 8 + header_bytes;
  std::vector<TensorData> out;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    TensorData tensor;
    tensor.spec.name = name;
    if (!entry.is_object() || !entry.contains("dtype") || !entry["dtype"].is_string() ||
        !entry.contains("shape") || !entry["shape"].is_array() || !entry.contains("data_offsets") ||
        !entry["data_offsets"].is_array() || entry["data_offsets"].size() != 2) {
      return malformed(path, "tensor " + name + " is not described");
    }
    bool known = false;
    for (const TypeRow& row : kTypes) {
      if (entry["dtype"].get<std::string>() == row.name) {
        tensor.spec.dtype = row.dtype;
        known = true;
      }
    }
    if (!known) return malformed(path, "tensor " + name + " has an unknown type");
    for (const auto& extent : entry["shape"]) {
      if (!extent.is_number_unsigned()) return malformed(path, "tensor " + name + " has a strange shape");
      tensor.spec.shape.push_back(extent.get<std::int64_t>());
    }
    for (const auto& offset : entry["data_offsets"]) {
      if (!offset.is_number_unsigned()) return malformed(path, "tensor " + name + " has strange offsets");
    }
    const auto begin = entry["data_offsets"][0].get<std::uint64_t>(),
               end = entry["data_offsets"][1].get<std::uint64_t>();
    if (begin > end || end > bytes.size() - data || end - begin != tensor.spec.bytes() ||
        tensor.spec.shape.size() > 8) {
      return malformed(path, "tensor " + name + " does not fit its data");
    }
    tensor.bytes.assign(bytes.begin() + static_cast<std::ptrdiff_t>(data + begin),
                        bytes.begin() + static_cast<std::ptrdiff_t>(data + end));
    out.push_back(std::move(tensor));
  }
  return out;
}

Status write_tensors(const std::string& path, const std::vector<TensorData>& tensors) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  std::uint64_t at = 0;
  for (const TensorData& tensor : tensors) {
    header[tensor.spec.name] = {{"dtype", safetensors_name(tensor.spec.dtype)},
                                {"shape", tensor.spec.shape},
                                {"data_offsets", {at, at + tensor.bytes.size()}}};
    at += tensor.bytes.size();
  }
  std::string text = header.dump();
  while (text.size() % 8 != 0) text += ' ';
  const std::uint64_t n = text.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &n, 8);
  file += text;
  for (const TensorData& tensor : tensors) file.append(tensor.bytes.begin(), tensor.bytes.end());
  return write_file_atomically(path, file);
}

}  // namespace echolo::runtime
