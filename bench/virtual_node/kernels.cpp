#include "virtual_node/kernels.hpp"

#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "judge/toolchain.hpp"
#include "vgpu/core/machine.hpp"

namespace echolo {

std::vector<KernelWorkload> kernel_workloads() {
  const std::uint64_t n = 512;
  return {
      {"shared memory, f32", "shared_heavy", {32, 1, 1}, {256, 1, 1}, {32UL * 256 * 4}, {200}, 0},
      {"atomics, histogram", "atomic_heavy", {32, 1, 1}, {256, 1, 1}, {1024UL * 4}, {40}, 0},
      {"GEMM 512^3, mma.sync bf16",
       "mma_gemm",
       {n / 64, n / 64, 1},
       {128, 1, 1},
       {n * n * 2, n * n * 2, n * n * 4},
       {static_cast<int>(n), static_cast<int>(n)},
       2.0 * static_cast<double>(n * n * n)},
  };
}

Result<std::string> compile_kernels(const std::string& cache) {
  const std::string source = std::string(ECHOLO_SOURCE_DIR) + "/bench/virtual_node/kernels.cu";
  Result<std::string> text = read_file(source);
  if (!text.ok()) return text.error();
  const std::string out = cache + "/" + sha256_hex(*text) + ".ptx";
  if (!std::filesystem::exists(out)) {
    const Result<std::string> nvcc = judge::find_nvcc();
    if (!nvcc.ok()) return nvcc.error();
    Command command;
    command.argv = {*nvcc,        "-std=c++17", "-gencode", "arch=compute_90a,code=compute_90a",
                    "-lineinfo",  "-ptx",       source,     "-o",
                    out + ".part"};
    const Result<Outcome> outcome = run_command(command);
    if (!outcome.ok()) return outcome.error();
    if (!outcome->ok()) return machine_error(source + " does not compile:\n" + outcome->standard_error);
    std::filesystem::rename(out + ".part", out);
  }
  return read_file(out);
}

Result<Measured> measure(const KernelWorkload& workload, const std::string& ptx, vgpu::Checkers checkers) {
  Measured best;
  for (int repeat = 0; repeat < 3; ++repeat) {
    vgpu::MachineConfig config;
    config.checkers = checkers;
    auto machine = vgpu::Machine::create(config, nullptr);
    if (!machine.ok()) return machine.error();
    const auto module = (*machine)->load_module(0, ptx, "bench");
    if (!module.ok()) return module.error();
    vgpu::LaunchRequest request;
    request.module = *module;
    request.kernel = workload.kernel;
    request.grid = workload.grid;
    request.block = workload.block;
    for (const std::uint64_t bytes : workload.buffers) {
      const auto buffer =
          (*machine)->memory().allocate(0, bytes, 256, vgpu::AllocationKind::kDevice, "", "bench", "");
      if (!buffer.ok()) return buffer.error();
      const vgpu::Site site;
      vgpu::Memory::Accessor who;
      who.site = &site;
      who.pe = 0;
      who.what = "bench";
      if (!(*machine)->memory().fill(*buffer, 0, bytes, who))
        return machine_error("a buffer cannot be filled");
      const auto* const raw = reinterpret_cast<const std::uint8_t*>(&*buffer);
      request.params.insert(request.params.end(), raw, raw + sizeof *buffer);
    }
    for (const int number : workload.numbers) {
      const auto* const raw = reinterpret_cast<const std::uint8_t*>(&number);
      request.params.insert(request.params.end(), raw, raw + sizeof number);
    }
    const auto launched = (*machine)->launch(request);
    if (!launched.ok()) return launched.error();
    const std::clock_t begin =
        std::clock();  // of this process' one thread: others on the machine don't count
    while ((*machine)->run(1'000'000) == vgpu::Machine::Progress::kRan) {
    }
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    if (!(*machine)->findings().empty())
      return usage_error(std::string(workload.kernel) + ": " +
                         vgpu::render((*machine)->findings().all().front(), {}));
    if (best.seconds == 0 || seconds < best.seconds)
      best = {(*machine)->counters().lane_instructions, seconds};
  }
  return best;
}

}  // namespace echolo
