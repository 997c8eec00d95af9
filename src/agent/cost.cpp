#include "agent/cost.hpp"

#include <algorithm>

namespace echolo::agent {
namespace {

constexpr double kClockMhz = 1755;    // cycles a microsecond
constexpr double kIssuePerCycle = 4;  // warp instructions a cycle: one a scheduler

}  // namespace

Rates rates_of(const std::string& fabric) {
  if (fabric == "rdma") return {50'000, 0.5, 5.0, kClockMhz * kIssuePerCycle};
  return {450'000, 0.02, 1.5, kClockMhz * kIssuePerCycle};
}

Result<ModelledCost> modelled_cost(const judge::KernelLibrary& library, const judge::Knobs& knobs,
                                   const Bindings& of_problem, DType dtype, const std::string& fabric) {
  Bindings bindings = of_problem;
  for (const judge::KnobValue& knob : knobs) bindings[knob.name] = knob.value;
  ModelledCost cost;
  const std::pair<const char*, std::int64_t*> entries[] = {{"link_bytes", &cost.link_bytes},
                                                           {"messages", &cost.messages},
                                                           {"issue_slots", &cost.issue_slots},
                                                           {"waits", &cost.waits}};
  for (const auto& [key, value] : entries) {
    const SourceExpression* entry = library.cost_entry(key, dtype);
    if (entry == nullptr) continue;
    Result<std::int64_t> evaluated = entry->expression.evaluate(bindings);
    if (!evaluated) {
      return input_error(library.toml_path, entry->line, std::string(key) + ": " + evaluated.error().message,
                         evaluated.error().hint);
    }
    *value = *evaluated;
  }
  const Rates rates = rates_of(fabric);
  cost.microseconds = std::max(static_cast<double>(cost.link_bytes) / rates.link_bytes_per_us,
                               static_cast<double>(cost.issue_slots) / rates.issue_per_us) +
                      static_cast<double>(cost.waits) * rates.latency_us +
                      static_cast<double>(cost.messages) * rates.message_us;
  return cost;
}

}  // namespace echolo::agent
