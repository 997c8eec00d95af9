#include "judge/library.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/text.hpp"
#include "problem/suite.hpp"

namespace echolo::judge {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMultiprocessors = 132;  // of an H200

}  // namespace

std::string knobs_text(const Knobs& knobs) {
  std::vector<std::string> parts;
  for (const KnobValue& knob : knobs) parts.push_back(knob.name + "=" + std::to_string(knob.value));
  return join(parts, " ");
}

Knobs KernelLibrary::default_knobs() const {
  Knobs out;
  for (const KnobSpec& knob : knobs) out.push_back({knob.name, knob.default_value});
  return out;
}

Result<Knobs> KernelLibrary::with_settings(const std::vector<std::string>& settings) const {
  Knobs out = default_knobs();
  std::vector<std::string> names;
  for (const KnobSpec& knob : knobs) names.push_back(knob.name);
  for (const std::string& setting : settings) {
    const std::size_t equals = setting.find('=');
    const std::string knob = setting.substr(0, equals);
    const auto spec = std::find(names.begin(), names.end(), knob);
    if (equals == std::string::npos) return usage_error("'" + setting + "' is not of the form KNOB=VALUE");
    if (spec == names.end()) {
      const std::string near = did_you_mean(knob, names);
      return usage_error("kernel " + name + " has no knob '" + knob + "'",
                         near.empty() ? "its knobs are " + join(names, ", ") : near);
    }
    const auto at = static_cast<std::size_t>(spec - names.begin());
    const std::string text = setting.substr(equals + 1);
    std::int64_t value = 0;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::vector<std::int64_t>& values = knobs[at].values;
    if (code != std::errc() || end != text.data() + text.size() ||
        std::find(values.begin(), values.end(), value) == values.end()) {
      std::vector<std::string> allowed;
      for (const std::int64_t one : values) allowed.push_back(std::to_string(one));
      return usage_error("knob " + knob + " cannot be '" + text + "'",
                         "its values are " + join(allowed, ", "));
    }
    out[at].value = value;
  }
  return out;
}

Result<std::string> KernelLibrary::broken_constraint(const Knobs& chosen, const Bindings& of_problem) const {
  Bindings bindings = of_problem;
  for (const KnobValue& knob : chosen) bindings[knob.name] = knob.value;
  for (const SourceExpression& constraint : constraints) {
    const Result<std::int64_t> holds = constraint.expression.evaluate(bindings);
    if (!holds) return input_error(toml_path, constraint.line, holds.error().message, holds.error().hint);
    if (*holds == 0) {
      return toml_path + ":" + std::to_string(constraint.line) + ": " + constraint.expression.text();
    }
  }
  return std::string();
}

const SourceExpression* KernelLibrary::cost_entry(const std::string& key, DType dtype) const {
  if (const auto special = cost_by_dtype.find(dtype); special != cost_by_dtype.end()) {
    const auto found = special->second.entries.find(key);
    if (found != special->second.entries.end()) return &found->second;
  }
  const auto found = cost.entries.find(key);
  return found == cost.entries.end() ? nullptr : &found->second;
}

Bindings problem_bindings(const Params& params, int world, DType dtype) {
  Bindings bindings;
  for (const ParamValue& param : params) bindings[param.name] = param.value;
  bindings["world"] = world;
  bindings["bytes"] = static_cast<std::int64_t>(dtype_bytes(dtype));
  bindings["sms"] = kMultiprocessors;
  return bindings;
}

Result<KernelLibrary> load_kernel(const std::string& directory) {
  std::error_code code;
  const std::string toml_path = (fs::path(directory) / "kernel.toml").string();
  if (!fs::is_regular_file(toml_path, code)) {
    return usage_error(directory + " is no kernel directory: it has no kernel.toml");
  }
  Result<std::string> text = read_file(toml_path);
  if (!text) return text.error();
  Result<KernelLibrary> library = parse_kernel(*text, directory);
  if (library && !fs::is_regular_file(library->source_path, code)) {
    return usage_error(directory + " is no kernel directory: it has no kernel.cu");
  }
  return library;
}

Result<std::vector<KernelLibrary>> kernel_library(const std::string& problem) {
  Result<std::string> home = echolo_home();
  if (!home) return home.error();
  const fs::path root = fs::path(*home) / "kernels";
  std::error_code code;
  std::vector<std::string> folders;
  for (const auto& entry : fs::directory_iterator(root, code)) {
    if (fs::exists(entry.path() / "kernel.toml")) folders.push_back(entry.path().string());
  }
  if (code) return machine_error("cannot read " + root.string() + ": " + code.message());
  std::sort(folders.begin(), folders.end());
  std::vector<KernelLibrary> all;
  for (const std::string& folder : folders) {
    Result<KernelLibrary> library = load_kernel(folder);
    if (!library) return library.error();
    if (problem.empty() || library->problem == problem) all.push_back(std::move(*library));
  }
  return all;
}

}  // namespace echolo::judge
