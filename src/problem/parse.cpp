#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <set>

#include "base/text.hpp"
#include "problem/problem.hpp"

namespace echolo {
namespace {

namespace fs = std::filesystem;

const std::vector<std::string> kFillNames = {"normal", "uniform", "integers", "zeros", "ones", "arange"};

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }
int column_of(const toml::node& node) { return static_cast<int>(node.source().begin.column); }

std::string type_text(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a number";
    case toml::node_type::boolean:
      return "true or false";
    default:
      return "a date or time";
  }
}

bool is_identifier(std::string_view text) {
  if (text.empty() || text.size() > 64 || std::isdigit(static_cast<unsigned char>(text[0])) != 0)
    return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; });
}

// The entries of a table in the order of the file (toml++ sorts them by name).
std::vector<std::pair<std::string, const toml::node*>> in_file_order(const toml::table& table) {
  std::vector<std::pair<std::string, const toml::node*>> out;
  for (const auto& [key, node] : table) out.emplace_back(std::string(key.str()), &node);
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) {
    return std::pair(line_of(*a.second), column_of(*a.second)) <
           std::pair(line_of(*b.second), column_of(*b.second));
  });
  return out;
}

// One parse of one file. The first fault found is kept, and everything after it is skipped.
class Parser {
 public:
  explicit Parser(const std::string& directory) {
    problem_.directory = directory;
    problem_.toml_path = (fs::path(directory) / "problem.toml").string();
    problem_.reference_path = (fs::path(directory) / "reference.py").string();
  }

  Result<Problem> run(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text, problem_.toml_path);
    if (!parsed) {
      const toml::parse_error& error = parsed.error();
      return input_error(problem_.toml_path, static_cast<int>(error.source().begin.line),
                         "not valid TOML: " + std::string(error.description()), {},
                         static_cast<int>(error.source().begin.column));
    }
    root(parsed.table());
    if (fault_) return *fault_;
    if (Status status = evaluate_everything(); !status) return status.error();
    return std::move(problem_);
  }

 private:
  void fail(int line, std::string message, std::string hint = {}, int column = 0) {
    if (!fault_) fault_ = input_error(problem_.toml_path, line, std::move(message), std::move(hint), column);
  }

  void fail_type(const toml::node& node, const std::string& what, const std::string& wanted) {
    fail(line_of(node), what + " must be " + wanted + ", not " + type_text(node), {}, column_of(node));
  }

  // Refuses keys that mean nothing here.
  void only_keys(const toml::table& table, const std::string& where, const std::vector<std::string>& known) {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      const std::string near = did_you_mean(key.str(), known);
      fail(static_cast<int>(key.source().begin.line),
           "unknown key '" + printable(key.str()) + "' in " + where,
           near.empty() ? "known keys are " + join(known, ", ") : near,
           static_cast<int>(key.source().begin.column));
      return;
    }
  }

  const toml::node* need(const toml::table& table, int line, const std::string& where,
                         const std::string& key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) fail(line, where + " lacks '" + key + "'");
    return node;
  }

  std::string string(const toml::node& node, const std::string& what) {
    if (const auto* value = node.as_string()) return value->get();
    fail_type(node, what, "a string");
    return {};
  }

  SourceExpression expression(const toml::node& node, const std::string& what,
                              const std::vector<std::string>& names, bool condition = false) {
    SourceExpression out{Expression::constant(1), line_of(node)};
    if (const auto* number = node.as_integer()) {
      if (condition) fail_type(node, what, "a condition in a string, as in \"M % world == 0\"");
      out.expression = Expression::constant(number->get());
      return out;
    }
    const auto* text = node.as_string();
    if (text == nullptr) {
      fail_type(node, what,
                condition ? "a condition in a string" : "a whole number or an expression in a string");
      return out;
    }
    Result<Expression> parsed = Expression::parse(text->get());
    if (!parsed) {
      fail(out.line, what + ": " + parsed.error().message, parsed.error().hint,
           column_of(node) + parsed.error().column);
      return out;
    }
    if (parsed->is_condition() != condition) {
      fail(out.line, what +
                         (condition ? " must be a condition: '" : " must be a number, not the condition '") +
                         parsed->text() + "'");
      return out;
    }
    for (const std::string& name : parsed->names()) {
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      const std::string near = did_you_mean(name, names);
      fail(out.line, what + " uses '" + name + "', which is not known here",
           near.empty() ? "known here are " + join(names, ", ") : near, column_of(node));
      return out;
    }
    out.expression = std::move(*parsed);
    return out;
  }

  void root(const toml::table& table) {
    only_keys(table, "problem.toml",
              {"name", "summary", "family", "worlds", "dtypes", "constraints", "params", "sizes", "curve",
               "inputs", "outputs", "tolerance"});
    if (const auto* node = need(table, 1, "problem.toml", "name")) {
      problem_.name = string(*node, "name");
      if (!is_identifier(problem_.name))
        fail(line_of(*node), "name must be letters, digits and _, and begin with no digit");
    }
    if (const auto* node = need(table, 1, "problem.toml", "summary")) {
      problem_.summary = string(*node, "summary");
      if (trim(problem_.summary).empty() || problem_.summary.find('\n') != std::string::npos) {
        fail(line_of(*node), "summary must be one line of text");
      }
    }
    if (const auto* node = need(table, 1, "problem.toml", "family")) {
      problem_.family = string(*node, "family");
      if (!is_identifier(problem_.family)) fail(line_of(*node), "family must be one word");
    }
    if (const auto* node = need(table, 1, "problem.toml", "worlds")) worlds(*node);
    if (const auto* node = need(table, 1, "problem.toml", "dtypes")) dtypes(*node);
    if (const auto* node = table.get("params")) params(*node);
    for (const ParamSpec& param : problem_.params) names_.push_back(param.name);
    names_.push_back("world");
    if (const auto* node = table.get("constraints")) constraints(*node);
    if (const auto* node = need(table, 1, "problem.toml", "sizes")) problem_.sizes = sizes(*node, "sizes");
    if (const auto* node = table.get("curve")) problem_.curve = sizes(*node, "curve");
    names_.push_back("rank");
    if (const auto* node = table.get("inputs")) inputs(*node);
    if (const auto* node = need(table, 1, "problem.toml", "outputs")) outputs(*node);
    if (const auto* node = table.get("tolerance")) tolerance(*node);
    for (const char* name : {"smoke", "small"}) {
      if (!fault_ && std::none_of(problem_.sizes.begin(), problem_.sizes.end(),
                                  [&](const SizeSpec& size) { return size.name == name; })) {
        fail(line_of(*table.get("sizes")), std::string("sizes lacks '") + name + "'",
             "a check runs smoke, small and a drawn size");
      }
    }
  }

  void worlds(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr || array->empty()) return fail_type(node, "worlds", "an array of whole numbers");
    for (const toml::node& item : *array) {
      const auto* number = item.as_integer();
      if (number == nullptr) return fail_type(item, "a world", "a whole number");
      if (number->get() < 1 || number->get() > 64)
        return fail(line_of(item), "a world must be 1 to 64 ranks");
      const int world = static_cast<int>(number->get());
      if (std::find(problem_.worlds.begin(), problem_.worlds.end(), world) != problem_.worlds.end()) {
        return fail(line_of(item), "world " + std::to_string(world) + " is listed twice");
      }
      problem_.worlds.push_back(world);
    }
  }

  std::optional<DType> dtype(const toml::node& node, const std::string& what) {
    const std::string name = string(node, what);
    const std::optional<DType> found = dtype_from_name(name);
    if (!found) {
      const std::string near = did_you_mean(name, dtype_names());
      fail(line_of(node), what + " '" + printable(name) + "' is not known",
           near.empty() ? "dtypes are " + join(dtype_names(), ", ") : near, column_of(node));
    }
    return found;
  }

  void dtypes(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr || array->empty())
      return fail_type(node, "dtypes", "an array of names, as [\"bf16\", \"f32\"]");
    for (const toml::node& item : *array) {
      const std::optional<DType> found = dtype(item, "dtype");
      if (!found) return;
      if (std::find(problem_.dtypes.begin(), problem_.dtypes.end(), *found) != problem_.dtypes.end()) {
        return fail(line_of(item), std::string("dtype ") + dtype_name(*found) + " is listed twice");
      }
      problem_.dtypes.push_back(*found);
    }
  }

  void params(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return fail_type(node, "params", "a table of parameters");
    std::vector<std::string> earlier = {"world"};
    static const std::set<std::string> kReserved = {"rank",     "world",  "min",  "max",
                                                    "ceil_div", "params", "dtype"};
    for (const auto& [name, value] : in_file_order(*table)) {
      const std::string what = "parameter '" + name + "'";
      if (!is_identifier(name) || kReserved.contains(name)) {
        return fail(line_of(*value), what + " has a name that is not free",
                    "use letters, digits and _, as in M or head_dim");
      }
      ParamSpec param;
      param.name = name;
      param.line = line_of(*value);
      if (const auto* fields = value->as_table()) {
        only_keys(*fields, what, {"about", "default", "draw"});
        if (const auto* about = fields->get("about")) param.about = string(*about, what + "'s about");
        if (const auto* given = fields->get("default"))
          param.default_value = expression(*given, what + "'s default", earlier);
        if (const auto* draw = fields->get("draw")) param.draw = draw_range(*draw, what, earlier);
      } else {
        param.default_value = expression(*value, what, earlier);
      }
      if (!param.default_value && !param.draw) {
        return fail(param.line, what + " needs a default or a range to draw from",
                    "add default = 128, or draw = { ... }");
      }
      earlier.push_back(name);
      problem_.params.push_back(std::move(param));
      if (fault_) return;
    }
  }

  std::optional<DrawRange> draw_range(const toml::node& node, const std::string& what,
                                      const std::vector<std::string>& names) {
    const auto* table = node.as_table();
    if (table == nullptr) {
      fail_type(node, what + "'s draw", "a table, as { min = 16, max = 192, multiple_of = 16 }");
      return std::nullopt;
    }
    only_keys(*table, what + "'s draw", {"min", "max", "multiple_of"});
    const toml::node* min = need(*table, line_of(node), what + "'s draw", "min");
    const toml::node* max = need(*table, line_of(node), what + "'s draw", "max");
    if (min == nullptr || max == nullptr) return std::nullopt;
    const toml::node* step = table->get("multiple_of");
    return DrawRange{expression(*min, what + "'s min", names), expression(*max, what + "'s max", names),
                     step != nullptr ? expression(*step, what + "'s multiple_of", names)
                                     : SourceExpression{Expression::constant(1), line_of(node)}};
  }

  void constraints(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr) return fail_type(node, "constraints", "an array of conditions");
    for (const toml::node& item : *array)
      problem_.constraints.push_back(expression(item, "a constraint", names_, true));
  }

  std::vector<SizeSpec> sizes(const toml::node& node, const std::string& where) {
    std::vector<SizeSpec> out;
    const auto* table = node.as_table();
    if (table == nullptr) {
      fail_type(node, where, "a table of sizes, as smoke = { M = 32 }");
      return out;
    }
    std::vector<std::string> params;
    for (const ParamSpec& param : problem_.params) params.push_back(param.name);
    for (const auto& [name, value] : in_file_order(*table)) {
      const std::string what = "size '" + name + "'";
      const auto* values = value->as_table();
      if (values == nullptr) {
        fail_type(*value, what, "a table, as { M = 32 }");
        return out;
      }
      SizeSpec size;
      size.name = name;
      size.line = line_of(*value);
      for (const auto& [key, given] : in_file_order(*values)) {
        if (std::find(params.begin(), params.end(), key) == params.end()) {
          const std::string near = did_you_mean(key, params);
          fail(line_of(*given), what + " sets '" + printable(key) + "', which is no parameter",
               near.empty() ? "parameters are " + join(params, ", ") : near, column_of(*given));
          return out;
        }
        size.values.emplace_back(key, expression(*given, key + " of " + what, {"world"}));
      }
      for (const ParamSpec& param : problem_.params) {
        if (param.default_value || values->contains(param.name)) continue;
        fail(size.line, what + " does not set '" + param.name + "', which has no default");
      }
      if (std::any_of(problem_.sizes.begin(), problem_.sizes.end(),
                      [&size](const SizeSpec& other) { return other.name == size.name; })) {
        fail(size.line, what + " is in sizes and in the curve");
      }
      out.push_back(std::move(size));
    }
    return out;
  }

  // The fields that inputs and outputs share. Returns false after a fault.
  bool tensor(const toml::table& fields, int line, const std::string& kind, std::string& name,
              std::vector<SourceExpression>& shape, std::optional<DType>& type) {
    const auto* name_node = need(fields, line, "an " + kind, "name");
    if (name_node == nullptr) return false;
    name = string(*name_node, "an " + kind + "'s name");
    static const std::set<std::string> kReserved = {"rank", "world", "params"};
    if (!is_identifier(name) || kReserved.contains(name)) {
      fail(line_of(*name_node), "'" + printable(name) + "' cannot name an " + kind,
           "use letters, digits and _");
      return false;
    }
    const bool taken = std::any_of(problem_.inputs.begin(), problem_.inputs.end(),
                                   [&](const auto& t) { return t.name == name; }) ||
                       std::any_of(problem_.outputs.begin(), problem_.outputs.end(),
                                   [&](const auto& t) { return t.name == name; }) ||
                       std::any_of(problem_.params.begin(), problem_.params.end(),
                                   [&](const auto& p) { return p.name == name; });
    if (taken) {
      fail(line_of(*name_node), kind + " '" + name + "' has the name of another input, output or parameter");
      return false;
    }
    const std::string what = kind + " '" + name + "'";
    const auto* shape_node = need(fields, line, what, "shape");
    if (shape_node == nullptr) return false;
    const auto* extents = shape_node->as_array();
    if (extents == nullptr) {
      fail_type(*shape_node, what + "'s shape", "an array, as [\"M / world\", \"K\"]");
      return false;
    }
    if (extents->size() > 8) fail(line_of(*shape_node), what + " has more than 8 dimensions");
    for (const toml::node& extent : *extents) shape.push_back(expression(extent, what + "'s shape", names_));
    if (const auto* type_node = fields.get("dtype")) {
      if (const auto* text = type_node->as_string(); text == nullptr || text->get() != "dtype") {
        type = dtype(*type_node, what + "'s dtype");
      }
    }
    return !fault_;
  }

  void inputs(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr) return fail_type(node, "inputs", "written as [[inputs]]");
    for (const toml::node& item : *array) {
      const auto* fields = item.as_table();
      if (fields == nullptr) return fail_type(item, "an input", "a table");
      only_keys(*fields, "an input",
                {"name", "shape", "dtype", "fill", "scale", "low", "high", "replicated"});
      InputSpec input;
      input.line = line_of(item);
      if (!tensor(*fields, input.line, "input", input.name, input.shape, input.dtype)) return;
      fill(*fields, input);
      if (const auto* replicated = fields->get("replicated")) {
        if (const auto* flag = replicated->as_boolean()) {
          input.replicated = flag->get();
        } else {
          fail_type(*replicated, "replicated", "true or false");
        }
      }
      if (fault_) return;
      if (input.replicated) {
        for (const SourceExpression& extent : input.shape) {
          const auto& used = extent.expression.names();
          if (std::find(used.begin(), used.end(), "rank") != used.end()) {
            return fail(extent.line,
                        "input '" + input.name + "' is replicated, so its shape cannot depend on rank");
          }
        }
      }
      problem_.inputs.push_back(std::move(input));
    }
  }

  void fill(const toml::table& fields, InputSpec& input) {
    const std::string what = "input '" + input.name + "'";
    const bool integers = input.dtype && !dtype_is_float(*input.dtype);
    const auto* fill_node = fields.get("fill");
    if (fill_node != nullptr) {
      const std::string name = string(*fill_node, what + "'s fill");
      const auto found = std::find(kFillNames.begin(), kFillNames.end(), name);
      if (found == kFillNames.end()) {
        const std::string near = did_you_mean(name, kFillNames);
        return fail(line_of(*fill_node), what + " has the unknown fill '" + printable(name) + "'",
                    near.empty() ? "fills are " + join(kFillNames, ", ") : near, column_of(*fill_node));
      }
      input.fill = static_cast<Fill>(found - kFillNames.begin());
    } else if (integers) {
      input.fill = Fill::kIntegers;
    }
    const bool random_real = input.fill == Fill::kNormal || input.fill == Fill::kUniform;
    if (integers && random_real) {
      return fail(line_of(*fill_node),
                  what + " holds integers, which '" + kFillNames[static_cast<std::size_t>(input.fill)] +
                      "' cannot fill",
                  "use fill = \"integers\" with low and high");
    }
    if (const auto* scale = fields.get("scale")) {
      if (!random_real) return fail(line_of(*scale), "scale only goes with fill = \"normal\" or \"uniform\"");
      const auto value = scale->value<double>();
      if (!value || !(scale->is_number())) return fail_type(*scale, "scale", "a number");
      if (!(*value > 0) || *value > 1e30) return fail(line_of(*scale), "scale must be positive");
      input.scale = *value;
    }
    const auto* low = fields.get("low");
    const auto* high = fields.get("high");
    if (input.fill != Fill::kIntegers) {
      if (low != nullptr || high != nullptr) {
        fail(line_of(low != nullptr ? *low : *high), "low and high only go with fill = \"integers\"");
      }
      return;
    }
    if (low != nullptr) input.low = expression(*low, what + "'s low", names_);
    if (low == nullptr) input.low = SourceExpression{Expression::constant(0), input.line};
    if (high != nullptr) input.high = expression(*high, what + "'s high", names_);
    if (high == nullptr)
      fail(input.line, what + " is filled with integers and needs 'high'",
           "values are drawn from [low, high)");
  }

  void outputs(const toml::node& node) {
    const auto* array = node.as_array();
    if (array == nullptr || array->empty())
      return fail_type(node, "outputs", "written as [[outputs]], at least once");
    for (const toml::node& item : *array) {
      const auto* fields = item.as_table();
      if (fields == nullptr) return fail_type(item, "an output", "a table");
      only_keys(*fields, "an output", {"name", "shape", "dtype", "bound", "count"});
      OutputSpec output;
      output.line = line_of(item);
      // A first extent of "?" depends on data: `bound` then takes its place.
      const auto* shape = fields->get_as<toml::array>("shape");
      const bool open = shape != nullptr && !shape->empty() && shape->get(0)->is_string() &&
                        shape->get(0)->as_string()->get() == "?";
      toml::table copy = *fields;
      if (open) {
        const auto* bound = need(*fields, output.line, "an output whose first extent is \"?\"", "bound");
        const auto* count = need(*fields, output.line, "an output whose first extent is \"?\"", "count");
        if (bound == nullptr || count == nullptr) return;
        output.count = string(*count, "count");
        toml::array& extents = *copy.get_as<toml::array>("shape");
        const SourceExpression limit = expression(*bound, "an output's bound", names_);
        extents.erase(extents.begin());
        if (!tensor(copy, output.line, "output", output.name, output.shape, output.dtype)) return;
        output.shape.insert(output.shape.begin(), limit);
      } else {
        for (const char* key : {"bound", "count"}) {
          if (const auto* given = fields->get(key)) {
            return fail(line_of(*given),
                        std::string(key) + " only goes with a shape whose first extent is \"?\"");
          }
        }
        if (!tensor(*fields, output.line, "output", output.name, output.shape, output.dtype)) return;
      }
      problem_.outputs.push_back(std::move(output));
    }
    for (const OutputSpec& output : problem_.outputs) {
      if (output.count.empty()) continue;
      std::vector<std::string> counts;
      for (const OutputSpec& other : problem_.outputs) {
        if (other.dtype && !dtype_is_float(*other.dtype) && other.count.empty()) counts.push_back(other.name);
      }
      if (std::find(counts.begin(), counts.end(), output.count) != counts.end()) continue;
      const std::string near = did_you_mean(output.count, counts);
      fail(output.line,
           "output '" + output.name + "' is counted by '" + printable(output.count) +
               "', which is no output of an integer dtype",
           near.empty() ? "declare an output of dtype \"i64\" and shape [1] for it" : near);
    }
  }

  void tolerance(const toml::node& node) {
    const auto* table = node.as_table();
    if (table == nullptr) return fail_type(node, "tolerance", "a table");
    only_keys(*table, "tolerance", {"k", "floor", "exact"});
    const auto number = [&](const char* key, double loosest, double& into) {
      const auto* given = table->get(key);
      if (given == nullptr) return;
      if (!given->is_number()) return fail_type(*given, key, "a number");
      const double value = *given->value<double>();
      if (!(value >= 0)) return fail(line_of(*given), std::string(key) + " must not be negative");
      if (value > loosest) {
        char limit[40];
        std::snprintf(limit, sizeof limit, "%.6g", loosest);
        return fail(line_of(*given), std::string(key) + " may only tighten the tolerance: at most " + limit);
      }
      into = value;
    };
    number("k", kToleranceFactor, problem_.tolerance.k);
    double loosest = 0;
    for (const DType each : problem_.dtypes) loosest = std::max(loosest, tolerance_floor(each));
    number("floor", loosest, problem_.tolerance.floor);
    if (const auto* exact = table->get("exact")) {
      if (!exact->is_boolean()) return fail_type(*exact, "exact", "true or false");
      problem_.tolerance.exact = exact->as_boolean()->get();
    }
  }

  // Whatever could fail later for some size or world fails here, with its line.
  Status evaluate_everything() {
    for (const int world : problem_.worlds) {
      for (const auto* list : {&problem_.sizes, &problem_.curve}) {
        for (const SizeSpec& size : *list) {
          if (const auto params = problem_.size(size.name, world); !params) return params.error();
        }
      }
      if (const auto drawn = problem_.draw_size(0, world); !drawn) return drawn.error();
    }
    return {};
  }

  Problem problem_;
  std::vector<std::string> names_;  // known to expressions at this point of the file
  std::optional<Error> fault_;
};

}  // namespace

Result<Problem> parse_problem(std::string_view toml, const std::string& directory) {
  return Parser(directory).run(toml);
}

Result<Problem> load_problem(const std::string& directory) {
  std::error_code code;
  if (!fs::is_directory(directory, code)) return usage_error("there is no directory " + directory);
  fs::path path = fs::path(directory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  if (!fs::is_regular_file(path / "problem.toml", code)) {
    return usage_error(directory + " holds no problem.toml", "'echolo problems new DIR' writes a first one");
  }
  if (!fs::is_regular_file(path / "reference.py", code)) {
    return usage_error(directory + " holds no reference.py",
                       "it must define solution(...), plain torch.distributed code");
  }
  const Result<std::string> text = read_file((path / "problem.toml").string());
  if (!text) return text.error();
  return parse_problem(*text, path.string());
}

}  // namespace echolo
