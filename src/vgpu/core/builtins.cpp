// printf, assert, malloc and free of device code (CUDA C++ Programming Guide, "Formatted Output",
// "Assertion", "Dynamic Global Memory Allocation and Operations").
#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/text.hpp"
#include "vgpu/core/engine.hpp"
#include "vgpu/core/sites.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kMaxString = 8192;
constexpr int kMaxFieldWidth = 1024;

// Reads what one lane sees at generic addresses.
class LaneReader {
 public:
  LaneReader(CoreWarp& warp, const Inst& inst, int lane, Memory& memory)
      : warp_(warp), inst_(inst), lane_(lane), memory_(memory) {}

  bool read(std::uint64_t address, void* to, std::size_t n) {
    if (address >= kLocalWindow && address + n <= kLocalWindow + warp_.local_bytes) {
      std::memcpy(to, warp_.lane_local(lane_) + (address - kLocalWindow), n);
      return true;
    }
    const auto& shared = warp_.block->shared;
    if (address >= kSharedWindow && address + n <= kSharedWindow + shared.size()) {
      std::memcpy(to, shared.data() + (address - kSharedWindow), n);
      return true;
    }
    Memory::Accessor who;
    who.warp = &warp_;
    who.inst = &inst_;
    who.lane = lane_;
    who.pe = warp_.block->grid->pe;
    who.what = "printf";
    return memory_.read(address, to, n, who);
  }

  // A string up to its NUL; false: a fatal finding was logged.
  bool string(std::uint64_t address, std::string& text) {
    text.clear();
    const Allocation* in = memory_.find(address);
    while (text.size() < kMaxString) {
      char chunk[64];
      std::size_t n = 1;
      if (in != nullptr)
        n = std::min<std::uint64_t>(
            sizeof chunk,
            std::max<std::uint64_t>(in->base + in->size - std::min(address, in->base + in->size), 1));
      if (!read(address, chunk, n)) return false;
      const auto* end = static_cast<const char*>(std::memchr(chunk, 0, n));
      if (end != nullptr) {
        text.append(chunk, static_cast<std::size_t>(end - chunk));
        return true;
      }
      text.append(chunk, n);
      address += n;
    }
    return true;
  }

 private:
  CoreWarp& warp_;
  const Inst& inst_;
  int lane_;
  Memory& memory_;
};

// The argument buffer of vprintf: each value at its natural alignment.
class Arguments {
 public:
  Arguments(LaneReader& reader, std::uint64_t at) : reader_(reader), start_(at) {}
  template <typename T>
  bool next(T& value) {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const bool ok = reader_.read(start_ + offset_, &value, sizeof(T));
    offset_ += sizeof(T);
    return ok;
  }

 private:
  LaneReader& reader_;
  std::uint64_t start_, offset_ = 0;
};

template <typename T>
void append_formatted(std::string& out, const std::string& spec, int width, int precision, T value) {
  char small[512];
  const int n = std::snprintf(small, sizeof small, spec.c_str(), width, precision, value);
  if (n < 0) return;
  if (static_cast<std::size_t>(n) < sizeof small) {
    out.append(small, static_cast<std::size_t>(n));
    return;
  }
  std::string large(static_cast<std::size_t>(n) + 1, '\0');
  std::snprintf(large.data(), large.size(), spec.c_str(), width, precision, value);
  out.append(large.data(), static_cast<std::size_t>(n));
}

// One conversion, from behind its '%'; moves `at` behind it. False: a fatal finding was logged.
bool convert(const std::string& format, std::size_t& at, Arguments& arguments, LaneReader& reader,
             std::string& out, int& n_converted) {
  const std::size_t start = at;
  std::string spec = "%";
  while (at < format.size() && std::strchr("-+ #0", format[at]) != nullptr) spec += format[at++];
  const auto number = [&](int& value) {
    if (at < format.size() && format[at] == '*') {
      ++at;
      std::int32_t given = 0;
      if (!arguments.next(given)) return false;
      value = std::clamp(given, -kMaxFieldWidth, kMaxFieldWidth);
      return true;
    }
    value = 0;
    while (at < format.size() && format[at] >= '0' && format[at] <= '9') {
      value = std::min(kMaxFieldWidth, value * 10 + (format[at++] - '0'));
    }
    return true;
  };
  int width = 0;
  int precision = -1;
  if (!number(width)) return false;
  if (at < format.size() && format[at] == '.') {
    ++at;
    if (!number(precision)) return false;
  }
  bool is_long = false;
  int shorts = 0;
  while (at < format.size() && std::strchr("hlzjtLqI", format[at]) != nullptr) {
    if (format[at] == 'h') ++shorts;
    if (std::strchr("lzjtq", format[at]) != nullptr) is_long = true;
    ++at;
  }
  if (at >= format.size()) {
    out.append("%").append(format, start, std::string::npos);
    return true;
  }
  const char conversion = format[at++];
  spec += "*.*";
  // A negative precision counts as none given (C11 7.21.6.1), so that "*.*" serves every form.
  switch (conversion) {
    case '%':
      out += '%';
      return true;
    case 'd':
    case 'i': {
      std::int64_t value = 0;
      std::int32_t narrow = 0;
      if (!(is_long ? arguments.next(value) : arguments.next(narrow))) return false;
      if (!is_long)
        value = shorts == 1  ? static_cast<std::int16_t>(narrow)
                : shorts > 1 ? static_cast<std::int8_t>(narrow)
                             : narrow;
      append_formatted(out, spec + "lld", width, precision, static_cast<long long>(value));
      break;
    }
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      std::uint64_t value = 0;
      std::uint32_t narrow = 0;
      if (!(is_long ? arguments.next(value) : arguments.next(narrow))) return false;
      if (!is_long)
        value = shorts == 1  ? static_cast<std::uint16_t>(narrow)
                : shorts > 1 ? static_cast<std::uint8_t>(narrow)
                             : narrow;
      append_formatted(out, spec + "ll" + conversion, width, precision,
                       static_cast<unsigned long long>(value));
      break;
    }
    case 'c': {
      std::int32_t value = 0;
      if (!arguments.next(value)) return false;
      append_formatted(out, spec + "c", width, precision, value);
      break;
    }
    case 'f':
    case 'F':
    case 'e':
    case 'E':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      double value = 0;
      if (!arguments.next(value)) return false;
      append_formatted(out, spec + conversion, width, precision, value);
      break;
    }
    case 'p': {
      std::uint64_t value = 0;
      if (!arguments.next(value)) return false;
      char text[32];
      std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
      append_formatted(out, spec + "s", width, -1, static_cast<const char*>(text));
      break;
    }
    case 's': {
      std::uint64_t address = 0;
      std::string text = "(null)";
      if (!arguments.next(address)) return false;
      if (address != 0 && !reader.string(address, text)) return false;
      append_formatted(out, spec + "s", width, precision, text.c_str());
      break;
    }
    default:  // printed as it stands
      out.append("%").append(format, start, at - start);
      return true;
  }
  ++n_converted;
  return true;
}

bool format_message(LaneReader& reader, std::uint64_t format_address, std::uint64_t argument_address,
                    std::string& out, int& n_converted) {
  std::string format;
  if (!reader.string(format_address, format)) return false;
  Arguments arguments(reader, argument_address);
  for (std::size_t at = 0; at < format.size();) {
    if (format[at] != '%') {
      out += format[at++];
      continue;
    }
    ++at;
    if (!convert(format, at, arguments, reader, out, n_converted)) return false;
  }
  return true;
}

void set_result(CoreWarp& warp, std::uint32_t at, int lane, const void* value, std::size_t n) {
  std::memcpy(warp.lane_local(lane) + at, value, n);
  for (std::size_t i = static_cast<std::size_t>(lane) * warp.local_bytes + at, end = i + n; i < end; ++i) {
    warp.local_written[i / 8] = static_cast<std::uint8_t>(warp.local_written[i / 8] | 1U << (i % 8));
  }
}

// The address, or 0 where no memory is left.
std::uint64_t device_malloc(Memory& memory, const CoreWarp& warp, const Inst& inst, int lane,
                            std::uint64_t bytes) {
  constexpr std::uint64_t kAlignment = 16;
  if (bytes == 0) return 0;
  const Site site = make_site(warp, lane, inst, "allocation");
  const std::string where =
      site.where.line > 0 ? site.where.file + ":" + std::to_string(site.where.line) : std::string();
  const Result<std::uint64_t> address = memory.allocate(
      warp.block->grid->pe, bytes, kAlignment, AllocationKind::kDevice, "", "malloc() of a kernel", where);
  return address.ok() ? *address : 0;
}

std::string place(const Dim3& at) {
  return "[" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + "]";
}

}  // namespace

bool Machine::State::builtin(CoreWarp& warp, const Inst& inst, const CallSite& site, std::uint32_t mask) {
  Group& group = warp.groups[warp.current];
  ++warp.effects;
  const auto argument = [&](int lane, std::size_t i) {
    const ParamPiece& piece = site.arguments[i];
    std::uint64_t value = 0;
    std::memcpy(&value, warp.lane_local(lane) + group.frame->local_base + piece.at,
                std::min<std::size_t>(piece.bytes, 8));
    return value;
  };
  const int pe = warp.block->grid->pe;
  for (std::uint32_t bits = mask; bits != 0; bits &= bits - 1) {
    const int lane = std::countr_zero(bits);
    LaneReader reader(warp, inst, lane, *memory);
    if (site.builtin == Builtin::kVprintf) {
      std::string text;
      int n_converted = 0;
      if (!format_message(reader, argument(lane, 0), argument(lane, 1), text, n_converted)) return false;
      if (sink) sink(pe, text);
      if (!site.results.empty()) {
        set_result(warp, group.frame->local_base + site.results[0].at, lane, &n_converted,
                   sizeof n_converted);
      }
      continue;
    }
    if (site.builtin == Builtin::kMalloc) {
      const std::uint64_t address = device_malloc(*memory, warp, inst, lane, argument(lane, 0));
      if (!site.results.empty())
        set_result(warp, group.frame->local_base + site.results[0].at, lane, &address, sizeof address);
      continue;
    }
    if (site.builtin == Builtin::kFree) {
      const std::uint64_t address = argument(lane, 0);
      const Allocation* const found = address == 0 ? nullptr : memory->find(address);
      if (address == 0) continue;
      if (found == nullptr || found->base != address || found->maker != "malloc() of a kernel") {
        trap(warp, inst, 1U << static_cast<unsigned>(lane),
             "free() is given a pointer that malloc() of a kernel did not return, or that is freed already");
        return false;
      }
      static_cast<void>(memory->release(address).ok());  // it is the start of a live allocation
      continue;
    }
    std::string condition;
    std::string file;
    std::string function;
    if (!reader.string(argument(lane, 0), condition) || !reader.string(argument(lane, 1), file) ||
        !reader.string(argument(lane, 3), function)) {
      return false;
    }
    const std::string line = std::to_string(static_cast<std::uint32_t>(argument(lane, 2)));
    if (sink) {
      sink(pe, file + ":" + line + ": " + function + ": block: " + place(warp.block->index) + ", thread: " +
                   place(thread_index(warp, lane)) + " Assertion `" + condition + "` failed.\n");
    }
    if (bits == mask)
      trap(warp, inst, mask, "assertion `" + printable(condition) + "` failed in " + printable(function));
  }
  if (findings.has_fatal()) return false;
  ++group.pc;
  return true;
}

}  // namespace echolo::vgpu
