// What a fault is called, why it is one, and what would mend it.
#include <algorithm>
#include <cstdio>
#include <string>

#include "base/text.hpp"
#include "vgpu/memory/state.hpp"

namespace echolo::vgpu {

namespace {

constexpr std::uint64_t kNullBytes = 1U << 16U;    // addresses below come from a null pointer
constexpr std::uint64_t kNearBytes = 1ULL << 28U;  // farther off, an allocation has nothing to do with it

std::string hex(std::uint64_t value) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(value));
  return text;
}

std::string bytes_text(std::uint64_t n) { return n == 1 ? "1 byte" : with_commas(n) + " bytes"; }

// "thread ... reads" or, where nobody is named, "it reads".
std::string subject(const std::string& whose) { return whose.empty() ? "it" : whose; }

FaultText near_allocation(const Allocation& allocation, std::uint64_t address, std::uint64_t bytes,
                          const std::string& verb, const std::string& who, const std::string& whose) {
  FaultText out;
  const std::string name = short_name(allocation);
  out.address = address_in(allocation, address);
  const std::int64_t offset = out.address.offset;
  const auto size = static_cast<std::int64_t>(allocation.size);
  if (offset < 0) {
    out.message = who + " " + verb + " " + bytes_text(bytes) + " before the start of " + name;
    out.why = subject(whose) + " is " + bytes_text(static_cast<std::uint64_t>(-offset)) +
              " before the start; the index is negative";
    out.advice = "find where the index goes below 0 (an unsigned subtraction, or a halo without its offset)";
    return out;
  }
  const std::int64_t past = offset - size;
  if (past < 0) {
    out.message = who + " " + verb + " " + bytes_text(bytes) + ", the last " +
                  std::to_string(offset + static_cast<std::int64_t>(bytes) - size) + " past the end of " +
                  name;
  } else {
    out.message = who + " " + verb + " " + bytes_text(bytes) + " past the end of " + name;
  }
  out.why = subject(whose) + " is at byte " + with_commas(static_cast<std::uint64_t>(offset));
  const std::string holder = allocation.name.empty() ? "the allocation" : name;
  if (bytes <= 16 && offset % static_cast<std::int64_t>(bytes) == 0) {
    out.why += " (index " + with_commas(static_cast<std::uint64_t>(offset) / bytes) + " in elements of " +
               bytes_text(bytes) + "); " + holder + " has " + bytes_text(allocation.size) + " (" +
               with_commas(allocation.size / bytes) + " elements)";
  } else {
    out.why += "; " + holder + " has " + bytes_text(allocation.size);
  }
  out.advice = bytes <= 16 ? "guard the access with the number of elements, or allocate more"
                           : "make the length at most what is left behind the offset, or allocate more";
  return out;
}

}  // namespace

std::string short_name(const Allocation& allocation) {
  if (!allocation.name.empty()) return "`" + allocation.name + "`";
  std::string out = "the " + human_bytes(allocation.size);
  if (!allocation.maker.empty()) out += " from " + allocation.maker;
  if (!allocation.where.empty()) out += " at " + allocation.where;
  return out;
}

FindingAddress address_in(const Allocation& allocation, std::uint64_t address) {
  return {allocation.pe, allocation.describe(), static_cast<std::int64_t>(address - allocation.base)};
}

FaultText explain_fault(const AllocationTable& table, Fault fault, int pe, int target_pe,
                        std::uint64_t address, std::uint64_t bytes, const std::string& verb,
                        const std::string& who, const std::string& whose) {
  FaultText out;
  const std::string what = who + " " + verb + " " + bytes_text(bytes);
  const Allocation* before = table.before(address);
  if (fault != Fault::kNone && fault != Fault::kNowhere) {
    // The access lies in a live allocation, `before`, but is not allowed.
    const Allocation& allocation = *before;
    const std::string name = short_name(allocation);
    out.address = address_in(allocation, address);
    const std::string peer = "PE " + std::to_string(allocation.pe);
    switch (fault) {
      case Fault::kPeerPrivate:
        out.message = what + " of " + peer + "'s own memory, " + name;
        out.why = name + (allocation.maker.empty() ? "" : " is from " + allocation.maker + " and") +
                  " is not symmetric: no other PE can reach it";
        out.advice =
            "allocate what peers reach with nvshmem_malloc, and reach it through nvshmem_ptr or the NVSHMEM "
            "calls";
        break;
      case Fault::kPeerRemote:
        out.message = what + " of " + peer + "'s symmetric memory by a plain access, and the fabric has none";
        out.why = "over rdma nvshmem_ptr of another PE is null: only NVSHMEM calls reach it";
        out.advice = "use nvshmem_put, nvshmem_get, nvshmem_p or nvshmem_g where nvshmem_ptr gives null";
        break;
      case Fault::kConstWrite:
        out.message = what + " of constant memory, " + name;
        out.why = "a kernel can only read __constant__ variables";
        out.advice = "make it a __device__ variable, or write it from the host with cudaMemcpyToSymbol";
        break;
      default:
        out.message = what + " as constant memory, but " + name + " is not constant";
        out.why = "ld.const reads __constant__ variables only";
        out.advice = "use a pointer without the constant space";
    }
    return out;
  }
  if (address < kNullBytes) {
    out.message = what + " through a null pointer";
    out.why = subject(whose) + " uses address " + hex(address);
    out.advice =
        "check that the pointer was set on this PE: nvshmem_ptr gives null where a peer can't be reached, "
        "and a "
        "failed allocation gives null";
    return out;
  }
  if (const ReservedRange* range = table.reserved_at(address);
      range != nullptr && (before == nullptr || address - before->base >= before->size)) {
    const bool mapped = range->part_at(address, nullptr) != nullptr;
    const bool unmapped = std::any_of(range->left.begin(), range->left.end(),
                                      [&](const auto& left) { return address - left.first < left.second; });
    out.message = what + " at addresses that are " + (mapped ? "mapped but not accessible" : "not mapped");
    out.why = subject(whose) + " is at byte " + with_commas(address - range->base) + " of the " +
              human_bytes(range->size) + " reserved by " + range->maker +
              (range->where.empty() ? "" : " at " + range->where) + ": " +
              (mapped     ? "cuMemSetAccess has not allowed access"
               : unmapped ? "cuMemUnmap has taken the memory away"
                          : "cuMemMap has put no memory there");
    out.advice = mapped     ? "call cuMemSetAccess for the mapped range before the memory is used"
                 : unmapped ? "unmap only after all work that uses the memory has finished"
                            : "map memory there (cuMemCreate, cuMemMap, cuMemSetAccess) before it is used";
    return out;
  }
  if (const Allocation* freed = table.find_freed(address); freed != nullptr) {
    out.address = address_in(*freed, address);
    out.message = what + " of freed memory, " + short_name(*freed);
    out.why = subject(whose) + " is at byte " + with_commas(static_cast<std::uint64_t>(out.address.offset)) +
              " of it; it was freed before this access";
    out.advice = "free it only after all work that uses it has finished, on this PE and on its peers";
    return out;
  }
  const Allocation* after = table.after(address);
  const auto same_part = [&](const Allocation* allocation) {
    return allocation != nullptr && allocation->pe == target_pe &&
           (allocation->kind == AllocationKind::kSymmetric) ==
               ((address - kArenaBase) % kPeSpan >= kDeviceSpan);
  };
  const std::uint64_t past =
      same_part(before) ? address - before->base - (address - before->base < before->size ? 0 : before->size)
                        : ~0ULL;
  const std::uint64_t short_of = same_part(after) ? after->base - address : ~0ULL;
  const bool inside = same_part(before) && address - before->base < before->size;
  if (inside || (past <= short_of && past < kNearBytes))
    return near_allocation(*before, address, bytes, verb, who, whose);
  if (short_of < kNearBytes) return near_allocation(*after, address, bytes, verb, who, whose);

  out.message = what + " at " + hex(address);
  if (target_pe < 0) {
    out.message += ", which is no memory of a GPU";
    out.why = subject(whose) + " uses an address outside all device memory: a host pointer, or a damaged one";
    out.advice =
        "pass memory from cudaMalloc or nvshmem_malloc to the kernel, or pin host memory with cudaMallocHost";
  } else {
    out.message += ", where PE " + std::to_string(target_pe) + " has no allocation";
    out.why = subject(whose) + " is far from every allocation" +
              (target_pe != pe ? ": addresses of different PEs do not differ by a constant" : std::string());
    out.advice = target_pe != pe ? "get a peer's address with nvshmem_ptr instead of computing it"
                                 : "check the pointer and the index that it is used with";
  }
  return out;
}

}  // namespace echolo::vgpu
