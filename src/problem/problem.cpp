#include "problem/problem.hpp"

#include <algorithm>

#include "base/rng.hpp"
#include "base/text.hpp"

namespace echolo {
namespace {

constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
constexpr int kMaxDraws = 1000;

Error at(const Problem& problem, int line, const std::string& what, const Error& cause) {
  return input_error(problem.toml_path, line, what + ": " + cause.message, cause.hint);
}

Bindings bind(const Params& params, int world) {
  Bindings bindings = {{"world", world}};
  for (const ParamValue& param : params) bindings[param.name] = param.value;
  return bindings;
}

std::string in_case(const Params& params, int world, int rank) {
  return " with " + params_text(params) + (params.empty() ? "" : " ") + "world=" + std::to_string(world) +
         (rank >= 0 ? " rank=" + std::to_string(rank) : "");
}

Result<std::vector<std::int64_t>> shape_of(const Problem& problem, const std::string& what,
                                           const std::vector<SourceExpression>& expressions,
                                           const Bindings& bindings, const std::string& where) {
  std::vector<std::int64_t> shape;
  std::int64_t n = 1;
  for (const SourceExpression& extent : expressions) {
    const Result<std::int64_t> value = extent.expression.evaluate(bindings);
    if (!value)
      return at(problem, extent.line, "the shape of " + what + " does not evaluate" + where, value.error());
    if (*value < 1) {
      return input_error(problem.toml_path, extent.line,
                         "the shape of " + what + " has extent " + std::to_string(*value) + " from '" +
                             extent.expression.text() + "'" + where);
    }
    if (__builtin_mul_overflow(n, *value, &n) || n > kMaxElements) {
      return input_error(problem.toml_path, extent.line,
                         "the shape of " + what + " is beyond 2^40 elements" + where);
    }
    shape.push_back(*value);
  }
  return shape;
}

const SizeSpec* find_size(const std::vector<SizeSpec>& sizes, std::string_view name) {
  const auto found =
      std::find_if(sizes.begin(), sizes.end(), [&](const SizeSpec& size) { return size.name == name; });
  return found == sizes.end() ? nullptr : &*found;
}

}  // namespace

std::string params_text(const Params& params) {
  std::vector<std::string> parts;
  for (const ParamValue& param : params) parts.push_back(param.name + "=" + std::to_string(param.value));
  return join(parts, " ");
}

Status Problem::check_world(int world) const {
  if (std::find(worlds.begin(), worlds.end(), world) != worlds.end()) return {};
  std::vector<std::string> allowed;
  for (const int each : worlds) allowed.push_back(std::to_string(each));
  return usage_error(name + " does not run on " + std::to_string(world) + (world == 1 ? " rank" : " ranks"),
                     "worlds it allows: " + join(allowed, ", "));
}

Result<DType> Problem::dtype(std::string_view wanted) const {
  std::vector<std::string> allowed;
  for (const DType each : dtypes) {
    if (wanted == dtype_name(each)) return each;
    allowed.emplace_back(dtype_name(each));
  }
  return usage_error(name + " has no dtype '" + printable(wanted) + "'", "it has " + join(allowed, ", "));
}

Status Problem::check(const Params& values, int world) const {
  if (Status status = check_world(world); !status) return status;
  if (values.size() != params.size()) return usage_error(name + " needs a value for each of its parameters");
  for (std::size_t i = 0; i < params.size(); ++i) {
    if (values[i].name != params[i].name)
      return usage_error(name + " needs a value for parameter " + params[i].name);
  }
  const Bindings bindings = bind(values, world);
  for (const SourceExpression& constraint : constraints) {
    const Result<std::int64_t> holds = constraint.expression.evaluate(bindings);
    if (!holds) {
      return at(*this, constraint.line, "a constraint does not evaluate" + in_case(values, world, -1),
                holds.error());
    }
    if (*holds == 0) {
      return input_error(
          toml_path, constraint.line,
          "the constraint '" + constraint.expression.text() + "' does not hold" + in_case(values, world, -1));
    }
  }
  for (int rank = 0; rank < world; ++rank) {
    if (const auto infos = input_infos(values, world, rank, dtypes.front()); !infos) return infos.error();
    if (const auto infos = output_infos(values, world, rank, dtypes.front()); !infos) return infos.error();
    for (const InputSpec& input : inputs) {
      if (!input.low) continue;
      Bindings at_rank = bindings;
      at_rank["rank"] = rank;
      const Result<std::int64_t> low = input.low->expression.evaluate(at_rank);
      if (!low)
        return at(*this, input.low->line, "'low' of input '" + input.name + "' does not evaluate",
                  low.error());
      const Result<std::int64_t> high = input.high->expression.evaluate(at_rank);
      if (!high)
        return at(*this, input.high->line, "'high' of input '" + input.name + "' does not evaluate",
                  high.error());
      if (*low >= *high) {
        return input_error(toml_path, input.low->line,
                           "input '" + input.name + "' has no value in [" + std::to_string(*low) + ", " +
                               std::to_string(*high) + ")" + in_case(values, world, rank));
      }
    }
  }
  return {};
}

Result<std::vector<TensorInfo>> Problem::input_infos(const Params& values, int world, int rank,
                                                     DType of) const {
  Bindings bindings = bind(values, world);
  bindings["rank"] = rank;
  std::vector<TensorInfo> out;
  for (const InputSpec& input : inputs) {
    auto shape =
        shape_of(*this, "input '" + input.name + "'", input.shape, bindings, in_case(values, world, rank));
    if (!shape) return shape.error();
    out.push_back({input.name, input.dtype.value_or(of), std::move(*shape)});
  }
  return out;
}

Result<std::vector<TensorInfo>> Problem::output_infos(const Params& values, int world, int rank,
                                                      DType of) const {
  Bindings bindings = bind(values, world);
  bindings["rank"] = rank;
  std::vector<TensorInfo> out;
  for (const OutputSpec& output : outputs) {
    auto shape =
        shape_of(*this, "output '" + output.name + "'", output.shape, bindings, in_case(values, world, rank));
    if (!shape) return shape.error();
    out.push_back({output.name, output.dtype.value_or(of), std::move(*shape)});
  }
  return out;
}

Result<Params> Problem::size(std::string_view size_name, int world) const {
  if (Status status = check_world(world); !status) return status.error();
  const SizeSpec* found = find_size(sizes, size_name);
  if (found == nullptr) found = find_size(curve, size_name);
  if (found == nullptr) {
    std::vector<std::string> known;
    for (const SizeSpec& each : sizes) known.push_back(each.name);
    for (const SizeSpec& each : curve) known.push_back(each.name);
    const std::string near = did_you_mean(size_name, known);
    return usage_error(name + " has no size '" + printable(size_name) + "'",
                       near.empty() ? "sizes are " + join(known, ", ") : near);
  }
  Params values;
  for (const ParamSpec& param : params) {
    const auto given = std::find_if(found->values.begin(), found->values.end(),
                                    [&](const auto& value) { return value.first == param.name; });
    const SourceExpression& source = given != found->values.end() ? given->second : *param.default_value;
    const Result<std::int64_t> value = source.expression.evaluate(bind(values, world));
    if (!value) {
      return at(*this, source.line,
                param.name + " of size '" + found->name + "' does not evaluate" + in_case(values, world, -1),
                value.error());
    }
    values.push_back({param.name, *value});
  }
  if (Status status = check(values, world); !status) return status.error();
  return values;
}

Result<Params> Problem::with_settings(const Params& base, const std::vector<std::string>& settings,
                                      int world) const {
  Params values = base;
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    if (equals == std::string::npos) {
      return usage_error("'" + printable(setting) + "' is not a setting",
                         "write it as NAME=VALUE, as in M=128");
    }
    const std::string key(trim(std::string_view(setting).substr(0, equals)));
    const auto found =
        std::find_if(values.begin(), values.end(), [&](const ParamValue& v) { return v.name == key; });
    if (found == values.end()) {
      std::vector<std::string> known;
      for (const ParamValue& value : values) known.push_back(value.name);
      const std::string near = did_you_mean(key, known);
      return usage_error(name + " has no parameter '" + printable(key) + "'",
                         near.empty() ? "parameters are " + join(known, ", ") : near);
    }
    const Result<Expression> expression = Expression::parse(setting.substr(equals + 1));
    if (!expression) return usage_error(key + ": " + expression.error().message, expression.error().hint);
    const Result<std::int64_t> value = expression->evaluate({{"world", world}});
    if (!value) return usage_error(key + ": " + value.error().message, value.error().hint);
    found->value = *value;
  }
  if (Status status = check(values, world); !status) return status.error();
  return values;
}

Result<Params> Problem::draw_size(std::uint64_t seed, int world) const {
  if (Status status = check_world(world); !status) return status.error();
  Rng rng = Rng(seed).fork(static_cast<std::uint64_t>(world));
  Error last;
  for (int attempt = 0; attempt < kMaxDraws; ++attempt) {
    Params values;
    for (const ParamSpec& param : params) {
      const Bindings bindings = bind(values, world);
      const auto evaluate = [&](const SourceExpression& source, const char* what) -> Result<std::int64_t> {
        Result<std::int64_t> value = source.expression.evaluate(bindings);
        if (value) return value;
        return at(*this, source.line,
                  param.name + "'s " + what + " does not evaluate" + in_case(values, world, -1),
                  value.error());
      };
      if (!param.draw) {
        const Result<std::int64_t> value = evaluate(*param.default_value, "default");
        if (!value) return value.error();
        values.push_back({param.name, *value});
        continue;
      }
      const Result<std::int64_t> low = evaluate(param.draw->min, "min");
      if (!low) return low.error();
      const Result<std::int64_t> high = evaluate(param.draw->max, "max");
      if (!high) return high.error();
      const Result<std::int64_t> step = evaluate(param.draw->multiple_of, "multiple_of");
      if (!step) return step.error();
      constexpr std::int64_t kLimit = std::int64_t{1} << 50;
      if (*step < 1 || *low < 0 || *high > kLimit || *step > kLimit) {
        return input_error(toml_path, param.draw->min.line,
                           param.name + "'s draw needs 0 <= min, max <= 2^50 and multiple_of >= 1" +
                               in_case(values, world, -1));
      }
      const std::int64_t first = (*low + *step - 1) / *step;
      const std::int64_t last_multiple = *high / *step;
      if (first > last_multiple) {
        return input_error(toml_path, param.draw->min.line,
                           "no multiple of " + std::to_string(*step) + " lies in " + param.name +
                               "'s range [" + std::to_string(*low) + ", " + std::to_string(*high) + "]" +
                               in_case(values, world, -1));
      }
      const auto n_choices = static_cast<std::uint64_t>(last_multiple - first + 1);
      values.push_back({param.name, (first + static_cast<std::int64_t>(rng.below(n_choices))) * *step});
    }
    Status status = check(values, world);
    if (status) return values;
    last = status.error();
  }
  last.message = "no drawn size meets the constraints in " + std::to_string(kMaxDraws) +
                 " attempts; the last: " + last.message;
  return last;
}

}  // namespace echolo
