// The kernel library: directories with kernel.cu and kernel.toml (the format: kernels/README.md).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/result.hpp"
#include "problem/dtype.hpp"
#include "problem/expression.hpp"
#include "problem/problem.hpp"

namespace echolo::judge {

struct KnobValue {
  std::string name;
  std::int64_t value = 0;
  bool operator==(const KnobValue&) const = default;
};
using Knobs = std::vector<KnobValue>;  // in the order of kernel.toml

// "TILE_M=64 TILE_N=32".
std::string knobs_text(const Knobs& knobs);

struct KnobSpec {
  std::string name;
  std::vector<std::int64_t> values;
  std::int64_t default_value = 0;
  std::string about;
  int line = 0;
};

// What one PE does in one call, in counts (kernels/README.md).
struct CostExpressions {
  std::map<std::string, SourceExpression> entries;  // "link_bytes", "messages", "issue_slots", "waits"
};

struct KernelLibrary {
  std::string name, problem, summary;
  std::string directory, toml_path, source_path;
  std::vector<DType> dtypes;
  std::vector<int> worlds;
  std::vector<std::string> fabrics;
  std::vector<SourceExpression> constraints;
  std::vector<KnobSpec> knobs;
  CostExpressions cost;
  std::map<DType, CostExpressions> cost_by_dtype;

  Knobs default_knobs() const;
  // `settings` are NAME=VALUE. Errors: unknown knob (near names), a value that is not among its values.
  Result<Knobs> with_settings(const std::vector<std::string>& settings) const;
  // Empty when the setting is allowed for a case, else which constraint it breaks, with its line.
  Result<std::string> broken_constraint(const Knobs& knobs, const Bindings& of_problem) const;
  const SourceExpression* cost_entry(const std::string& key, DType dtype) const;
};

// The names that constraints and costs may use, beside the knobs.
Bindings problem_bindings(const Params& params, int world, DType dtype);

// Errors: missing files, anything wrong in kernel.toml (file:line).
Result<KernelLibrary> load_kernel(const std::string& directory);
Result<KernelLibrary> parse_kernel(std::string_view toml, const std::string& directory);

// All directories of kernels/ (sorted by name); `problem` empty: of every problem.
Result<std::vector<KernelLibrary>> kernel_library(const std::string& problem);

}  // namespace echolo::judge
