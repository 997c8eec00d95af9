// Memory without an address, addresses without memory, and both together (CUDA driver API, "Virtual Memory
// Management"); memory and events of other PEs (CUDA runtime API, "Device Management", IPC).
#include <algorithm>

#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

constexpr std::uint64_t kGranularity = 2ULL << 20U;
constexpr std::uint64_t kMostKept = 1ULL
                                    << 30U;  // larger contents are not carried from one mapping to the next
constexpr int kSameProcess = 201;

}  // namespace

int Node::map_physical(int pe, std::uint64_t address, std::uint64_t size, std::uint64_t handle) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  const auto it = state.physical.find(handle);
  if (it == state.physical.end() || it->second.references == 0 || size == 0 || size > it->second.size ||
      address % kGranularity != 0 || size % kGranularity != 0)
    return kBadValue;
  if (it->second.mapped_at != 0) {
    if (state.notes.size() < 16)
      state.notes.push_back("cuMemMap: memory that is mapped at two addresses at once is not modelled");
    return 801;
  }
  if (!machine_->memory().map(pe, address, size, handle)) return kBadValue;
  it->second.mapped_at = address;
  return kOk;
}

int Node::unmap_physical(int pe, HostThread& thread, std::uint64_t address, std::uint64_t size) {
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  vgpu::Memory& memory = machine_->memory();
  // What a handle holds that goes on living can be mapped again.
  std::vector<std::pair<std::uint64_t, vgpu::Memory::Packet>> kept;
  for (std::uint64_t at = address; at - address < size;) {
    const std::optional<vgpu::Memory::Mapped> part = memory.mapped_at(at);
    if (!part || part->address != at) return kBadValue;
    const auto it = state.physical.find(part->handle);
    if (part->accessible) {
      fabric_->released(at, part->size, memory.order().host(pe), host_site(pe, thread, "free"));
      if (it != state.physical.end() && it->second.references > 0 && part->size <= kMostKept) {
        vgpu::Memory::Packet packet;
        if (memory.pack(at, part->size, &packet, {})) kept.emplace_back(part->handle, std::move(packet));
      }
    }
    at += part->size;
  }
  const std::vector<std::uint64_t> handles = memory.unmap(pe, address, size);
  if (handles.empty()) return kBadValue;
  for (const std::uint64_t handle : handles) {
    PeState::Physical& physical = state.physical[handle];
    physical.mapped_at = 0;
    if (physical.references == 0) state.physical.erase(handle);
  }
  for (auto& [handle, packet] : kept) state.physical[handle].contents = std::move(packet);
  return kOk;
}

Answer Node::virtual_call(int pe, HostThread& thread, wire::Reader in) {
  const auto what = in.choice(wire::VirtualCall::kSizeOf);
  const std::uint64_t address = in.u64(), size = in.u64(), third = in.u64();
  if (!in.done()) return Answer::malformed();
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  vgpu::Memory& memory = machine_->memory();
  wire::Writer out;
  switch (what) {
    case wire::VirtualCall::kReserve: {
      const std::uint64_t alignment = std::max(third, kGranularity);
      if (size == 0 || size % kGranularity != 0 || size > vgpu::kPeSpan || alignment > vgpu::kPeSpan ||
          (alignment & (alignment - 1)) != 0)
        return Answer::fail(kBadValue);
      std::string where = sites_.token(pe, thread.pending.header.frames);
      if (!where.empty()) where += ":" + std::to_string(kTokenLine);
      const Result<std::uint64_t> base =
          memory.reserve(pe, size, alignment, thread.pending.header.name, where);
      if (!base.ok())
        return Answer::fail(
            refuse(pe, thread, usage_error("cudaErrorMemoryAllocation: " + base.error().message)));
      out.u64(*base);
      return Answer::of(out);
    }
    case wire::VirtualCall::kUnreserve:
      return Answer::fail(memory.unreserve(pe, address, size) ? kOk : kBadValue);
    case wire::VirtualCall::kCreate: {
      if (size == 0 || size % kGranularity != 0) return Answer::fail(kBadValue);
      std::uint64_t used = 0;
      for (const auto& [handle, one] : state.physical) used += one.size;
      const std::uint64_t capacity = vgpu::MemoryConfig{}.device_bytes;
      if (size > capacity - std::min(capacity, used)) return Answer::fail(2);
      const std::uint64_t handle = state.next_handle++;
      state.physical[handle].size = size;
      out.u64(handle);
      return Answer::of(out);
    }
    case wire::VirtualCall::kRelease: {
      const auto it = state.physical.find(address);
      if (it == state.physical.end() || it->second.references == 0) return Answer::fail(kBadValue);
      // Memory that is mapped stays until it is unmapped.
      if (--it->second.references == 0 && it->second.mapped_at == 0) state.physical.erase(it);
      return Answer::ok();
    }
    case wire::VirtualCall::kMap:
      return Answer::fail(map_physical(pe, address, size, third));
    case wire::VirtualCall::kUnmap:
      return Answer::fail(unmap_physical(pe, thread, address, size));
    case wire::VirtualCall::kAccess: {
      if (!memory.allow_access(pe, address, size, third != 0)) return Answer::fail(kBadValue);
      for (std::uint64_t at = address; third != 0 && at - address < size;) {
        const std::optional<vgpu::Memory::Mapped> part = memory.mapped_at(at);
        PeState::Physical& physical = state.physical[part->handle];
        const std::uint64_t n = std::min<std::uint64_t>(part->size, physical.contents.bytes.size());
        if (n != 0 && !memory.unpack(at, physical.contents, 0, n, {})) return Answer::fail(999);
        physical.contents = {};
        at += part->size;
      }
      return Answer::ok();
    }
    case wire::VirtualCall::kAccessOf:
    case wire::VirtualCall::kHandleOf: {
      const std::optional<vgpu::Memory::Mapped> part = memory.mapped_at(address);
      if (!part) return Answer::fail(kBadValue);
      if (what == wire::VirtualCall::kHandleOf) ++state.physical[part->handle].references;
      out.u64(what == wire::VirtualCall::kHandleOf ? part->handle : part->accessible ? 1 : 0);
      return Answer::of(out);
    }
    case wire::VirtualCall::kSizeOf: {
      const auto it = state.physical.find(address);
      if (it == state.physical.end()) return Answer::fail(kBadValue);
      out.u64(it->second.size);
      return Answer::of(out);
    }
  }
  return Answer::malformed();
}

// A handle names an allocation of cudaMalloc; who opens it gets the address that its owner has.
Answer Node::ipc_memory(int pe, HostThread& thread, wire::Reader in) {
  const auto what = in.choice(wire::IpcCall::kClose);
  const std::uint64_t address = in.u64(), serial = in.u64();
  if (!in.done()) return Answer::malformed();
  vgpu::Memory& memory = machine_->memory();
  if (!machine_->config().peers_reachable) {
    return Answer::fail(refuse(
        pe, thread, usage_error("cudaErrorNotSupported: over rdma no PE can open another PE's memory")));
  }
  const vgpu::Allocation* found = memory.find(address);
  wire::Writer out;
  switch (what) {
    case wire::IpcCall::kGet:
      if (found == nullptr || found->pe != pe || found->kind != vgpu::AllocationKind::kDevice ||
          memory.is_reserved(address) || pes_[static_cast<std::size_t>(pe)]->pooled.contains(found->base))
        return Answer::fail(kBadValue);
      out.u64(found->base).u64(found->serial);
      return Answer::of(out);
    case wire::IpcCall::kOpen:
      if (found == nullptr || found->base != address || found->serial != serial)
        return Answer::fail(kBadHandle);
      if (found->pe == pe) return Answer::fail(kSameProcess);
      memory.open_to(address, pe, true);
      out.u64(address);
      return Answer::of(out);
    case wire::IpcCall::kClose: {
      Pending& pending = thread.pending;
      if (pending.stage == 0) {
        if (found == nullptr || found->base != address || ((found->opened_by >> pe) & 1U) == 0)
          return Answer::fail(kBadValue);
        pending.wait = engine_.last_of_device(pe);
        pending.stage = 1;
      }
      Answer waited = wait_for(pe, thread, "the device to finish");
      if (waited.kind == Answer::Kind::kReply) memory.open_to(address, pe, false);
      return waited;
    }
  }
  return Answer::malformed();
}

Answer Node::ipc_event(int pe, wire::Reader in) {
  const auto what = in.choice(wire::IpcCall::kOpen);
  const std::uint64_t owner = in.u64(), event = in.u64();
  if (!in.done() || owner >= pes_.size()) return Answer::malformed();
  if (what == wire::IpcCall::kGet) return Answer::fail(engine_.shareable_event(pe, event));
  wire::Writer out;
  std::uint64_t handle = 0;
  const int error = engine_.open_event(pe, static_cast<int>(owner), event, &handle);
  out.u64(handle);
  return error == kOk ? Answer::of(out) : Answer::fail(error);
}

}  // namespace echolo::runtime
