// Blocks, their stretches, and who depends on whom.
#include "vgpu/meter/meter.hpp"

#include <algorithm>
#include <bit>

#include "vgpu/meter/meter_state.hpp"

namespace echolo::vgpu {
namespace {

// Machine instructions of a block after it has published something before its stretch is cut.
constexpr std::uint64_t kLinger = 128;
// Less than this is no phase of its own, bytes of one transfer.
constexpr std::uint64_t kOwnPhase = 4096;
constexpr std::size_t kKeptHostOps = 64;

std::string place_of(const Warp* warp, const Inst* inst, int lane, std::string_view what) {
  if (warp == nullptr || inst == nullptr) return std::string(what);
  const Frame where = make_site(*warp, lane, *inst, "").where;
  if (where.line <= 0) return std::string(what);
  return where.file.substr(where.file.rfind('/') + 1) + ":" + std::to_string(where.line);
}

}  // namespace

Meter::Meter(const Memory& memory, int n_pes, std::uint64_t l2_bytes)
    : state_(std::make_unique<State>(memory, n_pes, l2_bytes)) {}
Meter::~Meter() = default;

std::uint32_t Meter::State::new_launch(int pe, int call, std::string kernel, int blocks_per_sm) {
  LaunchWork launch;
  launch.pe = pe;
  launch.call = call;
  launch.kernel = std::move(kernel);
  launch.blocks_per_sm = blocks_per_sm;
  const auto id = static_cast<std::uint32_t>(work.launches.size());
  if (current_op != 0) {
    Op& op = ops[current_op];
    // Several launches of one operation follow each other.
    launch.after = op.ends;
    op.ends = {id};
    op.launched = true;
  }
  work.launches.push_back(std::move(launch));
  return id;
}

MeterBlock* Meter::State::new_block(std::uint32_t launch, std::uint32_t index, std::uint32_t warps) {
  auto fresh = std::make_unique<MeterBlock>();
  fresh->block = static_cast<std::uint32_t>(work.blocks.size());
  fresh->current = static_cast<std::uint32_t>(work.stretches.size());
  fresh->pe = work.launches[launch].pe;
  work.launches[launch].blocks.push_back(fresh->block);
  work.blocks.push_back({launch, index, warps, {fresh->current}});
  work.stretches.emplace_back().block = fresh->block;
  blocks.push_back(std::move(fresh));
  return blocks.back().get();
}

MeterBlock* Meter::State::who(const Warp* warp) {
  if (warp != nullptr) return warp->block->meter;
  if (current_op == 0) return nullptr;
  MeterBlock*& block = op_blocks[current_op];
  if (block == nullptr) block = new_block(new_launch(op_pe, op_call, op_what, 1), 0, 1);
  return block;
}

void Meter::State::cut(MeterBlock& block) {
  block.current = static_cast<std::uint32_t>(work.stretches.size());
  block.slots = block.slots_shown = 0;
  block.published = false;
  work.stretches.emplace_back().block = block.block;
  work.blocks[block.block].stretches.push_back(block.current);
}

void Meter::State::publish(MeterBlock& block, std::uint64_t word, bool forgets) {
  std::vector<std::uint32_t>& list = writers[word / 8];
  if (forgets) list.clear();
  // A block's later stretch comes after its earlier ones.
  const auto mine = std::find_if(list.begin(), list.end(),
                                 [&](std::uint32_t s) { return work.stretches[s].block == block.block; });
  if (mine != list.end()) {
    *mine = block.current;
  } else {
    list.push_back(block.current);
  }
  if (!block.published) block.slots_shown = block.slots;
  block.published = true;
}

void Meter::State::depend(MeterBlock& block, const std::vector<std::uint32_t>& on, bool barrier,
                          const Warp* warp, const Inst* inst, int lane, std::string_view what) {
  std::vector<std::uint32_t> fresh;
  for (const std::uint32_t cause : on) {
    const std::uint32_t of = work.stretches[cause].block;
    if (of == block.block) continue;
    const auto known = block.known.try_emplace(of, cause);
    if (!known.second) {
      if (known.first->second >= cause) continue;
      known.first->second = cause;
    }
    fresh.push_back(cause);
  }
  if (fresh.empty()) return;
  // Whoever polls sees several writes one after another; nothing but its polling lies between them. A stretch
  // that somebody may depend on gets no further cause, or causes could go in a circle.
  if (stretch(block).causes.empty() || block.published || block.slots > kLinger) cut(block);
  Stretch& now = stretch(block);
  now.causes.insert(now.causes.end(), fresh.begin(), fresh.end());
  now.at_barrier = barrier;
  now.waited_at = place_of(warp, inst, lane, what);
}

PeerTraffic& Meter::State::peer(MeterBlock& block, int pe) {
  std::vector<PeerTraffic>& peers = stretch(block).work.peers;
  auto at =
      std::lower_bound(peers.begin(), peers.end(), pe, [](const PeerTraffic& p, int n) { return p.pe < n; });
  if (at == peers.end() || at->pe != pe) at = peers.insert(at, {pe, 0, 0, 0});
  return *at;
}

const InstCost& Meter::State::cost(const Inst& inst) {
  CachedCost& cached = costs[reinterpret_cast<std::uintptr_t>(&inst) / sizeof(Inst) % kCosts];
  if (cached.inst != &inst) cached = {&inst, inst.source != nullptr ? cost_of(*inst.source) : InstCost{}};
  return cached.cost;
}

void Meter::begin_grid(const Grid& grid, const std::string& kernel, int blocks_per_sm) {
  state_->launches[grid.launch_id] = state_->new_launch(grid.pe, grid.call, kernel, blocks_per_sm);
}

void Meter::begin_block(Block& block, std::uint32_t warps) {
  block.meter = state_->new_block(state_->launches.at(block.grid->launch_id), block.linear_index, warps);
}

void Meter::end_block(Block& block) {
  block.meter->l1.reset();
  block.meter->known = {};
}

void Meter::instruction(Warp& warp, const Inst& inst) {
  State& s = *state_;
  MeterBlock& block = *warp.block->meter;
  if (block.published && block.slots - block.slots_shown > kLinger) s.cut(block);
  const InstCost& cost = s.cost(inst);
  Work& work = s.stretch(block).work;
  work.issued[static_cast<std::size_t>(cost.pipe)] += cost.slots;
  work.tensor_flops += cost.tensor_flops;
  block.slots += cost.slots;
}

void Meter::wrote(Warp& warp, const Memory::Access& access) {
  MeterBlock& block = *warp.block->meter;
  const bool forgets = access.kind == Memory::AccessKind::kStore;
  for (std::uint32_t lanes = access.mask; lanes != 0; lanes &= lanes - 1) {
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(lanes));
    std::uint64_t address = access.addresses[0];
    if (access.pattern == Memory::Pattern::kScattered) address = access.addresses[lane];
    if (access.pattern == Memory::Pattern::kContiguous) address += lane * access.bytes;
    for (std::uint64_t at = address; at < address + access.bytes; at += 8)
      state_->publish(block, at, forgets);
    if (access.pattern == Memory::Pattern::kUniform) break;
  }
}

void Meter::sent(const Warp* warp, const Sent& what) {
  State& s = *state_;
  MeterBlock* const block = s.who(warp);
  if (block == nullptr) return;
  const bool own_phase = what.bytes >= kOwnPhase;
  const Phase phase = what.get ? Phase::kGet : Phase::kPut;
  if (own_phase && (s.stretch(*block).phase != phase || block->published)) {
    const bool unused = block->slots == 0 && !block->published && s.stretch(*block).work.peers.empty();
    if (!unused) s.cut(*block);
    s.stretch(*block).phase = phase;
  }
  // 16 bytes a lane and instruction, a load and a store.
  const std::uint64_t at_once = what.by == Granularity::kThread ? 16 : 16U * kWarpSize;
  const std::uint64_t instructions = 2 * ((what.bytes + at_once - 1) / at_once);
  s.stretch(*block).work.issued[static_cast<std::size_t>(Pipe::kMemory)] += instructions;
  block->slots += instructions;
  if (what.to != block->pe) {
    PeerTraffic& peer = s.peer(*block, what.to);
    (what.get ? peer.bytes_in : peer.bytes_out) += what.bytes;
    ++peer.messages;
  }
  if (what.local != 0 && s.memory.pe_of(what.local) >= 0)
    s.add_range(*block, what.local, what.bytes, what.get);
  if (what.word != 0) s.publish(*block, what.word, what.sets);
  if (own_phase && !block->published) {
    block->published = true;
    block->slots_shown = block->slots;
  }
}

void Meter::saw(Warp* warp, const Inst* inst, int lane, std::uint64_t word, std::string_view what) {
  MeterBlock* const block = state_->who(warp);
  if (block == nullptr) return;
  const auto found = state_->writers.find(word / 8);
  if (found != state_->writers.end()) state_->depend(*block, found->second, false, warp, inst, lane, what);
}

std::uint32_t Meter::arrive(const Warp* warp) {
  MeterBlock* const block = state_->who(warp);
  if (block == nullptr) return kNoStretch;
  block->published = true;
  block->slots_shown = block->slots;
  return block->current;
}

void Meter::depend(Warp* warp, const Inst* inst, int lane, const std::vector<std::uint32_t>& on,
                   std::string_view what) {
  MeterBlock* const block = state_->who(warp);
  if (block == nullptr) return;
  std::vector<std::uint32_t> real;
  std::copy_if(on.begin(), on.end(), std::back_inserter(real),
               [](std::uint32_t cause) { return cause != kNoStretch; });
  state_->depend(*block, real, true, warp, inst, lane, what);
}

void Meter::order_op(std::uint64_t op, const std::vector<std::uint64_t>& after) {
  std::vector<std::uint64_t>& list = state_->ops[op].after;
  list.insert(list.end(), after.begin(), after.end());
}

void Meter::order_after_host(std::uint64_t op, int pe) { order_op(op, state_->host_ops[pe]); }

void Meter::host_learned(int pe, const std::vector<std::uint64_t>& ops) {
  std::vector<std::uint64_t>& list = state_->host_ops[pe];
  for (const std::uint64_t op : ops) {
    if (op != 0 && std::find(list.begin(), list.end(), op) == list.end()) list.push_back(op);
  }
  // Later operations mostly come after the older ones anyway.
  if (list.size() > kKeptHostOps) list.erase(list.begin(), list.end() - kKeptHostOps);
}

void Meter::enter_op(std::uint64_t op, int pe, int call, const std::string& what) {
  State& s = *state_;
  s.current_op = op;
  s.op_pe = pe;
  s.op_call = call;
  s.op_what = what;
  State::Op& entered = s.ops[op];
  if (entered.begun) return;
  entered.begun = true;
  std::vector<std::uint32_t> ends;
  for (const std::uint64_t before : entered.after) {
    const auto found = s.ops.find(before);
    if (found != s.ops.end()) ends.insert(ends.end(), found->second.ends.begin(), found->second.ends.end());
  }
  std::sort(ends.begin(), ends.end());
  ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
  s.ops[op].ends = std::move(ends);
}

void Meter::leave_op() { state_->current_op = 0; }

JobWork Meter::take() { return std::move(state_->work); }

}  // namespace echolo::vgpu
