// The executor's inner contract: how a decoded instruction, the registers of a warp and the functions that
// execute instructions fit together. Three rooms inside vgpu/ meet here and only here:
//   vgpu/alu/     register-to-register instructions (AluFn), also those across the lanes of a warp
//   vgpu/memory/  instructions that touch memory (MemFn), the allocations and the checkers
//   vgpu/core/    decoding, control flow, warps, blocks, barriers, the scheduler, the Machine
//
// Registers. A warp keeps each register as one array over its 32 lanes:
//   predicates  one std::uint32_t, bit i = lane i
//   8/16 bit    std::uint16_t[32]   (8-bit registers are kept zero- or sign-extended as PTX says)
//   32 bit      std::uint32_t[32]
//   64 bit      std::uint64_t[32]
//   128 bit     std::uint64_t[2][32] (low halves, then high halves)
// An operand is a byte offset of such an array, into the warp's registers or into a constant pool (immediates
// and symbol addresses, broadcast to all lanes, so that no function needs a variant for immediates). All
// arrays are 64-byte aligned, predicates 4-byte aligned.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "ptx/module.hpp"
#include "vgpu/finding.hpp"

namespace echolo::vgpu {

inline constexpr int kWarpSize = 32;
inline constexpr std::uint32_t kAllLanes = 0xffffffffU;

struct Slot {              // where an operand's lanes lie
  std::uint32_t bits = 0;  // bit 31: constant pool; low 31 bits: byte offset
  static constexpr std::uint32_t kPool = 0x80000000U;
};

struct Lanes {  // the two bases that a Slot refers to
  std::uint8_t* registers = nullptr;
  const std::uint8_t* pool = nullptr;
  // The condition code register CC.CF of add.cc, addc, sub.cc, ... (PTX ISA 9.7.2): one word a warp, bit i =
  // lane i.
  std::uint32_t* carry = nullptr;

  template <typename T>
  const T* read(Slot slot) const {
    const std::uint8_t* base = (slot.bits & Slot::kPool) != 0 ? pool : registers;
    return reinterpret_cast<const T*>(base + (slot.bits & ~Slot::kPool));
  }
  template <typename T>
  T* write(Slot slot) const {
    return reinterpret_cast<T*>(registers + slot.bits);
  }
};

struct Inst;
struct Warp;

// Executes one instruction for the lanes in `mask` (never 0). Lanes outside `mask` keep their destination
// values. Must not depend on host libm, rounding mode or SIMD width: equal inputs give equal bits on every
// machine.
using AluFn = void (*)(const Lanes& lanes, const Inst& inst, std::uint32_t mask);

enum class MemOutcome : std::uint8_t {
  kDone,
  kFault,  // a fatal finding was logged: the machine stops
};
// As AluFn, with memory. Addresses, spaces, checks: vgpu/memory/.
using MemFn = MemOutcome (*)(Warp& warp, const Inst& inst, std::uint32_t mask);

enum class InstKind : std::uint8_t {
  kAlu,        // alu / alu_full
  kCrossLane,  // alu, after the lanes named by `membermask` (or, without one, all live lanes of the warp)
               // have converged
  kMemory,     // memory
  kControl,    // vgpu/core's own: bra, brx, call, ret, exit, bar, barrier, nanosleep, fences, special
               // registers, ...
};

struct Inst {
  InstKind kind{};
  std::uint8_t guard = 0;  // 0: always; 1: where the predicate is true; 2: where it is false
  std::uint8_t n_operands = 0;
  std::uint8_t n_destinations = 0;
  Slot guard_slot;
  const Slot* operands = nullptr;  // destinations first, in the order of Plan::operands
  union {
    AluFn alu = nullptr;
    MemFn memory;
  };
  AluFn alu_full = nullptr;       // the same for mask == kAllLanes (may equal alu)
  std::uint64_t aux[2] = {0, 0};  // the executing function's own (from Plan)
  std::int16_t membermask =
      -1;  // kCrossLane: index of the operand that holds the member mask; -1: the whole warp
  bool converge =
      false;  // kMemory: all live lanes of the warp must have arrived (ldmatrix, stmatrix: .sync.aligned)
  std::int32_t target = -1;   // branches: instruction index in the function; loads: see core/defer.cpp
  std::uint32_t control = 0;  // kControl: vgpu/core's own operation code
  const ptx::Instruction* source = nullptr;
};

// What a planner says about one PTX instruction; vgpu/core turns it into an Inst (registers to slots,
// immediates and addresses into the pool).
struct PlanOperand {
  enum class Kind : std::uint8_t {
    kUnused,     // a sink `_`: core gives it a scratch slot (destination) or zeros (source)
    kRegister,   // index: into Function::registers
    kImmediate,  // value: bits, already converted to what the function reads (value[1] only for 128 bit)
    kVariable,   // the address of variable `index` plus value[0]; see VariableHome
    kFunction,   // the address of function `index`
    kSpecial,    // index: ptx::SpecialReg
  };
  Kind kind = Kind::kUnused;
  bool destination = false;
  std::uint8_t width = 32;  // bits of storage: 1, 16, 32, 64, 128. A register operand has its declared width.
  std::int32_t index = -1;
  std::uint64_t value[2] = {0, 0};
};

struct Plan {
  InstKind kind = InstKind::kAlu;
  AluFn alu = nullptr;
  AluFn alu_full = nullptr;
  MemFn memory = nullptr;
  std::uint64_t aux[2] = {0, 0};
  std::int16_t membermask = -1;       // index into operands
  bool converge = false;              // kMemory: see Inst
  std::vector<PlanOperand> operands;  // destinations first
};

// Planners. An Error refuses the form: its message names the form ("mma.sync with .e4m3"); core adds the
// source line.
// `*mine` is false where the opcode belongs to somebody else.
Result<Plan> plan_alu(const ptx::Module& module, const ptx::Function& function, const ptx::Instruction& inst,
                      bool* mine);
Result<Plan> plan_memory(const ptx::Module& module, const ptx::Function& function,
                         const ptx::Instruction& inst, bool* mine);

// ---- What MemFn and device calls see of the running program
// ----------------------------------------------------

class Memory;   // vgpu/memory/memory.hpp
class Machine;  // vgpu/core/machine.hpp

struct KernelImage;  // vgpu/core: a decoded function
struct WarpOrder;    // vgpu/order: what its threads know of others
struct BlockOrder;
struct MeterBlock;  // vgpu/meter: what the time model is told of a block

struct Grid {  // one kernel launch
  Machine* machine = nullptr;
  Memory* memory = nullptr;
  FindingLog* findings = nullptr;
  const ptx::Module* module = nullptr;
  const ptx::Function* kernel = nullptr;
  int pe = 0;
  std::uint64_t launch_id = 0;
  int call = 0;  // of candidate_run, 1-based; 0: none
  Dim3 grid_dim, block_dim;
  std::vector<std::uint8_t> params;  // the kernel's parameter block, laid out as PTX aligns it
  bool cooperative = false;
  std::uint32_t order = 0;  // its number in vgpu/order; 0: not watched
};

struct Block {  // one resident CTA
  Grid* grid = nullptr;
  Dim3 index{0, 0, 0};
  std::uint32_t linear_index = 0;
  std::uint32_t sm = 0;
  std::vector<std::uint8_t> shared;  // static + dynamic shared memory; address 0 of .shared is shared[0]
  std::vector<std::uint8_t> shared_written;  // one bit a byte: was it ever written
  BlockOrder* order = nullptr;               // null: not watched
  MeterBlock* meter = nullptr;               // null: nobody counts
};

struct Warp {  // the part that memory functions may use; core derives from it
  Block* block = nullptr;
  WarpOrder* order = nullptr;  // null: not watched
  Lanes lanes;
  std::uint32_t index_in_block = 0;
  std::uint32_t live = 0;  // lanes that exist and have not exited
  // Per-thread local memory: lane i owns [local + i * local_bytes, + local_bytes). Address 0 of .local is its
  // start.
  std::uint8_t* local = nullptr;
  std::uint8_t* local_written = nullptr;  // one bit a byte, same layout / 8
  std::uint32_t local_bytes = 0;
  // The current frame's base in local memory: core's own business. Address operands of .local variables and
  // of the .param variables of calls already include it; memory functions add nothing. Kernel parameters are
  // Grid::params.
  std::uint32_t param_base = 0;
  // Grows whenever a store changes local memory, which Memory::changes() does not count: a loop is a stable
  // spin only while this stands still too.
  std::uint64_t local_changes = 0;
  // Grows whenever a load returns an older value: a turn of a loop that did so says nothing of the next one.
  std::uint64_t older_reads = 0;
};

// The generic addresses of the windows of shared, local and parameter space (PTX ISA, "Generic Addressing").
// Each thread sees its own block's (own) memory there.
inline constexpr std::uint64_t kSharedWindow = 0x4000'0000'0000ULL;
inline constexpr std::uint64_t kSharedWindowBytes = 1ULL << 24U;
inline constexpr std::uint64_t kLocalWindow = 0x4001'0000'0000ULL;
inline constexpr std::uint64_t kLocalWindowBytes = 1ULL << 24U;
inline constexpr std::uint64_t kParamWindow = 0x4002'0000'0000ULL;
inline constexpr std::uint64_t kParamWindowBytes = 1ULL << 16U;

// Where vgpu/core puts a variable's address in the pool (PlanOperand::Kind::kVariable), by its space:
//   .global, .const   absolute device address on this PE (64 bit)
//   .shared           offset in the block's shared memory
//   .local            offset in the lane's local memory, frame base included (in the pool, or a register that
//   core fills) .param (kernel)   offset in Grid::params .param (others)   offset in the lane's local memory
//   (as .local)

Site make_site(const Warp& warp, int lane, const Inst& inst, std::string role);  // vgpu/core/sites.cpp
Site make_host_site(int pe, std::string role);
Dim3 thread_index(const Warp& warp, int lane);

}  // namespace echolo::vgpu
