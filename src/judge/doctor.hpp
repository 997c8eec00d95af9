// What this machine has and lacks for EcholoKernel, and the command that mends each lack.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo::judge {

struct Examination {
  std::string name;  // "compiler", "torch", "gloo", "sandbox", "virtual node", "disk", "gpu", "nvshmem"
  bool ok = false;
  bool needed = true;  // false: only for measuring on GPUs
  std::string detail;  // "nvcc 13.2", or what is wrong
  std::string mend;    // a command; empty when ok
};

// Takes a few seconds (imports PyTorch). Error: kInterrupted only; a lack is a result.
Result<std::vector<Examination>> examine_machine(const std::string& store_directory);

bool nothing_needed_is_missing(const std::vector<Examination>& all);
nlohmann::json to_json(const std::vector<Examination>& all);
std::string render(const std::vector<Examination>& all, bool colour);

}  // namespace echolo::judge
