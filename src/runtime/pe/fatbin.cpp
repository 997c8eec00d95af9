// The container: {u32 magic 0xba55ed50, u16 version 1, u16 header bytes 16, u64 bytes that follow the
// header}, then entries: {u16 kind (1 PTX, 2 ELF), u16 version, u32 header bytes, u64 payload bytes, u32
// compressed bytes, u32 offset of the options, u16 minor, u16 major, u32 arch, u32 offset of the name, u32
// length of the name, u64 flags, ...} with the payload after the entry's header. Flags 0x2000 and 0x8000 mean
// a compressed payload. Seen in nvcc 13.2's output.
#include "runtime/pe/fatbin.hpp"

#include <cstring>

namespace echolo::runtime::pe {
namespace {

constexpr std::uint32_t kContainerMagic = 0xba55ed50U;
constexpr std::size_t kContainerHeader = 16, kEntryHeader = 64;
constexpr std::uint64_t kCompressedFlags = 0x2000U | 0x8000U;

template <typename T>
T load(const std::uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace

std::size_t fatbin_size(const std::uint8_t* data) {
  if (load<std::uint32_t>(data) != kContainerMagic) return 0;
  const std::size_t header = load<std::uint16_t>(data + 6);
  const auto body = load<std::uint64_t>(data + 8);
  return body > (std::uint64_t{1} << 40U) ? 0 : header + body;
}

FatbinContents parse_fatbin(const std::uint8_t* data, std::size_t n) {
  FatbinContents out;
  if (n < kContainerHeader || fatbin_size(data) == 0) {
    out.error = "not a fat binary";
    return out;
  }
  const std::size_t end = fatbin_size(data);
  std::size_t at = load<std::uint16_t>(data + 6);
  if (end > n || at < kContainerHeader) {
    out.error = "the fat binary is cut off";
    return out;
  }
  while (at < end) {
    if (end - at < kEntryHeader) {
      out.error = "an entry of the fat binary is cut off";
      return out;
    }
    const std::uint8_t* entry = data + at;
    const auto kind = load<std::uint16_t>(entry);
    const std::size_t header = load<std::uint32_t>(entry + 4);
    const std::uint64_t payload = load<std::uint64_t>(entry + 8);
    if (header < kEntryHeader || header > end - at || payload > end - at - header) {
      out.error = "an entry of the fat binary is larger than the binary";
      return out;
    }
    const auto compressed = load<std::uint32_t>(entry + 16);
    const auto flags = load<std::uint64_t>(entry + 40);
    if (kind == 2) {
      ++out.n_native;
    } else if (kind == 1 && (compressed != 0 || (flags & kCompressedFlags) != 0)) {
      ++out.n_compressed;
    } else if (kind == 1) {
      FatbinPtx ptx;
      const auto* text = reinterpret_cast<const char*>(entry + header);
      ptx.text.assign(text, ::strnlen(text, payload));  // padded with zeros
      ptx.arch = load<std::uint32_t>(entry + 28);
      const std::size_t name = load<std::uint32_t>(entry + 32), name_bytes = load<std::uint32_t>(entry + 36);
      if (name >= kEntryHeader && name <= header && name_bytes <= header - name) {
        const auto* source = reinterpret_cast<const char*>(entry + name);
        ptx.source.assign(source, ::strnlen(source, name_bytes));
      }
      out.ptx.push_back(std::move(ptx));
    }
    at += header + payload;
  }
  return out;
}

}  // namespace echolo::runtime::pe
