// What threads did, event by event, for explaining one finding: accesses to the words that it names, accesses
// at its lines, and barriers, waits and calls of its threads, in the order in which they happened. Bounded;
// costs nothing where nobody asks for it.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "vgpu/exec.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

struct CoreWarp;
class Memory;

struct TraceFilter {
  struct Thread {
    int pe = 0;
    Dim3 block, thread;
  };
  struct Object {
    int pe = -1;              // where the memory lies
    std::string object;       // as FindingAddress::object names it; its source place does not count
    std::int64_t offset = 0;  // bytes; accesses to the same aligned 16 bytes count
  };
  std::vector<Thread> threads;
  std::vector<Object> objects;
  std::vector<std::pair<std::string, int>> lines;  // of the sources: the end of the file's name, the line
  std::size_t most = 400;                          // events kept: the first quarter and the last ones
  bool empty() const { return threads.empty() && objects.empty() && lines.empty(); }
};

struct TraceEvent {
  std::uint64_t ns = 0;  // virtual time
  int pe = 0;
  Dim3 block, thread;  // the first of the warp's threads that it concerns
  int threads = 1;     // how many of the warp it concerns
  Frame where;
  int call = 0;
  std::string what;     // "ld.acquire.sys.global.u32", "barrier: arrives", "nvshmem_quiet: waits"
  std::string address;  // "`flag`, 4 B from nvshmem_malloc at a.cu:12, byte 0 on PE 1"; empty: none
  std::string value;    // "0 -> 1", "3"
};

class Tracer {
 public:
  explicit Tracer(TraceFilter filter) : filter_(std::move(filter)) {}

  // Around an instruction of kind kMemory: before it, what it is about to touch; after it, with what result.
  void before_access(const CoreWarp& warp, const Inst& inst, std::uint32_t mask, const Memory& memory);
  void after_access(const CoreWarp& warp, const Inst& inst, std::uint64_t ns);
  // Anything else that the threads of `mask` do at `inst`, where the finding names one of them.
  void note(const CoreWarp& warp, const Inst& inst, std::uint32_t mask, const std::string& what,
            std::uint64_t ns);

  std::vector<TraceEvent> events() const;
  std::uint64_t skipped() const { return skipped_; }

 private:
  struct Touched {
    int lane = 0;
    std::uint32_t bytes = 0;
    const std::uint8_t* host = nullptr;
    std::uint64_t before = 0;
    std::string address;
  };
  std::uint32_t named_lanes(const CoreWarp& warp, std::uint32_t mask) const;
  bool names_line(const CoreWarp& warp, const Inst& inst) const;
  bool names_word(const Memory& memory, std::uint64_t address) const;
  TraceEvent event(const CoreWarp& warp, const Inst& inst, int lane, std::uint64_t ns) const;
  void keep(TraceEvent event);

  TraceFilter filter_;
  std::vector<Touched> touched_;
  std::vector<TraceEvent> first_;
  std::deque<TraceEvent> last_;
  std::uint64_t skipped_ = 0;
};

}  // namespace echolo::vgpu
