// NVSHMEM on the virtual node: the symmetric heap's collective allocation, remote memory access, atomics,
// signals, waits, teams and collectives. One implementation serves kernels (through vgpu::DeviceCallTable)
// and host threads or streams (through host_call): both name the same functions.
//
// Operations are issued by their calls and done later: delivery.hpp has the rules, fabric_rules.hpp what the
// fabrics differ in.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "vgpu/device_calls.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo::shmem {

// When an operation is done that nobody has asked to be done yet.
enum class Timing : std::uint8_t {
  kMixed,  // after a while drawn from the seed
  kEager,  // at once
  kLazy,   // when somebody needs it, or nobody else can go on
};

struct FabricConfig {
  int n_pes = 1;
  std::string fabric = "nvlink";  // of fabrics(); another name is a bug of the caller (std::logic_error)
  Timing timing = Timing::kMixed;
  std::uint64_t seed = 1;
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
  void block_finished(const vgpu::Block& block) override;
  std::size_t pending() const override;
  bool deliver(std::uint64_t now, bool force) override;

  // ---- from host threads and streams ----
  // `name` is the API's: "nvshmem_float_put", "nvshmemx_float_put_on_stream", "nvshmem_barrier_all", ...
  // Arguments are widened to 64 bits in the order of the prototype, without the stream: pointers and sizes as
  // they are, ints sign-extended, element values as their bits. Besides the device API these names exist for
  // hosts:
  //   "nvshmem_malloc" (size), "nvshmem_calloc" (count, size), "nvshmem_align" (alignment, size) -> address
  //   or 0 "nvshmem_free" (address), "nvshmem_team_split_strided" (parent, start, stride, size) -> team in 32
  //   bits, "nvshmem_team_split_2d" (parent, columns) -> the row's team and, above it, the column's; bit 63
  //   of either: no such teams. "nvshmem_team_destroy" (team)
  struct HostCall {
    std::string name;
    int pe = 0;
    std::vector<std::uint64_t> arguments{};
    vgpu::AgentId agent{};     // whose program order it is in; nobody: the PE's first host thread
    bool on_stream = false;    // in the order of a stream, as kernels are
    vgpu::Site site{};         // on_device = false; where the host calls, as far as known
    std::uint64_t token = 0;   // keep between attempts; 0 at the first
    std::uint64_t result = 0;  // valid after kDone
    vgpu::WaitReason wait{};   // valid after kBlocked
  };
  // A name for which knows_host_call() is false, or too few arguments, is a bug of the caller
  // (std::logic_error).
  vgpu::CallOutcome host_call(HostCall& call);
  bool knows_host_call(std::string_view name) const;

  // Memory of one PE that is about to be freed: operations that nobody has waited for may still use it.
  // `who`: in whose order it is freed.
  void released(std::uint64_t base, std::uint64_t bytes, vgpu::AgentId who, const vgpu::Site& where);

  // The PE's process has ended or finalised: collectives that still wait for it can't complete, and their
  // waits say so.
  void pe_gone(int pe, const std::string& why);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace echolo::shmem
