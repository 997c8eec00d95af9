// The machine that times are modelled for: a TOML file in topologies/, by name or by path.
#pragma once

#include <string>
#include <vector>

#include "base/result.hpp"

namespace echolo::timing {

struct Topology {
  std::string name, summary;
  int max_pes = 1;
  // [gpu]
  int sms = 1;
  double clock_ghz = 1;
  double issue_per_cycle = 4;         // warp instructions an SM starts in a cycle
  double issue_per_warp = 0.25;       // at most, of one warp: dependent instructions wait for each other
  double tensor_flops_per_cycle = 1;  // of one SM, bf16
  double float_per_cycle = 4;         // warp instructions a cycle and SM, by pipe
  double integer_per_cycle = 2;
  double double_per_cycle = 2;
  double special_per_cycle = 0.5;
  double memory_per_cycle = 1;  // loads, stores, shuffles
  double shared_wavefronts_per_cycle = 1;
  double l2_gb_s = 1, dram_gb_s = 1;
  double launch_us = 0;  // from the end of what a kernel waits for to its first instruction
  // [link]: each PE's way to all its peers together, one direction
  double link_gb_s = 1;
  double link_latency_us = 0;  // from a store to the peer's load that sees it
  double message_us = 0;       // what a message costs its sender besides its bytes
  bool by_adapter = false;     // a put is carried out beside the block that issues it
};

// `what` is a name ("h200-nvlink-x2") or a path to a .toml file. Errors: no such topology (near names),
// unknown or missing key, a value that is not positive: with file and line.
Result<Topology> load_topology(const std::string& what);
std::vector<std::string> topology_names();

}  // namespace echolo::timing
