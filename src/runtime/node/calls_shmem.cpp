// NVSHMEM from host code: everything goes by name to shmem::Fabric, at once or in its place in a stream.
#include <stdexcept>

#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

std::string describe(const vgpu::WaitReason& wait) {
  if (!wait.collective.empty()) return wait.collective;
  return wait.waits_for.empty() ? "an NVSHMEM operation" : wait.waits_for + " (it holds " + wait.holds + ")";
}

bool returns_value(std::string_view name) {
  constexpr std::string_view kTail = "_g_on_stream";
  return name.size() > kTail.size() && name.substr(name.size() - kTail.size()) == kTail;
}

}  // namespace

Answer Node::shmem_init(int pe) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  if (state.shmem_ended) return Answer::fail(1);
  state.shmem_ready = true;
  return Answer::ok();
}

Answer Node::shmem_finalize(int pe, HostThread& thread) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  if (!state.shmem_ready) return Answer::malformed();
  shmem::Fabric::HostCall call;
  call.name = "nvshmem_barrier_all";
  call.pe = pe;
  call.agent = machine_->memory().order().host(pe);
  call.site = host_site(pe, thread, "call");
  call.token = thread.pending.token;
  const vgpu::CallOutcome outcome = fabric_->host_call(call);
  thread.pending.token = call.token;
  if (outcome != vgpu::CallOutcome::kDone) {
    thread.pending.waits_for = describe(call.wait);
    return Answer::blocked();
  }
  state.shmem_ready = false;
  state.shmem_ended = true;
  fabric_->pe_gone(pe, "has called nvshmem_finalize");
  return Answer::ok();
}

Answer Node::shmem_call(int pe, HostThread& thread, wire::Reader in) {
  const bool on_stream = in.u8() != 0;
  const StreamHandle stream = in.u64();
  const std::uint32_t n = in.u32();
  if (n > 16) return Answer::malformed();
  std::vector<std::uint64_t> arguments;
  for (std::uint32_t i = 0; i < n; ++i) arguments.push_back(in.u64());
  Pending& pending = thread.pending;
  const std::string name = pending.header.name;
  if (!in.done() || !fabric_->knows_host_call(name)) return Answer::malformed();
  if (!pes_[static_cast<std::size_t>(pe)]->shmem_ready) return Answer::malformed();
  try {
    if (!on_stream) {
      shmem::Fabric::HostCall call;
      call.name = name;
      call.pe = pe;
      call.arguments = std::move(arguments);
      call.agent = machine_->memory().order().host(pe);
      call.site = host_site(pe, thread, "call");
      call.token = pending.token;
      const vgpu::CallOutcome outcome = fabric_->host_call(call);
      pending.token = call.token;
      if (outcome != vgpu::CallOutcome::kDone) {
        pending.waits_for = describe(call.wait);
        return Answer::blocked();
      }
      wire::Writer out;
      out.u64(call.result);
      return Answer::of(out);
    }
    if (pending.stage == 0) {
      if (returns_value(name) && engine_.is_capturing(pe, thread.index, stream)) {
        return Answer::fail(engine_.allow_sync(pe, thread.index, stream));
      }
      Op op = make_op(pe, thread, name);
      pending.bytes = std::make_shared<std::vector<std::uint8_t>>(sizeof(std::uint64_t));
      shmem::Fabric::HostCall first;
      first.name = name;
      first.pe = pe;
      first.arguments = std::move(arguments);
      first.on_stream = true;
      first.site = op.site;
      op.attempt = [this, call = first, bytes = pending.bytes](Op& self) mutable {
        call.site.call = self.call;
        call.agent = self.agent;
        vgpu::CallOutcome outcome = vgpu::CallOutcome::kFault;
        try {
          outcome = fabric_->host_call(call);
        } catch (const std::logic_error& e) {
          stop("crashed", std::string("a PE speaks the node's protocol wrongly: ") + e.what());
        }
        if (outcome == vgpu::CallOutcome::kFault) return Step::kFault;
        if (outcome == vgpu::CallOutcome::kBlocked) {
          self.waits_for = describe(call.wait);
          return Step::kWaiting;
        }
        std::memcpy(bytes->data(), &call.result, sizeof call.result);
        return Step::kDone;
      };
      OpId id = 0;
      if (const int error = engine_.submit(pe, thread.index, stream, std::move(op), &id); error != kOk) {
        return Answer::fail(error);
      }
      if (!returns_value(name)) {
        wire::Writer out;
        out.u64(0);
        return Answer::of(out);
      }
      pending.wait = {id};
      pending.stage = 1;
    }
  } catch (const std::logic_error&) {
    return Answer::malformed();  // too few arguments: not our library
  }
  Answer waited = wait_for(pe, thread, "the stream to finish");
  if (waited.kind != Answer::Kind::kReply) return waited;
  std::uint64_t value = 0;
  std::memcpy(&value, pending.bytes->data(), sizeof value);
  wire::Writer out;
  out.u64(value);
  return Answer::of(out);
}

}  // namespace echolo::runtime
