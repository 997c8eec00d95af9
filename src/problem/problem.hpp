// A problem: a directory with problem.toml (what goes in and out, and which sizes) and reference.py (what is
// computed). The format is described in docs/problems.md. Parsing is strict: unknown keys, wrong types and
// expressions that do not evaluate are errors with file and line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.hpp"
#include "problem/dtype.hpp"
#include "problem/expression.hpp"
#include "problem/tolerance.hpp"

namespace echolo {

struct ParamValue {
  std::string name;
  std::int64_t value = 0;
  bool operator==(const ParamValue&) const = default;
};
using Params = std::vector<ParamValue>;  // one for each declared parameter, in order of declaration

// "M=64 N=32 K=32".
std::string params_text(const Params& params);

// An expression and the line of problem.toml it stands on.
struct SourceExpression {
  Expression expression;
  int line = 0;
};

// The range from which a random size is drawn: multiples of `multiple_of` in [min, max].
struct DrawRange {
  SourceExpression min, max, multiple_of;  // over `world` and parameters declared earlier
};

struct ParamSpec {
  std::string name;
  std::string about;                              // one line for people; may be empty
  std::optional<SourceExpression> default_value;  // over `world` and parameters declared earlier
  std::optional<DrawRange> draw;                  // absent: the default is used in drawn sizes too
  int line = 0;
};

struct SizeSpec {
  std::string name;
  std::vector<std::pair<std::string, SourceExpression>>
      values;  // over `world`; parameters left out take their default
  int line = 0;
};

enum class Fill { kNormal, kUniform, kIntegers, kZeros, kOnes, kArange };

struct InputSpec {
  std::string name;
  std::vector<SourceExpression> shape;  // over parameters, `rank` and `world`
  std::optional<DType> dtype;           // absent: the problem's dtype of the case
  Fill fill = Fill::kNormal;
  double scale = 1;  // kNormal: standard deviation; kUniform: values in [-scale, scale)
  std::optional<SourceExpression> low,
      high;                 // kIntegers: values in [low, high), over parameters, `rank` and `world`
  bool replicated = false;  // the same on every rank
  int line = 0;
};

struct OutputSpec {
  std::string name;
  std::vector<SourceExpression> shape;  // with a data-dependent first dimension, shape[0] is its bound
  std::optional<DType> dtype;
  std::string count;  // the output (one integer element) that says how many rows are valid; or empty
  int line = 0;
};

struct Problem {
  std::string name;
  std::string summary;
  std::string family;
  std::string directory;       // absolute
  std::string toml_path;       // directory/problem.toml
  std::string reference_path;  // directory/reference.py
  std::vector<int> worlds;
  std::vector<DType> dtypes;  // the first is the default
  std::vector<ParamSpec> params;
  std::vector<SourceExpression> constraints;
  std::vector<SizeSpec> sizes;    // smallest first, as written
  std::vector<SizeSpec> curve;    // for benchmarks, as written
  std::vector<InputSpec> inputs;  // empty: reference.py makes them all (make_inputs)
  std::vector<OutputSpec> outputs;
  ToleranceSpec tolerance;

  // The parameters of a size of [sizes] or [curve] in a world. Errors name near sizes; worlds that aren't
  // allowed, constraints that don't hold and shapes that don't evaluate are errors as well.
  Result<Params> size(std::string_view size_name, int world) const;
  // `base` with `key=value` settings (--set) applied, checked likewise.
  Result<Params> with_settings(const Params& base, const std::vector<std::string>& settings, int world) const;
  // The same seed and world always give the same size; drawn from the declared ranges until all constraints
  // hold.
  Result<Params> draw_size(std::uint64_t seed, int world) const;
  // World allowed, constraints hold, every shape of every rank evaluates to at least one element.
  Status check(const Params& params, int world) const;
  Status check_world(int world) const;
  Result<DType> dtype(
      std::string_view dtype_name) const;  // one that the problem allows; near names otherwise

  // Declared inputs (empty where make_inputs makes them; ReferenceCase then has them) and outputs of one
  // rank. A data-dependent output has its bound as shape[0].
  Result<std::vector<TensorInfo>> input_infos(const Params& params, int world, int rank, DType dtype) const;
  Result<std::vector<TensorInfo>> output_infos(const Params& params, int world, int rank, DType dtype) const;
};

// Errors: the directory or problem.toml is missing, or anything wrong in it (file:line).
Result<Problem> load_problem(const std::string& directory);
// The same from text; `directory` is only recorded.
Result<Problem> parse_problem(std::string_view toml, const std::string& directory);

}  // namespace echolo
