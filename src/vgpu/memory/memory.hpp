// The memory of the virtual node: one arena at a fixed address, the allocations in it, and the one place that
// every access of a kernel, a copy or a remote operation passes (checkers sit there).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "vgpu/exec.hpp"
#include "vgpu/finding.hpp"
#include "vgpu/order/order.hpp"

namespace echolo::vgpu {

// Address layout (equal in the node and, reserved and inaccessible, in every PE process).
inline constexpr int kMaxPes = 64;
inline constexpr std::uint64_t kArenaBase = 0x2000'0000'0000ULL;
inline constexpr std::uint64_t kPeSpan =
    1ULL << 38U;  // 256 GiB a PE: device memory, from 160 GiB on the symmetric heap
inline constexpr std::uint64_t kArenaBytes = kPeSpan * kMaxPes;
// Pinned, mapped and managed host memory: real host memory of the PE, shared with the node at the same
// address.
inline constexpr std::uint64_t kHostBase = 0x3000'0000'0000ULL;
inline constexpr std::uint64_t kHostSpan = 1ULL << 34U;  // 16 GiB a PE
inline constexpr std::uint64_t kHostBytes = kHostSpan * kMaxPes;

// Multicast addresses: a window of kPeSpan for each group of PEs; what lies at an offset of the window lies
// at that offset of each PE's symmetric heap.
inline constexpr std::uint64_t kMulticastBase = 0x6000'0000'0000ULL;
inline constexpr std::size_t kMaxMulticastGroups = 256;

enum class AllocationKind : std::uint8_t {
  kDevice,     // cudaMalloc and its like
  kSymmetric,  // nvshmem_malloc and its like
  kGlobal,     // a .global variable of a module
  kConstant,   // a .const variable of a module
  kPinned,
  kManaged,
  kInternal,  // the node's own (grid-sync workspace, judge's tensors): never reported as a leak
};

struct Allocation {
  std::uint64_t base = 0, size = 0;
  int pe = -1;
  AllocationKind kind{};
  std::string name;   // a variable's name, an argument expression where known ("buf"), or empty
  std::string maker;  // "nvshmem_malloc"
  std::string where;  // "candidate.cu:12"; may be empty
  std::uint64_t serial = 0;
  bool live = true;
  std::uint64_t opened_by = 0;  // PEs that reach it through an IPC handle, a bit each
  // "`buf`, 64 KiB from nvshmem_malloc at candidate.cu:12"
  std::string describe() const;
};

// What is looked for at each access. A verdict needs all of it; switched off only to measure what it costs.
struct Checkers {
  bool races = true;
  bool unwritten = true;
};

struct MemoryConfig {
  int n_pes = 1;
  std::uint64_t seed = 1;                      // permutes where each PE's memory starts
  std::uint64_t device_bytes = 141ULL << 30U;  // capacity of one PE (H200)
  std::uint64_t symmetric_bytes = 64ULL << 30U;
  bool peers_reachable =
      true;  // --fabric nvlink; false: nvshmem_ptr is null and a plain peer access is a fault
  // Of 256 strong loads that may return an older value, so many do (vgpu/order/versions.cpp).
  std::uint32_t older_values = 0;
  Checkers checkers;
};

class AsyncCopies;  // vgpu/memory/async.hpp
class Meter;        // vgpu/meter/meter.hpp

class Memory {
 public:
  static Result<std::unique_ptr<Memory>> create(const MemoryConfig& config, FindingLog& findings);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // ---- allocations ----
  // Fresh memory is marked never-written and reads as a poison pattern (kPinned and kManaged: zeros, not
  // marked, for the PE's process writes there unseen). `alignment` a power of two, 256 at least for
  // cudaMalloc; `size` > 0. At least 512 bytes lie between two allocations. Error: out of memory (as
  // cudaErrorMemoryAllocation would be).
  Result<std::uint64_t> allocate(int pe, std::uint64_t size, std::uint64_t alignment, AllocationKind kind,
                                 std::string name, std::string maker, std::string where);
  // Symmetric: the same heap offset on every PE in `sizes` order (PE 0 first). Sizes must agree; the caller
  // checks.
  Result<std::vector<std::uint64_t>> allocate_symmetric(std::uint64_t size, std::uint64_t alignment,
                                                        const std::string& maker,
                                                        const std::vector<std::string>& where);
  // Frees; later accesses are out-of-bounds ("freed"). Error: `base` is not the start of a live allocation
  // (the message says what it is instead).
  Status release(std::uint64_t base);
  // The allocation that holds `address`, live or (with `freed`) the last that did; nullptr: none.
  const Allocation* find(std::uint64_t address) const;
  const Allocation* find_freed(std::uint64_t address) const;
  std::vector<const Allocation*> live_allocations(int pe) const;  // by serial; pe -1: of all
  std::uint64_t free_bytes(int pe) const;  // device memory that is left (cudaMemGetInfo)
  void set_name(std::uint64_t base, std::string name);

  // An IPC handle of this allocation has been opened (or closed) by a PE: it may reach it (or not any more).
  // False: `base` is not the start of a live allocation.
  bool open_to(std::uint64_t base, int pe, bool open);

  // ---- addresses that are reserved first and get memory later (CUDA driver API, "Virtual Memory
  // Management") ---- Reserved addresses count as used device memory. What is mapped and accessible is an
  // allocation, one for each run without a gap.
  Result<std::uint64_t> reserve(int pe, std::uint64_t size, std::uint64_t alignment, std::string maker,
                                std::string where);
  // False: it is not exactly such a range of the PE, or something is mapped in it.
  bool unreserve(int pe, std::uint64_t base, std::uint64_t size);
  // False: not in one reserved range of the PE, or something is mapped there.
  bool map(int pe, std::uint64_t address, std::uint64_t size, std::uint64_t handle);
  // Whole mappings only; their handles. Empty: that is not what [address, address + size) is.
  std::vector<std::uint64_t> unmap(int pe, std::uint64_t address, std::uint64_t size);
  // Of whole mappings. False as above.
  bool allow_access(int pe, std::uint64_t address, std::uint64_t size, bool allowed);
  // The mapping that holds an address.
  struct Mapped {
    std::uint64_t address = 0, size = 0, handle = 0;
    bool accessible = false;
  };
  std::optional<Mapped> mapped_at(std::uint64_t address) const;
  bool is_reserved(std::uint64_t address) const;

  // ---- addresses ----
  int pe_of(std::uint64_t address) const;          // -1: not in any PE's range
  std::uint64_t symmetric_base(int pe) const;      // start of the PE's symmetric heap
  bool is_symmetric(std::uint64_t address) const;  // inside a live symmetric allocation
  // The same object of the symmetric heap on another PE; 0 where `address` is not symmetric.
  std::uint64_t translate(std::uint64_t address, int to_pe) const;
  int host_fd(int pe) const;  // memfd of the PE's pinned memory, to be passed to its process
  std::uint64_t host_base(int pe) const;

  // ---- access by others than kernels (copies, NVSHMEM operations, the judge) ----
  // All check bounds against allocations. On a fault a finding made from `who` is logged (fatal) and false
  // returned. Cheap to make (device calls make one an operation): the Site is built only where a finding
  // needs it.
  struct Accessor {
    const Warp* warp = nullptr;  // who does it: this lane of this warp at this instruction, ...
    const Inst* inst = nullptr;
    int lane = 0;
    const Site* site = nullptr;  // ... or, where warp is null, a host thread
    int pe = -1;                 // on behalf of which PE
    std::string_view what;       // "cudaMemcpy", "nvshmem_putmem"
    std::uint8_t alignment = 1;  // required
    bool check_written = false;  // report reads of never-written bytes
    bool any_pe = false;  // may reach other PEs' symmetric memory (remote operations); pe -1: any memory
    bool synchronises =
        false;  // an atomic, signal or `p`: remembered for last_writer(), as are small copies of hosts
    // Whose program order the access is in, and how strong it is. Nobody: ordered with everything. An acquire
    // read (kAcquire, kAcqRel, kSc) of what a release wrote takes its clock for `agent`; a release publishes
    // the agent's.
    AgentId agent;
    ptx::Order order = ptx::Order::kWeak;
    ptx::Scope scope = ptx::Scope::kNone;
  };
  bool read(std::uint64_t address, void* to, std::uint64_t n, const Accessor& who);
  bool write(std::uint64_t address, const void* from, std::uint64_t n, const Accessor& who);
  bool copy(std::uint64_t to, std::uint64_t from, std::uint64_t n,
            const Accessor& who);  // carries the written marks along
  bool fill(std::uint64_t address, std::uint8_t value, std::uint64_t n, const Accessor& who);
  // Would such an access be in bounds and allowed? Touches nothing; false after the same finding.
  bool admits(std::uint64_t address, std::uint64_t n, bool write, const Accessor& who);
  // Bytes on their way, with their written marks.
  struct Packet {
    std::vector<std::uint8_t> bytes;
    std::vector<bool> written;  // empty: all
  };
  // read() to the end of a packet; write() of `n` of its bytes from `from` on.
  bool pack(std::uint64_t address, std::uint64_t n, Packet* packet, const Accessor& who);
  bool unpack(std::uint64_t address, const Packet& packet, std::uint64_t from, std::uint64_t n,
              const Accessor& who);
  // Marks bytes as never written again and poisons them.
  void poison(std::uint64_t address, std::uint64_t n);
  // Atomic read-modify-write of 1, 2, 4 or 8 bytes for remote atomics; `update` maps old to new.
  bool modify(std::uint64_t address, std::uint8_t bytes,
              const std::function<std::uint64_t(std::uint64_t)>& update, std::uint64_t* old,
              const Accessor& who);

  // ---- who happened before whom: vgpu/order ----
  Order& order();

  // read() and write() in the shared memory of a resident block: `offset` counts from its start.
  bool read_shared(const Block& block, std::uint64_t offset, void* to, std::uint64_t n, const Accessor& who);
  bool write_shared(Block& block, std::uint64_t offset, const void* from, std::uint64_t n,
                    const Accessor& who);

  // Copies that kernels have issued and that are still on their way.
  AsyncCopies& async();

  // Who counts what is asked of the hardware; null: nobody, which costs nothing.
  Meter* meter() const { return meter_; }
  void set_meter(Meter* meter) { meter_ = meter; }

  // ---- multicast addresses (PTX ISA, "multimem"; NVSHMEM, nvshmemx_mc_ptr) ----
  // The multicast address of a symmetric object for these PEs (the members of a team); 0 where `address` is
  // not symmetric.
  std::uint64_t multicast(std::uint64_t address, const std::vector<int>& pes);
  // The addresses that a multicast address stands for, one a PE; empty: it is none.
  std::vector<std::uint64_t> multicast_targets(std::uint64_t address) const;

  // ---- change tracking, for spin and deadlock analysis ----
  // Grows whenever a store, atomic or copy changes bytes that another thread could read (shared memory
  // included).
  std::uint64_t changes() const { return changes_; }
  void note_change() { ++changes_, ++news_; }
  // As above, for `n` bytes that lie at `at` on this machine and have just been changed.
  void note_change(const std::uint8_t* at, std::size_t n) {
    ++changes_;
    if (!watches_news_ || is_news(at, n)) ++news_;
  }
  // For livelock: while watched, a change counts as news only when the same bytes have not had the same value
  // before.
  std::uint64_t news() const { return news_; }
  void watch_news(bool on);
  // The last strong or volatile store, atomic, copy or remote operation of at most 64 bytes to the aligned
  // 8-byte word that holds `address`, if it is still remembered (the table is bounded).
  struct LastWriter {
    Site site;
    std::uint64_t address = 0;  // of the bytes written
    std::uint8_t bytes = 0;     // 1 .. 8
    std::uint64_t value = 0;    // what it wrote
  };
  std::optional<LastWriter> last_writer(std::uint64_t address) const;

  // ---- the one place that kernel accesses pass ----
  enum class AccessKind : std::uint8_t { kLoad, kStore, kAtomic };
  // How the lanes' addresses lie to each other.
  enum class Pattern : std::uint8_t {
    kScattered,   // addresses[i] for each lane
    kUniform,     // all active lanes at addresses[0]
    kContiguous,  // all 32 lanes active, lane i at addresses[0] + i * bytes
  };
  // What some lanes of a load read instead of the newest value.
  struct OlderValues {
    std::uint32_t mask = 0;
    std::uint64_t value[kWarpSize] = {};
  };
  struct Access {
    AccessKind kind{};
    ptx::Space space{};  // as written; kGeneric is resolved per lane
    ptx::Order order{};
    ptx::Scope scope{};
    bool kernel_param = false;         // kParam: of the kernel; false: of a device function
    Pattern pattern{};                 // in: must be true of the addresses; out: true of the host addresses
    bool thread_local_memory = false;  // out: no other thread can see these bytes
    bool announced = false;  // a store that may happen from now on: checked, but nothing is written yet
    bool fresh = false;      // out, of stores: some of the bytes may never have been written before
    const OlderValues* older = nullptr;  // out, of loads of one element; null: all read the newest value
    std::uint16_t bytes = 4;             // per lane, vector included
    std::uint16_t element_bytes = 4;     // of one element of the vector
    std::uint16_t alignment = 4;         // required
    std::uint32_t mask = 0;
    Block* shared_block = nullptr;  // whose shared memory; null: that of the warp's own block
    // [32]. In: lane addresses in the window of `space`; those of lanes outside `mask` repeat an active
    // lane's. With kUniform and kContiguous only addresses[0] is looked at. Out: where the lane's bytes lie
    // on the host.
    std::uint64_t* addresses = nullptr;
  };
  // Checks and resolves. False: a fatal finding was logged. Loads of never-written bytes are logged and go
  // on. Stores are marked written; the caller then moves the bytes and calls note_change() where that changed
  // something.
  bool access(Warp& warp, const Inst& inst, Access& access);
  // After a strong store or an atomic to device memory has been done: remembers it for last_writer.
  void note_strong_write(Warp& warp, const Inst& inst, const Access& access);

  struct State;  // vgpu/memory/state.hpp; nobody else's

 private:
  Memory();
  std::unique_ptr<State> state_;
  std::unique_ptr<AsyncCopies> async_;
  std::vector<std::vector<int>> multicast_groups_;  // PEs, by window
  bool is_news(const std::uint8_t* at, std::size_t n);

  Meter* meter_ = nullptr;
  std::uint64_t changes_ = 0;
  std::uint64_t news_ = 0;
  bool watches_news_ = false;
};

// Logs one `leak` finding (not fatal) for each place that allocated device or symmetric memory which is still
// live.
void report_leaks(const Memory& memory, FindingLog& findings);

}  // namespace echolo::vgpu
