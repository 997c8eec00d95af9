#include "timing/model.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

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
  Error stuck() const;
  void summarise();
  int pe_of_block(std::uint32_t block) const { return work_.launches[work_.blocks[block].launch].pe; }

  const JobWork& work_;
  const Topology& topology_;
  Timeline out_;
  double now_ = 0;
  std::vector<Running> running_;
  std::vector<double> ended_;        // of each stretch; kNever: not yet
  std::vector<std::uint32_t> next_;  // of each block: position in its stretches
  std::vector<double> reached_;      // of each block: when it came to its next stretch
  std::vector<Slot> place_;          // of each block
  std::set<std::uint32_t> waiting_;  // blocks whose next stretch can't begin
  std::vector<int> launch_left_;     // blocks not ended; -1: not begun
  std::vector<double> launch_ended_;
  std::vector<std::size_t> launch_next_;               // block to place
  std::map<double, std::set<std::uint32_t>> opening_;  // launches by the time they begin
  std::vector<bool> opened_;
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
  for (const std::uint32_t cause : stretch.causes) {
    if (ended_[cause] == kNever) return false;
    const bool remote = pe_of_block(work_.stretches[cause].block) != pe;
    from = std::max(from, ended_[cause] + (remote ? topology_.link_latency_us : 0));
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
                          Resource::kLatency, stretch.waited_at});
    auto& [sum, blocks] = waits_[stretch.waited_at];
    sum += run.begun_us - reached_[block];
    blocks.insert(block);
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
  if (!begin_if_ready(block)) waiting_.insert(block);
}

void Simulation::set_rates() {
  // How many want each resource: of an SM, of a PE.
  std::map<std::pair<int, int>, std::array<int, kResources>> on_sm;
  std::vector<std::array<int, kResources>> on_pe(static_cast<std::size_t>(work_.n_pes));
  for (const Running& run : running_) {
    if (run.begun_us > now_) continue;
    for (std::size_t r = 0; r < kResources; ++r) {
      if (run.needs[r] <= 0) continue;
      ++on_sm[{run.pe, run.sm}][r];
      ++on_pe[static_cast<std::size_t>(run.pe)][r];
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
                        : of_sm ? on_sm[{run.pe, run.sm}][r]
                                : on_pe[static_cast<std::size_t>(run.pe)][r];
      const double needed = run.needs[r] * users;
      if (needed > slowest) {
        slowest = needed;
        run.bound = static_cast<Resource>(r);
      }
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
    if (works[pe] == links[pe] && works[pe] + waits[pe] > 0) out_.pes[pe].exposed_us += to - from;
  }
}

void Simulation::finish(const Running& ended) {
  ended_[ended.stretch] = now_;
  const Stretch& stretch = work_.stretches[ended.stretch];
  out_.spans.push_back(
      {ended.pe, ended.sm, ended.slot, ended.block, ended.begun_us, now_, false, ended.bound, {}});
  for (const vgpu::PeerTraffic& peer : stretch.work.peers) {
    if (peer.bytes_out > 0)
      out_.links.push_back({ended.pe, peer.pe, ended.begun_us, now_, static_cast<double>(peer.bytes_out)});
    if (peer.bytes_in > 0)
      out_.links.push_back({peer.pe, ended.pe, ended.begun_us, now_, static_cast<double>(peer.bytes_in)});
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
      std::erase_if(waiting_, [&](std::uint32_t block) { return begin_if_ready(block); });
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
