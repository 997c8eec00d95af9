#include "problem/safetensors.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.hpp"

namespace echolo {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "safetensors data is little-endian");

struct FormatName {
  DType dtype;
  const char* name;
};
constexpr FormatName kFormatNames[] = {
    {DType::kBool, "BOOL"}, {DType::kU8, "U8"},   {DType::kI8, "I8"},          {DType::kI16, "I16"},
    {DType::kI32, "I32"},   {DType::kI64, "I64"}, {DType::kF16, "F16"},        {DType::kBf16, "BF16"},
    {DType::kF32, "F32"},   {DType::kF64, "F64"}, {DType::kF8E4M3, "F8_E4M3"}, {DType::kF8E5M2, "F8_E5M2"}};

const char* format_name(DType dtype) { return kFormatNames[static_cast<std::size_t>(dtype)].name; }

Error malformed(const std::string& label, const std::string& what) {
  return input_error(label, 0, "not a valid safetensors file: " + what);
}

// Parses JSON while refusing keys that occur twice in one object, which nlohmann would silently merge.
Result<Json> parse_header(std::string_view text, const std::string& label) {
  std::vector<std::set<std::string>> seen;
  std::string twice;
  const Json::parser_callback_t watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (event == Json::parse_event_t::object_start) seen.emplace_back();
    if (event == Json::parse_event_t::object_end) seen.pop_back();
    if (event == Json::parse_event_t::key && !seen.back().insert(parsed.get<std::string>()).second) {
      twice = parsed.get<std::string>();
    }
    return depth <= 8;
  };
  Json header = Json::parse(text, watch, false);
  if (header.is_discarded() || !header.is_object())
    return malformed(label, "its header is not a JSON object");
  if (!twice.empty()) return malformed(label, "its header has '" + printable(twice) + "' twice");
  return header;
}

Result<std::uint64_t> whole_number(const Json& value, const std::string& label, const std::string& what) {
  if (!value.is_number_unsigned()) return malformed(label, what + " is not a whole number");
  return value.get<std::uint64_t>();
}

struct Entry {
  TensorInfo info;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

Result<Entry> read_entry(const std::string& name, const Json& json, std::uint64_t n_data,
                         const std::string& label) {
  const std::string who = "tensor '" + printable(name) + "'";
  if (!json.is_object() || json.size() != 3 || !json.contains("dtype") || !json.contains("shape") ||
      !json.contains("data_offsets")) {
    return malformed(label, who + " must have dtype, shape and data_offsets, and nothing else");
  }
  Entry entry;
  entry.info.name = name;
  const auto* format =
      std::find_if(std::begin(kFormatNames), std::end(kFormatNames), [&](const FormatName& f) {
        return json["dtype"].is_string() && json["dtype"].get<std::string>() == f.name;
      });
  if (format == std::end(kFormatNames)) {
    return malformed(label, who + " has the unsupported dtype " + printable(json["dtype"].dump()));
  }
  entry.info.dtype = format->dtype;
  if (!json["shape"].is_array() || json["shape"].size() > 8) {
    return malformed(label, who + "'s shape is not an array of at most 8 numbers");
  }
  std::uint64_t n_bytes = dtype_bytes(format->dtype);
  for (const Json& extent : json["shape"]) {
    const Result<std::uint64_t> value = whole_number(extent, label, who + "'s shape");
    if (!value) return value.error();
    if (*value > static_cast<std::uint64_t>(INT64_MAX) || __builtin_mul_overflow(n_bytes, *value, &n_bytes)) {
      return malformed(label, who + "'s shape is too large");
    }
    entry.info.shape.push_back(static_cast<std::int64_t>(*value));
  }
  const Json& offsets = json["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2)
    return malformed(label, who + "'s data_offsets are not two numbers");
  const Result<std::uint64_t> begin = whole_number(offsets[0], label, who + "'s data offset");
  if (!begin) return begin.error();
  const Result<std::uint64_t> end = whole_number(offsets[1], label, who + "'s data offset");
  if (!end) return end.error();
  if (*begin > *end || *end > n_data) return malformed(label, who + "'s data lies outside the file");
  if (*end - *begin != n_bytes) {
    return malformed(label, who + " has " + with_commas(*end - *begin) +
                                " bytes of data, its shape asks for " + with_commas(n_bytes));
  }
  entry.begin = *begin;
  entry.end = *end;
  return entry;
}

}  // namespace

Result<Safetensors> Safetensors::read(const std::string& path) {
  Result<std::string> bytes = read_file(path);
  if (!bytes) return bytes.error();
  return parse(std::move(*bytes), path);
}

Result<Safetensors> Safetensors::parse(std::string bytes, const std::string& label) {
  Safetensors out;
  out.label_ = label;
  out.bytes_ = std::make_shared<const std::string>(std::move(bytes));
  const std::string& all = *out.bytes_;
  std::uint64_t n_header = 0;
  if (all.size() < sizeof n_header) return malformed(label, "it is shorter than its 8-byte header length");
  std::memcpy(&n_header, all.data(), sizeof n_header);
  if (n_header > kMaxSafetensorsHeader || n_header > all.size() - sizeof n_header) {
    return malformed(label, "its header of " + with_commas(n_header) + " bytes does not fit the file");
  }
  const std::string_view text(all.data() + sizeof n_header, n_header);
  if (text.empty() || text.front() != '{') return malformed(label, "its header does not begin with '{'");
  const Result<Json> header = parse_header(text, label);
  if (!header) return header.error();
  const char* data = all.data() + sizeof n_header + n_header;
  const std::uint64_t n_data = all.size() - sizeof n_header - n_header;

  std::vector<Entry> entries;
  for (const auto& [name, value] : header->items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return malformed(label, "__metadata__ is not an object");
      for (const auto& [key, text_value] : value.items()) {
        if (!text_value.is_string())
          return malformed(label, "__metadata__ holds something else than strings");
        out.metadata_[key] = text_value.get<std::string>();
      }
      continue;
    }
    Result<Entry> entry = read_entry(name, value, n_data, label);
    if (!entry) return entry.error();
    entries.push_back(std::move(*entry));
  }
  std::stable_sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (Entry& entry : entries) {
    if (entry.begin != covered) {
      return malformed(
          label, "tensor '" + printable(entry.info.name) + "' overlaps another, or data lies before it");
    }
    covered = entry.end;
    out.tensors_.push_back(
        {std::move(entry.info), std::as_bytes(std::span(data + entry.begin, entry.end - entry.begin))});
  }
  if (covered != n_data)
    return malformed(label, with_commas(n_data - covered) + " bytes belong to no tensor");
  return out;
}

const TensorView* Safetensors::find(std::string_view name) const {
  for (const TensorView& tensor : tensors_) {
    if (tensor.info.name == name) return &tensor;
  }
  return nullptr;
}

Result<TensorView> Safetensors::get(std::string_view name) const {
  if (const TensorView* tensor = find(name)) return *tensor;
  std::vector<std::string> names;
  for (const TensorView& tensor : tensors_) names.push_back(tensor.info.name);
  return input_error(label_, 0, "there is no tensor '" + std::string(name) + "'",
                     names.empty() ? "the file holds no tensors" : "it holds " + join(names, ", "));
}

Status write_safetensors(const std::string& path, std::span<const TensorView> tensors,
                         const std::map<std::string, std::string>& metadata) {
  Json header = Json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  // Widest elements first, so that every tensor is aligned to its own element.
  std::vector<const TensorView*> order;
  for (const TensorView& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorView* a, const TensorView* b) {
    return dtype_bytes(a->info.dtype) > dtype_bytes(b->info.dtype);
  });
  std::uint64_t at = 0;
  for (const TensorView* tensor : order) {
    const TensorInfo& info = tensor->info;
    if (tensor->bytes.size() != info.bytes()) {
      return machine_error("tensor '" + info.name + "' of shape " + shape_text(info.shape) + " comes with " +
                           with_commas(tensor->bytes.size()) + " bytes instead of " +
                           with_commas(info.bytes()));
    }
    if (info.name == "__metadata__" || header.contains(info.name)) {
      return machine_error("two tensors, or a tensor and the metadata, are called '" + info.name + "'");
    }
    header[info.name] = {{"dtype", format_name(info.dtype)},
                         {"shape", info.shape},
                         {"data_offsets", {at, at + tensor->bytes.size()}}};
    at += tensor->bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t n_header = text.size();
  std::string bytes(sizeof n_header, '\0');
  std::memcpy(bytes.data(), &n_header, sizeof n_header);
  bytes.reserve(sizeof n_header + text.size() + at);
  bytes += text;
  for (const TensorView* tensor : order) {
    bytes.append(reinterpret_cast<const char*>(tensor->bytes.data()), tensor->bytes.size());
  }
  return write_file_atomically(path, bytes);
}

}  // namespace echolo
