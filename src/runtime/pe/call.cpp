// The part of the client that every PE library carries.
#include <cstdlib>
#include <string>

#include "runtime/pe/client.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::runtime::pe {

Call::~Call() { std::free(reply_); }

int Call::send() {
  std::size_t n = 0;
  std::free(reply_);
  reply_ = nullptr;
  const int error = __cudaEcholoCall(static_cast<std::uint16_t>(op_), name_, in.bytes().data(),
                                     in.bytes().size(), &reply_, &n);
  out = wire::Reader(reply_, n);
  return error;
}

int unsupported(const char* name, std::string_view why) {
  wire::Writer note;
  note.text(std::string(name) + ": " + std::string(why));
  __cudaEcholoNote(static_cast<std::uint16_t>(wire::Op::kNoteUnsupported), note.bytes().data(),
                   note.bytes().size());
  return kNotSupported;
}

bool in_arena(const void* p) {
  const auto a = reinterpret_cast<std::uint64_t>(p);
  return a >= vgpu::kArenaBase && a < vgpu::kArenaBase + vgpu::kArenaBytes;
}

bool in_host_range(const void* p) {
  const auto a = reinterpret_cast<std::uint64_t>(p);
  return a >= vgpu::kHostBase && a < vgpu::kHostBase + vgpu::kHostBytes;
}

}  // namespace echolo::runtime::pe
