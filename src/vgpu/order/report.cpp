// What a race is called: the two sides, the edge that is missing, and what would mend it.
#include <algorithm>
#include <bit>
#include <string>

#include "base/text.hpp"
#include "vgpu/core/sites.hpp"
#include "vgpu/memory/state.hpp"
#include "vgpu/order/races.hpp"

namespace echolo::vgpu {
namespace {

Dim3 index_in(const Dim3& dim, std::uint32_t linear) {
  return {linear % dim.x, linear / dim.x % dim.y, linear / dim.x / dim.y};
}

const ptx::Function& function_of(const ptx::Module& module, const ptx::Function& kernel, const Inst& inst) {
  for (const ptx::Function& function : module.functions) {
    if (!function.body.empty() && inst.source >= function.body.data() &&
        inst.source < function.body.data() + function.body.size())
      return function;
  }
  return kernel;
}

std::string pe_text(int pe) { return pe >= 0 ? "PE " + std::to_string(pe) : "the node"; }

std::string line_text(const Site& site) {
  // Inside the toolkit's functions: the line of the program that calls them.
  if (site.where.file.find("/nvidia/") != std::string::npos && !site.inlined_at.empty())
    return "line " + std::to_string(site.inlined_at.back().line);
  if (!site.on_device && !site.where.file.empty())  // found once the program has ended: file and line then
    return site.where.file.substr(site.where.file.find_last_of('/') + 1) + ":" +
           std::to_string(site.where.line);
  return site.where.line > 0 ? "line " + std::to_string(site.where.line) : site.where.function;
}

std::string thread_text(const Site& site) {
  const auto dim = [](const Dim3& d) {
    return "(" + std::to_string(d.x) + "," + std::to_string(d.y) + "," + std::to_string(d.z) + ")";
  };
  return "thread " + dim(site.thread) + " of block " + dim(site.block);
}

const char* scope_text(ptx::Scope scope) {
  switch (scope) {
    case ptx::Scope::kCta:
      return "block (cta)";
    case ptx::Scope::kCluster:
      return "cluster";
    case ptx::Scope::kGpu:
      return "gpu";
    case ptx::Scope::kSys:
    case ptx::Scope::kNone:
      break;
  }
  return "system";
}

}  // namespace

int Races::pe_of(std::uint32_t who) const {
  if (!Order::State::is_thread({who})) return state_.agent({who}).pe;
  return state_.grids[grid_of(who)].pe;
}

std::uint32_t Races::issuer(std::uint32_t who) const {
  for (int depth = 0; depth < 8 && !Order::State::is_thread({who}); ++depth) {
    const AgentId parent = state_.agent({who}).parent;
    if (parent.value == 0) return 0;
    who = Order::State::is_thread(parent) ? Order::State::warp_of(parent) : parent.value;
  }
  return Order::State::is_thread({who}) ? who : 0;
}

std::uint32_t Races::grid_of(std::uint32_t who) const {
  const std::uint32_t warp = issuer(who);
  return warp == 0 ? 0 : state_.blocks[state_.block_of_warp[warp]].grid;
}

Site Races::site_of(const Entry& entry, std::uint32_t lanes, const char* role) const {
  Site site;
  const Place& place = places_[entry.place];
  std::uint32_t warp = entry.who;
  int lane = lanes == 0 ? 0 : std::countr_zero(lanes);
  if (!Order::State::is_thread({entry.who})) {
    const Order::State::Agent* agent = &state_.agent({entry.who});
    AgentId parent = agent->parent;
    for (int depth = 0; depth < 8 && parent.value != 0 && !Order::State::is_thread(parent); ++depth) {
      agent = &state_.agent(parent);
      parent = agent->parent;
    }
    const Order::State::Agent& own = state_.agent({entry.who});
    if (!Order::State::is_thread(parent)) {
      if (own.issued != 0) {
        site = state_.sites[own.issued];
      } else if (place.site != 0) {
        site = state_.sites[place.site];
      } else {
        site = make_host_site(own.pe, role);
      }
      site.role = role;
      return site;
    }
    warp = Order::State::warp_of(parent);
    lane = Order::State::lane_of(parent);
    if (place.inst == nullptr && own.issued != 0) {
      site = state_.sites[own.issued];
      site.role = role;
      return site;
    }
  }
  const Order::State::BlockInfo& block = state_.blocks[state_.block_of_warp[warp]];
  const Order::State::GridInfo& grid = state_.grids[block.grid];
  site.role = role;
  site.pe = grid.pe;
  site.block = index_in(grid.grid_dim, block.linear);
  site.thread =
      index_in(grid.block_dim, (warp - block.first_warp) * kWarpSize + static_cast<std::uint32_t>(lane));
  site.call = grid.call;
  if (place.inst == nullptr && place.site != 0) {
    site.where = state_.sites[place.site].where;
    site.inlined_at = state_.sites[place.site].inlined_at;
    site.kernel = state_.sites[place.site].kernel;
    return site;
  }
  if (grid.kernel == nullptr || grid.module == nullptr) return site;
  site.kernel = readable_name(grid.kernel->name);
  if (place.inst != nullptr && place.inst->source != nullptr) {
    site.where = frame_of(*grid.module, function_of(*grid.module, *grid.kernel, *place.inst),
                          place.inst->source, &site.inlined_at);
  }
  return site;
}

const Races::Near* Races::near_edge(const Entry& earlier, const Entry& now, const Toucher& by) const {
  const unsigned begin = std::max(earlier.offset(), now.offset()), end = std::min(earlier.end(), now.end());
  const std::uint32_t lanes = now.lanes(begin, end);
  const int lane = std::countr_zero(lanes);
  for (std::size_t i = near_.size(); i-- > 0;) {
    const Near& near = near_[i];
    if (near.reason == NearReason::kTaken) continue;
    const Clock::Data* data = Order::State::data_of(near.clock).get();
    const bool covered = Order::State::is_thread({earlier.who})
                             ? state_.knows_lanes(data, earlier.who, earlier.lanes(begin, end), earlier.clock)
                             : state_.knows_agent(data, {earlier.who}, earlier.clock);
    if (!covered) continue;
    // The reader itself, or whoever comes after it.
    if (by.warp == nullptr) {
      if (near.reader == now.who) return &near;
      continue;
    }
    if (near.reader == now.who && (lanes >> near.reader_lane & 1U) != 0) return &near;
    if (!Order::State::is_thread({near.reader})) continue;
    if (state_.lane_knows(*by.warp, by.warp->of(lane), near.reader, 1U << near.reader_lane,
                          near.reader_clock)) {
      return &near;
    }
  }
  return nullptr;
}

// One finding in the making.
struct RaceReport {
  const Races& races;
  const Entry& earlier;
  const Entry& now;
  bool earlier_writes;
  const Toucher& by;
  bool proxies = false;  // ordered, but through two proxies
  Finding finding;
  Site earlier_site, now_site;
  unsigned begin = 0;         // of the bytes in question, in the line
  std::uint32_t culprit = 0;  // the earlier lane that is not ordered, where that is known

  const Site& write_site() const { return earlier_writes ? earlier_site : now_site; }
  const Site& read_site() const { return earlier_writes ? now_site : earlier_site; }
  bool both_write() const { return earlier_writes && by.write; }

  const Order::State::Agent* operation(std::uint32_t who) const {
    if (Order::State::is_thread({who})) return nullptr;
    const Order::State::Agent& agent = races.state_.agent({who});
    return agent.kind >= AgentKind::kPut ? &agent : nullptr;
  }
  std::string name_of(std::uint32_t who) const {
    const Order::State::Agent* agent = operation(who);
    return agent == nullptr || agent->what.empty() ? "an operation" : agent->what;
  }

  void sides() {
    const auto role = [](bool writes, const Entry& entry) {
      return entry.atomic() ? "atomic" : writes ? "write" : "read";
    };
    begin = std::max(earlier.offset(), now.offset());
    unsigned end = std::min(earlier.end(), now.end());
    std::uint32_t other = earlier.lanes(begin, end);
    // Of one warp: two different lanes. Of others: a lane that is not ordered, with the bytes that it has.
    if (earlier.who == now.who && std::popcount(other) > 1) other &= other - 1;
    if (const std::uint32_t lanes = earlier.who == now.who ? 0 : unordered(other, end); lanes != 0) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      other = culprit = 1U << lane;
      if (!earlier.is_shared()) {
        const unsigned piece = earlier.offset() + ((lane - earlier.first_lane()) << earlier.shift());
        begin = std::max(begin, piece);
        end = std::min(end, piece + (1U << earlier.shift()));
      }
    }
    earlier_site = races.site_of(earlier, other, role(earlier_writes, earlier));
    now_site = races.site_of(now, now.lanes(begin, end), role(by.write, now));
  }

  // Those of the earlier lanes of whose accesses the first lane of `now` knows nothing.
  std::uint32_t unordered(std::uint32_t lanes, unsigned end) const {
    if (!Order::State::is_thread({earlier.who}) || by.warp == nullptr) return 0;
    const Knowledge& known = by.warp->of(std::countr_zero(now.lanes(begin, end)));
    std::uint32_t out = 0;
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      const std::uint32_t lane = left & -left;
      if (!races.state_.lane_knows(*by.warp, known, earlier.who, lane, earlier.clock)) out |= lane;
    }
    return out;
  }

  void plain() {
    finding.kind = FindingKind::kDataRace;
    const Site &first = read_site(), &second = write_site();
    const std::string verb = both_write() ? " writes" : " reads";
    if (first.pe == second.pe) {
      finding.message = pe_text(first.pe) + verb + " what it also writes, and nothing orders the two";
    } else {
      finding.message =
          pe_text(first.pe) + verb + " what " + pe_text(second.pe) + " writes, and nothing orders the two";
    }
    finding.why =
        "nothing orders " + side(now_site, by.write) + " after " + side(earlier_site, earlier_writes);
    const bool threads = Order::State::is_thread({earlier.who}) && Order::State::is_thread({now.who});
    if (!threads) {
      finding.advice = "order the two: the same stream, an event, or a wait for the one before the other";
    } else if (earlier.who == now.who) {
      finding.why += "; lanes of a warp that run in step are not ordered by that";
      finding.advice = "__syncwarp() between the two";
    } else if (races.state_.block_of_warp[earlier.who] == races.state_.block_of_warp[now.who]) {
      finding.why += "; no barrier of the block lies between";
      finding.advice = "__syncthreads() between the two";
    } else if (earlier_site.pe == now_site.pe) {
      finding.advice = "a release at gpu scope after " + line_text(earlier_site) +
                       " (__threadfence() and an atomic on a flag) and an acquire of it before " +
                       line_text(now_site) + ", or two kernels";
    } else if (!earlier_writes) {
      finding.advice =
          "let the reader say that it has read (a signal or a barrier among the PEs), and wait for that "
          "before " +
          line_text(now_site);
      if (earlier_site.call != now_site.call)
        finding.why += "; one PE is in call " + std::to_string(now_site.call) +
                       " while another is still in call " + std::to_string(earlier_site.call);
    } else {
      finding.advice = "a release at system scope after " + line_text(earlier_site) +
                       " (a signal, or a flag behind __threadfence_system()) and an acquire of it before " +
                       line_text(now_site);
    }
    missed_by_release();
  }

  std::string side(const Site& site, bool writes) const {
    return pe_text(site.pe) + "'s " + (writes ? "write" : "read") + " at " + line_text(site);
  }

  // The writer's block did release something that was acquired here, but not for this write.
  void missed_by_release() {
    if (!Order::State::is_thread({earlier.who})) return;
    const std::uint32_t block = races.state_.block_of_warp[earlier.who];
    for (std::size_t i = races.near_.size(); i-- > 0;) {
      const Races::Near& near = races.near_[i];
      if (near.reason != NearReason::kTaken || near.reader_grid != races.grid_of(now.who)) continue;
      if (!Order::State::is_thread({near.record.who})) continue;
      if (races.state_.block_of_warp[near.record.who] != block || near.record.clock_value < earlier.clock)
        continue;
      if (near.record.who == earlier.who &&
          ((culprit != 0 ? culprit : earlier.lanes()) >> near.record.lane & 1U) != 0)
        continue;
      const Entry release{near.record.who, near.record.clock_value, near.record.place, 0};
      const Site site = races.site_of(release, 1U << near.record.lane, "release");
      finding.why = thread_text(site) + " releases at " + line_text(site) + ", but the " +
                    (earlier_writes ? "write" : "read") + " of " + thread_text(earlier_site) +
                    " does not happen before that: no barrier lies between";
      finding.advice =
          "__syncthreads() before " + line_text(site) + "; that release then covers the whole block";
      return;
    }
  }

  bool stale() {
    if (!Order::State::is_thread({now.who}) && !Order::State::is_thread({earlier.who})) return false;
    // The reader passed its wait on a flag of an earlier launch than the data's.
    const Entry& reader = earlier_writes && !by.write ? now : earlier;
    const Entry& writer = earlier_writes && !by.write ? earlier : now;
    const std::uint32_t reads = races.grid_of(reader.who), writes = races.grid_of(writer.who);
    // A writer that is ahead of the reader overwrites what is still read: that is another fault.
    if (races.state_.grids[writes].ordinal > races.state_.grids[reads].ordinal) return false;
    for (std::size_t i = races.near_.size(); i-- > 0;) {
      const Races::Near& near = races.near_[i];
      if (near.reason != NearReason::kTaken || near.reader_grid != reads) continue;
      if (near.record.grid == 0 || near.record.grid == near.reader_grid || near.record.grid >= writes)
        continue;
      if (near.record.pe != races.pe_of(writer.who) || near.record.pe == near_pe(near)) continue;
      const Site flag = races.site_of({near.record.who, near.record.clock_value, near.record.place, 0},
                                      1U << near.record.lane, "write");
      const Site poll = races.site_of({near.reader, near.reader_clock, near.reader_place, 0},
                                      1U << near.reader_lane, "wait");
      finding.kind = FindingKind::kStaleState;
      finding.message = pe_text(poll.pe) +
                        " passes its wait on a flag of an earlier call, and reads data that " +
                        pe_text(flag.pe) + " has not written yet";
      finding.why = "the wait at " + line_text(poll) + " is met by what " + pe_text(flag.pe) + " wrote at " +
                    line_text(flag) +
                    (flag.call > 0 ? " in call " + std::to_string(flag.call) : " in an earlier launch") +
                    "; nothing orders " + side(now_site, by.write) + " after " +
                    side(earlier_site, earlier_writes);
      finding.advice =
          "wait for a value that grows with each call (an epoch kept on the device), or reset the flag "
          "before anybody can set it again";
      finding.sites.push_back(poll);
      return true;
    }
    return false;
  }
  int near_pe(const Races::Near& near) const { return races.pe_of(near.reader); }

  void from_near(const Races::Near& near) {
    const Site flag = races.site_of({near.record.who, near.record.clock_value, near.record.place, 0},
                                    1U << near.record.lane, "write");
    const Site poll =
        races.site_of({near.reader, near.reader_clock, near.reader_place, 0}, 1U << near.reader_lane, "read");
    const std::string what = side(now_site, by.write) + " after " + side(earlier_site, earlier_writes);
    switch (near.reason) {
      case NearReason::kWriteScope:
      case NearReason::kReadScope: {
        const bool far = flag.pe != poll.pe;
        const char* needed = far ? "system" : "gpu";
        const bool write = near.reason == NearReason::kWriteScope;
        const ptx::Scope has =
            write ? std::min(near.record.scope, near.record.first_scope) : near.reader_scope;
        const Site& at = write ? flag : poll;
        finding.kind = FindingKind::kScopeTooNarrow;
        finding.message = std::string("the flag that orders the two is ") +
                          (write ? "released" : "acquired") + " at " + scope_text(has) +
                          " scope, which leaves " + pe_text(write ? poll.pe : flag.pe) +
                          (far ? "" : "'s other block") + " out";
        finding.why = std::string(write ? "the release" : "the acquire") + " at " + line_text(at) + " has " +
                      scope_text(has) + " scope, so it does not order " + what;
        finding.advice = std::string("make ") + line_text(at) + " a " + (write ? "release" : "acquire") +
                         " at " + needed + " scope";
        finding.sites.push_back(at);
        break;
      }
      case NearReason::kSize: {
        const bool signal =
            operation(near.record.who) != nullptr || !races.places_[near.reader_place].what.empty();
        finding.kind = signal ? FindingKind::kWrongWait : FindingKind::kDataRace;
        finding.message = "the flag is written and waited for with different widths";
        finding.why = line_text(flag) + " writes " + std::to_string(near.record.bytes) +
                      " bytes of it, and " + line_text(poll) +
                      " reads another width: such a pair orders nothing, so not " + what;
        finding.advice = signal ? "wait for a signal with nvshmem_signal_wait_until, or with the 64-bit form"
                                : "read and write the flag with one width";
        finding.sites.push_back(poll);
        break;
      }
      case NearReason::kPlainPoll:
      case NearReason::kNoAcquire:
        finding.kind = FindingKind::kWrongWait;
        finding.message = std::string("the flag is polled with ") +
                          (near.reason == NearReason::kPlainPoll ? "plain" : "relaxed or volatile") +
                          " loads, which order nothing that comes after";
        finding.why = "the load at " + line_text(poll) + " sees what " + line_text(flag) +
                      " releases, but is no acquire, so it does not order " + what;
        finding.advice =
            "make " + line_text(poll) +
            " an acquire (ld.acquire.sys, cuda::atomic_ref::load, nvshmem_signal_wait_until), or put a "
            "__threadfence_system() behind the loop";
        finding.sites.push_back(poll);
        break;
      case NearReason::kTaken:
        break;
    }
  }

  // Both strong, and still no pair; or a flag read as plain memory.
  bool flags() {
    if (earlier.strong() && now.strong()) {
      if (earlier.element() != now.element()) {
        const bool signal = operation(earlier.who) != nullptr || operation(now.who) != nullptr ||
                            !races.places_[now.place].what.empty() ||
                            !races.places_[earlier.place].what.empty();
        finding.kind = signal ? FindingKind::kWrongWait : FindingKind::kDataRace;
        finding.message = "strong accesses of " + std::to_string(1U << earlier.element()) + " and " +
                          std::to_string(1U << now.element()) + " bytes overlap, and nothing orders the two";
        finding.why = "strong accesses of different sizes are not morally strong: they race like plain ones";
        finding.advice = signal ? "wait for a signal with nvshmem_signal_wait_until, or with the 64-bit form"
                                : "access the word with one width everywhere";
        return true;
      }
      const bool far = earlier_site.pe != now_site.pe;
      const ptx::Scope needed = far ? ptx::Scope::kSys : ptx::Scope::kGpu;
      const bool narrow_now = now.scope() < needed;
      const Site& at = narrow_now ? now_site : earlier_site;
      const bool writes = narrow_now ? by.write : earlier_writes;
      finding.kind = FindingKind::kScopeTooNarrow;
      finding.message = "a strong " + std::string(writes ? "write" : "read") + " at " +
                        scope_text(narrow_now ? now.scope() : earlier.scope()) + " scope meets another of " +
                        (far ? "another PE" : "another block");
      finding.why = "each scope must include the other's thread; " + line_text(at) + " has " +
                    scope_text(narrow_now ? now.scope() : earlier.scope()) + " scope";
      finding.advice = "use " + std::string(scope_text(needed)) + " scope at " + line_text(at);
      return true;
    }
    const Entry& reader = earlier_writes ? now : earlier;
    const Entry& writer = earlier_writes ? earlier : now;
    const bool reads = !both_write();
    if (reads && !reader.strong() && writer.strong()) {
      finding.kind = FindingKind::kWrongWait;
      finding.message = pe_text(read_site().pe) + " reads with a plain load what " +
                        pe_text(write_site().pe) +
                        (operation(writer.who) != nullptr ? " signals" : " writes as a flag");
      finding.why = "the compiler may keep a plain load's value, and it orders nothing: not " +
                    side(now_site, by.write) + " after " + side(earlier_site, earlier_writes);
      finding.advice =
          "read it with an acquire (ld.acquire.sys, cuda::atomic_ref::load), or wait with "
          "nvshmem_signal_wait_until";
      return true;
    }
    return false;
  }

  // Did something that a thread of `from` said reach a thread of `to`, over others or straight?
  bool told(std::uint32_t from, std::uint32_t to) const {
    std::vector<std::uint32_t> open{to}, seen{to};
    while (!open.empty()) {
      const std::uint32_t grid = open.back();
      open.pop_back();
      for (const Races::Near& near : races.near_) {
        if (near.reader_grid != grid || near.record.grid == 0) continue;
        if (near.record.grid == from) return true;
        if (std::find(seen.begin(), seen.end(), near.record.grid) != seen.end()) continue;
        seen.push_back(near.record.grid);
        open.push_back(near.record.grid);
      }
    }
    return false;
  }

  // Does the other side go by something that the operation's issuer announced? Without that it is a race like
  // any other.
  bool announced(std::uint32_t op, std::uint32_t other, bool other_writes) const {
    if (operation(other) != nullptr) return true;
    const std::uint32_t grid = races.grid_of(op), by_grid = races.grid_of(other);
    if (grid == 0 || grid == by_grid) return !other_writes || grid == by_grid;
    return told(grid, by_grid);
  }

  bool operations() {
    const auto* first = operation(earlier.who);
    const auto* second = operation(now.who);
    if (first == nullptr && second == nullptr) return false;
    const bool earlier_op = first != nullptr;
    const Order::State::Agent& op = earlier_op ? *first : *second;
    const bool op_writes = earlier_op ? earlier_writes : by.write;
    const std::string name = name_of(earlier_op ? earlier.who : now.who);
    const Site& op_site = earlier_op ? earlier_site : now_site;
    const Site& other = earlier_op ? now_site : earlier_site;
    const bool other_writes = earlier_op ? by.write : earlier_writes;
    switch (op.kind) {
      case AgentKind::kPut:
      case AgentKind::kGet:
      case AgentKind::kRemoteAtomic:
        if (!op_writes) {
          finding.kind = FindingKind::kSourceReuse;
          finding.message = pe_text(other.pe) + " writes what " + name + " may still be reading";
          finding.why = name + " at " + line_text(op_site) +
                        " reads its source until nvshmem_quiet, and no quiet lies before " + line_text(other);
          finding.advice = "nvshmem_quiet() before " + line_text(other) + ", or two buffers in turn";
          return true;
        }
        if (!announced(earlier_op ? earlier.who : now.who, earlier_op ? now.who : earlier.who, other_writes))
          return false;
        finding.kind = FindingKind::kMissingOrder;
        finding.message = pe_text(other.pe) + (other_writes ? " writes" : " reads") + " what " + name +
                          " of " + pe_text(op_site.pe) + " delivers, and nothing says that it has arrived";
        finding.why = name + " at " + line_text(op_site) + " may deliver " +
                      (op.kind == AgentKind::kGet ? "any time before nvshmem_quiet"
                                                  : "any time before nvshmem_fence or nvshmem_quiet") +
                      "; nothing orders " + side(now_site, by.write) + " after " +
                      side(earlier_site, earlier_writes);
        finding.advice =
            op.kind == AgentKind::kGet
                ? "nvshmem_quiet() before the data is used"
                : "nvshmem_fence() (or nvshmem_quiet()) between the put and what announces it, or a "
                  "put-with-signal of its own for each piece, and a wait for exactly that signal";
        return true;
      case AgentKind::kAsyncCopy:
      case AgentKind::kAsyncMma:
        copies(name, op_site, other, op_writes, other_writes);
        return true;
      default:
        return false;
    }
  }

  // An asynchronous copy of a kernel against whoever uses the same bytes.
  void copies(const std::string& name, const Site& copy, const Site& other, bool copy_writes,
              bool other_writes) {
    const bool copy_first = operation(earlier.who) != nullptr;
    finding.kind = FindingKind::kDataRace;
    finding.message = pe_text(other.pe) + (other_writes ? " writes what " : " reads what ") + name +
                      (copy_writes ? " writes" : " reads") + ", and nothing orders the two";
    finding.why = name + " of " + line_text(copy) +
                  (copy_writes ? " writes its target" : " reads its source") +
                  " any time until it is complete; nothing orders " + side(now_site, by.write) + " after " +
                  side(earlier_site, earlier_writes);
    if (!copy_first && !copy_writes) {
      finding.advice =
          "a barrier of the block between " + line_text(other) +
          " and the copy; where the write is meant to come later, cp.async.bulk.wait_group.read 0 "
          "by the thread that issued the copy, and a barrier, before it";
    } else if (!copy_first) {
      finding.advice = "let the threads of " + line_text(other) +
                       " arrive at a barrier (of the block, or an mbarrier) that the thread which issues the "
                       "copy has waited for";
    } else if (copy_writes) {
      finding.advice =
          "wait for the copy's mbarrier (mbarrier.try_wait, cuda::barrier::wait) before " + line_text(other);
    } else {
      finding.advice =
          "cp.async.bulk.wait_group.read 0 by the thread that issued the copy, and a barrier of "
          "the block, before " +
          line_text(other);
    }
  }

  void two_proxies() {
    finding.kind = FindingKind::kDataRace;
    const std::string name = races.places_[now.place].what;
    finding.message = pe_text(now_site.pe) +
                      " reads through the async proxy what it has written with plain "
                      "stores, and no proxy fence lies between";
    finding.why = (name.empty() ? std::string("the instruction") : name) + " at " + line_text(now_site) +
                  " may miss the write at " + line_text(earlier_site) +
                  ": a barrier orders accesses of one proxy only";
    finding.advice = "fence.proxy.async (cuda::ptx::fence_proxy_async) by the threads that write, after " +
                     line_text(earlier_site) + " and before the barrier";
  }

  Finding build() {
    sides();
    const Races::Near* near = races.near_edge(earlier, now, by);
    if (proxies) {
      two_proxies();
    } else if (flags()) {
    } else if (near != nullptr) {
      from_near(*near);
    } else if (stale()) {
    } else if (!operations()) {
      plain();
    }
    std::vector<Site> more = std::move(finding.sites);
    finding.sites.clear();
    finding.sites.push_back(read_site());
    finding.sites.push_back(write_site());
    for (Site& site : more) {
      const auto same = [&](const Site& other) {
        return other.where.line == site.where.line && other.where.file == site.where.file &&
               other.role == site.role;
      };
      if (std::none_of(finding.sites.begin(), finding.sites.end(), same))
        finding.sites.push_back(std::move(site));
    }
    const std::uint64_t address = by.line + begin;
    if (by.block != nullptr) {
      const Dim3& at = by.block->index;
      finding.address.pe = now_site.pe;
      finding.address.object = human_bytes(by.block->shared.size()) + " of shared memory of block (" +
                               std::to_string(at.x) + "," + std::to_string(at.y) + "," +
                               std::to_string(at.z) + ")";
      finding.address.offset =
          static_cast<std::int64_t>(address - reinterpret_cast<std::uint64_t>(by.block->shared.data()));
    } else if (races.table_ != nullptr) {
      const Allocation* allocation = races.table_->before(address);
      if (allocation != nullptr && address - allocation->base < allocation->size)
        finding.address = address_in(*allocation, address);
    }
    return std::move(finding);
  }
};

void Races::report(const Entry& earlier, bool earlier_writes, const Entry& now, const Toucher& by,
                   bool proxies) {
  if (!by.write && earlier.strong() && !now.strong()) {  // a flag polled with plain loads
    const auto found = records_.find((by.line + std::max(earlier.offset(), now.offset())) / 8);
    const int lane = std::countr_zero(now.lanes(std::max(earlier.offset(), now.offset()), now.end()));
    if (found != records_.end() && !found->second.empty())
      remember_near(NearReason::kPlainPoll, found->second.back(), found->second.back().clock, by, lane);
  }
  const std::uint64_t key = (std::uint64_t{earlier.place} << 32U | now.place) * 8 + (proxies ? 4U : 0U) +
                            (earlier_writes ? 2U : 0U) + (by.write ? 1U : 0U);
  const auto known = reported_.find(key);
  if (known != reported_.end()) {
    findings_.add_count(known->second, 1);
    return;
  }
  RaceReport maker{*this, earlier, now, earlier_writes, by, proxies, {}, {}, {}, 0, 0};
  reported_.emplace(key, findings_.add(maker.build()));
}

}  // namespace echolo::vgpu
