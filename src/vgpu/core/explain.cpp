// The wait graph of a program in which nothing can happen any more.
#include "vgpu/core/explain.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <set>
#include <tuple>

#include "base/text.hpp"
#include "vgpu/core/sites.hpp"

namespace echolo::vgpu {
namespace {

constexpr std::size_t kMaxSites = 24;

struct Place {
  std::size_t first = 0;  // index into waiters
  std::set<std::pair<LaunchId, std::uint32_t>> blocks;
  bool same_text = true;
};

std::string plural(std::uint64_t n, const std::string& word) {
  return with_commas(n) + " " + word + (n == 1 ? "" : "s");
}

// "last written by PE 1 (line 39)"
std::string writer_of(const Memory& memory, std::uint64_t address) {
  const std::optional<Memory::LastWriter> writer = memory.last_writer(address);
  if (!writer) return "nobody has written it";
  if (!writer->site.on_device)
    return "only host code of PE " + std::to_string(writer->site.pe) + " has written it";
  std::string text = "last written by PE " + std::to_string(writer->site.pe);
  if (writer->site.where.line > 0) text += " (line " + std::to_string(writer->site.where.line) + ")";
  return text;
}

std::string pes_of(const std::set<int>& pes, int n_pes) {
  if (static_cast<int>(pes.size()) == n_pes)
    return n_pes == 1 ? "no thread of PE 0 can go on" : "no PE can go on";
  std::string text = pes.size() == 1 ? "PE " : "PEs ";
  std::size_t i = 0;
  for (const int pe : pes) {
    if (i != 0) text += i + 1 == pes.size() ? " and " : ", ";
    text += std::to_string(pe);
    ++i;
  }
  return text + (pes.size() == 1 ? " waits for ever" : " wait for ever");
}

}  // namespace

void Machine::State::explain_stuck(const std::vector<HostWait>& hosts, bool livelock) {
  std::vector<Waiter> waiters;
  const CoreGrid* starved = nullptr;  // the first grid with blocks that found no room
  std::vector<const CoreBlock*> blocks;
  for (const PeState& pe : pes) {
    for (const auto& grid : pe.grids) {
      if (starved == nullptr && grid->next_block < grid->n_blocks) starved = grid.get();
      for (const auto& block : grid->resident) {
        blocks.push_back(block.get());
        for (CoreWarp* warp : block->warps) {
          for (const Group& group : warp->groups) waiters.push_back(describe_group(*memory, *warp, group));
        }
      }
    }
  }
  if (!livelock) {
    for (const CoreBlock* block : blocks) {
      if (std::optional<Finding> finding = barrier_finding(*block, waiters)) {
        findings.add(std::move(*finding));
        return;
      }
    }
  }
  // What others are waited for comes first, then who waits for threads of its own block.
  std::stable_sort(waiters.begin(), waiters.end(), [](const Waiter& a, const Waiter& b) {
    const auto rank = [](const Waiter& w) {
      if (w.kind != Waiter::Kind::kThreads) return 0;
      return w.group->state == GroupState::kConverge ? 2 : 1;
    };
    return rank(a) < rank(b);
  });
  // One line a place of the source and PE.
  using Key = std::tuple<int, std::string, int, Waiter::Kind>;
  std::map<Key, Place> places;
  std::vector<Key> order;
  // Most waiters stand at an instruction where others of their PE stand too; their source line is looked up
  // once.
  std::map<std::tuple<int, std::uint64_t, std::int64_t, Waiter::Kind>, Key> known;
  std::map<Key, Site> sites;
  std::set<int> pes_waiting;
  for (std::size_t i = 0; i < waiters.size(); ++i) {
    const Waiter& waiter = waiters[i];
    const CoreBlock& block = *waiter.warp->core_block;
    pes_waiting.insert(block.grid->pe);
    const KernelImage& image = *waiter.group->frame->image;
    const std::tuple at_inst(block.grid->pe,
                             block.grid->launch_id * 65536U + static_cast<std::uint64_t>(image.index),
                             static_cast<std::int64_t>(waiter.inst - image.code.data()), waiter.kind);
    auto at = known.find(at_inst);
    if (at == known.end()) {
      Site site = make_site(*waiter.warp, waiter.lane, *waiter.inst, "wait");
      const Key key(block.grid->pe, site.where.file, site.where.line, waiter.kind);
      at = known.emplace(at_inst, key).first;
      if (places.try_emplace(key).second) {
        places[key].first = i;
        order.push_back(key);
        sites.emplace(key, std::move(site));
      }
    }
    Place& place = places[at->second];
    place.blocks.insert({block.grid->launch_id, block.linear_index});
    place.same_text = place.same_text && waiters[place.first].waits_for == waiter.waits_for;
  }
  Finding finding;
  finding.fatal = true;
  bool nobody_wrote = false;
  bool any_word = false;
  for (const auto& key : order) {
    if (finding.sites.size() >= kMaxSites) break;
    const Place& place = places[key];
    const Waiter& waiter = waiters[place.first];
    Site site = sites[key];
    site.waits_for = waiter.waits_for;
    site.holds = waiter.holds;
    if (place.blocks.size() > 1) site.note = plural(place.blocks.size(), "block");
    if (waiter.address != 0 && (waiter.kind == Waiter::Kind::kWord || waiter.kind == Waiter::Kind::kLoop)) {
      any_word = true;
      const std::string writer = writer_of(*memory, waiter.address);
      nobody_wrote = nobody_wrote || !writer.starts_with("last");
      site.note += (site.note.empty() ? "" : "; ") + writer;
      if (finding.address.pe < 0) {
        if (const Allocation* in = memory->find(waiter.address)) {
          finding.address = {memory->pe_of(waiter.address), in->describe(),
                             static_cast<std::int64_t>(waiter.address - in->base)};
        }
      }
    }
    if (!place.same_text && waiter.kind != Waiter::Kind::kThreads)
      site.note += std::string(site.note.empty() ? "" : "; ") + "others there wait for other words";
    finding.sites.push_back(std::move(site));
  }
  for (const HostWait& host : hosts) {
    if (host.gone) {
      finding.why += (finding.why.empty() ? "" : "; ") + std::string("PE ") + std::to_string(host.pe) +
                     "'s process has ended";
      continue;
    }
    pes_waiting.insert(host.pe);
    Site site = make_host_site(host.pe, host.in.empty() ? "host" : host.in + "()");
    site.where = host.where;
    site.waits_for = host.waits_for.empty() ? "a call to end" : host.waits_for;
    finding.sites.push_back(std::move(site));
  }
  if (starved != nullptr) {
    finding.kind = FindingKind::kResidency;
    const std::uint64_t resident = starved->resident.size();
    const std::uint64_t waiting = starved->n_blocks - starved->next_block;
    finding.message = plural(waiting, "block") + " of " + readable_name(starved->kernel->name) + " on PE " +
                      std::to_string(starved->pe) + " can never start, and the blocks that run wait";
    const int per_sm = blocks_per_sm(starved->needs);
    finding.why =
        "an SM holds " + plural(static_cast<std::uint64_t>(per_sm), "block") + " of this kernel, so the " +
        std::to_string(config.gpu.sms) + " SMs hold " +
        with_commas(static_cast<std::uint64_t>(per_sm) * static_cast<std::uint64_t>(config.gpu.sms)) + "; " +
        with_commas(resident) + " of " + with_commas(starved->n_blocks) +
        " are resident and none of them ends before the others have started";
    finding.advice =
        "launch no more blocks than are resident at once (cudaOccupancyMaxActiveBlocksPerMultiprocessor), "
        "or launch cooperatively, which refuses such a grid";
  } else if (livelock) {
    finding.kind = FindingKind::kLivelock;
    finding.message = pes_waiting.size() == 1
                          ? "PE " + std::to_string(*pes_waiting.begin()) + " loops without any effect"
                          : "the PEs loop without any effect";
    finding.why +=
        std::string(finding.why.empty() ? "" : "; ") + "the budget of " + with_commas(livelock_budget) +
        " warp instructions is used up: since then no block ended, and memory only got values that it "
        "had before or counted on";
    finding.advice = "let the loop end, or let somebody write what it reads";
  } else {
    finding.kind = FindingKind::kDeadlock;
    finding.message = pes_of(pes_waiting, config.n_pes);
    if (any_word) {
      finding.why +=
          (finding.why.empty() ? "" : "; ") +
          std::string(nobody_wrote
                          ? "a word is waited for that no kernel has written"
                          : "everybody who could write the awaited words again waits too, or has ended");
      finding.advice = "compare what is sent (value, element, PE) with what is waited for";
    }
  }
  findings.add(std::move(finding));
}

}  // namespace echolo::vgpu
