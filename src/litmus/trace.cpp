#include "litmus/trace.hpp"

#include <map>

#include "litmus/flow.hpp"

namespace echolo::litmus {
namespace {

using model::Event;
using model::EventSet;
using model::Kind;
using model::Proxy;
using model::Scope;

struct Value {
  bool known = true;
  std::int64_t value = 0;
  EventSet depends;
  int version = 0;  // which definition of a register this is
};

constexpr int kNoPe = -1;

class Tracer {
 public:
  Tracer(const Program& program, int thread, const std::vector<std::optional<std::int64_t>>& reads,
         int passed, const TraceLimits& limits)
      : program_(program),
        thread_(program.threads[thread]),
        reads_(reads),
        limits_(limits),
        passed_(passed),
        live_(live_registers(program, thread)) {
    for (const std::int64_t initial : thread_.initial) registers_.push_back({true, initial, {}, 0});
    for (const Instruction& each : thread_.code) {
      if (each.target >= 0) loop_heads_[each.target];
    }
  }

  Trace run() {
    while (pc_ < static_cast<int>(thread_.code.size())) {
      if (static_cast<int>(out_.events.size()) + 8 > limits_.events) return stop(Progress::kLimit);
      if (const auto head = loop_heads_.find(pc_); head != loop_heads_.end()) {
        head->second.push_back(
            {registers_, static_cast<int>(out_.events.size()), static_cast<int>(out_.barriers.size())});
      }
      const std::optional<Progress> stopped = step(thread_.code[pc_]);
      if (stopped) return stop(*stopped);
    }
    return stop(Progress::kFinished);
  }

 private:
  struct Visit {
    std::vector<Value> registers;
    int events, barriers;
  };
  struct InFlight {
    int event;  // a write, or the read of a source
    int pe;     // of the write; kNoPe for a read
    bool async;
  };

  Trace stop(Progress progress) {
    out_.progress = progress;
    out_.pc = pc_;
    for (const Value& each : registers_) {
      out_.registers.push_back(each.known ? std::optional(each.value) : std::nullopt);
    }
    return std::move(out_);
  }

  Value value(const Operand& operand) const {
    if (operand.reg < 0) return {true, operand.constant, {}, 0};
    return registers_[operand.reg];
  }
  void set(int reg, Value value) {
    if (reg < 0) return;
    value.version = ++version_;
    registers_[reg] = value;
  }

  int emit(Event event, int strand = 0, const EventSet& depends = {}) {
    const int index = static_cast<int>(out_.events.size());
    out_.events.push_back({event, strand, depends | control_});
    if (strand == 0) last_ = index;
    return index;
  }
  int point() {
    Event event;
    event.kind = Kind::kPoint;
    return emit(event);
  }
  void order(int before, int after) {
    if (before >= 0) out_.orders.push_back({before, after});
  }

  Event memory(const Instruction& from, Kind kind, int address) const {
    Event event;
    event.kind = kind;
    event.proxy = from.proxy;
    event.scope = from.scope;
    event.strong = from.strong;
    event.acquire = kind == Kind::kRead && from.acquire;
    event.release = kind == Kind::kWrite && from.release;
    event.address = static_cast<std::int16_t>(address);
    event.location = static_cast<std::int16_t>(program_.addresses[address].location);
    return event;
  }
  Value read(const Event& event, int strand = 0) {
    const int index = emit(event, strand);
    Value result;
    result.depends.add(index);
    result.known = index < static_cast<int>(reads_.size()) && reads_[index].has_value();
    if (result.known) {
      result.value = *reads_[index];
      out_.events[index].event.known = true;
      out_.events[index].event.value = result.value;
    }
    return result;
  }
  int write(Event event, const Value& value, int strand = 0) {
    event.known = value.known;
    event.value = value.value;
    return emit(event, strand, value.depends);
  }

  // A read-modify-write; returns what it read.
  Value modify(const Instruction& by, int address, int strand = 0) {
    const Value old = read(memory(by, Kind::kRead, address), strand);
    const int at = static_cast<int>(out_.events.size()) - 1;
    const Value operand = value(by.a), swap = value(by.b);
    Event event = memory(by, Kind::kWrite, address);
    Value result;
    result.depends = old.depends | operand.depends;
    result.known = old.known && operand.known;
    if (by.arithmetic == Arithmetic::kCas) {
      const bool matches = result.known && old.value == operand.value;
      event.absent = !matches;
      result.known = matches && swap.known;
      result.value = swap.value;
      result.depends |= swap.depends;
    } else if (by.arithmetic == Arithmetic::kExch) {
      result.value = operand.value;
    } else if (result.known) {
      result.value = apply(by.arithmetic, old.value, operand.value);
    }
    const int second = write(event, result, strand);
    out_.events[at].event.partner = second;
    out_.events[second].event.partner = at;
    return old;
  }

  std::optional<Progress> needs(const Value& value) {
    if (value.known) return std::nullopt;
    value.depends.each([&](int read) {
      if (read >= static_cast<int>(reads_.size()) || !reads_[read].has_value()) out_.needed.add(read);
    });
    return Progress::kNeedsValue;
  }

  std::optional<Progress> step(const Instruction& now) {
    switch (now.op) {
      case Op::kMove:
        set(now.destination, value(now.a));
        break;
      case Op::kArithmetic: {
        const Value a = value(now.a), b = value(now.b);
        Value result;
        result.known = a.known && b.known;
        result.depends = a.depends | b.depends;
        if (result.known) result.value = apply(now.arithmetic, a.value, b.value);
        set(now.destination, result);
        break;
      }
      case Op::kLoad:
        set(now.destination, read(memory(now, Kind::kRead, now.address)));
        break;
      case Op::kStore: {
        const int pe = program_.locations[program_.addresses[now.address].location].pe;
        const int index = write(memory(now, Kind::kWrite, now.address), value(now.a));
        for (const int earlier : fenced_[pe]) order(earlier, index);
        in_flight_.push_back({index, pe, false});
        break;
      }
      case Op::kAtomic:
        set(now.destination, modify(now, now.address));
        break;
      case Op::kFence:
      case Op::kProxyFence:
      case Op::kAliasFence: {
        Event event;
        event.kind = now.op == Op::kFence        ? Kind::kFence
                     : now.op == Op::kProxyFence ? Kind::kProxyFence
                                                 : Kind::kAliasFence;
        event.strong = true;
        event.scope = now.scope;
        event.sc = now.sc;
        event.proxy = now.proxy;
        emit(event);
        break;
      }
      case Op::kBarrierSync:
      case Op::kBarrierArrive:
        return barrier(now);
      case Op::kBranch: {
        const Value a = value(now.a), b = value(now.b);
        if (const auto stopped = needs(a)) return stopped;
        if (const auto stopped = needs(b)) return stopped;
        control_ |= a.depends | b.depends;
        return jump(compare(now.compare, a.value, b.value) ? now.target : pc_ + 1);
      }
      case Op::kJump:
        return jump(now.target);
      case Op::kPut:
      case Op::kSignal:
        return put(now);
      case Op::kOrderPuts:
        for (const InFlight& each : in_flight_) {
          if (!each.async && each.pe != kNoPe) fenced_[each.pe].push_back(each.event);
        }
        break;
      case Op::kAwaitPuts: {
        const int done = point();
        for (const InFlight& each : in_flight_) {
          if (each.async == (now.proxy == Proxy::kAsync)) order(each.event, done);
          if (!each.async && now.proxy != Proxy::kAsync) completed_.push_back(each.event);
        }
        break;
      }
    }
    ++pc_;
    return std::nullopt;
  }

  std::optional<Progress> barrier(const Instruction& now) {
    for (const Operand* each : {&now.a, &now.b, &now.c}) {
      const Value operand = value(*each);
      if (const auto stopped = needs(operand)) return stopped;
      control_ |= operand.depends;
    }
    BarrierUse use;
    use.instance = value(now.a).value;
    use.resource = value(now.b).value;
    use.quorum = now.has_quorum ? value(now.c).value : 0;
    use.waits = now.op == Op::kBarrierSync;
    use.arrival = point();
    if (use.waits && passed_ == 0) {
      out_.barriers.push_back(use);
      return Progress::kAtBarrier;
    }
    if (use.waits) {
      --passed_;
      use.departure = point();
    }
    out_.barriers.push_back(use);
    ++pc_;
    return std::nullopt;
  }

  // A put runs beside its thread: it reads its source after what the thread did before, and writes its target
  // at any time from then on (OpenSHMEM 1.5, "Memory Ordering Routines"; NVSHMEM, "Memory Ordering").
  std::optional<Progress> put(const Instruction& now) {
    // It cannot have started before an acquire operation of its thread has returned.
    for (int i = 0; i < static_cast<int>(out_.events.size()); ++i) {
      const TraceEvent& earlier = out_.events[i];
      if (earlier.strand != 0 || !earlier.event.acquire) continue;
      control_.add(i);
      if (!earlier.event.known) {
        out_.needed.add(i);
        return Progress::kNeedsValue;
      }
    }
    const bool async = now.proxy == Proxy::kAsync;
    const int issue = last_;
    Value data = value(now.a);
    if (now.source >= 0) {
      const int strand = out_.strands++;
      data = read(memory(now, Kind::kRead, now.source), strand);
      const int taken = static_cast<int>(out_.events.size()) - 1;
      order(issue, taken);
      if (async) return finish_copy(now, data, strand);
      in_flight_.push_back({taken, kNoPe, false});
      if (now.blocking) {
        const int returned = point();
        order(taken, returned);
      }
    }
    const int strand = out_.strands++;
    Instruction signal;
    signal.strong = signal.release = true;
    signal.scope = Scope::kSys;
    if (now.op == Op::kPut) land(write(memory(now, Kind::kWrite, now.address), data, strand), now.address);
    const int target = now.op == Op::kPut ? now.signal : now.address;
    if (target >= 0) land(write(memory(signal, Kind::kWrite, target), value(now.a), strand), target);
    ++pc_;
    return std::nullopt;
  }

  // PTX ISA, "Async proxy": completion of cp.async.bulk is followed by an implicit generic-async proxy fence.
  std::optional<Progress> finish_copy(const Instruction& now, const Value& data, int strand) {
    write(memory(now, Kind::kWrite, now.address), data, strand);
    Event fence;
    fence.kind = Kind::kProxyFence;
    fence.proxy = Proxy::kAsync;
    const int visible = emit(fence, strand);
    in_flight_.push_back({visible, 0, true});
    if (now.signal >= 0) {
      Instruction arrive;
      arrive.strong = arrive.release = true;
      arrive.scope = Scope::kCluster;
      arrive.a.constant = 1;
      modify(arrive, now.signal, strand);
    }
    ++pc_;
    return std::nullopt;
  }

  void land(int write, int address) {
    const int pe = program_.locations[program_.addresses[address].location].pe;
    for (const int earlier : fenced_[pe]) order(earlier, write);
    for (const int earlier : completed_) order(earlier, write);
    in_flight_.push_back({write, pe, false});
  }

  std::optional<Progress> jump(int target) {
    if (target > pc_) {
      pc_ = target;
      return std::nullopt;
    }
    pc_ = target;
    if (const auto stopped = repeats(loop_heads_[target])) return stopped;
    if (++jumps_back_ > limits_.iterations) return Progress::kLimit;
    return std::nullopt;
  }

  // Whether the thread stands where it stood at an earlier visit, and only read in between.
  std::optional<Progress> repeats(const std::vector<Visit>& visits) {
    if (visits.empty()) return std::nullopt;
    const Visit& last = visits.back();
    if (static_cast<int>(out_.barriers.size()) != last.barriers) return std::nullopt;
    for (std::size_t i = last.events; i < out_.events.size(); ++i) {
      const TraceEvent& each = out_.events[i];
      if (each.strand != 0) return std::nullopt;
      if (each.event.kind != Kind::kWrite || (each.event.absent && reads_known(each.event.partner))) continue;
      if (each.event.partner < 0) return std::nullopt;
      Value old;
      old.depends.add(each.event.partner);
      old.known = reads_known(each.event.partner);
      if (const auto stopped = needs(old)) return stopped;
      // A read-modify-write that wrote back what it found changes nothing.
      if (!each.event.known || each.event.value != *reads_[each.event.partner]) return std::nullopt;
    }
    for (std::size_t r = 0; r < registers_.size(); ++r) {
      const Value& before = last.registers[r];
      const Value& now = registers_[r];
      if (!live_[pc_][r] || before.version == now.version) continue;
      if (const auto stopped = needs(now)) return stopped;
      if (const auto stopped = needs(before)) return stopped;
      if (before.value != now.value) return std::nullopt;
    }
    for (std::size_t i = last.events; i < out_.events.size(); ++i) {
      if (out_.events[i].event.kind == Kind::kRead) out_.spin_reads.add(static_cast<int>(i));
    }
    return Progress::kSpinning;
  }
  bool reads_known(int index) const {
    return index < static_cast<int>(reads_.size()) && reads_[index].has_value();
  }

  const Program& program_;
  const Thread& thread_;
  const std::vector<std::optional<std::int64_t>>& reads_;
  const TraceLimits limits_;
  int passed_;
  const std::vector<std::vector<bool>> live_;
  std::map<int, std::vector<Visit>> loop_heads_;
  std::vector<Value> registers_;
  EventSet control_;                        // reads that decide whether what follows happens
  std::map<int, std::vector<int>> fenced_;  // by PE: writes of puts before a fence
  std::vector<int> completed_;              // what a quiet waited for: before all later puts
  std::vector<InFlight> in_flight_;         // puts, and stores, which fence and quiet order as well
  Trace out_;
  int pc_ = 0;
  int last_ = -1;  // the thread's own last event
  int version_ = 0;
  int jumps_back_ = 0;
};

}  // namespace

Trace trace(const Program& program, int thread, const std::vector<std::optional<std::int64_t>>& reads,
            int passed, const TraceLimits& limits) {
  return Tracer(program, thread, reads, passed, limits).run();
}

}  // namespace echolo::litmus
