// The race detector: every access to memory that others can see passes here, with its place in the order.
// Private to vgpu/memory and vgpu/order.
//
// Two accesses that overlap, of which one writes, race where neither happened before the other and they are
// not morally strong (PTX ISA, "Memory Consistency Model": both strong, each scope includes the other's
// thread, and they overlap completely). Of each byte the last write is remembered, and the reads since then,
// as far as later reads don't stand for them (Flanagan and Freund, "FastTrack", PLDI 2009).
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/rng.hpp"
#include "vgpu/memory/memory.hpp"
#include "vgpu/order/entry.hpp"
#include "vgpu/order/order_state.hpp"

namespace echolo::vgpu {

class AllocationTable;

// Who makes an access, and what it knows.
struct Toucher {
  WarpOrder* warp = nullptr;  // a thread's warp; null: `agent`
  AgentId agent;
  std::uint32_t who = 0;
  std::uint32_t clock = 0;
  std::uint32_t place = 0;
  std::uint32_t strength = 0;  // the upper bits of Entry::shape
  std::uint32_t alike = 0;     // Races::alike()
  bool write = false, atomic = false;
  bool fresh = false;        // a write of bytes that were never written before
  bool async_proxy = false;  // reads shared memory as asynchronous copies and MMAs do
  ptx::Order order{};
  ptx::Scope scope{};
  int pe = -1;
  std::uint64_t line = 0;  // host address of the line being looked at
  const Block* block = nullptr;
  Warp* kernel_warp = nullptr;  // of an access of a kernel's own instruction
};

// Why an edge that the program meant is none.
enum class NearReason : std::uint8_t {
  kWriteScope,  // the strong write's scope, or that of its release, leaves the reader out
  kReadScope,   // the read's, or its fence's, leaves the writer out
  kSize,        // another width, or a part
  kPlainPoll,   // a weak read
  kNoAcquire,   // a relaxed or volatile read with no fence after it
  kTaken,       // none is missing here: an edge that was taken
};

class Races {
 public:
  Races(Order& order, FindingLog& findings);
  ~Races();

  // An access of a kernel: lane addresses are host addresses. `shared`: in the block's shared memory, which
  // begins at `window`.
  void kernel(Warp& warp, const Inst& inst, Memory::Access& access, const Block* shared);
  // [address, address + n) is read or written by somebody else.
  void touch(std::uint64_t address, std::uint64_t n, bool write, bool atomic, const Memory::Accessor& who);
  // The same in the shared memory of a block.
  void touch_shared(const Block& block, std::uint64_t offset, std::uint64_t n, bool write,
                    const Memory::Accessor& who);
  // Forgets what is known of a range: it was freed, or allocated anew.
  void forget(std::uint64_t address, std::uint64_t n);
  // A fence of these lanes makes the relaxed reads before it acquire.
  void acquire_pending(Warp& warp, std::uint32_t lanes, ptx::Scope scope);
  // `cells`: zeros, shadow_bytes(bytes) of them, that cost nothing until they are touched.
  void set_shadow(std::uint64_t base, std::uint64_t bytes, std::uint8_t* cells);
  // Strong loads return older values, where the model allows it, in `share` of 256 cases. Off by default.
  void read_older(std::uint32_t share, std::uint64_t seed) {
    stale_share_ = share;
    rng_ = Rng(seed ^ 0x76657273ULL);  // its own stream: no draw repeats the scheduler's
  }
  // `marks`: one bit a byte of the arena, was it ever written.
  void set_marks(const std::uint8_t* marks) { marks_ = marks; }
  // A fence.sc of these lanes, before Order::fence.
  void note_sc_fence(const Warp& warp, std::uint32_t lanes);
  static std::uint64_t shadow_bytes(std::uint64_t bytes) {
    return bytes / kLine * sizeof(LineCell) + bytes / kChunk;
  }
  void set_table(const AllocationTable* table) { table_ = table; }

 private:
  friend struct RaceReport;
  struct Place {
    const Inst* inst = nullptr;
    std::uint32_t site = 0;  // of a host's call
    std::string what;        // "nvshmem_putmem", "cudaMemcpy"
  };
  static constexpr std::uint64_t kChunk = 1ULL << 20U;
  struct Shadow {
    std::uint64_t base = 0, bytes = 0;
    LineCell* cells = nullptr;
    std::uint8_t* used = nullptr;  // one a chunk: has any of its cells ever been touched
  };
  // A strong write that releases what its thread had done.
  struct Record {
    std::uint64_t address = 0;
    std::uint32_t bytes = 0;
    std::uint32_t home = 0;             // the block whose shared memory it lies in; 0: global memory
    ptx::Scope scope{}, first_scope{};  // of the write; of the release or fence that it belongs to
    int pe = -1;
    std::uint32_t who = 0, clock_value = 0, lane = 0, place = 0, grid = 0;
    Clock clock;
    // What lay there before, and who had written that: a reader can't tell this write from that one where
    // both wrote the same value, so it learns no more than from the first.
    std::uint64_t before = 0;
    std::shared_ptr<const Record> previous;
  };
  using Records = std::vector<Record>;
  // ---- values that strong loads may still return (versions.cpp) ----
  struct Event {
    std::uint32_t who = 0, lane = 0, clock = 0;
  };
  struct Version {
    std::uint64_t value = 0;
    Event replaced_by;
    std::uint64_t replaced_at = 0;
    std::vector<Event> readers;
    Records records;  // what a reader of this value is told
  };
  struct Word {
    std::uint32_t bytes = 0;
    std::deque<Version> older;   // oldest first
    std::vector<Event> readers;  // of the newest value
  };
  struct Fence {
    std::uint32_t who = 0, lanes = 0, clock = 0;
    std::uint64_t time = 0;
  };
  bool event_known(const Event& event, const Toucher& by, int lane) const;
  static void note_reader(std::vector<Event>& readers, const Toucher& by, int lane);
  void keep_version(const Toucher& by, int lane, std::uint64_t address, std::uint32_t bytes,
                    const Records* records);
  // The older value that this load returns; null: the newest.
  Version* older_version(const Toucher& by, int lane, std::uint64_t address, std::uint32_t bytes);
  std::uint64_t fences_known(const Toucher& by, int lane) const;
  void forget_versions(std::uint64_t address, std::uint64_t n, bool but_this);
  // What a read nearly acquired.
  struct Near {
    NearReason reason{};
    Clock clock;
    std::uint32_t reader = 0, reader_clock = 0, reader_lane = 0, reader_place = 0, reader_grid = 0;
    ptx::Scope reader_scope{};
    Record record;  // without its clock
  };

  LineCell* cell_of(std::uint64_t address) {
    for (const Shadow& shadow : shadows_) {
      const std::uint64_t at = address - shadow.base;
      if (at >= shadow.bytes) continue;
      shadow.used[at / kChunk] = 1;
      return shadow.cells + at / kLine;
    }
    return nullptr;
  }
  // On top of the place: it works on an mbarrier; it reads through the async proxy.
  static constexpr std::uint32_t kBarrierPlace = 0x80000000U, kProxyPlace = 0x40000000U,
                                 kIgnoredPlace = 0x20000000U;
  std::uint32_t place_of(const Inst& inst);
  std::uint32_t place_of(const Memory::Accessor& who);

  void piece(LineCell& cell, const Toucher& by, std::uint32_t shape);
  void touch_as(std::uint64_t address, std::uint64_t n, bool write, bool atomic, const Memory::Accessor& who,
                const Block* shared);
  void pieces(Toucher& by, std::uint64_t address, std::uint64_t bytes, unsigned first_lane,
              unsigned shift_or_lanes, bool shared_lanes, BlockOrder* home, std::uint64_t window);
  LineCell& shared_cell(BlockOrder& home, std::uint64_t line) {
    LineCell& cell = home.cells[line];
    std::uint32_t& since = home.since[line];
    if (since != home.epoch) {
      if (home.closed || since < home.begun) {
        drop(cell.read);
        drop(cell.write);
      }
      since = home.epoch;
    }
    return cell;
  }
  void enter(const Block& block);
  // Equal, and not 0, for strong accesses that are morally strong with each other wherever they coincide.
  static std::uint32_t alike(ptx::Scope scope, unsigned element_bytes, int pe, bool in_shared);
  std::uint32_t alike(const Entry& entry, bool in_shared) const;
  void check(const Entry& earlier, bool earlier_writes, const Entry& now, const Toucher& by);
  bool known(const Entry& earlier, const Entry& now, const Toucher& by);
  bool read_known(const Entry& earlier, const Entry& now, const Toucher& by) const;
  bool known_slowly(const Entry& earlier, const Entry& now, const Toucher& by);
  bool lanes_known(const WarpOrder& warp, const Knowledge& knowledge, const Entry& earlier,
                   std::uint32_t lanes);
  bool needs_proxy_fence(const Entry& earlier, const Toucher& by) const;
  bool morally_strong(const Entry& a, const Entry& b) const;
  bool includes_each_other(std::uint32_t a, ptx::Scope a_scope, std::uint32_t b, ptx::Scope b_scope) const;
  void note_read(Entry& slot, const Entry& now, const Toucher& by);
  void note_write(LineCell& cell, const Entry& now, const Toucher& by);
  std::vector<Entry>& list_of(Entry& slot);
  void prune(std::vector<Entry>& list, const Entry& now, const Toucher& by);
  bool tabulate(Entry& slot, const Entry& now, const Toucher& by);
  void give_back(Entry& slot);
  void drop(Entry& slot) {
    if (slot.who == Entry::kList) give_back(slot);
    slot = {};
  }
  void overwrite_flags(const LineCell& cell, const Entry& now, const Toucher& by);

  // ---- sync.cpp ----
  // `older`: where a load of a kernel puts the value if it is not the newest.
  void synchronise(const Toucher& by, int lane, std::uint64_t address, std::uint32_t bytes,
                   const Block* shared, Memory::OlderValues* older);
  // `value`: what the read returns of [address, address + bytes).
  void observe(const Records& records, const Toucher& by, int lane, std::uint64_t address,
               std::uint32_t bytes, const std::uint64_t* value);
  // Of at most 8 bytes of memory, little end first.
  static std::uint64_t value_at(std::uint64_t address, std::uint32_t bytes);
  static const Record& told_by(const Record& record, const std::uint64_t* value);
  void remember_taken(const Record& record, const Toucher& by, int lane);
  void remember_near(NearReason reason, const Record& record, const Clock& clock, const Toucher& by,
                     int lane);

  // ---- report.cpp ----
  void report(const Entry& earlier, bool earlier_writes, const Entry& now, const Toucher& by,
              bool proxies = false);
  Site site_of(const Entry& entry, std::uint32_t lanes, const char* role) const;
  int pe_of(std::uint32_t who) const;
  std::uint32_t grid_of(std::uint32_t who) const;
  std::uint32_t issuer(std::uint32_t who) const;  // the warp of the thread that it is or was issued by; or 0
  const Near* near_edge(const Entry& earlier, const Entry& now, const Toucher& by) const;

  Order& order_;
  Order::State& state_;
  FindingLog& findings_;
  const AllocationTable* table_ = nullptr;
  std::vector<Shadow> shadows_;
  std::deque<std::vector<Entry>> lists_;
  std::vector<std::uint32_t> free_lists_;
  std::deque<Place> places_{1};
  std::unordered_map<const Inst*, std::uint32_t> place_of_inst_;
  std::map<std::string, std::uint32_t> place_of_call_;
  static constexpr std::size_t kRecent = 1024;
  std::array<std::pair<const Inst*, std::uint32_t>, kRecent> recent_{};
  struct Known {
    std::uint64_t serial = 0;
    std::uint32_t who = 0, clock = 0;
  };
  std::array<Known, 256> memo_{};
  std::unordered_map<std::uint64_t, Records> records_;  // by address / 8
  // May there be records of a word?
  static constexpr std::size_t kFilterBits = 1U << 16U;
  std::array<std::uint64_t, kFilterBits / 64> record_filter_{};
  static std::size_t filter_bit(std::uint64_t word) { return (word * 0x9e3779b97f4a7c15ULL) >> 48U; }
  bool may_have_records(std::uint64_t word) const {
    const std::size_t bit = filter_bit(word);
    return (record_filter_[bit / 64] >> (bit % 64) & 1U) != 0;
  }
  Records& records_of(std::uint64_t word) {
    const std::size_t bit = filter_bit(word);
    record_filter_[bit / 64] |= std::uint64_t{1} << (bit % 64);
    return records_[word];
  }
  std::deque<Near> near_;
  std::uint32_t stale_share_ = 0;
  Rng rng_{1};
  std::uint64_t time_ = 0;                         // strong accesses and fences so far
  std::unordered_map<std::uint64_t, Word> words_;  // by address
  std::deque<Fence> fences_;                       // fence.sc, oldest first
  std::uint64_t forgotten_fence_ = 0;
  const std::uint8_t* marks_ = nullptr;
  Memory::OlderValues older_;
  std::unordered_map<std::uint64_t, std::size_t> reported_;
};

}  // namespace echolo::vgpu
