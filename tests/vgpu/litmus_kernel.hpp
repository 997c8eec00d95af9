// A litmus test as kernels: each thread in a block of its own place, each GPU a PE; what the executor gives
// is compared with what the memory model's machine says is reachable.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "litmus/program.hpp"
#include "vgpu/core/machine.hpp"

namespace echolo::vgpu {

// The PTX of a test, with one kernel `gpu<N>` a GPU, whose parameters are the addresses of the locations and
// of the registers. Nothing: it has instructions that kernels of plain loads and stores can't be made of
// (proxies, barriers with a quorum, NVSHMEM operations).
std::optional<std::string> litmus_ptx(const litmus::Program& program);

// Runs it once; the values of Program::observed, or nothing where some thread did not end.
std::optional<std::vector<std::int64_t>> run_litmus(const litmus::Program& program, const std::string& ptx,
                                                    Policy policy, std::uint64_t seed);

}  // namespace echolo::vgpu
