// What a Meter is made of; read inside this folder only.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "vgpu/meter/cost.hpp"
#include "vgpu/meter/lines.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::vgpu {

// What is being recorded of one block, or of one operation of a stream.
struct MeterBlock {
  std::uint32_t block = 0;    // index into JobWork::blocks
  std::uint32_t current = 0;  // index into JobWork::stretches
  int pe = 0;
  std::uint64_t slots = 0;        // machine instructions of the present stretch
  std::uint64_t slots_shown = 0;  // of them, when it first published something
  bool published = false;         // somebody may come to depend on the present stretch
  std::unordered_map<std::uint32_t, std::uint32_t> known;     // block -> its last stretch that it depends on
  std::unique_ptr<L1Lines> l1 = std::make_unique<L1Lines>();  // null once the block has ended
};

struct Meter::State {
  State(const Memory& of, int n, std::uint64_t l2_bytes) : memory(of) {
    work.n_pes = n;
    for (int pe = 0; pe < n; ++pe) l2.emplace_back(l2_bytes);
  }

  const Memory& memory;
  JobWork work;
  std::vector<L2Lines> l2;                                                // by PE
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> writers;  // stretches, by word of 8 bytes
  std::vector<std::unique_ptr<MeterBlock>> blocks;
  std::unordered_map<std::uint64_t, std::uint32_t> launches;  // by launch id

  struct CachedCost {
    const Inst* inst = nullptr;
    InstCost cost;
  };
  static constexpr std::size_t kCosts = 4096;
  std::vector<CachedCost> costs = std::vector<CachedCost>(kCosts);

  // ---- operations of streams ----
  struct Op {
    std::vector<std::uint64_t> after;
    std::vector<std::uint32_t> ends;  // launches; valid once it has begun
    bool begun = false, launched = false;
  };
  std::unordered_map<std::uint64_t, Op> ops;
  std::unordered_map<int, std::vector<std::uint64_t>> host_ops;  // by PE
  std::uint64_t current_op = 0;                                  // 0: none
  int op_pe = 0, op_call = 0;
  std::string op_what;
  std::unordered_map<std::uint64_t, MeterBlock*> op_blocks;

  std::uint32_t new_launch(int pe, int call, std::string kernel, int blocks_per_sm);
  MeterBlock* new_block(std::uint32_t launch, std::uint32_t index, std::uint32_t warps);
  // Whose work something is; null: nobody's.
  MeterBlock* who(const Warp* warp);
  Stretch& stretch(const MeterBlock& block) { return work.stretches[block.current]; }
  void cut(MeterBlock& block);
  void publish(MeterBlock& block, std::uint64_t word, bool forgets);
  void depend(MeterBlock& block, const std::vector<std::uint32_t>& on, bool barrier, const Warp* warp,
              const Inst* inst, int lane, std::string_view what);
  void add_sectors(MeterBlock& block, std::uint64_t line, std::uint8_t sectors);
  void add_range(MeterBlock& block, std::uint64_t address, std::uint64_t bytes, bool write);
  PeerTraffic& peer(MeterBlock& block, int pe);
  const InstCost& cost(const Inst& inst);
};

}  // namespace echolo::vgpu
