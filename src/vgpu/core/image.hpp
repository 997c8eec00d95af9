// Decoded code: what vgpu/core makes of a ptx::Module, once for all PEs. Only the constant pool differs by PE
// and kernel, because addresses do.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ptx/module.hpp"
#include "vgpu/device_calls.hpp"
#include "vgpu/exec.hpp"

namespace echolo::vgpu {

// Inst::aux[0] of a fence: its scope, and this bit where it is fence.sc (membar is).
inline constexpr std::uint64_t kFenceSc = 256;

// Inst::control of InstKind::kControl.
inline constexpr std::uint64_t kProxyFence = 0x200;  // aux[0] of a fence (kFence) that is fence.proxy.async

enum class Control : std::uint32_t {
  kNop,  // griddepcontrol, setmaxnreg, pmevent, the other fence.proxy: nothing to do
  kBra,
  kBrx,
  kRet,
  kExit,
  kTrap,
  kCall,           // aux[0]: index into KernelImage::calls; callee known
  kCallIndirect,   // the same; operand 0 is the function's address
  kCallDevice,     // a DeviceCall
  kCallBuiltin,    // vprintf, __assertfail
  kFence,          // fence, membar: aux[0] the ptx::Scope
  kBarrier,        // bar / barrier: aux[0] a BarrierForm; operands as make_barrier lays them out
  kWarpSync,       // bar.warp.sync: operand 0 the member mask
  kNanosleep,      // operand 0: nanoseconds
  kClusterArrive,  // aux[0]: 1 .aligned, 2 .release
  kClusterWait,    // aux[0]: 1 .aligned
  kElect,          // operands: lane id, predicate, member mask
  kActivemask,     // operand 0
  kSpecial,        // operand 0 := special register aux[0]; aux[1]: width in bits
  kFrameAddress,   // operand 0 := frame base + aux[0]; aux[1]: width in bits
};

// aux[0] of Control::kBarrier.
struct BarrierForm {
  enum class Action : std::uint8_t { kSync, kArrive, kRedPopc, kRedAnd, kRedOr };
  Action action = Action::kSync;
  bool aligned = false;
  bool has_count = false;
  bool negated = false;  // the predicate of .red, written !p
  std::uint64_t pack() const {
    return static_cast<std::uint64_t>(action) | (aligned ? 0x100U : 0U) | (has_count ? 0x200U : 0U) |
           (negated ? 0x400U : 0U);
  }
  static BarrierForm unpack(std::uint64_t bits) {
    return {static_cast<Action>(bits & 0xffU), (bits & 0x100U) != 0, (bits & 0x200U) != 0,
            (bits & 0x400U) != 0};
  }
};

enum class Builtin : std::uint8_t { kNone, kVprintf, kAssertfail, kMalloc, kFree };

struct ParamPiece {             // one argument or result of a call
  std::uint32_t at = 0;         // in the caller's frame
  std::uint32_t callee_at = 0;  // in the callee's frame, or in the argument block of a device call
  std::uint32_t bytes = 0;
};

struct CallSite {
  std::int32_t callee = -1;  // index into ptx::Module::functions; -1: indirect
  const DeviceCall* device = nullptr;
  Builtin builtin = Builtin::kNone;
  std::vector<ParamPiece> arguments, results;
  std::vector<std::uint32_t> argument_offsets;
  std::uint32_t argument_bytes = 0;
};

// A function as the executor runs it.
struct KernelImage {
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
  std::int32_t index = -1;
  std::vector<Inst> code;                    // ends with a ret or exit
  std::vector<Slot> operand_slots;           // Inst::operands point here
  std::vector<std::uint8_t> operand_widths;  // of operand_slots, in bits; 0: core's own instructions
  std::vector<Slot> register_slots;          // by index of ptx::Function::registers
  std::vector<std::uint8_t> register_bits;   // storage width of each
  std::vector<std::uint32_t> first_inst;     // PTX instruction index -> first Inst
  std::vector<CallSite> calls;
  std::vector<std::vector<std::int32_t>> branch_tables;
  std::uint32_t register_bytes = 0;  // of one frame, all lanes
  std::uint32_t live_registers = 0;  // 32-bit registers a thread needs at once, estimated
  // Where the lanes of each width lie, for hashing: [begin, end) in bytes.
  struct Region {
    std::uint32_t begin = 0, end = 0, lane_bytes = 0;  // lane_bytes 0: predicates
  };
  std::vector<Region> regions;
  // The frame in each lane's local memory: results, parameters, then own .param and .local variables.
  std::uint32_t local_bytes = 0;
  std::vector<ParamPiece> parameters, results;          // `callee_at` and `bytes` are filled
  std::map<std::int32_t, std::uint32_t> local_offsets;  // by variable index, of .local and .param variables
  bool has_local_variables = false;
  // Filled for entries.
  std::vector<std::uint32_t> param_offsets, param_sizes;
  std::uint32_t param_bytes = 0;
  std::vector<std::int32_t> callees;  // direct ones
  bool calls_indirectly = false;
  std::vector<std::int32_t>
      shared_variables;  // own and module ones, as (variable index) keys of Program::shared_key
};

struct PoolEntry {
  enum class Kind : std::uint8_t { kImmediate, kGlobal, kShared };
  Kind kind = Kind::kImmediate;
  std::uint8_t width = 32;
  std::int32_t index = -1;  // kGlobal: module variable; kShared: shared key
  std::uint64_t value[2] = {0, 0};
  auto operator<=>(const PoolEntry&) const = default;
};

// Shared variables of a module, whether declared at module scope or in a function.
struct SharedVariable {
  std::int32_t function = -1;  // -1: module scope
  std::int32_t variable = -1;  // as Module::variable takes it
  std::uint64_t size = 0;
  std::uint32_t align = 1;
  bool dynamic = false;  // extern, unsized
  std::string name;
};

struct SharedLayout {
  std::map<std::int32_t, std::uint32_t> offsets;  // shared key -> offset
  std::uint32_t static_bytes = 0;
  std::uint32_t dynamic_offset = 0;
};

struct Program {
  std::unique_ptr<ptx::Module> module;
  std::string hash;
  std::vector<std::unique_ptr<KernelImage>>
      functions;  // by index of ptx::Module::functions; null: declaration
  std::vector<PoolEntry> pool;
  std::vector<std::uint32_t> pool_offsets;
  std::uint32_t pool_bytes = 0;
  std::vector<SharedVariable> shared;
  std::map<std::int32_t, SharedLayout> layouts;       // by entry index
  std::map<std::int32_t, std::uint32_t> stack_bytes;  // by entry index: local memory a thread needs
  std::map<std::int32_t, std::uint32_t> const_bytes;
};

// Parses and decodes. Errors: what ptx::parse says, a form that no planner takes, an undefined function; with
// the source line where the PTX names one.
Result<std::shared_ptr<Program>> decode_program(const std::string& ptx, const std::string& name,
                                                const DeviceCallTable* calls);

// Function addresses, as device code sees them.
inline constexpr std::uint64_t kCodeWindow = 0x5000'0000'0000ULL;
inline std::uint64_t function_address(std::int32_t index) {
  return kCodeWindow + 16U * (static_cast<std::uint64_t>(index) + 1);
}

// Bytes in the pool or a frame of one register, all lanes.
inline std::uint32_t lanes_bytes(unsigned width) {
  return width == 1 ? 4U : width / 8U * static_cast<std::uint32_t>(kWarpSize);
}

// A register's place in a frame, scratch and zero areas.
inline constexpr std::uint32_t kScratchBytes = 512;  // at the start of every frame: destinations nobody wants
inline constexpr std::uint32_t kZeroBytes = 512;     // at the start of every pool: sources nobody gives

}  // namespace echolo::vgpu
