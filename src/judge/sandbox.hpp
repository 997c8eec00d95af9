// Runs a tool on untrusted input: no network, no other process to be seen, the system and the tools
// read-only, one folder to write in, and limits on time, memory and what it writes.
#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "base/subprocess.hpp"

namespace echolo::judge {

struct SandboxedTool {
  std::vector<std::string> argv;
  std::string scratch;                                         // bound at kScratch, the working directory
  std::vector<std::pair<std::string, std::string>> read_only;  // outside path, inside path
  std::chrono::milliseconds timeout{120'000};
  std::size_t memory = 6ULL << 30U;       // bytes of address space a process
  std::size_t file_size = 256ULL << 20U;  // bytes of one written file
};

inline constexpr const char* kScratch = "/scratch";

// Errors (kMachine): no bubblewrap, or it cannot make the sandbox here; kInterrupted.
Result<Outcome> run_sandboxed(const SandboxedTool& tool);

}  // namespace echolo::judge
