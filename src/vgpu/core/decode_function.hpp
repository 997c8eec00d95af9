// Decoding of one function; decode.cpp drives it for a module.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.hpp"
#include "vgpu/core/image.hpp"

namespace echolo::vgpu {

// The pool and the shared variables of a program while it is being decoded.
class PoolBuilder {
 public:
  explicit PoolBuilder(Program& program) : program_(program) { program_.pool_bytes = kZeroBytes; }
  Slot add(const PoolEntry& entry);
  std::int32_t shared_key(const ptx::Function& function, std::int32_t function_index, std::int32_t variable);

 private:
  Program& program_;
  std::map<PoolEntry, std::uint32_t> known_;
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> shared_known_;
};

// Fills `image` (module, function and index are set). `calls` may be null.
Status decode_function(const ptx::Module& module, const DeviceCallTable* calls, PoolBuilder& pool,
                       KernelImage& image);

// Inst::target of each relaxed load that may be bound late: behind the last instruction that may be executed
// before it (defer.cpp).
void find_held_loads(KernelImage& image);

// Slots of registers (register_slots, register_bits, regions, register_bytes, live_registers).
void assign_registers(KernelImage& image);
// The frame in local memory (local_offsets, local_bytes, parameters, results) and, of an entry, its parameter
// block.
Status lay_out_frame(KernelImage& image);
// The layout of a parameter list, in order, each at its alignment, from `at` on.
std::vector<ParamPiece> lay_out_parameters(const std::vector<ptx::Variable>& parameters, std::uint32_t& at);

// An error at the source line of `instruction`, or at its PTX line where there is none.
Error error_at(const ptx::Module& module, const ptx::Instruction& instruction, std::string message,
               std::string hint = {});
Error error_at_position(const ptx::Module& module, std::int32_t position, std::string message,
                        std::string hint = {});

}  // namespace echolo::vgpu
