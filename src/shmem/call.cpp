#include "shmem/call.hpp"

#include <cstring>

namespace echolo::shmem {

using vgpu::CallOutcome;
using vgpu::Finding;
using vgpu::FindingKind;
using vgpu::Site;

Site Call::site(std::string role) const {
  if (warp != nullptr) return vgpu::make_site(*warp, lane, *inst, std::move(role));
  Site out = *host_site;
  out.role = std::move(role);
  return out;
}

vgpu::Memory::Accessor Call::accessor(std::uint8_t alignment, bool any_pe) const {
  vgpu::Memory::Accessor who;
  who.warp = warp;
  who.inst = inst;
  who.lane = lane;
  who.site = host_site;
  who.pe = pe;
  who.what = op.name;
  who.alignment = alignment;
  who.any_pe = any_pe;
  who.agent = agent;
  return who;
}

vgpu::Memory::Accessor Call::strong(std::uint8_t alignment, ptx::Order order, bool any_pe) const {
  vgpu::Memory::Accessor who = accessor(alignment, any_pe);
  who.order = order;
  who.scope = ptx::Scope::kSys;
  return who;
}

void Call::fence_stores() {
  if (warp != nullptr) memory.order().fence(*warp, 1U << static_cast<unsigned>(lane), ptx::Scope::kSys);
}

bool Call::total_bytes(std::uint64_t n, std::uint64_t* bytes) {
  if (n <= (std::uint64_t{1} << 40U)) {
    *bytes = n * op.element->bytes;
    return true;
  }
  fault(FindingKind::kOutOfBounds, op.name + " is asked for " + std::to_string(n) + " elements",
        "no memory is that large: the count looks like a negative number", "check the element count");
  return false;
}

CallOutcome Call::fault(FindingKind kind, std::string message, std::string why, std::string advice) {
  Finding finding;
  finding.kind = kind;
  finding.message = std::move(message);
  finding.why = std::move(why);
  finding.advice = std::move(advice);
  finding.sites.push_back(site("call"));
  finding.fatal = true;
  findings.add(std::move(finding));
  return CallOutcome::kFault;
}

std::uint64_t Call::remote(std::uint64_t address, int to, const char* what) {
  if (to < 0 || to >= world.n_pes) {
    fault(FindingKind::kOutOfBounds, op.name + " names PE " + std::to_string(to) + ", and there is none",
          "PEs are numbered 0 to " + std::to_string(world.n_pes - 1), "check how the target PE is computed");
    return 0;
  }
  const std::uint64_t there = memory.translate(address, to);
  if (there != 0) return there;
  // Beside the objects of the symmetric heap: the bounds check of the access says beside which one.
  const int owner = memory.pe_of(address);
  if (owner >= 0 && address >= memory.symmetric_base(owner) && memory.find_freed(address) == nullptr) {
    return memory.symmetric_base(to) + (address - memory.symmetric_base(owner));
  }
  // Not symmetric: say what it is instead, and let the bounds check describe it where it is nothing at all.
  const vgpu::Allocation* object = memory.find(address);
  if (object == nullptr) object = memory.find_freed(address);
  std::string is = object != nullptr
                       ? object->describe()
                       : (address == 0 ? "a null pointer" : "an address outside every allocation");
  if (object != nullptr && !object->live) is += ", already freed";
  if (is_window(address)) is = "shared or local memory of the calling thread";
  Finding finding;
  finding.kind = FindingKind::kOutOfBounds;
  finding.message = std::string("the ") + what + " of " + op.name + " is not in the symmetric heap";
  finding.why = "it is " + is +
                "; only memory from nvshmem_malloc, nvshmem_calloc or nvshmem_align exists on PE " +
                std::to_string(to) + " too";
  finding.advice = "allocate it with nvshmem_malloc";
  finding.sites.push_back(site("call"));
  if (object != nullptr) {
    finding.address = {object->pe, object->describe(), static_cast<std::int64_t>(address - object->base)};
  }
  finding.fatal = true;
  findings.add(std::move(finding));
  return 0;
}

bool Call::is_window(std::uint64_t address) const {
  return (address >= vgpu::kSharedWindow && address < vgpu::kSharedWindow + vgpu::kSharedWindowBytes) ||
         (address >= vgpu::kLocalWindow && address < vgpu::kLocalWindow + vgpu::kLocalWindowBytes);
}

namespace {

// The bytes of a window of the calling thread; null after logging.
std::uint8_t* window_bytes(Call& call, std::uint64_t address, std::uint64_t n, bool write) {
  vgpu::Warp* warp = call.warp;
  if (warp != nullptr && address >= vgpu::kSharedWindow &&
      address < vgpu::kSharedWindow + vgpu::kSharedWindowBytes) {
    const std::uint64_t offset = address - vgpu::kSharedWindow;
    auto& shared = warp->block->shared;
    if (offset + n <= shared.size()) {
      if (write) {
        for (std::uint64_t i = offset; i < offset + n; ++i) {
          warp->block->shared_written[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
        }
      }
      return shared.data() + offset;
    }
  } else if (warp != nullptr && address >= vgpu::kLocalWindow) {
    const std::uint64_t offset = address - vgpu::kLocalWindow;
    if (offset + n <= warp->local_bytes) {
      const std::uint64_t at = static_cast<std::uint64_t>(call.lane) * warp->local_bytes + offset;
      if (write) {
        for (std::uint64_t i = at; i < at + n; ++i) {
          warp->local_written[i / 8] |= static_cast<std::uint8_t>(1U << (i % 8));
        }
      }
      return warp->local + at;
    }
  }
  call.fault(FindingKind::kOutOfBounds,
             call.op.name + " reaches past the end of the calling thread's shared or local memory",
             std::to_string(n) + " bytes are asked for", "check the element count");
  return nullptr;
}

}  // namespace

bool Call::read_local(std::uint64_t address, void* into, std::uint64_t n) {
  if (is_window(address)) {
    const std::uint8_t* from = window_bytes(*this, address, n, false);
    if (from == nullptr) return false;
    std::memcpy(into, from, n);
    return true;
  }
  return memory.read(address, into, n, accessor());
}

bool Call::pack_local(std::uint64_t address, std::uint64_t n, vgpu::Memory::Packet* packet) {
  if (!is_window(address)) return memory.pack(address, n, packet, accessor());
  const std::uint8_t* from = window_bytes(*this, address, n, false);
  if (from == nullptr) return false;
  packet->bytes.insert(packet->bytes.end(), from, from + n);
  if (!packet->written.empty()) packet->written.resize(packet->bytes.size(), true);
  return true;
}

bool Call::write_local(std::uint64_t address, const void* from, std::uint64_t n) {
  if (is_window(address)) {
    std::uint8_t* into = window_bytes(*this, address, n, true);
    if (into == nullptr) return false;
    std::memcpy(into, from, n);
    memory.note_change();
    return true;
  }
  return memory.write(address, from, n, accessor());
}

}  // namespace echolo::shmem
