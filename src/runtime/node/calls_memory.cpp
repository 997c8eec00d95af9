// Allocations, copies and fills.
#include <algorithm>
#include <cstring>

#include "runtime/node/node.hpp"

namespace echolo::runtime {
namespace {

using wire::AllocationClass;

vgpu::AllocationKind kind_of(AllocationClass kind) {
  switch (kind) {
    case AllocationClass::kPinned:
      return vgpu::AllocationKind::kPinned;
    case AllocationClass::kManaged:
      return vgpu::AllocationKind::kManaged;
    case AllocationClass::kDevice:
    case AllocationClass::kAsync:
    case AllocationClass::kPageable:
      break;
  }
  return vgpu::AllocationKind::kDevice;
}

bool is_host_memory(std::uint64_t address) {
  return address >= vgpu::kHostBase && address < vgpu::kHostBase + vgpu::kHostBytes;
}
bool is_device_memory(std::uint64_t address) {
  return address >= vgpu::kArenaBase && address < vgpu::kArenaBase + vgpu::kArenaBytes;
}

// cudaFree takes device and managed memory, cudaFreeHost takes pinned memory.
bool may_free(AllocationClass kind, vgpu::AllocationKind found) {
  if (kind == AllocationClass::kPinned) return found == vgpu::AllocationKind::kPinned;
  return found == vgpu::AllocationKind::kDevice || found == vgpu::AllocationKind::kManaged;
}

struct CopyPlan {
  std::uint64_t to = 0, from = 0, width = 0, height = 0, to_pitch = 0, from_pitch = 0;
  std::uint64_t bytes() const { return width * height; }
  // False where the numbers overflow, which no copy between real memories does.
  bool sane() const {
    const auto fits = [&](std::uint64_t pitch) {
      return height <= 1 || (pitch >= width && pitch <= vgpu::kPeSpan / std::max<std::uint64_t>(height, 1));
    };
    return width <= vgpu::kPeSpan && height <= vgpu::kPeSpan && fits(to_pitch) && fits(from_pitch);
  }
};

}  // namespace

Answer Node::allocate(int pe, HostThread& thread, wire::Reader in) {
  const AllocationClass kind = in.choice(AllocationClass::kAsync);
  const std::uint64_t bytes = in.u64(), pool = in.u64();
  if (!in.done() || kind == AllocationClass::kPageable) return Answer::malformed();
  // A capture takes cudaMallocAsync as a node of the graph; that is not offered, so it breaks the capture
  // like the rest.
  if (const int error = engine_.allow_unsafe(pe, thread.index); error != kOk) return Answer::fail(error);
  if (bytes > vgpu::kPeSpan) return Answer::fail(2);
  PeState& state = *pes_[static_cast<std::size_t>(pe)];
  if (kind == AllocationClass::kAsync) {
    if (const int error = pool_takes(state, pool, bytes); error != kOk) return Answer::fail(error);
  }
  std::string where = sites_.token(pe, thread.pending.header.frames);
  if (!where.empty()) where += ":" + std::to_string(kTokenLine);
  const Result<std::uint64_t> address =
      machine_->memory().allocate(pe, bytes, 256, kind_of(kind), "", thread.pending.header.name, where);
  if (!address.ok())
    return Answer::fail(
        refuse(pe, thread, usage_error("cudaErrorMemoryAllocation: " + address.error().message)));
  if (kind == AllocationClass::kAsync) state.pooled[*address] = {pool, bytes};
  wire::Writer out;
  out.u64(*address);
  return Answer::of(out);
}

// Waits for the device first, as cudaFree does.
Answer Node::release(int pe, HostThread& thread, wire::Reader in) {
  const AllocationClass kind = in.choice(AllocationClass::kAsync);
  const std::uint64_t address = in.u64();
  if (!in.done()) return Answer::malformed();
  Pending& pending = thread.pending;
  if (pending.stage == 0) {
    if (const int error = engine_.allow_unsafe(pe, thread.index); error != kOk) return Answer::fail(error);
    const vgpu::Allocation* found = machine_->memory().find(address);
    if (found == nullptr || found->base != address || found->pe != pe || !may_free(kind, found->kind) ||
        machine_->memory().is_reserved(address)) {
      return Answer::fail(1);
    }
    pending.wait = engine_.last_of_device(pe);
    pending.stage = 1;
  }
  Answer waited = wait_for(pe, thread, "the device to finish");
  if (waited.kind != Answer::Kind::kReply) return waited;
  const vgpu::Allocation* found = machine_->memory().find(address);
  if (found == nullptr || found->base != address) return Answer::fail(1);
  fabric_->released(found->base, found->size, machine_->memory().order().host(pe),
                    host_site(pe, thread, "free"));
  pool_gets_back(*pes_[static_cast<std::size_t>(pe)], address);
  return machine_->memory().release(address).ok() ? Answer::ok() : Answer::fail(1);
}

Answer Node::release_async(int pe, HostThread& thread, wire::Reader in) {
  const std::uint64_t address = in.u64();
  const StreamHandle stream = in.u64();
  if (!in.done()) return Answer::malformed();
  const vgpu::Allocation* found = machine_->memory().find(address);
  if (found == nullptr || found->base != address || found->pe != pe ||
      !may_free(AllocationClass::kDevice, found->kind) || machine_->memory().is_reserved(address)) {
    return Answer::fail(1);
  }
  if (engine_.is_capturing(pe, thread.index, stream)) {
    return Answer::fail(
        refuse(pe, thread, usage_error("cudaErrorNotSupported: memory can't be freed by a graph")));
  }
  Op op = make_op(pe, thread, "cudaFreeAsync");
  op.attempt = [this, address](Op& self) {
    if (const vgpu::Allocation* now = machine_->memory().find(address); now != nullptr) {
      vgpu::Site site = self.site;
      site.role = "free";
      fabric_->released(now->base, now->size, self.agent, site);
    }
    pool_gets_back(*pes_[static_cast<std::size_t>(self.pe)], address);
    const Status released = machine_->memory().release(address);
    if (!released.ok()) stop("crashed", "cudaFreeAsync: " + released.error().message);
    return released.ok() ? Step::kDone : Step::kFault;
  };
  return Answer::fail(engine_.submit(pe, thread.index, stream, std::move(op)));
}

Answer Node::memory_info(int pe) {
  const std::uint64_t total = vgpu::MemoryConfig{}.device_bytes;
  std::uint64_t used = 0;
  for (const vgpu::Allocation* allocation : machine_->memory().live_allocations(pe)) {
    if (is_device_memory(allocation->base)) used += allocation->size;
  }
  wire::Writer out;
  out.u64(total > used ? total - used : 0).u64(total);
  return Answer::of(out);
}

Answer Node::pointer_info(int pe, wire::Reader in) {
  const std::uint64_t address = in.u64();
  if (!in.done()) return Answer::malformed();
  const vgpu::Allocation* found = machine_->memory().find(address);
  AllocationClass kind = AllocationClass::kPageable;
  if (found != nullptr &&
      (found->pe == pe || ((found->opened_by >> pe) & 1U) != 0 || machine_->memory().is_symmetric(address))) {
    kind = found->kind == vgpu::AllocationKind::kPinned    ? AllocationClass::kPinned
           : found->kind == vgpu::AllocationKind::kManaged ? AllocationClass::kManaged
                                                           : AllocationClass::kDevice;
  }
  wire::Writer out;
  out.u8(static_cast<std::uint8_t>(kind));
  out.u64(found == nullptr ? 0 : found->base).u64(found == nullptr ? 0 : found->size);
  return Answer::of(out);
}

// u64 to, from, width, height, to pitch, from pitch, stream; u8 wait, from pageable, to pageable; blob of
// pageable bytes.
Answer Node::copy(int pe, HostThread& thread, wire::Reader in) {
  CopyPlan plan;
  for (std::uint64_t* field :
       {&plan.to, &plan.from, &plan.width, &plan.height, &plan.to_pitch, &plan.from_pitch}) {
    *field = in.u64();
  }
  const StreamHandle stream = in.u64();
  const bool wait = in.u8() != 0, from_pageable = in.u8() != 0, to_pageable = in.u8() != 0;
  const std::string_view payload = in.blob();
  if (!in.done() || !plan.sane() || (from_pageable && to_pageable)) return Answer::malformed();
  // A node of a graph reads the host's memory each time that the graph runs.
  if (from_pageable && !placing_ && payload.size() != plan.bytes()) return Answer::malformed();
  if (to_pageable && plan.bytes() > wire::kMaxPayload) return Answer::malformed();
  Pending& pending = thread.pending;
  const bool any_pe = machine_->config().peers_reachable;
  if (pending.stage == 0) {
    const bool capturing = placing_.has_value() || engine_.is_capturing(pe, thread.index, stream);
    if (placing_ && (from_pageable || to_pageable) && plan.bytes() > wire::kChunk) {
      return Answer::fail(refuse(
          pe, thread,
          usage_error("cudaErrorNotSupported: a graph's copy of more than 16 MiB of pageable memory")));
    }
    if (capturing && !placing_ && wait) return Answer::fail(engine_.allow_sync(pe, thread.index, stream));
    if (capturing && plan.height > 1 && (from_pageable || to_pageable)) {
      return Answer::fail(
          refuse(pe, thread, usage_error("cudaErrorNotSupported: a captured 2D copy with pageable memory")));
    }
    Op op = make_op(pe, thread, pending.header.name);
    if (from_pageable && !capturing) {
      // The bytes are taken now; the program may reuse its buffer at once.
      auto bytes = std::make_shared<const std::vector<std::uint8_t>>(payload.begin(), payload.end());
      op.attempt = [this, plan, bytes, any_pe](Op& self) {
        for (std::uint64_t row = 0; row < plan.height; ++row) {
          if (!machine_->memory().write(plan.to + row * plan.to_pitch, bytes->data() + row * plan.width,
                                        plan.width, host_accessor(self, any_pe))) {
            return Step::kFault;
          }
        }
        return Step::kDone;
      };
    } else if (from_pageable) {
      pes_[static_cast<std::size_t>(pe)]->needs_service = true;
      op.attempt = [this, plan, pe, any_pe, ticket = std::uint64_t{0},
                    bytes = std::shared_ptr<std::vector<std::uint8_t>>()](Op& self) mutable {
        if (ticket == 0) {
          bytes = std::make_shared<std::vector<std::uint8_t>>();
          ticket = serve(pe, {wire::ServiceKind::kReadHost, plan.from, plan.width, 0, {}, bytes});
        }
        self.waits_for = "host memory to be read";
        if (pes_[static_cast<std::size_t>(pe)]->n_served < ticket) return Step::kWaiting;
        if (bytes->size() != plan.width) return Step::kFault;
        return machine_->memory().write(plan.to, bytes->data(), plan.width, host_accessor(self, any_pe))
                   ? Step::kDone
                   : Step::kFault;
      };
    } else if (to_pageable && !capturing) {
      pending.bytes = std::make_shared<std::vector<std::uint8_t>>(plan.bytes());
      op.attempt = [this, plan, bytes = pending.bytes, any_pe](Op& self) {
        for (std::uint64_t row = 0; row < plan.height; ++row) {
          if (!machine_->memory().read(plan.from + row * plan.from_pitch, bytes->data() + row * plan.width,
                                       plan.width, host_accessor(self, any_pe))) {
            return Step::kFault;
          }
        }
        return Step::kDone;
      };
    } else if (to_pageable) {
      pes_[static_cast<std::size_t>(pe)]->needs_service = true;
      op.attempt = [this, plan, pe, any_pe, ticket = std::uint64_t{0}](Op& self) mutable {
        if (ticket == 0) {
          std::vector<std::uint8_t> bytes(plan.width);
          if (!machine_->memory().read(plan.from, bytes.data(), plan.width, host_accessor(self, any_pe)))
            return Step::kFault;
          ticket = serve(pe, {wire::ServiceKind::kWriteHost, plan.to, 0, 0, std::move(bytes), nullptr});
        }
        self.waits_for = "host memory to be written";
        return pes_[static_cast<std::size_t>(pe)]->n_served < ticket ? Step::kWaiting : Step::kDone;
      };
    } else {
      op.attempt = [this, plan, any_pe](Op& self) {
        for (std::uint64_t row = 0; row < plan.height; ++row) {
          if (!machine_->memory().copy(plan.to + row * plan.to_pitch, plan.from + row * plan.from_pitch,
                                       plan.width, host_accessor(self, any_pe))) {
            return Step::kFault;
          }
        }
        return Step::kDone;
      };
    }
    OpId id = 0;
    if (const int error = place(pe, thread, stream, std::move(op), &id); error != kOk) {
      return Answer::fail(error);
    }
    // Between device addresses not even cudaMemcpy makes the host wait.
    const bool waits =
        !capturing &&
        (to_pageable || (wait && (is_host_memory(plan.to) || is_host_memory(plan.from) || from_pageable)));
    if (!waits) return Answer::ok();
    pending.wait = {id};
    pending.stage = 1;
  }
  Answer waited = wait_for(pe, thread, std::string("the copy to end"));
  if (waited.kind != Answer::Kind::kReply || !to_pageable) return waited;
  wire::Writer out;
  out.blob(pending.bytes->data(), pending.bytes->size());
  return Answer::of(out);
}

Answer Node::fill(int pe, HostThread& thread, wire::Reader in) {
  CopyPlan plan;
  plan.to = in.u64();
  const std::uint32_t value = in.u32();
  const std::uint8_t element = in.u8();
  plan.to_pitch = in.u64();
  const std::uint64_t count = in.u64();
  plan.height = in.u64();
  plan.from_pitch = plan.to_pitch;
  const StreamHandle stream = in.u64();
  const bool wait = in.u8() != 0;
  if (!in.done() || (element != 1 && element != 2 && element != 4)) return Answer::malformed();
  plan.width = count <= vgpu::kPeSpan ? count * element : ~std::uint64_t{0};
  if (!plan.sane()) return Answer::fail(1);
  Pending& pending = thread.pending;
  if (pending.stage == 0) {
    const bool any_pe = machine_->config().peers_reachable;
    Op op = make_op(pe, thread, pending.header.name);
    op.attempt = [this, plan, value, element, any_pe](Op& self) {
      vgpu::Memory& memory = machine_->memory();
      const vgpu::Memory::Accessor who = host_accessor(self, any_pe);
      std::vector<std::uint8_t> pattern;
      for (std::uint64_t row = 0; row < plan.height; ++row) {
        const std::uint64_t at = plan.to + row * plan.to_pitch;
        if (element == 1) {
          if (!memory.fill(at, static_cast<std::uint8_t>(value), plan.width, who)) return Step::kFault;
          continue;
        }
        if (!memory.admits(at, plan.width, true, who)) return Step::kFault;
        constexpr std::uint64_t kPiece = 1U << 20U;
        for (std::uint64_t done = 0; done < plan.width; done += kPiece) {
          const std::uint64_t n = std::min(kPiece, plan.width - done);
          pattern.resize(n);
          for (std::uint64_t i = 0; i < n; i += element) std::memcpy(pattern.data() + i, &value, element);
          if (!memory.write(at + done, pattern.data(), n, who)) return Step::kFault;
        }
      }
      return Step::kDone;
    };
    OpId id = 0;
    if (const int error = place(pe, thread, stream, std::move(op), &id); error != kOk) {
      return Answer::fail(error);
    }
    if (!wait || id == 0) return Answer::ok();
    pending.wait = {id};
    pending.stage = 1;
  }
  return wait_for(pe, thread, "the fill to end");
}

}  // namespace echolo::runtime
