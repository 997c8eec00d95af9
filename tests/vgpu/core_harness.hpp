// Compiles .cu files of tests/vgpu/core_kernels with the virtual environment's nvcc (once for equal text) and
// runs their kernels on a Machine. Without nvcc the tests that need it are skipped.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "../venv_nvcc.hpp"
#include "base/hash.hpp"
#include "base/subprocess.hpp"
#include "base/text.hpp"
#include "vgpu/core/machine.hpp"

namespace echolo::vgpu {

// The PTX of a file in core_kernels.
inline std::string compile_kernels(const std::string& name) {
  const std::string source = std::string(ECHOLO_SOURCE_DIR) + "/tests/vgpu/core_kernels/" + name;
  const std::string folder = std::string(ECHOLO_BINARY_DIR) + "/tests/vgpu-ptx";
  std::filesystem::create_directories(folder);
  const Result<std::string> text = read_file(source);
  if (!text.ok()) return {};
  const std::string out = folder + "/" + sha256_hex(*text) + ".ptx";
  if (!std::filesystem::exists(out)) {
    Command command;
    command.argv = {test::venv_nvcc(),
                    "-std=c++17",
                    "-gencode",
                    "arch=compute_90a,code=compute_90a",
                    "-lineinfo",
                    "-cudart",
                    "none",
                    "-ptx",
                    source,
                    "-o",
                    out + ".part"};
    const Result<Outcome> outcome = run_command(command);
    if (!outcome.ok() || !outcome->ok()) {
      ADD_FAILURE() << (outcome.ok() ? outcome->standard_error : outcome.error().render());
      return {};
    }
    std::filesystem::rename(out + ".part", out);
  }
  const Result<std::string> ptx = read_file(out);
  return ptx.ok() ? *ptx : std::string();
}

// A kernel's parameters, each at its natural alignment.
class Params {
 public:
  template <typename T>
  Params& add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
    return *this;
  }
  const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

class Node {
 public:
  explicit Node(const std::string& ptx, int n_pes = 1, Policy policy = Policy::kFair, std::uint64_t seed = 1,
                DeviceCallTable* calls = nullptr) {
    MachineConfig config;
    config.n_pes = n_pes;
    config.policy = policy;
    config.seed = seed;
    config.spin_budget = 2'000'000;
    auto made = Machine::create(config, calls);
    if (!made.ok()) throw std::runtime_error(made.error().render());
    machine = std::move(*made);
    for (int pe = 0; pe < n_pes; ++pe) {
      auto module = machine->load_module(pe, ptx, "test");
      if (!module.ok()) throw std::runtime_error(module.error().render());
      modules.push_back(*module);
    }
    machine->on_output([this](int, const std::string& text) { output += text; });
  }

  template <typename T>
  std::uint64_t upload(const std::vector<T>& values, int pe = 0, const std::string& name = "") {
    auto address = machine->memory().allocate(pe, values.size() * sizeof(T), 256, AllocationKind::kDevice,
                                              name, "test", "");
    if (!address.ok()) throw std::runtime_error(address.error().render());
    const Site site = make_host_site(pe, "copy");
    Memory::Accessor who;
    who.site = &site;
    who.pe = pe;
    who.what = "test";
    machine->memory().write(*address, values.data(), values.size() * sizeof(T), who);
    return *address;
  }
  template <typename T>
  std::vector<T> download(std::uint64_t address, std::size_t n, int pe = 0) {
    std::vector<T> values(n);
    const Site site = make_host_site(pe, "copy");
    Memory::Accessor who;
    who.site = &site;
    who.pe = pe;
    who.what = "test";
    machine->memory().read(address, values.data(), n * sizeof(T), who);
    return values;
  }

  LaunchId launch(const std::string& kernel, Dim3 grid, Dim3 block, const Params& params, int pe = 0,
                  std::uint32_t shared = 0, bool cooperative = false) {
    LaunchRequest request;
    request.pe = pe;
    request.module = modules[static_cast<std::size_t>(pe)];
    request.kernel = kernel;
    request.grid = grid;
    request.block = block;
    request.params = params.bytes();
    request.dynamic_shared = shared;
    request.cooperative = cooperative;
    auto id = machine->launch(request);
    if (!id.ok()) throw std::runtime_error(id.error().render());
    return *id;
  }

  // Runs until nothing more happens; sleepers are woken.
  Machine::Progress finish() {
    for (;;) {
      const Machine::Progress progress = machine->run(1'000'000);
      if (progress == Machine::Progress::kRan) continue;
      if (progress != Machine::Progress::kAsleep) return progress;
      machine->advance_to(machine->next_wake_ns());
    }
  }

  // The one finding that a stuck or faulted run ends with, as text.
  std::string explain(Machine::Progress progress) {
    if (progress != Machine::Progress::kFaulted) {
      machine->explain_stuck({}, progress == Machine::Progress::kLivelock);
    }
    std::string text;
    for (const Finding& finding : machine->findings().all()) text += render(finding, {});
    return text;
  }

  std::unique_ptr<Machine> machine;
  std::vector<ModuleId> modules;
  std::string output;
};

#define ECHOLO_NEEDS_NVCC() \
  if (echolo::test::venv_nvcc().empty()) GTEST_SKIP() << "needs nvcc"

}  // namespace echolo::vgpu
