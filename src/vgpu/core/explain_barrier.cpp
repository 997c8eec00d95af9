// Findings about threads of one block that wait for each other in vain.
#include <algorithm>
#include <bit>
#include <map>
#include <set>

#include "base/text.hpp"
#include "vgpu/core/explain.hpp"
#include "vgpu/core/sites.hpp"

namespace echolo::vgpu {
namespace {

bool is_barrier(const Inst& inst) {
  return inst.kind == InstKind::kControl && inst.control == static_cast<std::uint32_t>(Control::kBarrier);
}

std::string threads(std::uint32_t mask) {
  const int n = std::popcount(mask);
  return std::to_string(n) + (n == 1 ? " thread" : " threads");
}

std::string role_of(const Inst& inst) { return is_barrier(inst) ? "barrier" : "wait"; }

// The instructions from the last label before `leaving` up to it do something, and can be reached from behind
// the barrier at `barrier`: then the leaving lanes passed the place behind it without having waited at it.
bool passed_behind(const KernelImage& image, std::int32_t barrier, std::int32_t leaving) {
  std::set<std::int32_t> targets;
  for (const Inst& inst : image.code) {
    if (inst.kind == InstKind::kControl && inst.control == static_cast<std::uint32_t>(Control::kBra)) {
      targets.insert(inst.target);
    }
  }
  for (const auto& table : image.branch_tables) targets.insert(table.begin(), table.end());
  std::int32_t start = leaving;
  while (start > 0 && !targets.contains(start) && start - 1 > barrier) --start;
  if (start == leaving) return false;
  // Is `start` reachable from behind the barrier?
  std::set<std::int32_t> seen;
  std::vector<std::int32_t> open = {barrier + 1};
  while (!open.empty()) {
    const std::int32_t at = open.back();
    open.pop_back();
    if (at < 0 || static_cast<std::size_t>(at) >= image.code.size() || !seen.insert(at).second) continue;
    if (at == start) return true;
    const Inst& inst = image.code[static_cast<std::size_t>(at)];
    const auto op = static_cast<Control>(inst.control);
    const bool control = inst.kind == InstKind::kControl;
    if (control && op == Control::kBra) open.push_back(inst.target);
    if (control && op == Control::kBrx) {
      const auto& table = image.branch_tables[inst.aux[0]];
      open.insert(open.end(), table.begin(), table.end());
    }
    const bool ends = control && inst.guard == 0 &&
                      (op == Control::kBra || op == Control::kBrx || op == Control::kExit ||
                       op == Control::kRet || op == Control::kTrap);
    if (!ends) open.push_back(at + 1);
  }
  return false;
}

}  // namespace

void Machine::State::report_divergence(CoreWarp& warp) {
  Finding finding;
  finding.kind = FindingKind::kBarrierDivergence;
  finding.fatal = true;
  std::vector<const Group*> groups;
  for (const Group& group : warp.groups) groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) {
    return is_barrier(inst_at(*a)) && !is_barrier(inst_at(*b));
  });
  const bool all_barriers = is_barrier(inst_at(*groups.back()));
  const bool any_barrier = is_barrier(inst_at(*groups.front()));
  finding.message = all_barriers ? "threads of one warp wait at different barriers"
                    : any_barrier
                        ? "some threads of a warp wait at a barrier that the others do not reach"
                        : "threads of one warp wait for each other at different warp-wide operations";
  finding.why = "all threads of a warp must execute the same " +
                std::string(any_barrier ? "barrier" : "warp-wide operation") + " together; here ";
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i != 0) finding.why += i + 1 == groups.size() ? " and " : ", ";
    finding.why += threads(groups[i]->mask);
    const Site site =
        make_site(warp, std::countr_zero(groups[i]->mask), inst_at(*groups[i]), role_of(inst_at(*groups[i])));
    finding.why +=
        site.where.line > 0 ? " wait at line " + std::to_string(site.where.line) : " wait elsewhere";
    finding.sites.push_back(site);
  }
  finding.advice =
      any_barrier
          ? "move the barrier out of the divergent branch, so that every thread of the block executes it"
          : "name in the member mask only the threads that execute the operation";
  findings.add(std::move(finding));
}

void Machine::State::report_skipped_barrier(CoreWarp& warp, const Group& waiting, const Group& leaving,
                                            std::uint32_t lanes) {
  const Inst& barrier = inst_at(waiting);
  if (!is_barrier(barrier) || waiting.frame->image != leaving.frame->image) return;
  if (!passed_behind(*waiting.frame->image, waiting.pc, leaving.pc)) return;
  Finding finding;
  finding.kind = FindingKind::kBarrierDivergence;
  finding.fatal = true;
  finding.message =
      threads(waiting.mask) + " of a warp wait at a barrier that " + threads(lanes) + " of it passed by";
  finding.sites.push_back(make_site(warp, std::countr_zero(waiting.mask), barrier, "barrier"));
  finding.sites.push_back(make_site(warp, std::countr_zero(lanes), inst_at(leaving), "exit"));
  finding.why =
      "the barrier stands in a branch that not all threads take; the others went on behind it and ended";
  finding.advice =
      "move the barrier out of the divergent branch, so that every thread of the block executes it";
  findings.add(std::move(finding));
}

std::optional<Finding> barrier_finding(const CoreBlock& block, const std::vector<Waiter>& waiters) {
  std::vector<const Waiter*> here;
  for (const Waiter& waiter : waiters) {
    if (waiter.warp->core_block != &block) continue;
    if (waiter.kind != Waiter::Kind::kThreads) return std::nullopt;
    here.push_back(&waiter);
  }
  if (here.empty()) return std::nullopt;
  std::stable_sort(here.begin(), here.end(), [](const Waiter* a, const Waiter* b) {
    const auto rank = [](const Waiter* w) {
      return w->group->state == GroupState::kConverge ? 0 : is_barrier(*w->inst) ? 1 : 2;
    };
    return rank(a) < rank(b);
  });
  Finding finding;
  finding.kind = FindingKind::kBarrierDivergence;
  finding.fatal = true;
  std::map<const Inst*, std::uint32_t> count;
  for (const Waiter* waiter : here)
    count[waiter->inst] += static_cast<std::uint32_t>(std::popcount(waiter->group->mask));
  std::set<const Inst*> named;
  for (const Waiter* waiter : here) {
    if (!named.insert(waiter->inst).second) continue;
    Site site =
        make_site(*waiter->warp, waiter->lane, *waiter->inst, is_barrier(*waiter->inst) ? "barrier" : "wait");
    const std::uint32_t n = count[waiter->inst];
    if (n > 1)
      site.note = std::to_string(n) + " threads of block (" + std::to_string(block.index.x) + "," +
                  std::to_string(block.index.y) + "," + std::to_string(block.index.z) + ")";
    finding.sites.push_back(std::move(site));
  }
  const std::uint32_t exited =
      static_cast<std::uint32_t>(block.core_grid->block_dim.count()) - block.live_threads;
  const Waiter& first = *here.front();
  if (finding.sites.size() > 1) {
    finding.message = "threads of one block wait at different places for each other";
    finding.why =
        "a barrier opens when all its threads have arrived; these wait elsewhere, and nothing can bring them "
        "there";
    finding.advice = "let every thread of the block execute the same barriers in the same order";
  } else if (first.group->state == GroupState::kBarrier) {
    const BarrierState& state = block.barriers[static_cast<std::size_t>(first.group->barrier)];
    finding.message = "barrier " + std::to_string(first.group->barrier) + " waits for " +
                      std::to_string(state.expected) + " threads, but only " + std::to_string(state.arrived) +
                      " arrive";
    finding.why = exited == 0 ? "no other thread of the block is left to arrive"
                              : std::to_string(exited) + " threads of the block have exited without arriving";
    finding.advice =
        "give the barrier the number of threads that execute it, or let the missing ones arrive (bar.arrive)";
  } else {
    finding.message = "threads of one block wait for others that have exited";
    finding.advice = "let every thread of the block take part";
  }
  return finding;
}

}  // namespace echolo::vgpu
