// NVSHMEM on the virtual node: the symmetric heap's collective allocation, remote memory access, atomics,
// signals, waits, teams and collectives. One implementation serves kernels (through vgpu::DeviceCallTable)
// and host threads or streams (through host_call): both name the same functions.
//
// Semantics of this form (NVSHMEM documentation, "Memory Model" and "Memory Ordering"): every operation takes
// effect when it is issued, so `fence` and `quiet` have nothing to wait for; the reordering that NVSHMEM
// allows is not explored. A put-with-signal writes its data before its signal.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vgpu/device_calls.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::shmem {

struct FabricConfig {
  int n_pes = 1;
  bool peers_reachable = true;  // nvshmem_ptr of another PE is null where not
};

class Fabric : public vgpu::DeviceCallTable {
 public:
  explicit Fabric(const FabricConfig& config);
  ~Fabric() override;
  Fabric(const Fabric&) = delete;
  Fabric& operator=(const Fabric&) = delete;

  // Must be called before anything else but find() and names(): the machine that owns both is made with this
  // table.
  void attach(vgpu::Memory& memory, vgpu::FindingLog& findings);

  // ---- vgpu::DeviceCallTable ----
  const vgpu::DeviceCall* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  void grid_finished(const vgpu::Grid& grid) override;

  // ---- from host threads and streams ----
  // `name` is the API's: "nvshmem_float_put", "nvshmemx_float_put_on_stream", "nvshmem_barrier_all", ...
  // Arguments are widened to 64 bits in the order of the prototype, without the stream: pointers and sizes as
  // they are, ints sign-extended, element values as their bits. Besides the device API these names exist for
  // hosts:
  //   "nvshmem_malloc" (size), "nvshmem_calloc" (count, size), "nvshmem_align" (alignment, size) -> address
  //   or 0 "nvshmem_free" (address), "nvshmem_team_split_strided" (parent, start, stride, size) -> team or
  //   -1, "nvshmem_team_destroy" (team)
  struct HostCall {
    std::string name;
    int pe = 0;
    std::vector<std::uint64_t> arguments;
    vgpu::Site site;           // on_device = false; where the host calls, as far as known
    std::uint64_t token = 0;   // keep between attempts; 0 at the first
    std::uint64_t result = 0;  // valid after kDone
    vgpu::WaitReason wait;     // valid after kBlocked
  };
  // A name for which knows_host_call() is false, or too few arguments, is a bug of the caller
  // (std::logic_error).
  vgpu::CallOutcome host_call(HostCall& call);
  bool knows_host_call(std::string_view name) const;

  // The PE's process has ended or finalised: collectives that still wait for it can't complete, and their
  // waits say so.
  void pe_gone(int pe, const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echolo::shmem
