// Collectives: every member of a team brings its arguments; when the last has come, the data moves and
// everybody goes on (NVSHMEM documentation, "Collective Communication" and "Memory Management"). Kernels and
// hosts meet in the same way; what disagrees among members is a finding, since on a GPU it hangs or corrupts
// memory.
#include <algorithm>
#include <cstring>
#include <vector>

#include "shmem/call.hpp"
#include "shmem/meeting.hpp"
#include "vgpu/meter/meter.hpp"

namespace echolo::shmem {

using vgpu::CallOutcome;
using vgpu::Finding;
using vgpu::FindingKind;

namespace {

std::string bare(const Operation& op) {  // the operation without warp, block: members may mix those
  std::string name = op.name;
  if (name.starts_with("nvshmemx_")) name = "nvshmem_" + name.substr(9);
  for (const char* suffix : {"_warp", "_block"}) {
    if (name.ends_with(suffix)) name.resize(name.size() - std::strlen(suffix));
  }
  return name;
}

std::string list_of_missing(const World& world, const Collective& c) {
  std::string out;
  int n = 0;
  for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
    if (c.arrivals[i].pe >= 0) continue;
    const int pe = c.members.pes[i];
    out += (n++ > 0 ? ", PE " : "PE ") + std::to_string(pe);
    const std::string& gone = world.gone[static_cast<std::size_t>(pe)];
    if (!gone.empty()) out += " (" + gone + ")";
  }
  return out + (n == 1 ? " has" : " have") + " not arrived";
}

void mismatch(Call& call, FindingKind kind, const Arrival& a, const Arrival& b, std::string message,
              std::string why, std::string advice) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.why = std::move(why);
  finding.advice = std::move(advice);
  finding.sites = {b.site, a.site};
  finding.fatal = true;
  call.findings.add(std::move(finding));
}

// Which arguments every member must pass alike, by the letters of Operation::arguments.
bool must_agree(const Operation& op, std::size_t i) {
  if (op.handler == &do_free) return false;  // addresses differ; the object must be the same
  const char letter = op.arguments[i];
  return letter == 'z' || (letter == 'i' && i > 0);
}

// True where `b` fits what `a` (the first to arrive) began.
bool agrees(Call& call, const Arrival& a, const Arrival& b) {
  const std::string pe_a = "PE " + std::to_string(a.pe);
  const std::string pe_b = "PE " + std::to_string(b.pe);
  const bool allocation = a.op->handler == &do_allocate && b.op->handler == &do_allocate;
  if (bare(*a.op) != bare(*b.op)) {
    mismatch(call, FindingKind::kCollectiveMismatch, a, b,
             pe_b + " calls " + bare(*b.op) + " where " + pe_a + " calls " + bare(*a.op),
             "every PE of a team must call the same collectives in the same order",
             "make the PEs take the same path to their collectives");
    return false;
  }
  for (std::size_t i = 0; i < a.op->arguments.size(); ++i) {
    if (!must_agree(*a.op, i) || a.arguments[i] == b.arguments[i]) continue;
    const std::string va = std::to_string(a.arguments[i]);
    const std::string vb = std::to_string(b.arguments[i]);
    if (allocation) {
      mismatch(call, FindingKind::kSymmetricMismatch, a, b,
               pe_b + " asks " + a.op->name + " for " + vb + " bytes, " + pe_a + " for " + va,
               "symmetric allocation is collective: every PE must ask for the same size, or the same object "
               "lies at "
               "different offsets and remote accesses reach something else",
               "compute the size from what is equal on all PEs (the maximum over PEs, say)");
    } else {
      const bool root = a.op->arguments[i] == 'i';
      mismatch(call, FindingKind::kCollectiveMismatch, a, b,
               pe_b + " calls " + bare(*b.op) + " with " + vb + (root ? " as root, " : " elements, ") + pe_a +
                   " with " + va,
               "every PE of a team must pass the same counts and the same root",
               "pass the same value on every PE");
    }
    return false;
  }
  if (a.op->handler == &do_free) {
    const vgpu::Allocation* oa = call.memory.find(a.arguments[0]);
    const vgpu::Allocation* ob = call.memory.find(b.arguments[0]);
    if (oa != nullptr && ob != nullptr && call.memory.translate(oa->base, b.pe) != ob->base) {
      mismatch(call, FindingKind::kSymmetricMismatch, a, b,
               pe_b + " frees " + ob->describe() + " where " + pe_a + " frees " + oa->describe(),
               "nvshmem_free is collective: every PE must free the same object at the same step",
               "free symmetric objects in the same order on every PE");
      return false;
    }
  }
  return true;
}

Arrival arrival_of(const Call& call) {
  Arrival arrival;
  arrival.pe = call.pe;
  arrival.op = &call.op;
  arrival.arguments.assign(call.arguments.begin(), call.arguments.end());
  arrival.site = call.site("call");
  arrival.agent = call.agent;
  return arrival;
}

// The collective of this team that this PE has yet to join: the oldest one it is not in, or a fresh one. Null
// after logging that the PE is still in one.
Collective* next_collective(Call& call, int handle, const Team& team, std::size_t at) {
  World& world = call.world;
  auto& open = world.open[handle];
  for (const std::uint64_t id : open) {
    Collective& c = world.collectives.at(id);
    if (c.arrivals[at].pe < 0) return &c;
    if (c.done) continue;
    const Arrival again = arrival_of(call);
    mismatch(call, FindingKind::kCollectiveMismatch, c.arrivals[at], again,
             "PE " + std::to_string(call.pe) + " enters " + bare(call.op) + " while it is still in " +
                 bare(*c.arrivals[at].op) + " of the same team",
             "one PE may be in one collective of a team at a time: several threads, blocks or streams of it "
             "called "
             "one each (" +
                 list_of_missing(world, c) + ")",
             "let one thread (or one block, with the _block form) of each PE call it");
    return nullptr;
  }
  Collective fresh;
  fresh.id = world.next_id++;
  fresh.members = team;
  fresh.arrivals.resize(team.pes.size());
  fresh.results.resize(team.pes.size());
  open.push_back(fresh.id);
  return &world.collectives.emplace(fresh.id, std::move(fresh)).first->second;
}

// Everybody's data reaches everybody; of a broadcast only the root's.
void join(Call& call, Collective& c) {
  const bool broadcast = call.op.handler == &do_broadcast;
  for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
    if (!broadcast || static_cast<int>(i) == call.integer(4)) {
      call.memory.order().merge(c.joint, c.arrivals[i].before);
    }
  }
}

// Tells the time model what this member brings: of collectives that move data, its part to every other member
// at once; and a message to each.
std::uint32_t count(Call& call, const Collective& c, std::size_t index) {
  const Operation& op = call.op;
  const bool moves = op.handler == &do_broadcast || op.handler == &do_fcollect ||
                     op.handler == &do_alltoall || op.handler == &do_reduce ||
                     op.handler == &do_reducescatter;
  const bool silent = op.handler == &do_broadcast && static_cast<int>(index) != call.integer(4);
  const std::uint64_t bytes = moves && !silent ? call.size(3) * op.element->bytes : 0;
  for (std::size_t i = 0; i < c.members.pes.size(); ++i) {
    if (i == index) continue;
    call.memory.meter()->sent(
        call.warp, {c.members.pes[i], bytes, false, moves ? call.pointer(2) : 0, op.granularity, 0, true});
  }
  return call.memory.meter()->arrive(call.warp);
}

CallOutcome arrive(Call& call, int handle, const Finish& finish) {
  const Team* team = call.world.team(handle);
  const int index = team != nullptr ? team->index_of(call.pe) : -1;
  if (index < 0) {
    return call.fault(
        FindingKind::kCollectiveMismatch,
        call.op.name + " on team " + std::to_string(handle) + ", of which PE " + std::to_string(call.pe) +
            " is no member",
        team == nullptr ? "there is no such team" : "only members may call a team's collectives",
        "use a team that this PE belongs to");
  }
  Collective* c = next_collective(call, handle, *team, static_cast<std::size_t>(index));
  if (c == nullptr) return CallOutcome::kFault;
  // A barrier completes what its PE has issued before it; so do allocation and freeing, which are barriers
  // too.
  const bool completes = call.op.handler == &do_barrier
                             ? call.op.barrier
                             : call.op.handler == &do_allocate || call.op.handler == &do_free;
  if (completes) {
    call.completes_both_sides = call.side == Side::kHost;
    if (!call.delivery.quiet(call)) return CallOutcome::kFault;
  }
  Arrival mine = arrival_of(call);
  mine.before = call.memory.order().release(call.agent);
  if (call.memory.meter() != nullptr) mine.work = count(call, *c, static_cast<std::size_t>(index));
  const auto first =
      std::find_if(c->arrivals.begin(), c->arrivals.end(), [](const Arrival& a) { return a.pe >= 0; });
  if (first != c->arrivals.end() && !agrees(call, *first, mine)) return CallOutcome::kFault;
  c->arrivals[static_cast<std::size_t>(index)] = std::move(mine);
  call.token = c->id;
  call.memory.note_change();
  if (++c->n_arrived == static_cast<int>(c->arrivals.size())) {
    if (!finish(call, c->members, *c)) return CallOutcome::kFault;
    join(call, *c);
    c->done = true;
  }
  return CallOutcome::kDone;
}

}  // namespace

CallOutcome take_part(Call& call, int handle, const Finish& finish) {
  if (call.token == 0) {
    const CallOutcome outcome = arrive(call, handle, finish);
    if (outcome != CallOutcome::kDone) return outcome;
  }
  World& world = call.world;
  Collective& c = world.collectives.at(call.token);
  if (!c.done) {
    for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
      const auto pe = static_cast<std::size_t>(c.members.pes[i]);
      if (c.arrivals[i].pe >= 0 || !world.gone[pe].starts_with("has called nvshmem_finalize")) continue;
      return call.fault(FindingKind::kCollectiveMismatch,
                        "PE " + std::to_string(call.pe) + " is in " + bare(call.op) + ", but PE " +
                            std::to_string(pe) + " " + world.gone[pe],
                        "every PE of a team must call the same collectives in the same order, and "
                        "nvshmem_finalize is one that ends with a barrier of all",
                        "make the PEs take the same path to their collectives");
    }
    call.wait.collective =
        bare(call.op) + ", team of " + std::to_string(c.arrivals.size()) + ": " + list_of_missing(world, c);
    return CallOutcome::kBlocked;
  }
  call.result = c.results[static_cast<std::size_t>(c.members.index_of(call.pe))];
  call.memory.order().acquire(call.agent, c.joint);
  if (vgpu::Meter* const meter = call.memory.meter()) {
    std::vector<std::uint32_t> members;
    for (const Arrival& member : c.arrivals) members.push_back(member.work);
    meter->depend(call.warp, call.inst, call.lane, members, call.op.name);
  }
  call.fence_stores();
  if (++c.n_taken == static_cast<int>(c.arrivals.size())) {
    auto& open = world.open[handle];
    open.erase(std::find(open.begin(), open.end(), c.id));
    world.collectives.erase(c.id);
  }
  return CallOutcome::kDone;
}

namespace {

// Reads or writes on behalf of a member: checks and findings name that member's call.
vgpu::Memory::Accessor member_accessor(Call& call, const Arrival& member, std::uint8_t alignment) {
  vgpu::Memory::Accessor who = call.accessor(alignment, false);
  who.warp = nullptr;
  who.inst = nullptr;
  who.site = &member.site;
  who.pe = member.pe;
  who.agent = member.agent;
  return who;
}

// Reads `n` bytes of every member's source first, so that dest may be source; then `write` fills each dest.
bool gather_sources(Call& call, Collective& c, std::uint64_t n,
                    std::vector<std::vector<std::uint8_t>>* sources) {
  for (const Arrival& member : c.arrivals) {
    auto& bytes = sources->emplace_back(n);
    vgpu::Memory::Accessor who = member_accessor(call, member, call.op.element->bytes);
    who.check_written = true;
    if (n > 0 && !call.memory.read(member.arguments[2], bytes.data(), n, who)) return false;
  }
  return true;
}

bool write_dest(Call& call, const Arrival& member, std::uint64_t offset, const void* bytes, std::uint64_t n) {
  return n == 0 || call.memory.write(member.arguments[1] + offset, bytes, n,
                                     member_accessor(call, member, call.op.element->bytes));
}

}  // namespace

CallOutcome do_barrier(Call& call) {
  const int handle = call.op.whole_world ? 0 : call.integer(0);
  return take_part(call, handle, [](Call&, const Team&, Collective&) { return true; });
}

CallOutcome do_broadcast(Call& call) {
  std::uint64_t checked = 0;
  if (!call.total_bytes(call.size(3), &checked)) return CallOutcome::kFault;
  return take_part(call, call.integer(0), [](Call& last, const Team& team, Collective& c) {
    const std::uint64_t n = last.size(3) * last.op.element->bytes;
    const int root = last.integer(4);
    if (root < 0 || root >= static_cast<int>(team.pes.size())) {
      last.fault(FindingKind::kOutOfBounds,
                 last.op.name + " names root " + std::to_string(root) + " of a team of " +
                     std::to_string(team.pes.size()),
                 "the root is a member's number in the team", "check the root");
      return false;
    }
    const Arrival& from = c.arrivals[static_cast<std::size_t>(root)];
    std::vector<std::uint8_t> bytes(n);
    vgpu::Memory::Accessor who = member_accessor(last, from, last.op.element->bytes);
    who.check_written = true;
    if (n > 0 && !last.memory.read(from.arguments[2], bytes.data(), n, who)) return false;
    return std::all_of(c.arrivals.begin(), c.arrivals.end(),
                       [&](const Arrival& member) { return write_dest(last, member, 0, bytes.data(), n); });
  });
}

CallOutcome do_fcollect(Call& call) {
  std::uint64_t checked = 0;
  if (!call.total_bytes(call.size(3), &checked)) return CallOutcome::kFault;
  return take_part(call, call.integer(0), [](Call& last, const Team&, Collective& c) {
    const std::uint64_t n = last.size(3) * last.op.element->bytes;
    std::vector<std::vector<std::uint8_t>> sources;
    if (!gather_sources(last, c, n, &sources)) return false;
    for (const Arrival& member : c.arrivals) {
      for (std::size_t i = 0; i < sources.size(); ++i) {
        if (!write_dest(last, member, i * n, sources[i].data(), n)) return false;
      }
    }
    return true;
  });
}

CallOutcome do_alltoall(Call& call) {
  std::uint64_t checked = 0;
  if (!call.total_bytes(call.size(3), &checked)) return CallOutcome::kFault;
  return take_part(call, call.integer(0), [](Call& last, const Team&, Collective& c) {
    const std::uint64_t n = last.size(3) * last.op.element->bytes;
    std::vector<std::vector<std::uint8_t>> sources;
    if (!gather_sources(last, c, n * c.arrivals.size(), &sources)) return false;
    for (std::size_t to = 0; to < c.arrivals.size(); ++to) {
      for (std::size_t from = 0; from < sources.size(); ++from) {
        if (!write_dest(last, c.arrivals[to], from * n, sources[from].data() + to * n, n)) return false;
      }
    }
    return true;
  });
}

namespace {

// Element-wise over members in team order; the order is fixed so that floating sums repeat bit for bit.
std::vector<std::uint8_t> reduced(const Operation& op,
                                  const std::vector<std::vector<std::uint8_t>>& sources) {
  std::vector<std::uint8_t> out = sources.front();
  const std::size_t width = op.element->bytes;
  for (std::size_t at = 0; at + width <= out.size(); at += width) {
    std::uint64_t value = 0;
    std::memcpy(&value, out.data() + at, width);
    for (std::size_t i = 1; i < sources.size(); ++i) {
      std::uint64_t next = 0;
      std::memcpy(&next, sources[i].data() + at, width);
      value = reduce(*op.element, op.reduction, value, next);
    }
    std::memcpy(out.data() + at, &value, width);
  }
  return out;
}

}  // namespace

CallOutcome do_reduce(Call& call) {
  std::uint64_t checked = 0;
  if (!call.total_bytes(call.size(3), &checked)) return CallOutcome::kFault;
  return take_part(call, call.integer(0), [](Call& last, const Team&, Collective& c) {
    const std::uint64_t n = last.size(3) * last.op.element->bytes;
    std::vector<std::vector<std::uint8_t>> sources;
    if (!gather_sources(last, c, n, &sources)) return false;
    const std::vector<std::uint8_t> result = reduced(last.op, sources);
    return std::all_of(c.arrivals.begin(), c.arrivals.end(),
                       [&](const Arrival& member) { return write_dest(last, member, 0, result.data(), n); });
  });
}

CallOutcome do_reducescatter(Call& call) {
  std::uint64_t checked = 0;
  if (!call.total_bytes(call.size(3), &checked)) return CallOutcome::kFault;
  return take_part(call, call.integer(0), [](Call& last, const Team&, Collective& c) {
    const std::uint64_t n = last.size(3) * last.op.element->bytes;  // of one member's part
    std::vector<std::vector<std::uint8_t>> sources;
    if (!gather_sources(last, c, n * c.arrivals.size(), &sources)) return false;
    const std::vector<std::uint8_t> result = reduced(last.op, sources);
    for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
      if (!write_dest(last, c.arrivals[i], 0, result.data() + i * n, n)) return false;
    }
    return true;
  });
}

CallOutcome do_allocate(Call& call) {
  return take_part(call, 0, [](Call& last, const Team&, Collective& c) {
    const bool calloc = last.op.name == "nvshmem_calloc";
    const bool align = last.op.name == "nvshmem_align";
    const std::uint64_t a = last.size(0);
    std::uint64_t size = align ? last.size(1) : a;
    if (calloc && __builtin_mul_overflow(a, last.size(1), &size)) return true;  // null for everybody
    if (size == 0) return true;  // "if size is zero, no action is performed and a null pointer is returned"
    const std::uint64_t alignment = align ? std::max<std::uint64_t>(a, 16) : 512;
    if ((alignment & (alignment - 1)) != 0) return true;
    std::vector<std::string> where(c.arrivals.size());
    for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
      const vgpu::Frame& frame = c.arrivals[i].site.where;
      if (!frame.file.empty()) where[i] = frame.file + ":" + std::to_string(frame.line);
    }
    auto made = last.memory.allocate_symmetric(size, alignment, last.op.name, where);
    if (!made.ok()) return true;  // out of memory: null for everybody, as NVSHMEM does
    c.results = *made;
    if (calloc) {  // before the barrier that ends it, so in nobody's name: everybody knows of the zeros
      for (std::size_t i = 0; i < c.arrivals.size(); ++i) {
        vgpu::Memory::Accessor who = member_accessor(last, c.arrivals[i], 1);
        who.agent = {};
        if (!last.memory.fill(c.results[i], 0, size, who)) return false;
      }
    }
    return true;
  });
}

CallOutcome do_free(Call& call) {
  if (call.token == 0 && call.pointer(0) != 0) {
    const vgpu::Allocation* object = call.memory.find(call.pointer(0));
    if (object == nullptr || object->base != call.pointer(0) ||
        object->kind != vgpu::AllocationKind::kSymmetric) {
      const vgpu::Allocation* freed = call.memory.find_freed(call.pointer(0));
      return call.fault(FindingKind::kOutOfBounds,
                        "nvshmem_free of a pointer that nvshmem_malloc did not return",
                        object != nullptr  ? "it points into " + object->describe()
                        : freed != nullptr ? "it points into " + freed->describe() + ", already freed"
                                           : "no allocation is there",
                        "free exactly what was allocated, once");
    }
  }
  return take_part(call, 0, [](Call& last, const Team&, Collective& c) {
    for (const Arrival& member : c.arrivals) {
      if (member.arguments[0] != 0 && !last.memory.release(member.arguments[0]).ok()) return false;
    }
    return true;
  });
}

}  // namespace echolo::shmem
