// Reading and writing the safetensors format (an 8-byte little-endian header length, a JSON header, the
// data): how tensors pass between processes. The reader trusts nothing: header length, offsets, shapes and
// sizes are checked against the file and each other, tensors must cover the data without gap or overlap, and
// unknown types are refused.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "problem/dtype.hpp"

namespace echolo {

// A tensor whose bytes (contiguous, row-major, little-endian) belong to somebody else.
struct TensorView {
  TensorInfo info;
  std::span<const std::byte> bytes;
};

class Safetensors {
 public:
  // Errors (kUsage, with `file`): cannot be read, malformed.
  static Result<Safetensors> read(const std::string& path);
  // The same from memory; `label` names it in errors.
  static Result<Safetensors> parse(std::string bytes, const std::string& label);

  const std::vector<TensorView>& tensors() const {
    return tensors_;
  }                                                     // in order of their data; views live as long as this
  const TensorView* find(std::string_view name) const;  // null where there is none
  // find(), with an error that names the file and what it holds.
  Result<TensorView> get(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  std::shared_ptr<const std::string> bytes_;  // shared, so that copies keep the views valid
  std::vector<TensorView> tensors_;
  std::map<std::string, std::string> metadata_;
  std::string label_;
};

inline constexpr std::size_t kMaxSafetensorsHeader = 100U << 20U;

// Writes atomically (base/text.hpp). Names must be distinct, and bytes.size() == info.bytes().
Status write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata = {});

}  // namespace echolo
