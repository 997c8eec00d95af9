#include "runtime/pe/sites.hpp"

#include <link.h>
#include <pthread.h>
#include <unistd.h>
#include <unwind.h>

#include <cstdio>
#include <cstring>

#include "runtime/pe/client.hpp"

namespace echolo::runtime::pe {
namespace {

// Fixed storage, because a crash handler reads it too.
struct Segment {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t base = 0;
  std::uint32_t module = 0;
  bool passed_over = false;
};
constexpr int kMaxSegments = 256;
Segment g_segments[kMaxSegments];
int g_n_segments = 0;
std::uint32_t g_n_modules = 0;
pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

const Segment* lookup(std::uint64_t address) {
  const int n = __atomic_load_n(&g_n_segments, __ATOMIC_ACQUIRE);
  for (int i = 0; i < n; ++i) {
    if (address >= g_segments[i].begin && address < g_segments[i].end) return &g_segments[i];
  }
  return nullptr;
}

// Our own libraries and the system's: nobody looks for a fault of theirs.
bool is_passed_over(const char* path) {
  for (const char* system : {"/usr/lib", "/lib", "/usr/lib64", "/lib64"}) {
    const std::size_t n = std::strlen(system);
    if (std::strncmp(path, system, n) == 0 && path[n] == '/') return true;
  }
  const char* slash = std::strrchr(path, '/');
  const char* name = slash == nullptr ? path : slash + 1;
  return std::strncmp(name, "libecholo_cudart", 16) == 0 || std::strncmp(name, "libcudart", 9) == 0 ||
         std::strncmp(name, "libnvshmem_host", 15) == 0;
}

int add_module(dl_phdr_info* info, std::size_t, void* wanted) {
  const std::uint64_t address = *static_cast<std::uint64_t*>(wanted);
  bool hit = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const std::uint64_t begin = info->dlpi_addr + segment.p_vaddr;
    if (address >= begin && address < begin + segment.p_memsz) hit = true;
  }
  if (!hit) return 0;
  char path[4096] = {};
  if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0) {
    std::snprintf(path, sizeof path, "%s", info->dlpi_name);
  } else if (::readlink("/proc/self/exe", path, sizeof path - 1) < 0) {
    path[0] = 0;
  }
  const std::uint32_t module = ++g_n_modules;
  wire::Writer note;
  note.u64(info->dlpi_addr).text(path);
  __cudaEcholoNote(static_cast<std::uint16_t>(wire::Op::kNoteModule), note.bytes().data(),
                   note.bytes().size());
  for (int i = 0; i < info->dlpi_phnum && g_n_segments < kMaxSegments; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    Segment& s = g_segments[g_n_segments];
    s.begin = info->dlpi_addr + segment.p_vaddr;
    s.end = s.begin + segment.p_memsz;
    s.base = info->dlpi_addr;
    s.module = module;
    s.passed_over = is_passed_over(path);
    __atomic_store_n(&g_n_segments, g_n_segments + 1, __ATOMIC_RELEASE);
  }
  return 1;
}

const Segment* find(std::uint64_t address) {
  if (const Segment* known = lookup(address)) return known;
  pthread_mutex_lock(&g_lock);
  if (lookup(address) == nullptr) dl_iterate_phdr(add_module, &address);
  pthread_mutex_unlock(&g_lock);
  return lookup(address);
}

struct Walk {
  wire::Frame* frames;
  int n = 0;
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* argument) {
  auto* walk = static_cast<Walk*>(argument);
  int before = 0;
  const std::uint64_t ip = _Unwind_GetIPInfo(context, &before);
  if (ip == 0) return _URC_END_OF_STACK;
  const Segment* segment = find(ip);
  if (segment == nullptr || segment->passed_over) return _URC_NO_REASON;
  // Return addresses are looked up one byte back, so an exact address is moved one on.
  walk->frames[walk->n].module = segment->module;
  walk->frames[walk->n].offset = ip - segment->base + (before != 0 ? 1 : 0);
  return ++walk->n == wire::kMaxFrames ? _URC_END_OF_STACK : _URC_NO_REASON;
}

}  // namespace

void gather_frames(wire::Frame* frames) {
  Walk walk{frames};
  _Unwind_Backtrace(step, &walk);
}

wire::Frame frame_of(std::uint64_t address, bool exact) {
  wire::Frame frame;
  if (const Segment* segment = find(address)) {
    frame.module = segment->module;
    frame.offset = address - segment->base + (exact ? 1 : 0);
  }
  return frame;
}

}  // namespace echolo::runtime::pe
