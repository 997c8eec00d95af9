// A simple modelled cost of a kernel setting, from the counts that kernel.toml gives: used to decide what to
// judge first, never to decide what is right or fast. Every number from here is labelled `modelled`.
#pragma once

#include <cstdint>
#include <string>

#include "base/result.hpp"
#include "judge/library.hpp"

namespace echolo::agent {

struct ModelledCost {
  std::int64_t link_bytes = 0, messages = 0, issue_slots = 0, waits = 0;  // of one PE in one call
  double microseconds = 0;
};

// Rates of one GPU and its link, from public data sheets (H200, NVLink 4; a 400 Gbit/s adapter for rdma).
struct Rates {
  double link_bytes_per_us = 0;
  double message_us = 0;    // time that one put, get or signal holds the sender
  double latency_us = 0;    // from a store here to its sight there
  double issue_per_us = 0;  // warp instructions a multiprocessor issues
};
Rates rates_of(const std::string& fabric);

// max(link, issue) + waits * latency + messages * overhead, in microseconds. Error: an expression that does
// not evaluate (file:line).
Result<ModelledCost> modelled_cost(const judge::KernelLibrary& library, const judge::Knobs& knobs,
                                   const Bindings& of_problem, DType dtype, const std::string& fabric);

}  // namespace echolo::agent
