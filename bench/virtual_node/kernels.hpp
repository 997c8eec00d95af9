// Kernels of bench/virtual_node/kernels.cu, run on a Machine of this process.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"
#include "vgpu/memory/memory.hpp"

namespace echolo {

struct Measured {
  std::uint64_t lane_instructions = 0;
  double seconds = 0;
};

struct KernelWorkload {
  const char* title;
  const char* kernel;
  vgpu::Dim3 grid, block;
  std::vector<std::uint64_t> buffers;  // bytes, passed as pointers
  std::vector<int> numbers;            // passed after them
  double flops = 0;                    // 0: not a GEMM
};
std::vector<KernelWorkload> kernel_workloads();

// The PTX of kernels.cu; compiled once into `cache`.
Result<std::string> compile_kernels(const std::string& cache);
// The best of three runs. An Error where the node finds a fault.
Result<Measured> measure(const KernelWorkload& workload, const std::string& ptx, vgpu::Checkers checkers);

}  // namespace echolo
