#include "runtime/node/engine.hpp"

#include <algorithm>

#include "runtime/node/engine_state.hpp"
#include "runtime/protocol.hpp"

namespace echolo::runtime {

Engine::Engine(int n_pes) {
  for (int i = 0; i < n_pes; ++i) {
    pes_.push_back(std::make_unique<Pe>());
    pes_.back()->streams[kLegacyStream].id = 1;
  }
}
Engine::~Engine() = default;

Engine::Stream* Engine::find_stream(int pe, int thread, StreamHandle stream) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  if (stream == 0) stream = kLegacyStream;
  if (stream == kPerThreadStream) {
    // One blocking stream a host thread, made when it is first used; its handles lie below all others'.
    stream = 0x100 + static_cast<StreamHandle>(thread);
    Stream& own = p.streams[stream];
    own.id = stream;
    return &own;
  }
  const auto it = p.streams.find(stream);
  return it == p.streams.end() ? nullptr : &it->second;
}

StreamHandle Engine::create_stream(int pe, bool non_blocking, int priority) {
  const StreamHandle handle = next_handle_ += 16;
  Stream& stream = pes_[static_cast<std::size_t>(pe)]->streams[handle];
  stream.non_blocking = non_blocking;
  stream.priority = std::clamp(priority, -5, 0);
  stream.id = handle;
  return handle;
}

int Engine::destroy_stream(int pe, StreamHandle stream) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const auto it = p.streams.find(stream);
  if (it == p.streams.end() || stream < 0x10000) return kBadHandle;
  // What it was given still runs; only the handle goes. Legacy order must still see that work.
  if (!it->second.non_blocking && it->second.last != 0) p.orphans.push_back(it->second.last);
  if (it->second.capture != nullptr) invalidate(*it->second.capture);
  p.streams.erase(it);
  return kOk;
}

int Engine::stream_info(int pe, int thread, StreamHandle stream, StreamInfo* info) {
  const Stream* s = find_stream(pe, thread, stream);
  if (s == nullptr) return kBadHandle;
  *info = {s->non_blocking, s->priority, s->id};
  return kOk;
}

// Also what is done already: what it did happened before all the same.
std::vector<OpId> Engine::order(Pe& pe, Stream& stream) const {
  std::vector<OpId> after;
  const auto add = [&](OpId id) {
    if (id != 0) after.push_back(id);
  };
  add(stream.last);
  for (const OpId id : stream.also_after) add(id);
  if (stream.id == kLegacyStream) {
    for (const auto& [handle, other] : pe.streams) {
      if (!other.non_blocking && other.id != kLegacyStream) add(other.last);
    }
    for (const OpId id : pe.orphans) add(id);
  } else if (!stream.non_blocking) {
    add(pe.streams[kLegacyStream].last);
  }
  return after;
}

OpId Engine::append(Op op, const std::vector<OpId>& after) {
  op.id = next_op_++;
  std::vector<OpId> unique = after;
  std::sort(unique.begin(), unique.end());
  unique.erase(std::unique(unique.begin(), unique.end()), unique.end());
  if (meter_ != nullptr) {
    meter_->order_op(op.id, unique);
    meter_->order_after_host(op.id, op.pe);
  }
  for (const OpId id : unique) {
    const auto it = ops_.find(id);
    if (it == ops_.end()) {
      const auto end = ends_.find(id);
      if (order_of_events_ != nullptr && end != ends_.end()) order_of_events_->merge(op.before, end->second);
      continue;
    }
    it->second.dependents.push_back(op.id);
    ++op.unmet;
  }
  if (op.unmet == 0) ready_.insert(op.id);
  const OpId id = op.id;
  ops_.emplace(id, std::move(op));
  return id;
}

namespace {
NodeType type_of(std::uint16_t request) {
  switch (static_cast<wire::Op>(request)) {
    case wire::Op::kCopy:
      return NodeType::kCopy;
    case wire::Op::kFill:
      return NodeType::kFill;
    case wire::Op::kHostFunction:
      return NodeType::kHost;
    default:
      return NodeType::kKernel;  // NVSHMEM's operations on streams are kernels too
  }
}
}  // namespace

int Engine::submit(int pe, int thread, StreamHandle handle, Op op, OpId* id) {
  if (id != nullptr) *id = 0;
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  op.pe = pe;
  if (stream->capture != nullptr) {
    Capture& capture = *stream->capture;
    if (capture.invalid) return kCaptureInvalidated;
    const NodeType type = type_of(op.request_op);
    capture_op(*stream, std::move(op), type, 0);
    return kOk;
  }
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  if (const int error = check_legacy(p, *stream); error != kOk) return error;
  if (order_of_events_ != nullptr) {
    op.agent = agent_of(pe, *stream);
    op.before = order_of_events_->release(order_of_events_->host(pe));
  }
  stream->last = append(std::move(op), order(p, *stream));
  stream->also_after.clear();
  if (stream->id == kLegacyStream) p.orphans.clear();
  if (id != nullptr) *id = stream->last;
  return kOk;
}

// Work in the legacy stream would wait for a blocking stream that is being captured, which can't be.
int Engine::check_legacy(Pe& pe, const Stream& stream) {
  if (stream.id != kLegacyStream) return kOk;
  int error = kOk;
  for (auto& [handle, other] : pe.streams) {
    if (other.capture != nullptr && !other.non_blocking) {
      invalidate(*other.capture);
      error = kCaptureImplicit;
    }
  }
  return error;
}

bool Engine::is_capturing(int pe, int thread, StreamHandle stream) {
  const Stream* s = find_stream(pe, thread, stream);
  return s != nullptr && s->capture != nullptr;
}

int Engine::last_of(int pe, int thread, StreamHandle handle, std::vector<OpId>* ops) {
  Stream* stream = find_stream(pe, thread, handle);
  if (stream == nullptr) return kBadHandle;
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  *ops = stream->id == kLegacyStream ? order(p, *stream) : std::vector<OpId>{stream->last};
  return kOk;
}

std::vector<OpId> Engine::last_of_device(int pe) {
  const Pe& p = *pes_[static_cast<std::size_t>(pe)];
  std::vector<OpId> out = p.orphans;
  for (const auto& [handle, stream] : p.streams) out.push_back(stream.last);
  for (const auto& [id, op] : ops_) {
    if (op.pe == pe) out.push_back(id);
  }
  return out;
}

bool Engine::done(const std::vector<OpId>& ids) const {
  return std::all_of(ids.begin(), ids.end(), [this](OpId id) { return done(id); });
}

// ---- events
// ------------------------------------------------------------------------------------------------------

std::uint64_t Engine::create_event(int pe, bool timing, bool shareable) {
  const std::uint64_t handle = next_handle_ += 16;
  Event& event = pes_[static_cast<std::size_t>(pe)]->events[handle];
  event.timing = timing;
  event.shareable = shareable;
  event.time = std::make_shared<std::uint64_t>(0);
  return handle;
}

int Engine::shareable_event(int pe, std::uint64_t event) {
  const auto& events = pes_[static_cast<std::size_t>(pe)]->events;
  const auto it = events.find(event);
  return it == events.end() ? kBadHandle : it->second.shareable ? kOk : kBadValue;
}

int Engine::open_event(int pe, int owner, std::uint64_t event, std::uint64_t* handle) {
  if (shareable_event(owner, event) != kOk) return kBadHandle;
  *handle = next_handle_ += 16;
  pes_[static_cast<std::size_t>(pe)]->opened_events[*handle] = {owner, event};
  return kOk;
}

Engine::Event* Engine::find_event(Pe& pe, std::uint64_t handle) {
  const auto own = pe.events.find(handle);
  if (own != pe.events.end()) return &own->second;
  const auto opened = pe.opened_events.find(handle);
  if (opened == pe.opened_events.end()) return nullptr;
  Pe& owner = *pes_[static_cast<std::size_t>(opened->second.first)];
  const auto there = owner.events.find(opened->second.second);
  return there == owner.events.end() ? nullptr : &there->second;
}

int Engine::destroy_event(int pe, std::uint64_t event) {
  if (pes_[static_cast<std::size_t>(pe)]->opened_events.erase(event) == 1) return kOk;
  return pes_[static_cast<std::size_t>(pe)]->events.erase(event) == 1 ? kOk : kBadHandle;
}

int Engine::record_event(int pe, int thread, std::uint64_t handle, StreamHandle stream_handle, const Op& like,
                         bool external) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  Event* const found = find_event(p, handle);
  Stream* stream = find_stream(pe, thread, stream_handle);
  if (found == nullptr || stream == nullptr) return kBadHandle;
  Event& event = *found;
  if (stream->capture != nullptr) {
    if (stream->capture->invalid) return kCaptureInvalidated;
    if (external) {
      capture_op(*stream, like, NodeType::kRecordEvent, handle);
      return kOk;
    }
    event.capture = stream->capture->id;
    event.frontier = stream->frontier;
    event.last = 0;
    return kOk;
  }
  // A record of its own clock, so that recording again doesn't change what an earlier record measured.
  auto time = std::make_shared<std::uint64_t>(0);
  Op op = like;
  op.attempt = [time](Op& self) {
    *time = self.done_ns;
    return Step::kDone;
  };
  OpId id = 0;
  if (const int error = submit(pe, thread, stream_handle, std::move(op), &id); error != kOk) return error;
  event.time = std::move(time);
  event.last = id;
  event.recorded = true;
  event.capture = 0;
  return kOk;
}

int Engine::wait_event(int pe, int thread, StreamHandle stream_handle, std::uint64_t handle, const Op& like,
                       bool external) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  Event* const found = find_event(p, handle);
  Stream* stream = find_stream(pe, thread, stream_handle);
  if (found == nullptr || stream == nullptr) return kBadHandle;
  Event& event = *found;
  if (external && stream->capture != nullptr) {
    if (stream->capture->invalid) return kCaptureInvalidated;
    capture_op(*stream, like, NodeType::kWaitEvent, handle);
    return kOk;
  }
  if (event.capture != 0) {
    const auto capture = std::find_if(p.captures.begin(), p.captures.end(),
                                      [&](const auto& c) { return c->id == event.capture; });
    if (capture == p.captures.end()) return kCapturedEvent;  // its capture has ended
    if ((*capture)->invalid) return kCaptureInvalidated;
    if (stream->capture == nullptr) {
      if (stream->id == kLegacyStream) {
        invalidate(**capture);
        return kCaptureImplicit;
      }
      stream->capture = capture->get();
      stream->frontier = event.frontier;
      return kOk;
    }
    if (stream->capture->id != event.capture) {
      invalidate(**capture);
      invalidate(*stream->capture);
      return kCaptureMerge;
    }
    for (const int node : event.frontier) {
      if (std::find(stream->frontier.begin(), stream->frontier.end(), node) == stream->frontier.end()) {
        stream->frontier.push_back(node);
      }
    }
    return kOk;
  }
  if (stream->capture != nullptr) {
    // Work outside the graph can't come before a node of it.
    if (!event.recorded || done(event.last)) return kOk;
    invalidate(*stream->capture);
    return kCaptureIsolation;
  }
  if (!event.recorded) return kOk;
  stream->also_after.push_back(event.last);
  if (done(event.last)) return kOk;
  // The legacy stream's order reaches the blocking streams only through operations, so the wait becomes one.
  return submit(pe, thread, stream_handle, like);
}

int Engine::event_operation(int pe, std::uint64_t handle, OpId* id) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const Event* const event = find_event(p, handle);
  if (event == nullptr) return kBadHandle;
  if (event->capture != 0) return kCapturedEvent;
  *id = event->last;
  return kOk;
}

int Engine::elapsed(int pe, std::uint64_t start, std::uint64_t end, std::uint64_t* ns) {
  Pe& p = *pes_[static_cast<std::size_t>(pe)];
  const Event *const a = find_event(p, start), *const b = find_event(p, end);
  if (a == nullptr || b == nullptr) return kBadHandle;
  for (const Event* event : {a, b}) {
    if (!event->timing || !event->recorded) return kBadHandle;
    if (!done(event->last)) return kNotReadyYet;
  }
  *ns = *b->time - *a->time;
  return kOk;
}

// ---- progress
// ----------------------------------------------------------------------------------------------------

vgpu::AgentId Engine::agent_of(int pe, const Stream& stream) {
  return order_of_events_->stream(pe, stream.id);
}

void Engine::learn(int pe, const std::vector<OpId>& ids) {
  if (meter_ != nullptr) meter_->host_learned(pe, ids);
  if (order_of_events_ == nullptr) return;
  for (const OpId id : ids) {
    const auto end = ends_.find(id);
    if (end != ends_.end()) order_of_events_->acquire(order_of_events_->host(pe), end->second);
  }
}

// Keeps the ends that something still refers to.
void Engine::forget_ends() {
  constexpr std::size_t kKept = 4096;
  if (ends_.size() < kKept) return;
  std::map<OpId, vgpu::Clock> kept;
  const auto keep = [&](OpId id) {
    const auto end = ends_.find(id);
    if (end != ends_.end()) kept.insert(*end);
  };
  for (const auto& pe : pes_) {
    for (const auto& [handle, stream] : pe->streams) {
      keep(stream.last);
      for (const OpId id : stream.also_after) keep(id);
    }
    for (const auto& [handle, event] : pe->events) keep(event.last);
    for (const auto& [handle, exec] : pe->execs) keep(exec.last);
    for (const OpId id : pe->orphans) keep(id);
  }
  // Host threads may be about to learn of the newest.
  auto recent = ends_.end();
  for (std::size_t i = 0; i < kKept / 4; ++i) --recent;
  kept.insert(recent, ends_.end());
  ends_ = std::move(kept);
}

void Engine::finish(OpId id) {
  const auto it = ops_.find(id);
  vgpu::Clock end;
  if (order_of_events_ != nullptr) {
    end = order_of_events_->release(it->second.agent);
    forget_ends();
    ends_[id] = end;
  }
  for (const OpId next : it->second.dependents) {
    const auto dependent = ops_.find(next);
    if (dependent != ops_.end() && order_of_events_ != nullptr)
      order_of_events_->merge(dependent->second.before, end);
    if (dependent != ops_.end() && --dependent->second.unmet == 0) ready_.insert(next);
  }
  ops_.erase(it);
}

bool Engine::pump(std::uint64_t now_ns, bool* fault) {
  bool any = false;
  for (bool again = true; again;) {
    again = false;
    for (auto it = ready_.begin(); it != ready_.end();) {
      const OpId id = *it;
      Op& op = ops_.at(id);
      op.done_ns = now_ns;
      if (!op.begun && order_of_events_ != nullptr) order_of_events_->acquire(op.agent, op.before);
      op.begun = true;
      if (meter_ != nullptr) meter_->enter_op(id, op.pe, op.call, op.what);
      const Step step = op.attempt ? op.attempt(op) : Step::kDone;
      if (meter_ != nullptr) meter_->leave_op();
      if (step == Step::kFault) {
        *fault = true;
        return any;
      }
      if (step == Step::kWaiting) {
        ++it;
        continue;
      }
      ready_.erase(it);
      finish(id);
      it = ready_.upper_bound(id);  // dependents have larger numbers, so this pass still reaches them
      any = again = true;
    }
  }
  return any;
}

bool Engine::idle(int pe) const {
  return std::none_of(ops_.begin(), ops_.end(), [pe](const auto& entry) { return entry.second.pe == pe; });
}

std::vector<const Op*> Engine::waiting() const {
  std::vector<const Op*> out;
  for (const OpId id : ready_) out.push_back(&ops_.at(id));
  return out;
}

}  // namespace echolo::runtime
