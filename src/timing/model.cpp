#include "timing/model.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace echolo::timing {
namespace {

using vgpu::BlockWork;
using vgpu::JobWork;
using vgpu::LaunchWork;
using vgpu::Pipe;
using vgpu::Stretch;

constexpr std::size_t index(Resource resource) { return static_cast<std::size_t>(resource); }
constexpr double kNever = std::numeric_limits<double>::infinity();

// Microseconds that a stretch needs of each resource if it had it for itself.
using Needs = std::array<double, kResources>;

struct Running {
  std::uint32_t stretch = 0, block = 0;
  int pe = 0, sm = 0, slot = 0;
  bool beside = false;  // carried out by the adapter: its block has gone on
  Needs needs{};
  double fixed_us = 0;  // messages: time that nobody shares
  double begun_us = 0;
  double done = 0;  // fraction
  double rate = 0;  // fractions a microsecond
  Resource bound = Resource::kIssue;
};

struct Slot {
  int sm = 0, slot = 0;
};

class Simulation {
 public:
  Simulation(const JobWork& work, const Topology& topology) : work_(work), topology_(topology) {}

  Result<Timeline> run();

 private:
  Needs needs_of(const Stretch& stretch, const BlockWork& block, double* fixed) const;
  void open_launches();
  void fill(std::uint32_t launch);
  void reach(std::uint32_t block);  // begins the block's next stretch, or makes it wait
  bool begin_if_ready(std::uint32_t block);
  void set_rates();
  void finish(const Running& ended);
  void account(double from, double to);
  void note_state(int pe, PeState state, double from, double to);
  bool runs_beside(const Stretch& stretch) const {
    return topology_.by_adapter && stretch.phase == vgpu::Phase::kPut;
  }
  Error stuck() const;
  void summarise();
  int pe_of_block(std::uint32_t block) const { return work_.launches[work_.blocks[block].launch].pe; }

  const JobWork& work_;
  const Topology& topology_;
  Timeline out_;
  double now_ = 0;
  std::vector<Running> running_;
  std::vector<double> ended_;         // of each stretch; kNever: not yet
  std::vector<std::uint32_t> next_;   // of each block: position in its stretches
  std::vector<double> reached_;       // of each block: when it came to its next stretch
  std::vector<int> beside_;           // of each block: puts that the adapter has not finished
  std::vector<double> beside_ended_;  // ... and when the last one of them was
  std::vector<std::array<int, kResources>> on_sm_, on_pe_;  // who wants each resource, by PE and SM, by PE
  std::vector<int> to_pe_, from_pe_;  // who stores to a PE over its link, who loads from it
  std::vector<Slot> place_;           // of each block
  std::set<std::uint32_t> waiting_;   // blocks whose next stretch can't begin
  std::vector<int> launch_left_;      // blocks not ended; -1: not begun
  std::vector<double> launch_ended_;
  std::vector<std::size_t> launch_next_;               // block to place
  std::map<double, std::set<std::uint32_t>> opening_;  // launches by the time they begin
  std::vector<bool> opened_;
  std::vector<std::size_t> last_state_;       // of each PE: index into Timeline::states
  std::vector<std::vector<int>> free_slots_;  // by PE and SM: how many blocks lie there
  std::map<std::string, std::pair<double, std::set<std::uint32_t>>> waits_;
};

Needs Simulation::needs_of(const Stretch& stretch, const BlockWork& block, double* fixed) const {
  const vgpu::Work& work = stretch.work;
  const double cycle_us = 1e-3 / topology_.clock_ghz;
  const auto issued = [&](Pipe pipe) {
    return static_cast<double>(work.issued[static_cast<std::size_t>(pipe)]);
  };
  double all = 0;
  for (const std::uint64_t n : work.issued) all += static_cast<double>(n);
  Needs needs{};
  // An SM's slots, or the pipe that is narrowest for this mix.
  double cycles = all / topology_.issue_per_cycle;
  cycles = std::max(cycles, issued(Pipe::kFloat) / topology_.float_per_cycle);
  cycles = std::max(cycles, issued(Pipe::kInteger) / topology_.integer_per_cycle);
  cycles = std::max(cycles, issued(Pipe::kDouble) / topology_.double_per_cycle);
  cycles = std::max(cycles, issued(Pipe::kSpecial) / topology_.special_per_cycle);
  cycles = std::max(cycles, issued(Pipe::kMemory) / topology_.memory_per_cycle);
  needs[index(Resource::kIssue)] = cycles * cycle_us;
  needs[index(Resource::kTensor)] =
      static_cast<double>(work.tensor_flops) / topology_.tensor_flops_per_cycle * cycle_us;
  needs[index(Resource::kShared)] =
      static_cast<double>(work.shared_wavefronts) / topology_.shared_wavefronts_per_cycle * cycle_us;
  needs[index(Resource::kL2)] = static_cast<double>(work.l2_bytes) / topology_.l2_gb_s * 1e-3;
  needs[index(Resource::kDram)] = static_cast<double>(work.dram_bytes) / topology_.dram_gb_s * 1e-3;
  double messages = 0;
  for (const vgpu::PeerTraffic& peer : work.peers) {
    needs[index(Resource::kLinkOut)] += static_cast<double>(peer.bytes_out) / topology_.link_gb_s * 1e-3;
    needs[index(Resource::kLinkIn)] += static_cast<double>(peer.bytes_in) / topology_.link_gb_s * 1e-3;
    messages += static_cast<double>(peer.messages);
  }
  // One warp can't fill the SM's slots: that part of the time nobody shares.
  *fixed = messages * topology_.message_us;
  const double alone = all / (topology_.issue_per_warp * std::max(1U, block.warps)) * cycle_us;
  needs[index(Resource::kLatency)] = alone;
  return needs;
}

void Simulation::open_launches() {
  for (std::uint32_t i = 0; i < work_.launches.size(); ++i) {
    if (opened_[i]) continue;
    double at = 0;
    for (const std::uint32_t before : work_.launches[i].after) at = std::max(at, launch_ended_[before]);
    if (at == kNever) continue;
    opened_[i] = true;
    opening_[at + topology_.launch_us].insert(i);
  }
}

void Simulation::fill(std::uint32_t launch) {
  const LaunchWork& grid = work_.launches[launch];
  std::vector<int>& sms = free_slots_[static_cast<std::size_t>(grid.pe)];
  std::size_t& next = launch_next_[launch];
  while (next < grid.blocks.size()) {
    // The emptiest SM, as the hardware's distributor takes them.
    const auto sm = std::min_element(sms.begin(), sms.end());
    if (*sm >= std::max(1, grid.blocks_per_sm)) return;
    const std::uint32_t block = grid.blocks[next++];
    place_[block] = {static_cast<int>(sm - sms.begin()), *sm};
    ++*sm;
    reached_[block] = now_;
    reach(block);
  }
}

bool Simulation::begin_if_ready(std::uint32_t block) {
  const BlockWork& of = work_.blocks[block];
  const std::uint32_t id = of.stretches[next_[block]];
  const Stretch& stretch = work_.stretches[id];
  const int pe = pe_of_block(block);
  double from = reached_[block];
  std::uint32_t last = 0;
  bool waited = false;
  for (const std::uint32_t cause : stretch.causes) {
    const std::uint32_t causer = work_.stretches[cause].block;
    // What a block tells others comes behind the puts that it has issued.
    if (ended_[cause] == kNever || beside_[causer] > 0) return false;
    const bool remote = pe_of_block(causer) != pe;
    const double seen =
        std::max(ended_[cause], beside_ended_[causer]) + (remote ? topology_.link_latency_us : 0);
    if (seen <= from) continue;
    from = seen;
    last = cause;
    waited = true;
  }
  Running run;
  run.stretch = id;
  run.block = block;
  run.pe = pe;
  run.sm = place_[block].sm;
  run.slot = place_[block].slot;
  run.needs = needs_of(stretch, of, &run.fixed_us);
  run.begun_us = std::max(now_, from);
  if (run.begun_us > reached_[block] && !stretch.waited_at.empty()) {
    out_.spans.push_back({pe, run.sm, run.slot, block, reached_[block], run.begun_us, true,
                          stretch.at_barrier, stretch.phase, Resource::kLatency, stretch.waited_at});
    if (waited) {
      const std::uint32_t causer = work_.stretches[last].block;
      out_.flows.push_back({pe_of_block(causer), place_[causer].sm, place_[causer].slot, ended_[last], pe,
                            run.sm, run.slot, run.begun_us});
    }
    auto& [sum, blocks] = waits_[stretch.waited_at];
    sum += run.begun_us - reached_[block];
    blocks.insert(block);
  }
  run.beside = runs_beside(stretch);
  if (run.beside) {
    ++beside_[block];
    run.needs[index(Resource::kIssue)] = run.needs[index(Resource::kLatency)] = 0;
  }
  running_.push_back(run);
  return true;
}

void Simulation::reach(std::uint32_t block) {
  if (next_[block] == work_.blocks[block].stretches.size()) {
    const std::uint32_t launch = work_.blocks[block].launch;
    const LaunchWork& grid = work_.launches[launch];
    --free_slots_[static_cast<std::size_t>(grid.pe)][static_cast<std::size_t>(place_[block].sm)];
    if (--launch_left_[launch] == 0) {
      launch_ended_[launch] = now_;
      open_launches();
    }
    fill(launch);
    return;
  }
  if (!begin_if_ready(block)) {
    waiting_.insert(block);
    return;
  }
  if (!running_.back().beside) return;
  ++next_[block];
  reach(block);
}

void Simulation::set_rates() {
  const auto sm_of = [&](const Running& run) {
    return static_cast<std::size_t>(run.pe) * static_cast<std::size_t>(topology_.sms) +
           static_cast<std::size_t>(run.sm);
  };
  for (const Running& run : running_) on_sm_[sm_of(run)] = {};
  std::fill(on_pe_.begin(), on_pe_.end(), std::array<int, kResources>{});
  std::fill(to_pe_.begin(), to_pe_.end(), 0);
  std::fill(from_pe_.begin(), from_pe_.end(), 0);
  for (const Running& run : running_) {
    if (run.begun_us > now_) continue;
    for (std::size_t r = 0; r < kResources; ++r) {
      if (run.needs[r] <= 0) continue;
      ++on_sm_[sm_of(run)][r];
      ++on_pe_[static_cast<std::size_t>(run.pe)][r];
    }
    for (const vgpu::PeerTraffic& peer : work_.stretches[run.stretch].work.peers) {
      if (peer.bytes_out > 0) ++to_pe_[static_cast<std::size_t>(peer.pe)];
      if (peer.bytes_in > 0) ++from_pe_[static_cast<std::size_t>(peer.pe)];
    }
  }
  for (Running& run : running_) {
    if (run.begun_us > now_) {
      run.rate = 0;
      continue;
    }
    double slowest = 0;
    run.bound = Resource::kIssue;
    for (std::size_t r = 0; r < kResources; ++r) {
      if (run.needs[r] <= 0) continue;
      const bool of_sm =
          r == index(Resource::kIssue) || r == index(Resource::kTensor) || r == index(Resource::kShared);
      const bool alone = r == index(Resource::kLatency);
      const int users = alone   ? 1
                        : of_sm ? on_sm_[sm_of(run)][r]
                                : on_pe_[static_cast<std::size_t>(run.pe)][r];
      const double needed = run.needs[r] * users;
      if (needed > slowest) {
        slowest = needed;
        run.bound = static_cast<Resource>(r);
      }
    }
    const auto take = [&](double needed, Resource resource) {
      if (needed <= slowest) return;
      slowest = needed;
      run.bound = resource;
    };
    const auto own = static_cast<std::size_t>(run.pe);
    take(run.needs[index(Resource::kLinkOut)] * (on_pe_[own][index(Resource::kLinkOut)] + from_pe_[own]),
         Resource::kLinkOut);
    take(run.needs[index(Resource::kLinkIn)] * (on_pe_[own][index(Resource::kLinkIn)] + to_pe_[own]),
         Resource::kLinkIn);
    // The other end's link has its other users.
    for (const vgpu::PeerTraffic& peer : work_.stretches[run.stretch].work.peers) {
      const auto at = static_cast<std::size_t>(peer.pe);
      const double us = 1e-3 / topology_.link_gb_s;
      take(static_cast<double>(peer.bytes_out) * us * (to_pe_[at] + on_pe_[at][index(Resource::kLinkIn)]),
           Resource::kLinkOut);
      take(static_cast<double>(peer.bytes_in) * us * (from_pe_[at] + on_pe_[at][index(Resource::kLinkOut)]),
           Resource::kLinkIn);
    }
    slowest += run.fixed_us;
    if (run.fixed_us > slowest / 2) run.bound = Resource::kLinkOut;
    run.rate = slowest <= 0 ? kNever : 1 / slowest;
  }
}

void Simulation::account(double from, double to) {
  if (to <= from) return;
  std::vector<int> works(static_cast<std::size_t>(work_.n_pes)), links(works), waits(works);
  for (const Running& run : running_) {
    const auto pe = static_cast<std::size_t>(run.pe);
    if (run.beside) continue;
    if (run.begun_us >= to) {
      ++waits[pe];
      continue;
    }
    ++works[pe];
    if (run.bound == Resource::kLinkOut || run.bound == Resource::kLinkIn) ++links[pe];
    out_.pes[pe].bound_us[index(run.bound)] += to - from;
  }
  for (const std::uint32_t block : waiting_) ++waits[static_cast<std::size_t>(pe_of_block(block))];
  for (std::size_t pe = 0; pe < works.size(); ++pe) {
    if (works[pe] > 0) out_.pes[pe].busy_us += to - from;
    const bool exposed = works[pe] == links[pe] && works[pe] + waits[pe] > 0;
    if (exposed) out_.pes[pe].exposed_us += to - from;
    note_state(static_cast<int>(pe),
               exposed         ? PeState::kExposed
               : works[pe] > 0 ? PeState::kWorking
                               : PeState::kIdle,
               from, to);
  }
}

void Simulation::note_state(int pe, PeState state, double from, double to) {
  const std::size_t before = last_state_[static_cast<std::size_t>(pe)];
  if (before < out_.states.size() && out_.states[before].pe == pe && out_.states[before].state == state) {
    out_.states[before].end_us = to;
    return;
  }
  last_state_[static_cast<std::size_t>(pe)] = out_.states.size();
  out_.states.push_back({pe, state, from, to});
}

void Simulation::finish(const Running& ended) {
  ended_[ended.stretch] = now_;
  const Stretch& stretch = work_.stretches[ended.stretch];
  if (!ended.beside) {
    out_.spans.push_back({ended.pe,
                          ended.sm,
                          ended.slot,
                          ended.block,
                          ended.begun_us,
                          now_,
                          false,
                          false,
                          stretch.phase,
                          ended.bound,
                          {}});
  }
  for (const vgpu::PeerTraffic& peer : stretch.work.peers) {
    if (peer.bytes_out > 0)
      out_.links.push_back({ended.pe, peer.pe, ended.begun_us, now_, static_cast<double>(peer.bytes_out)});
    if (peer.bytes_in > 0)
      out_.links.push_back({peer.pe, ended.pe, ended.begun_us, now_, static_cast<double>(peer.bytes_in)});
  }
  if (ended.beside) {
    --beside_[ended.block];
    beside_ended_[ended.block] = now_;
    return;
  }
  ++next_[ended.block];
  reached_[ended.block] = now_;
  reach(ended.block);
}

Error Simulation::stuck() const {
  const std::uint32_t block = *waiting_.begin();
  const LaunchWork& grid = work_.launches[work_.blocks[block].launch];
  return machine_error("the recorded work can't be put in order: block " +
                       std::to_string(work_.blocks[block].index) + " of " + grid.kernel + " on PE " +
                       std::to_string(grid.pe) + " waits for work that never ends");
}

Result<Timeline> Simulation::run() {
  if (work_.n_pes > topology_.max_pes) {
    return usage_error("topology " + topology_.name + " has " + std::to_string(topology_.max_pes) +
                           " PEs, and " + std::to_string(work_.n_pes) + " ran",
                       "choose another with --topology");
  }
  out_.topology = topology_.name;
  out_.pes.resize(static_cast<std::size_t>(work_.n_pes));
  ended_.assign(work_.stretches.size(), kNever);
  next_.assign(work_.blocks.size(), 0);
  reached_.assign(work_.blocks.size(), 0);
  beside_.assign(work_.blocks.size(), 0);
  beside_ended_.assign(work_.blocks.size(), 0);
  to_pe_.resize(static_cast<std::size_t>(work_.n_pes));
  from_pe_.resize(static_cast<std::size_t>(work_.n_pes));
  on_pe_.resize(static_cast<std::size_t>(work_.n_pes));
  on_sm_.resize(static_cast<std::size_t>(work_.n_pes) * static_cast<std::size_t>(topology_.sms));
  last_state_.assign(static_cast<std::size_t>(work_.n_pes), ~std::size_t{0});
  place_.assign(work_.blocks.size(), {});
  launch_ended_.assign(work_.launches.size(), kNever);
  launch_next_.assign(work_.launches.size(), 0);
  opened_.assign(work_.launches.size(), false);
  for (const LaunchWork& launch : work_.launches)
    launch_left_.push_back(static_cast<int>(launch.blocks.size()));
  free_slots_.assign(static_cast<std::size_t>(work_.n_pes),
                     std::vector<int>(static_cast<std::size_t>(topology_.sms)));
  open_launches();
  for (;;) {
    while (!opening_.empty() && opening_.begin()->first <= now_) {
      const std::set<std::uint32_t> launches = std::move(opening_.begin()->second);
      opening_.erase(opening_.begin());
      for (const std::uint32_t launch : launches) {
        if (work_.launches[launch].blocks.empty()) {
          launch_ended_[launch] = now_;
          open_launches();
        }
        fill(launch);
      }
    }
    set_rates();
    double next = opening_.empty() ? kNever : opening_.begin()->first;
    for (const Running& run : running_) {
      next = std::min(next, run.begun_us > now_  ? run.begun_us
                            : run.rate == kNever ? now_
                                                 : now_ + (1 - run.done) / run.rate);
    }
    if (next == kNever) break;
    account(now_, next);
    const double passed = next - now_;
    now_ = next;
    std::vector<Running> ended;
    for (Running& run : running_) {
      if (run.rate == kNever) {
        run.done = 1;
      } else if (run.rate > 0) {
        run.done += passed * run.rate;
      }
    }
    const auto is_done = [](const Running& run) { return run.done >= 1 - 1e-9; };
    std::copy_if(running_.begin(), running_.end(), std::back_inserter(ended), is_done);
    std::erase_if(running_, is_done);
    for (const Running& run : ended) finish(run);
    if (!ended.empty()) {
      for (const std::uint32_t block : std::exchange(waiting_, {})) reach(block);
    }
  }
  if (!waiting_.empty()) return stuck();
  out_.total_us = now_;
  summarise();
  return std::move(out_);
}

void Simulation::summarise() {
  // What each resource alone would need: the busiest PE's share, spread evenly over what there is of it.
  std::vector<Needs> of_pe(static_cast<std::size_t>(work_.n_pes));
  for (const Stretch& stretch : work_.stretches) {
    double fixed = 0;
    const Needs needs = needs_of(stretch, work_.blocks[stretch.block], &fixed);
    Needs& sum = of_pe[static_cast<std::size_t>(pe_of_block(stretch.block))];
    for (std::size_t r = 0; r < kResources; ++r) sum[r] += needs[r];
    for (const vgpu::PeerTraffic& peer : stretch.work.peers) {
      Needs& other = of_pe[static_cast<std::size_t>(peer.pe)];
      other[index(Resource::kLinkIn)] += static_cast<double>(peer.bytes_out) / topology_.link_gb_s * 1e-3;
      other[index(Resource::kLinkOut)] += static_cast<double>(peer.bytes_in) / topology_.link_gb_s * 1e-3;
    }
  }
  for (const Resource resource : {Resource::kIssue, Resource::kTensor, Resource::kShared, Resource::kL2,
                                  Resource::kDram, Resource::kLinkOut, Resource::kLinkIn}) {
    const bool of_sm =
        resource == Resource::kIssue || resource == Resource::kTensor || resource == Resource::kShared;
    double& least = out_.least_us[index(resource)];
    for (const Needs& needs : of_pe)
      least = std::max(least, needs[index(resource)] / (of_sm ? topology_.sms : 1));
    if (least > out_.roofline_us) {
      out_.roofline_us = least;
      out_.roofline = resource;
    }
  }
  for (const Span& span : out_.spans) {
    PeTimes& pe = out_.pes[static_cast<std::size_t>(span.pe)];
    pe.end_us = std::max(pe.end_us, span.end_us);
  }
  double most = 0;
  for (const auto& [at, wait] : waits_) {
    if (wait.first <= most) continue;
    most = wait.first;
    out_.longest_wait_at = at;
    out_.longest_wait_us = wait.first / static_cast<double>(wait.second.size());
  }
  std::stable_sort(out_.spans.begin(), out_.spans.end(), [](const Span& a, const Span& b) {
    return std::tie(a.begin_us, a.pe, a.sm, a.slot) < std::tie(b.begin_us, b.pe, b.sm, b.slot);
  });
}

}  // namespace

std::string_view name_of(Resource resource) {
  switch (resource) {
    case Resource::kIssue:
      return "instruction issue";
    case Resource::kTensor:
      return "tensor cores";
    case Resource::kShared:
      return "shared memory";
    case Resource::kL2:
      return "L2";
    case Resource::kDram:
      return "DRAM";
    case Resource::kLinkOut:
      return "the link out";
    case Resource::kLinkIn:
      return "the link in";
    case Resource::kLatency:
      return "instruction latency";
  }
  return "";
}

Result<Timeline> simulate(const vgpu::JobWork& work, const Topology& topology) {
  return Simulation(work, topology).run();
}

}  // namespace echolo::timing
