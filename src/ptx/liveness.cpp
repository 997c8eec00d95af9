#include "ptx/liveness.hpp"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>

namespace echolo::ptx {
namespace {

constexpr std::size_t kMaxBits = std::size_t{1} << 31;  // 256 MiB a set

struct BasicBlock {
  std::int32_t begin = 0, end = 0;       // instructions
  std::vector<std::int32_t> successors;  // blocks
  std::vector<std::int32_t> predecessors;
  bool returns = false;  // may leave the function
};

bool ends_block(const Instruction& instruction) {
  switch (instruction.op) {
    case Opcode::kBra:
    case Opcode::kBrx:
    case Opcode::kRet:
    case Opcode::kExit:
      return true;
    default:
      return false;
  }
}

std::vector<BasicBlock> build_blocks(const Function& function) {
  const std::vector<Instruction>& body = function.body;
  std::vector<bool> leads(body.size() + 1, false);
  leads[0] = true;
  const auto lead = [&](std::int32_t target) {
    if (target >= 0) leads[static_cast<std::size_t>(target)] = true;
  };
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (!ends_block(body[i])) continue;
    leads[i + 1] = true;
    if (body[i].op == Opcode::kBra) lead(body[i].operands[0].label);
    for (const std::int32_t target : body[i].branch_targets) lead(target);
  }
  std::vector<BasicBlock> blocks;
  std::vector<std::int32_t> block_at(body.size() + 1, -1);
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (leads[i]) {
      blocks.emplace_back();
      blocks.back().begin = static_cast<std::int32_t>(i);
    }
    block_at[i] = static_cast<std::int32_t>(blocks.size()) - 1;
    blocks.back().end = static_cast<std::int32_t>(i) + 1;
  }
  std::vector<std::size_t> last_from(blocks.size(), blocks.size());  // a table may name a block many times
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    BasicBlock& block = blocks[b];
    const Instruction& last = body[static_cast<std::size_t>(block.end) - 1];
    const auto go = [&](std::int32_t target) {
      if (target < 0) return;
      const std::int32_t next = block_at[static_cast<std::size_t>(target)];
      if (next < 0) {
        block.returns = true;  // falls off the end
      } else if (last_from[static_cast<std::size_t>(next)] != b) {
        last_from[static_cast<std::size_t>(next)] = b;
        block.successors.push_back(next);
        blocks[static_cast<std::size_t>(next)].predecessors.push_back(static_cast<std::int32_t>(b));
      }
    };
    if (last.op == Opcode::kBra) go(last.operands[0].label);
    if (last.op == Opcode::kRet || last.op == Opcode::kExit) block.returns = true;
    for (const std::int32_t target : last.branch_targets) go(target);
    if (!ends_block(last) || last.guard >= 0) go(block.end);
  }
  return blocks;
}

// Rows of bits, one row a block.
class BitRows {
 public:
  BitRows(std::size_t n_rows, std::size_t n_bits) : n_words_((n_bits + 63) / 64), words_(n_rows * n_words_) {}
  std::span<std::uint64_t> row(std::size_t index) { return {words_.data() + index * n_words_, n_words_}; }
  static bool test(std::span<const std::uint64_t> row, std::size_t bit) {
    return (row[bit / 64] >> (bit % 64) & 1) != 0;
  }
  static void set(std::span<std::uint64_t> row, std::size_t bit) {
    row[bit / 64] |= std::uint64_t{1} << (bit % 64);
  }

 private:
  std::size_t n_words_;
  std::vector<std::uint64_t> words_;
};

template <typename Visit>
void for_each_bit(std::span<const std::uint64_t> row, Visit visit) {
  for (std::size_t word = 0; word < row.size(); ++word) {
    for (std::uint64_t bits = row[word]; bits != 0; bits &= bits - 1) {
      visit(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
    }
  }
}

// .reg results; the parser numbers .reg parameters and then .reg results from 0.
std::vector<std::int32_t> result_registers(const Function& function) {
  std::vector<std::int32_t> registers;
  std::int32_t next = 0;
  for (const Variable& parameter : function.parameters) next += parameter.space == Space::kReg;
  for (const Variable& result : function.results) {
    if (result.space == Space::kReg) registers.push_back(next++);
  }
  return registers;
}

class Analysis {
 public:
  explicit Analysis(const Function& function)
      : function_(function),
        blocks_(build_blocks(function)),
        results_(result_registers(function)),
        bit_of_(function.registers.size(), -1) {}

  Liveness run() {
    Liveness liveness;
    liveness.intervals.resize(function_.registers.size());
    liveness.deaths_begin.assign(function_.body.size() + 1, 0);
    if (blocks_.empty()) return liveness;
    number_crossing_registers();
    if (blocks_.size() * registers_.size() > kMaxBits) return everything_lives();
    BitRows live_in(blocks_.size(), registers_.size()), live_out(blocks_.size(), registers_.size());
    solve(live_in, live_out);
    for_each_bit(live_in.row(0), [&](std::size_t bit) { liveness.live_at_entry.push_back(registers_[bit]); });
    std::ranges::sort(liveness.live_at_entry);
    find_deaths(live_in, live_out, liveness);
    return liveness;
  }

 private:
  // No compiler's function is that large; a safe answer then is enough.
  Liveness everything_lives() const {
    Liveness liveness;
    liveness.deaths_begin.assign(function_.body.size() + 1, 0);
    liveness.intervals.assign(function_.registers.size(),
                              {0, static_cast<std::int32_t>(function_.body.size()) - 1});
    for (std::int32_t reg = 0; reg < static_cast<std::int32_t>(function_.registers.size()); ++reg) {
      liveness.live_at_entry.push_back(reg);
    }
    return liveness;
  }

  // Only registers that some block reads before it surely writes them can be live across blocks; the others,
  // most of all, need no bit.
  void number_crossing_registers() {
    std::vector<std::int32_t> written_in(function_.registers.size(), -1);
    const auto cross = [&](std::int32_t reg) {
      auto& bit = bit_of_[static_cast<std::size_t>(reg)];
      if (bit >= 0) return;
      bit = static_cast<std::int32_t>(registers_.size());
      registers_.push_back(reg);
    };
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto block = static_cast<std::int32_t>(b);
      for (std::int32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        const Instruction& instruction = function_.body[static_cast<std::size_t>(i)];
        for_each_read(instruction, [&](std::int32_t reg) {
          if (written_in[static_cast<std::size_t>(reg)] != block) cross(reg);
        });
        for_each_written(instruction, [&](std::int32_t reg) {
          if (instruction.guard < 0) written_in[static_cast<std::size_t>(reg)] = block;
        });
      }
    }
    for (const std::int32_t reg : results_) cross(reg);
  }

  void solve(BitRows& live_in, BitRows& live_out) {
    BitRows uses(blocks_.size(), registers_.size()), kills(blocks_.size(), registers_.size());
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const auto use = uses.row(b), kill = kills.row(b);
      const auto read = [&](std::int32_t reg) {
        const std::int32_t bit = bit_of_[static_cast<std::size_t>(reg)];
        if (bit >= 0 && !BitRows::test(kill, static_cast<std::size_t>(bit)))
          BitRows::set(use, static_cast<std::size_t>(bit));
      };
      for (std::int32_t i = blocks_[b].begin; i < blocks_[b].end; ++i) {
        const Instruction& instruction = function_.body[static_cast<std::size_t>(i)];
        for_each_read(instruction, read);
        if (instruction.guard >= 0) continue;
        for_each_written(instruction, [&](std::int32_t reg) {
          const std::int32_t bit = bit_of_[static_cast<std::size_t>(reg)];
          if (bit >= 0) BitRows::set(kill, static_cast<std::size_t>(bit));
        });
      }
      if (!blocks_[b].returns) continue;
      for (const std::int32_t reg : results_) {
        BitRows::set(live_out.row(b), static_cast<std::size_t>(bit_of_[static_cast<std::size_t>(reg)]));
      }
    }
    // Sweeps from the last block to the first, as liveness flows backwards, over whatever may still change.
    std::vector<bool> waiting(blocks_.size(), true);
    bool any = true;
    while (any) {
      any = false;
      for (std::size_t b = blocks_.size(); b-- > 0;) {
        if (!waiting[b]) continue;
        waiting[b] = false;
        const auto out = live_out.row(b), in = live_in.row(b), use = uses.row(b), kill = kills.row(b);
        for (const std::int32_t successor : blocks_[b].successors) {
          const auto next = live_in.row(static_cast<std::size_t>(successor));
          for (std::size_t word = 0; word < out.size(); ++word) out[word] |= next[word];
        }
        bool changed = false;
        for (std::size_t word = 0; word < in.size(); ++word) {
          const std::uint64_t now = use[word] | (out[word] & ~kill[word]);
          changed = changed || now != in[word];
          in[word] = now;
        }
        if (!changed) continue;
        for (const std::int32_t predecessor : blocks_[b].predecessors)
          waiting[static_cast<std::size_t>(predecessor)] = true;
        any = true;
      }
    }
  }

  void find_deaths(BitRows& live_in, BitRows& live_out, Liveness& liveness) {
    std::vector<std::uint8_t> live(function_.registers.size(), 0);
    std::vector<std::vector<std::int32_t>> dying(function_.body.size());
    const auto cover = [&](std::int32_t reg, std::int32_t at) {
      Liveness::Interval& interval = liveness.intervals[static_cast<std::size_t>(reg)];
      if (interval.empty()) {
        interval = {at, at};
      } else {
        interval.first = std::min(interval.first, at);
        interval.last = std::max(interval.last, at);
      }
    };
    for (std::size_t b = 0; b < blocks_.size(); ++b) {
      const BasicBlock& block = blocks_[b];
      for_each_bit(live_in.row(b), [&](std::size_t bit) { cover(registers_[bit], block.begin); });
      for_each_bit(live_out.row(b), [&](std::size_t bit) {
        cover(registers_[bit], block.end - 1);
        live[static_cast<std::size_t>(registers_[bit])] = 1;
      });
      for (std::int32_t i = block.end - 1; i >= block.begin; --i) {
        const Instruction& instruction = function_.body[static_cast<std::size_t>(i)];
        std::vector<std::int32_t>& here = dying[static_cast<std::size_t>(i)];
        const auto die_if_not_live = [&](std::int32_t reg) {
          cover(reg, i);
          if (live[static_cast<std::size_t>(reg)] == 0 && std::ranges::find(here, reg) == here.end())
            here.push_back(reg);
        };
        for_each_written(instruction, die_if_not_live);
        for_each_read(instruction, die_if_not_live);
        if (instruction.guard < 0) {
          for_each_written(instruction, [&](std::int32_t reg) { live[static_cast<std::size_t>(reg)] = 0; });
        }
        for_each_read(instruction, [&](std::int32_t reg) { live[static_cast<std::size_t>(reg)] = 1; });
      }
      // What is left is live into the block.
      for_each_bit(live_in.row(b),
                   [&](std::size_t bit) { live[static_cast<std::size_t>(registers_[bit])] = 0; });
    }
    for (std::size_t i = 0; i < dying.size(); ++i) {
      liveness.deaths_begin[i] = static_cast<std::uint32_t>(liveness.deaths.size());
      liveness.deaths.insert(liveness.deaths.end(), dying[i].begin(), dying[i].end());
    }
    liveness.deaths_begin[dying.size()] = static_cast<std::uint32_t>(liveness.deaths.size());
  }

  const Function& function_;
  std::vector<BasicBlock> blocks_;
  std::vector<std::int32_t> results_;
  std::vector<std::int32_t> bit_of_;     // by register; -1: never live across blocks
  std::vector<std::int32_t> registers_;  // by bit
};

}  // namespace

Liveness compute_liveness(const Function& function) { return Analysis(function).run(); }

SlotClass slot_class(Type type) {
  const int bits = bits_of(type);
  if (type == Type::kPred) return SlotClass::kPred;
  return bits <= 16   ? SlotClass::k16
         : bits <= 32 ? SlotClass::k32
         : bits <= 64 ? SlotClass::k64
                      : SlotClass::k128;
}

// Linear scan over intervals: the lowest free slot, so that the assignment is the same everywhere.
SlotAssignment assign_slots(const Function& function, const Liveness& liveness) {
  SlotAssignment assignment;
  assignment.slot_of_register.assign(function.registers.size(), kNoSlot);
  std::vector<std::uint32_t> order;
  for (std::uint32_t reg = 0; reg < function.registers.size(); ++reg) {
    if (!liveness.intervals[reg].empty()) order.push_back(reg);
  }
  std::ranges::stable_sort(order, {}, [&](std::uint32_t reg) { return liveness.intervals[reg].first; });

  struct Busy {
    std::int32_t last;
    std::uint32_t slot;
    bool operator>(const Busy& other) const { return last > other.last; }
  };
  struct Pool {
    std::priority_queue<Busy, std::vector<Busy>, std::greater<>> busy;
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
  };
  std::array<Pool, kSlotClasses> pools;
  for (const std::uint32_t reg : order) {
    const auto slot_class_index = static_cast<std::size_t>(slot_class(function.registers[reg].type));
    Pool& pool = pools[slot_class_index];
    const Liveness::Interval& interval = liveness.intervals[reg];
    while (!pool.busy.empty() && pool.busy.top().last < interval.first) {
      pool.free.push(pool.busy.top().slot);
      pool.busy.pop();
    }
    std::uint32_t slot = 0;
    if (pool.free.empty()) {
      slot = assignment.n_slots_by_class[slot_class_index]++;
    } else {
      slot = pool.free.top();
      pool.free.pop();
    }
    pool.busy.push({interval.last, slot});
    assignment.slot_of_register[reg] = slot;
  }
  return assignment;
}

}  // namespace echolo::ptx
