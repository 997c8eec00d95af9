// One attempt at one NVSHMEM operation, from a kernel or from a host thread. Internal to shmem/.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "shmem/delivery.hpp"
#include "shmem/operation.hpp"
#include "shmem/world.hpp"
#include "vgpu/device_calls.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::shmem {

struct Call {
  const Operation& op;
  World& world;
  Delivery& delivery;
  vgpu::Memory& memory;
  vgpu::FindingLog& findings;
  int pe;                                    // the calling PE
  std::span<const std::uint64_t> arguments;  // widened to 64 bits
  std::uint64_t& token;
  vgpu::WaitReason& wait;
  std::uint64_t result = 0;
  // Who calls: a lane of a warp, or a host thread.
  vgpu::Warp* warp = nullptr;
  const vgpu::Inst* inst = nullptr;
  int lane = 0;
  const vgpu::Site* host_site = nullptr;
  // In whose program order the call is, and with whose operations its fences and quiets deal.
  vgpu::AgentId agent;
  Side side = Side::kDevice;
  bool completes_both_sides = false;  // a barrier

  std::uint64_t pointer(int i) const { return arguments[static_cast<std::size_t>(i)]; }
  std::uint64_t size(int i) const { return arguments[static_cast<std::size_t>(i)]; }
  int integer(int i) const {
    return static_cast<int>(static_cast<std::int64_t>(arguments[static_cast<std::size_t>(i)]));
  }

  vgpu::Site site(std::string role) const;
  // Of the caller itself.
  vgpu::Memory::Accessor accessor(std::uint8_t alignment = 1, bool any_pe = true) const;
  // The same as an atomic of this order at system scope.
  vgpu::Memory::Accessor strong(std::uint8_t alignment, ptx::Order order, bool any_pe = true) const;
  // Logs a fatal finding at the caller.
  vgpu::CallOutcome fault(vgpu::FindingKind kind, std::string message, std::string why, std::string advice);

  // The address of symmetric object `address` on PE `to`; 0 after logging a finding (no such PE, not
  // symmetric).
  std::uint64_t remote(std::uint64_t address, int to, const char* what);
  // n elements in bytes; false after a finding where no memory is that large.
  bool total_bytes(std::uint64_t n, std::uint64_t* bytes);
  // Local buffers may lie in device memory or in the caller's shared or local memory.
  bool read_local(std::uint64_t address, void* into, std::uint64_t n);
  bool write_local(std::uint64_t address, const void* from, std::uint64_t n);
  // Fence and quiet order the caller's plain stores too.
  void fence_stores();
  // To the end of a packet.
  bool pack_local(std::uint64_t address, std::uint64_t n, vgpu::Memory::Packet* packet);
  bool is_window(std::uint64_t address) const;
};

// Handlers, by file: rma.cpp, amo.cpp, waits.cpp, collectives.cpp, teams.cpp, world.cpp.
vgpu::CallOutcome do_transfer(Call& call);
vgpu::CallOutcome do_p(Call& call);
vgpu::CallOutcome do_g(Call& call);
vgpu::CallOutcome do_ptr(Call& call);
vgpu::CallOutcome do_mc_ptr(Call& call);
vgpu::CallOutcome do_atomic(Call& call);
vgpu::CallOutcome do_signal_op(Call& call);
vgpu::CallOutcome do_signal_fetch(Call& call);
vgpu::CallOutcome do_wait(Call& call);
vgpu::CallOutcome do_fence(Call& call);
vgpu::CallOutcome do_quiet(Call& call);
vgpu::CallOutcome do_barrier(Call& call);
vgpu::CallOutcome do_broadcast(Call& call);
vgpu::CallOutcome do_fcollect(Call& call);
vgpu::CallOutcome do_alltoall(Call& call);
vgpu::CallOutcome do_reduce(Call& call);
vgpu::CallOutcome do_reducescatter(Call& call);
vgpu::CallOutcome do_allocate(Call& call);
vgpu::CallOutcome do_free(Call& call);
vgpu::CallOutcome do_my_pe(Call& call);
vgpu::CallOutcome do_n_pes(Call& call);
vgpu::CallOutcome do_team_my_pe(Call& call);
vgpu::CallOutcome do_team_n_pes(Call& call);
vgpu::CallOutcome do_team_translate(Call& call);
vgpu::CallOutcome do_team_split(Call& call);
vgpu::CallOutcome do_team_split_2d(Call& call);
vgpu::CallOutcome do_team_destroy(Call& call);

// Makes a signal operation (NVSHMEM_SIGNAL_SET = 9, NVSHMEM_SIGNAL_ADD = 10) on PE `pe` the update of a
// message. False after a finding.
bool add_signal(Call& call, std::uint64_t address, std::uint64_t value, int op, int pe, Message* message);

}  // namespace echolo::shmem
