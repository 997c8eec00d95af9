// What each fabric allows and what it gives: the one table that `--fabric nvlink` and `--fabric rdma` differ
// in. docs/fabric.md shows the same rows; a test holds the two against each other.
//
// What NVSHMEM itself leaves open is open on both: without `nvshmem_fence` two operations to one PE may be
// done in either order, and only `nvshmem_quiet` says that they are done (NVSHMEM documentation, "Memory
// Ordering"). Programs are judged by that, not by what one fabric happens to keep in order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.hpp"

namespace echolo::shmem {

struct FabricRules {
  std::string_view name;
  bool puts_overtake = true;     // of two puts to one PE the later may be done first
  bool atomics_overtake = true;  // an atomic or a signal may be done before an earlier put, and after a later
                                 // one
  std::uint32_t granule = 0;     // bytes: a put may be seen in pieces, cut at multiples of this
  std::uint32_t longest_delay = 0;   // warp instructions of the node, before what nobody waits for is done
  bool peers_reachable = false;      // nvshmem_ptr of another PE; plain loads and stores through it
  bool acquire_sees_signal = false;  // an acquire load at system scope that sees a signal orders what follows
};

// nvlink, rdma.
std::span<const FabricRules> fabrics();
// Error (kUsage): no such fabric; names those that exist.
Result<const FabricRules*> find_fabric(std::string_view name);

// The table as docs/fabric.md has it: one row a property, one column a fabric, in Markdown.
std::string fabric_table();

}  // namespace echolo::shmem
