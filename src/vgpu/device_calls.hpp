// How functions that exist only as declarations in PTX (NVSHMEM's device API) arrive at whoever implements
// them. vgpu/core finds the name here at load (an unknown one is refused by name) and calls it when the call
// instruction executes. vgpu knows nothing of NVSHMEM: src/shmem implements DeviceCallTable.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "vgpu/exec.hpp"

namespace echolo::vgpu {

enum class Granularity : std::uint8_t {
  kThread,  // once per active lane
  kWarp,    // once per warp, when all live lanes of the warp have arrived (the _warp forms)
  kBlock,   // once per block, when all live threads of the block have arrived (the _block forms)
};

enum class CallOutcome : std::uint8_t {
  kDone,
  kBlocked,  // not yet: try again once something has changed. Nothing may have been done but what `token`
             // remembers.
  kFault,    // a fatal finding was logged
};

// What a blocked call waits for, for the wait graph of a deadlock.
struct WaitReason {
  std::uint64_t address = 0;  // device address waited on; 0: none (a collective, say)
  std::uint8_t bytes = 0;     // width of the word there
  std::string
      waits_for;  // "signal >= 3"; core puts the object's name and index before it where it knows them
  std::string comparison;  // ">= 3"
  std::string holds;       // "2"
  std::string collective;  // "nvshmem_barrier_all, team of 4: PE 2 has not arrived"; empty: not a collective
};

struct DeviceCallContext {
  Warp& warp;
  const Inst& inst;
  int lane;  // the calling lane; kWarp and kBlock: the lowest live one, whose arguments count
  int pe;
  Memory& memory;
  FindingLog& findings;
  std::uint64_t& token;  // 0 at the first attempt of this call; kept between attempts
  std::uint64_t now_ns;  // virtual time
  WaitReason wait;       // to be filled when kBlocked is returned
  const std::uint8_t*
      arguments;  // as PTX lays out the .param block of the callee: argument i is at offsets[i]
  const std::uint32_t* offsets;
  std::uint8_t* result;  // at least 16 bytes

  template <typename T>
  T argument(int i) const {
    T value;
    std::memcpy(&value, arguments + offsets[i], sizeof value);
    return value;
  }
  template <typename T>
  void set_result(T value) {
    std::memcpy(result, &value, sizeof value);
  }
};

struct DeviceCall {
  std::string name;
  Granularity granularity = Granularity::kThread;
  CallOutcome (*function)(void* self, DeviceCallContext& context, std::uint64_t variant) = nullptr;
  void* self = nullptr;
  std::uint64_t variant = 0;  // the implementation's own: type, operation, size
};

class DeviceCallTable {
 public:
  virtual ~DeviceCallTable() = default;
  virtual const DeviceCall* find(std::string_view name) const = 0;  // stable pointer; nullptr: unknown
  virtual std::vector<std::string> names() const = 0;               // for "did you mean"
  virtual void grid_finished(const Grid& grid) = 0;
  virtual void block_finished(const Block& /*block*/) {}

  // Operations that calls have issued and that are not done yet. They are work that can be done: the machine
  // calls nothing stuck before there are none left.
  virtual std::size_t pending() const { return 0; }
  // Does those that are due when `now` warp instructions have been executed in all; with `force`, and where
  // none is due, one that is not. True where anything was done. Called between turns.
  virtual bool deliver(std::uint64_t /*now*/, bool /*force*/) { return false; }
};

}  // namespace echolo::vgpu
