// kernel.toml, read strictly: unknown keys, wrong types and unknown names are errors with file and line.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/text.hpp"
#include "judge/library.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

const std::vector<std::string> kCosts = {"link_bytes", "messages", "issue_slots", "waits"};

int line_of(const toml::node& node) { return static_cast<int>(node.source().begin.line); }

class Parser {
 public:
  explicit Parser(const std::string& directory) {
    out_.directory = directory;
    out_.toml_path = (fs::path(directory) / "kernel.toml").string();
    out_.source_path = (fs::path(directory) / "kernel.cu").string();
  }

  Result<KernelLibrary> run(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text, out_.toml_path);
    if (!parsed) {
      const toml::parse_error& error = parsed.error();
      return input_error(out_.toml_path, static_cast<int>(error.source().begin.line),
                         "not valid TOML: " + std::string(error.description()), {},
                         static_cast<int>(error.source().begin.column));
    }
    root(parsed.table());
    if (fault_) return *fault_;
    return std::move(out_);
  }

 private:
  void fail(int line, std::string message, std::string hint = {}) {
    if (!fault_) fault_ = input_error(out_.toml_path, line, std::move(message), std::move(hint));
  }

  void only_keys(const toml::table& table, const std::string& where, const std::vector<std::string>& known) {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      const std::string near = did_you_mean(key.str(), known);
      return fail(static_cast<int>(key.source().begin.line),
                  "unknown key '" + printable(key.str()) + "' in " + where,
                  near.empty() ? "known keys are " + join(known, ", ") : near);
    }
  }

  std::string text(const toml::table& table, const std::string& key, bool required) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (required) fail(1, "'" + key + "' is missing");
      return {};
    }
    if (const auto* value = node->as_string()) return value->get();
    fail(line_of(*node), "'" + key + "' must be a string");
    return {};
  }

  std::int64_t integer(const toml::node& node, const std::string& what) {
    if (const auto* value = node.as_integer()) return value->get();
    fail(line_of(node), what + " must be a whole number");
    return 0;
  }

  const toml::array* array(const toml::table& table, const std::string& key, bool required, int line) {
    const toml::node* node = table.get(key);
    if (node == nullptr) {
      if (required) fail(line, "'" + key + "' is missing");
      return nullptr;
    }
    if (const toml::array* list = node->as_array()) {
      if (list->empty() && required) fail(line_of(*node), "'" + key + "' is empty");
      return list;
    }
    fail(line_of(*node), "'" + key + "' must be an array");
    return nullptr;
  }

  const toml::table* sub_table(const toml::table& table, const std::string& key) {
    const toml::node* node = table.get(key);
    if (node == nullptr) return nullptr;
    if (const toml::table* inner = node->as_table()) return inner;
    fail(line_of(*node), "'" + key + "' must be a table");
    return nullptr;
  }

  std::optional<SourceExpression> expression(const toml::node& node, const std::string& what,
                                             bool condition) {
    if (const auto* number = node.as_integer(); number != nullptr && !condition) {
      return SourceExpression{Expression::constant(number->get()), line_of(node)};
    }
    const auto* value = node.as_string();
    if (value == nullptr) {
      fail(line_of(node), what + " must be an expression in a string");
      return std::nullopt;
    }
    Result<Expression> parsed = Expression::parse(value->get());
    if (!parsed) {
      fail(line_of(node), what + ": " + parsed.error().message, parsed.error().hint);
      return std::nullopt;
    }
    if (parsed->is_condition() != condition) {
      fail(line_of(node), what + (condition ? " must be a condition" : " must be a number, not a condition"));
      return std::nullopt;
    }
    return SourceExpression{std::move(*parsed), line_of(node)};
  }

  void root(const toml::table& table) {
    only_keys(table, "kernel.toml",
              {"name", "problem", "summary", "dtypes", "worlds", "fabrics", "constraints", "knobs", "cost"});
    out_.name = text(table, "name", true);
    out_.problem = text(table, "problem", true);
    out_.summary = text(table, "summary", true);
    const std::string folder = fs::path(out_.directory).lexically_normal().filename().string();
    if (!fault_ && !folder.empty() && folder != "." && out_.name != folder) {
      fail(table.get("name") != nullptr ? line_of(*table.get("name")) : 1,
           "name is '" + out_.name + "', but the directory is called '" + folder + "'");
    }
    if (const toml::array* list = array(table, "dtypes", true, 1)) {
      for (const toml::node& node : *list) {
        const auto* value = node.as_string();
        const std::optional<DType> dtype = value == nullptr ? std::nullopt : dtype_from_name(value->get());
        if (!dtype) {
          fail(line_of(node),
               "unknown dtype" + (value == nullptr ? std::string() : " '" + value->get() + "'"),
               "known ones are " + join(dtype_names(), ", "));
        } else {
          out_.dtypes.push_back(*dtype);
        }
      }
    }
    if (const toml::array* list = array(table, "worlds", true, 1)) {
      for (const toml::node& node : *list)
        out_.worlds.push_back(static_cast<int>(integer(node, "a world size")));
    }
    if (const toml::array* list = array(table, "fabrics", false, 1)) {
      for (const toml::node& node : *list) {
        const auto* value = node.as_string();
        if (value == nullptr || (value->get() != "nvlink" && value->get() != "rdma")) {
          fail(line_of(node), "a fabric must be \"nvlink\" or \"rdma\"");
        } else {
          out_.fabrics.push_back(value->get());
        }
      }
    } else {
      out_.fabrics = {"nvlink", "rdma"};
    }
    if (const toml::table* knobs = sub_table(table, "knobs")) read_knobs(*knobs);
    if (const toml::array* list = array(table, "constraints", false, 1)) {
      for (const toml::node& node : *list) {
        if (auto one = expression(node, "a constraint", true)) out_.constraints.push_back(std::move(*one));
      }
    }
    if (const toml::table* cost = sub_table(table, "cost")) read_costs(*cost);
  }

  void read_knobs(const toml::table& table) {
    for (const auto& [key, node] : table) {
      KnobSpec knob;
      knob.name = key.str();
      knob.line = static_cast<int>(key.source().begin.line);
      const std::string where = "knob " + knob.name;
      const toml::table* entry = node.as_table();
      if (entry == nullptr) return fail(knob.line, where + " must be a table with 'values' and 'default'");
      only_keys(*entry, where, {"values", "default", "about"});
      if (const toml::array* list = array(*entry, "values", true, knob.line)) {
        for (const toml::node& value : *list) knob.values.push_back(integer(value, "a value of " + where));
      }
      knob.about = text(*entry, "about", false);
      const toml::node* chosen = entry->get("default");
      if (chosen == nullptr) return fail(knob.line, where + " lacks 'default'");
      knob.default_value = integer(*chosen, "the default of " + where);
      if (!fault_ &&
          std::find(knob.values.begin(), knob.values.end(), knob.default_value) == knob.values.end()) {
        fail(line_of(*chosen), "the default of " + where + " is not among its values");
      }
      out_.knobs.push_back(std::move(knob));
    }
    std::sort(out_.knobs.begin(), out_.knobs.end(),
              [](const KnobSpec& a, const KnobSpec& b) { return a.line < b.line; });
  }

  void read_costs(const toml::table& table) {
    for (const auto& [key, node] : table) {
      const std::string name(key.str());
      if (const toml::table* special = node.as_table()) {
        const std::optional<DType> dtype = dtype_from_name(name);
        if (!dtype) {
          return fail(static_cast<int>(key.source().begin.line), "[cost." + name + "] names no dtype",
                      "known ones are " + join(dtype_names(), ", "));
        }
        only_keys(*special, "[cost." + name + "]", kCosts);
        for (const auto& [inner, value] : *special) {
          if (auto one = expression(value, std::string(inner.str()), false)) {
            out_.cost_by_dtype[*dtype].entries.emplace(inner.str(), std::move(*one));
          }
        }
        continue;
      }
      if (std::find(kCosts.begin(), kCosts.end(), name) == kCosts.end()) {
        const std::string near = did_you_mean(name, kCosts);
        return fail(static_cast<int>(key.source().begin.line),
                    "unknown key '" + printable(name) + "' in [cost]",
                    near.empty() ? "known keys are " + join(kCosts, ", ") : near);
      }
      if (auto one = expression(node, name, false)) out_.cost.entries.emplace(name, std::move(*one));
    }
  }

  KernelLibrary out_;
  std::optional<Error> fault_;
};

}  // namespace

Result<KernelLibrary> parse_kernel(std::string_view toml, const std::string& directory) {
  return Parser(directory).run(toml);
}

}  // namespace echolo::judge
