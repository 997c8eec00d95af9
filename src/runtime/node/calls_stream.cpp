// Streams, events, graphs, host functions, and the service thread of a PE.
#include "runtime/node/node.hpp"

namespace echolo::runtime {

// Streams and events that are asked whether they are done: the device gets a turn between the question and
// the answer "not ready", so that a program that polls makes progress.
Answer Node::poll(int pe, HostThread& thread, const std::vector<OpId>& ops) {
  if (engine_.done(ops)) {
    engine_.learn(pe, ops);
    return Answer::ok();
  }
  if (thread.pending.stage == 0) {
    thread.pending.stage = 1;
    thread.pending.waits_for = "the device to get on";
    thread.pending.is_poll = true;
    return Answer::blocked();
  }
  if (!poll_round_) return Answer::blocked();
  return Answer::fail(kNotReadyYet);
}

Answer Node::stream_call(int pe, HostThread& thread, wire::Reader in) {
  Pending& pending = thread.pending;
  wire::Writer out;
  switch (pending.op()) {
    case wire::Op::kStreamCreate: {
      const std::uint32_t flags = in.u32();
      const std::int32_t priority = in.i32();
      if (!in.done()) return Answer::malformed();
      out.u64(engine_.create_stream(pe, flags != 0, priority));
      return Answer::of(out);
    }
    case wire::Op::kDeviceSync: {
      if (!in.done()) return Answer::malformed();
      if (pending.stage == 0) {
        if (const int error = engine_.allow_unsafe(pe, thread.index); error != kOk)
          return Answer::fail(error);
        pending.wait = engine_.last_of_device(pe);
        pending.stage = 1;
      }
      return wait_for(pe, thread, "the device to finish");
    }
    case wire::Op::kStreamWaitEvent: {
      const StreamHandle stream = in.u64();
      const std::uint64_t event = in.u64();
      const bool external = in.u64() != 0;
      if (!in.done()) return Answer::malformed();
      return Answer::fail(engine_.wait_event(pe, thread.index, stream, event,
                                             make_op(pe, thread, "cudaStreamWaitEvent"), external));
    }
    default:
      break;
  }
  const StreamHandle stream = in.u64();
  if (!in.done()) return Answer::malformed();
  switch (pending.op()) {
    case wire::Op::kStreamDestroy:
      return Answer::fail(engine_.destroy_stream(pe, stream));
    case wire::Op::kStreamInfo: {
      Engine::StreamInfo info;
      if (const int error = engine_.stream_info(pe, thread.index, stream, &info); error != kOk)
        return Answer::fail(error);
      out.u32(info.non_blocking ? 1 : 0).i32(info.priority).u64(info.id);
      return Answer::of(out);
    }
    case wire::Op::kStreamSync:
    case wire::Op::kStreamQuery: {
      if (pending.stage == 0) {
        if (const int error = engine_.allow_sync(pe, thread.index, stream); error != kOk)
          return Answer::fail(error);
        if (const int error = engine_.last_of(pe, thread.index, stream, &pending.wait); error != kOk) {
          return Answer::fail(error);
        }
      }
      if (pending.op() == wire::Op::kStreamQuery) return poll(pe, thread, pending.wait);
      pending.stage = 1;
      return wait_for(pe, thread, "the stream to finish");
    }
    default:
      return Answer::malformed();
  }
}

Answer Node::event_call(int pe, HostThread& thread, wire::Reader in) {
  Pending& pending = thread.pending;
  wire::Writer out;
  if (pending.op() == wire::Op::kEventCreate) {
    const std::uint32_t flags = in.u32();
    if (!in.done()) return Answer::malformed();
    out.u64(engine_.create_event(pe, (flags & 2U) == 0, (flags & 4U) != 0));  // cudaEventDisableTiming
    return Answer::of(out);
  }
  const std::uint64_t event = in.u64();
  const bool pair = pending.op() == wire::Op::kEventRecord || pending.op() == wire::Op::kEventElapsed;
  const std::uint64_t other = pair ? in.u64() : 0;
  const bool external = pending.op() == wire::Op::kEventRecord && in.u64() != 0;
  if (!in.done()) return Answer::malformed();
  switch (pending.op()) {
    case wire::Op::kEventDestroy:
      return Answer::fail(engine_.destroy_event(pe, event));
    case wire::Op::kEventRecord:
      return Answer::fail(engine_.record_event(pe, thread.index, event, other,
                                               make_op(pe, thread, "cudaEventRecord"), external));
    case wire::Op::kEventElapsed: {
      std::uint64_t ns = 0;
      if (const int error = engine_.elapsed(pe, event, other, &ns); error != kOk) return Answer::fail(error);
      out.u64(ns);
      return Answer::of(out);
    }
    case wire::Op::kEventSync:
    case wire::Op::kEventQuery: {
      if (pending.stage == 0) {
        OpId id = 0;
        if (const int error = engine_.event_operation(pe, event, &id); error != kOk)
          return Answer::fail(error);
        pending.wait = {id};
      }
      if (pending.op() == wire::Op::kEventQuery) return poll(pe, thread, pending.wait);
      pending.stage = 1;
      return wait_for(pe, thread, "an event");
    }
    default:
      return Answer::malformed();
  }
}

Answer Node::host_function(int pe, HostThread& thread, wire::Reader in) {
  const StreamHandle stream = in.u64();
  const std::uint64_t function = in.u64(), data = in.u64();
  const bool callback = in.u8() != 0;
  if (!in.done()) return Answer::malformed();
  if (callback && placing_) return Answer::malformed();
  if (callback && engine_.is_capturing(pe, thread.index, stream)) {
    return Answer::fail(
        engine_.allow_sync(pe, thread.index, stream));  // callbacks, unlike host functions, break a capture
  }
  pes_[static_cast<std::size_t>(pe)]->needs_service = true;
  Op op = make_op(pe, thread, thread.pending.header.name);
  op.attempt = [this, pe, function, data, stream, callback, ticket = std::uint64_t{0}](Op& self) mutable {
    if (ticket == 0) {
      const auto kind = callback ? wire::ServiceKind::kCallback : wire::ServiceKind::kFunction;
      ticket = serve(pe, {kind, function, data, stream, {}, nullptr});
    }
    self.waits_for = "a host function to return";
    return pes_[static_cast<std::size_t>(pe)]->n_served < ticket ? Step::kWaiting : Step::kDone;
  };
  return Answer::fail(place(pe, thread, stream, std::move(op), nullptr));
}

Answer Node::service(int pe, HostThread& thread, wire::Reader in) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  const std::uint8_t began = in.u8();
  const std::string_view result = in.blob();
  if (!in.done()) return Answer::malformed();
  if (thread.pending.stage == 0) {
    if (began == 0) {
      if (state.service_running) return Answer::malformed();
      state.service_running = thread.is_service = true;
    } else {
      if (!thread.is_service || !state.serving) return Answer::malformed();
      if (state.services.front().result != nullptr)
        state.services.front().result->assign(result.begin(), result.end());
      state.services.pop_front();
      state.serving = false;
      ++state.n_served;
    }
    thread.pending.stage = 1;
    thread.pending.waits_for = "host functions";
  }
  if (state.services.empty()) return Answer::blocked();
  state.serving = true;
  const PeState::Service& next = state.services.front();
  wire::Writer out;
  out.u8(static_cast<std::uint8_t>(next.kind)).u64(next.a).u64(next.b).u64(next.c);
  out.blob(next.bytes.data(), next.bytes.size());
  return Answer::of(out);
}

}  // namespace echolo::runtime
