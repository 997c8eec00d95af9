// Operations on their way. A put, a non-blocking get, a `p`, a signal or an atomic that returns nothing is
// only issued by its call; it is done later, by an agent of its own, in an order that NVSHMEM allows.
//
// Rules (NVSHMEM documentation, "Memory Ordering", "Remote Memory Access", "Signaling Operations"; OpenSHMEM
// 1.5, "Memory Ordering Routines"):
//   - `quiet` completes what its PE has issued before it. "Before" is a question of synchronisation, not of
//     the thread: a quiet completes the operations of other threads too, where barriers or the like have put
//     their calls before it; without such order it completes the caller's own only.
//   - `fence` puts all that was issued to a PE before it, in the same sense, in front of all that is issued
//   to
//     that PE after it; it completes nothing.
//   - Quiet and fence of a kernel, or in a stream, concern what kernels and streams have issued; those of a
//     host thread what hosts have issued. A barrier completes what its PE has issued from either side. The
//     end of a kernel and the synchronisation of a stream complete nothing.
//   - A blocking put has read its source when it returns; a non-blocking one reads it until quiet. A
//     put-with-signal does its signal after its own data, whatever else is on its way.
// What an operation makes known to whoever acquires its signal is its own data, what its issuer had put
// before it by a fence (of NVSHMEM or of PTX at system scope), and what its issuer had itself been told by
// others.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "base/rng.hpp"
#include "shmem/fabric.hpp"
#include "shmem/fabric_rules.hpp"
#include "shmem/operation.hpp"
#include "vgpu/memory/memory.hpp"
#include "vgpu/order/order.hpp"

namespace echolo::shmem {

struct Call;

enum class Side : std::uint8_t { kDevice, kHost };  // kernels and streams; host threads

// Who issued an operation, in a form that outlives the warp.
struct Origin {
  std::shared_ptr<const vgpu::Site> site;  // of the instruction
  const vgpu::Inst* inst = nullptr;        // null: a host's
  vgpu::Dim3 block{0, 0, 0}, thread{0, 0, 0};
};

struct Message {
  // Data, where `bytes` > 0: to `target`, from `source` or, where that is 0, from `packet`.
  std::uint64_t target = 0, source = 0, bytes = 0;
  bool get = false;          // a non-blocking get
  std::int64_t stride = 0;   // strided: bytes from element to element of the target; 0: all in a row
  std::uint8_t element = 1;  // bytes of an element
  vgpu::Memory::Packet packet;
  // Then an update of one word, where `word` is not 0.
  std::uint64_t word = 0, operand = 0;
  Amo amo = Amo::kSet;
  const Element* type = nullptr;

  int to = 0;
  bool nonblocking = false;
  std::uint64_t local = 0, local_bytes = 0;  // what a non-blocking one uses until quiet
};

class Delivery {
 public:
  Delivery(const FabricRules& rules, Timing timing, std::uint64_t seed, int n_pes);

  void attach(vgpu::Memory& memory, vgpu::FindingLog& findings);
  Timing timing() const { return timing_; }

  // False: a fatal finding was logged (here as below).
  bool issue(Call& call, Message message);
  bool quiet(Call& call);
  void fence(Call& call);
  // Does what a fence known to the caller has put before what it is about to do on PE `to` itself.
  bool before(Call& call, int to);

  std::size_t pending() const { return pending_.size(); }
  // See DeviceCallTable::deliver.
  bool deliver(std::uint64_t now, bool force);

  void block_finished(const vgpu::Block& block);
  // Memory that is freed while operations that nobody has waited for use it.
  // `known`: to whoever frees.
  void released(std::uint64_t base, std::uint64_t bytes, const vgpu::Clock& known, const vgpu::Site& where);

 private:
  // One operation, for those that come after it.
  struct Entry {
    std::uint64_t id = 0;
    vgpu::AgentId issuer;
    std::uint32_t time = 0;  // of the issuer
    bool done = false;
    bool waited_for = false;  // by a quiet or a barrier
    vgpu::AgentId fencer;     // who last put a fence after it
    vgpu::Clock effects;      // once done
  };
  using EntryPtr = std::shared_ptr<Entry>;
  struct Fence {
    vgpu::AgentId who;
    std::uint32_t time = 0;
    std::uint64_t next = 0;        // id of the operation issued after it
    std::vector<EntryPtr> before;  // not done when the fence was made
    vgpu::Clock effects;           // of those that were
  };
  // From one side of one PE to one PE; by issuer, in program order.
  struct Path {
    std::map<std::uint32_t, std::vector<EntryPtr>> issued;
    std::map<std::uint32_t, std::vector<Fence>> fences;
  };
  struct Flight {
    Message message;
    const Operation* op = nullptr;
    int from = 0;
    Origin origin;
    EntryPtr entry;
    vgpu::AgentId data_agent, update_agent;
    std::vector<EntryPtr> after;
    vgpu::Clock known;  // effects of what was done when this was issued and comes before it
    std::uint64_t due = 0;
    int pieces = 0;
  };
  struct LocalUse {  // of memory that may go away before the operation is done
    std::uint64_t address = 0, bytes = 0;
    const vgpu::Block* block = nullptr;  // whose shared or local memory it is; null: device memory
    EntryPtr entry;
    vgpu::AgentId agent;
    Origin origin;
    std::string what;
    int pe = 0;
    bool reads = true;
  };

  Path& path(int from, Side side, int to);
  vgpu::Order& order() { return memory_->order(); }
  Origin origin_of(Call& call);
  // Was what `who` did at `at` before this call? Hosts and streams come after all that their PE has issued.
  bool known(vgpu::AgentId who, std::uint32_t at, const Call& call);
  // What fences before this call put before its operation on this path.
  void precedents(Path& path, const Call& call, std::vector<EntryPtr>* after, vgpu::Clock* effects);
  std::uint64_t due_for(const Flight& flight);
  void enqueue(Flight flight);
  bool finish(std::uint64_t id);  // with all that comes before it
  bool finish_all(const std::vector<EntryPtr>& entries);
  bool run(Flight& flight, const Call* call);  // all that is left of it
  bool move_data(Flight& flight, vgpu::Memory::Accessor who, std::uint64_t from, std::uint64_t bytes);
  bool move_piece(Flight& flight);  // part of its data
  void report_early_exit(const LocalUse& use, const std::string& when, const vgpu::Site* where);
  void forget_done(std::vector<EntryPtr>& entries);

  const FabricRules& rules_;
  Timing timing_;
  Rng rng_;
  int n_pes_;
  vgpu::Memory* memory_ = nullptr;
  vgpu::FindingLog* findings_ = nullptr;
  std::map<std::uint64_t, Flight> pending_;                    // by id
  std::set<std::pair<std::uint64_t, std::uint64_t>> queue_;    // due, id
  std::map<std::uint64_t, std::vector<std::uint64_t>> words_;  // updates on their way, by word
  std::vector<Path> paths_;
  std::vector<LocalUse> uses_;
  std::map<std::pair<std::uint64_t, const vgpu::Inst*>, std::shared_ptr<const vgpu::Site>> sites_;
  std::uint64_t next_id_ = 1;
  std::uint64_t now_ = 0;
  std::uint64_t held_bytes_ = 0;  // in packets
};

// What an atomic leaves in a word of `type` that held `old`; `compared` matters for compare-and-swap only.
std::uint64_t updated(const Element& type, Amo amo, std::uint64_t old, std::uint64_t operand,
                      std::uint64_t compared = 0);

}  // namespace echolo::shmem
