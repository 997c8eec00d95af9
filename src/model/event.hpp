// What the memory model sees of a program: operations on memory, fences, and the two ends of a barrier.
// Terms are those of the PTX ISA, chapter "Memory Consistency Model" (scopes, strong operations, proxies,
// moral strength), and of Lustig, Sahasrabuddhe, Giroux, "A Formal Analysis of the NVIDIA PTX Memory
// Consistency Model" (ASPLOS 2019).
#pragma once

#include <cstdint>

namespace echolo::model {

// The sets of threads that a strong operation can name; each includes the one before.
enum class Scope : std::uint8_t { kCta, kCluster, kGpu, kSys };

// The path by which a memory operation reaches memory ("Proxies"). Operations through different proxies are
// ordered only by a proxy fence.
enum class Proxy : std::uint8_t { kGeneric, kConstant, kTexture, kSurface, kAsync };

enum class Kind : std::uint8_t {
  kRead,
  kWrite,
  kFence,       // fence.acq_rel or fence.sc
  kProxyFence,  // fence.proxy.<proxy>: between the generic proxy and `proxy`, for accesses of its own CTA
  kAliasFence,  // fence.proxy.alias: between virtual addresses of one location
  kPoint,  // orders, but touches nothing: an arrival at or departure from a barrier, a wait that returned
};

// Where a thread runs. CTAs of different clusters or GPUs may share a number; the places differ all the same.
struct Place {
  int gpu = 0;
  int cluster = 0;
  int cta = 0;

  bool operator==(const Place&) const = default;
};

// Whether `scope`, named by a thread at `self`, includes a thread at `other`.
constexpr bool includes(Scope scope, const Place& self, const Place& other) {
  switch (scope) {
    case Scope::kCta:
      return self == other;
    case Scope::kCluster:
      return self.gpu == other.gpu && self.cluster == other.cluster;
    case Scope::kGpu:
      return self.gpu == other.gpu;
    case Scope::kSys:
      return true;
  }
  return false;
}

using EventId = int;
inline constexpr EventId kInitial = -1;  // as a source of a read: the location's initial value
inline constexpr EventId kUnbound = -2;  // a read whose value nobody has needed yet
inline constexpr int kMaxEvents = 128;   // of one machine at a time

struct Event {
  Kind kind = Kind::kPoint;
  Scope scope = Scope::kCta;      // of a strong operation or a fence
  Proxy proxy = Proxy::kGeneric;  // of a memory operation or a proxy fence
  bool strong = false;            // relaxed, acquire, release; fences always are
  bool acquire = false;           // on reads
  bool release = false;           // on writes
  bool sc = false;                // on fences
  bool known = false;             // `value` is known: a read is bound, a write's operands are
  bool absent = false;            // the write of a compare-and-swap that did not match: never happened
  std::int16_t thread = 0;
  std::int16_t index = 0;     // in program order of its thread
  std::int16_t location = 0;  // physical
  std::int16_t address = 0;   // virtual: several may name one location
  EventId partner = -1;       // the other half of a read-modify-write
  EventId source = kUnbound;  // of a read: the write it takes its value from
  std::int64_t value = 0;
};

}  // namespace echolo::model
