// Is a PE waiting, working or lost? Wall time alone can't tell: on a loaded machine a process may not run for
// long.
#include <algorithm>
#include <csignal>

#include "base/subprocess.hpp"
#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// A host that has computed for so long (of its own processor time) without a call may be polling memory that
// the device writes: the device goes on without it. One that can't be polling is waited for.
constexpr milliseconds kComputing{200};
// Threads of a PE that sleep outside any call (join, a lock) do not hold up the others for longer than this.
constexpr milliseconds kAsleep{5};
// A PE whose other threads sleep while its calls can't be answered: not about to change its mind.
constexpr milliseconds kStuckAsleep{500};
// Past so many times its limit of wall time a host is given up whatever it was given of the processor.
constexpr int kPatience = 4;
// Between two looks at the sockets no more than this counts as time in which a host could have been heard.
constexpr milliseconds kAttention{100};

}  // namespace

// Since when the PE owes us a call, or its end where no thread of it is left; `*owes` is false where every
// thread of it waits for a reply.
Clock::time_point Node::owes_since(const PeProcess& process, bool* owes) const {
  Clock::time_point since = std::max(process.started, process.thread_left);
  *owes = process.threads.empty();
  for (const auto& [index, thread] : process.threads) {
    since = std::max(since, thread->running_since);
    if (!thread->in_call) *owes = true;
  }
  return since;
}

// Processor time that the PE has used since it last owed a call, as far as it has been watched; grows from 0.
milliseconds Node::computed(PeProcess& process, Clock::time_point since) const {
  if (process.process <= 0) return milliseconds(0);
  const milliseconds now = processor_time(process.process);
  if (process.watched_since != since) {
    process.watched_since = since;
    process.watched_from = now;
  }
  return now - process.watched_from;
}

// May something that the device does be seen by this PE's host code without a call?
bool Node::may_poll(const PeState& pe) const {
  if (pe.needs_service || pe.process.threads.size() > 1) return true;
  for (const vgpu::Allocation* allocation : machine_->memory().live_allocations(pe.process.pe)) {
    if (allocation->kind == vgpu::AllocationKind::kPinned ||
        allocation->kind == vgpu::AllocationKind::kManaged)
      return true;
  }
  return false;
}

// Nothing more will come from this PE before something is answered. `*computing`: it may still act by itself.
bool Node::quiet(PeState& pe, Clock::time_point now, bool* computing) const {
  *computing = false;
  PeProcess& process = pe.process;
  if (process.ended) return true;
  if (process.ending) return false;
  if (process.last_words) return process.last_words->seen + kAsleep < now;  // its end is a matter of moments
  bool owes = false;
  const Clock::time_point since = owes_since(process, &owes);
  if (!owes) return true;
  *computing = true;
  const auto waited = now - since;
  if (waited <= kAsleep || process.process <= 0) return false;
  int n_tasks = 0;
  const bool asleep = all_asleep(process.process, &n_tasks);
  if (asleep && n_tasks > 1) {
    if (waited > kStuckAsleep) *computing = false;
    return true;
  }
  if (waited <= milliseconds(20) || process.threads.empty()) return false;
  const milliseconds used = computed(process, since);
  return waited > kComputing && (asleep || used >= kComputing) && may_poll(pe);
}

// Called before and after the node looks at its sockets.
void Node::attend() {
  const Clock::time_point now = Clock::now();
  if (last_poll_) attended_ += std::min<Clock::duration>(now - *last_poll_, kAttention);
  last_poll_ = now;
}

bool Node::lost(PeProcess& process) const {
  bool owes = false;
  const Clock::time_point since = owes_since(process, &owes);
  Clock::duration heard_at = process.heard_at;
  for (const auto& [index, thread] : process.threads) heard_at = std::max(heard_at, thread->heard_at);
  const Clock::duration waited = attended_ - heard_at;
  if (!owes || waited < spec_.host_timeout) return false;
  if (waited >= kPatience * spec_.host_timeout || process.process <= 0)
    return waited >= kPatience * spec_.host_timeout;
  int n_tasks = 0;
  const bool asleep = all_asleep(process.process, &n_tasks);
  const bool in_calls = std::any_of(process.threads.begin(), process.threads.end(), [](const auto& entry) {
    return entry.second->in_call && !entry.second->is_service;
  });
  if (asleep && n_tasks > 1 && in_calls) return false;  // its threads wait for each other
  return asleep || computed(process, since) >= spec_.host_timeout / 2;
}

bool Node::check_limits() {
  const Clock::time_point now = Clock::now();
  if (interrupt_flag().load()) {
    stop("infra", "interrupted");
    return false;
  }
  const auto phase_of = [this](int pe) { return driver_ ? driver_->phase(pe) : std::string(); };
  if (now - start_ > spec_.timeout) {
    std::string where;
    for (auto& pe : pes_) {
      const std::string phase = pe->process.ended ? "" : phase_of(pe->process.pe);
      if (!phase.empty())
        where += (where.empty() ? "; PE " : ", PE ") + std::to_string(pe->process.pe) + " is in " + phase;
    }
    stop("timeout", "the job did not end within " + std::to_string(spec_.timeout.count()) + " ms" + where);
    return false;
  }
  for (auto& pe : pes_) {
    PeProcess& process = pe->process;
    if (process.ended || !lost(process)) continue;
    // It may sleep because it has asked since we last looked: what it has sent is there now.
    if (!read_all_ready(0) || stopped_) return false;
    if (process.ended || !lost(process)) continue;
    // Asks the process where it is; its handler answers with a note, unless it is beyond that.
    if (!process.asked_where && process.process > 0) {
      process.asked_where = true;
      ::kill(process.process, SIGXCPU);
      for (int i = 0; i < 50 && !process.last_words; ++i) read_all_ready(20);
      judge_last_words(process.pe);
      if (stopped_) return false;
    }
    const std::string phase = phase_of(process.pe);
    process.reported = true;
    process.report.end = PeEnd::kTimeout;
    process.report.detail = "makes no call for " + std::to_string(spec_.host_timeout.count()) + " ms" +
                            (phase.empty() ? "" : " in " + phase);
    stop("timeout", "PE " + std::to_string(process.pe) + " " + process.report.detail);
    return false;
  }
  return true;
}

}  // namespace echolo::runtime
