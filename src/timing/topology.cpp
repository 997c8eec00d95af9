#define TOML_EXCEPTIONS 0
#include "timing/topology.hpp"

#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "base/text.hpp"
#include "problem/suite.hpp"

namespace echolo::timing {
namespace {

namespace fs = std::filesystem;

class Reader {
 public:
  Reader(const toml::table& root, std::string path) : root_(root), path_(std::move(path)) {}

  std::optional<Error> error;

  void number(const char* section, const char* key, double& value, bool may_be_zero = false) {
    const toml::node* node = find(section, key);
    if (node == nullptr) return;
    const std::optional<double> given = node->value<double>();
    if (!given || !(may_be_zero ? *given >= 0 : *given > 0)) {
      fail(*node, std::string(key) + " must be a number " + (may_be_zero ? "of 0 or more" : "above 0"));
      return;
    }
    value = *given;
  }
  void integer(const char* section, const char* key, int& value) {
    const toml::node* node = find(section, key);
    if (node == nullptr) return;
    const std::optional<std::int64_t> given = node->value_exact<std::int64_t>();
    if (!given || *given < 1 || *given > 4096) {
      fail(*node, std::string(key) + " must be a whole number from 1 to 4096");
      return;
    }
    value = static_cast<int>(*given);
  }
  void flag(const char* section, const char* key, bool& value) {
    const toml::node* node = find(section, key);
    if (node == nullptr) return;
    if (const std::optional<bool> given = node->value_exact<bool>()) {
      value = *given;
    } else {
      fail(*node, std::string(key) + " must be true or false");
    }
  }
  void text(const char* key, std::string& value) {
    const toml::node* node = find("", key);
    if (node == nullptr) return;
    if (const std::optional<std::string> given = node->value_exact<std::string>()) {
      value = *given;
    } else {
      fail(*node, std::string(key) + " must be a string");
    }
  }
  // Every key that nobody asked for is a mistake.
  void nothing_else() {
    for (const auto& [key, node] : root_) {
      const std::string section(key.str());
      const toml::table* table = node.as_table();
      if (table == nullptr || !sections_.contains(section)) {
        if (!known_.contains(section)) unknown(node, section);
        continue;
      }
      for (const auto& [inner, value] : *table) {
        const std::string name = section + "." + std::string(inner.str());
        if (!known_.contains(name)) unknown(value, name);
      }
    }
  }

 private:
  const toml::node* find(const std::string& section, const std::string& key) {
    const std::string name = section.empty() ? key : section + "." + key;
    known_.insert(name);
    if (!section.empty()) sections_.insert(section);
    const toml::node* node = root_.at_path(name).node();
    if (node == nullptr && !error) error = input_error(path_, 1, name + " is missing");
    return node;
  }
  void fail(const toml::node& node, std::string message, std::string hint = {}) {
    if (!error) {
      error =
          input_error(path_, static_cast<int>(node.source().begin.line), std::move(message), std::move(hint));
    }
  }
  void unknown(const toml::node& node, const std::string& name) {
    const std::vector<std::string> names(known_.begin(), known_.end());
    fail(node, "unknown key " + name, did_you_mean(name, names));
  }

  const toml::table& root_;
  std::string path_;
  std::set<std::string> known_, sections_;
};

Result<std::string> folder() {
  const Result<std::string> home = echolo_home();
  if (!home) return home.error();
  return (fs::path(*home) / "topologies").string();
}

Result<std::string> path_of(const std::string& what) {
  if (what.ends_with(".toml")) return what;
  const Result<std::string> where = folder();
  if (!where) return where.error();
  const fs::path path = fs::path(*where) / (what + ".toml");
  if (what.find('/') == std::string::npos && fs::is_regular_file(path)) return path.string();
  const std::vector<std::string> names = topology_names();
  const std::string near = did_you_mean(what, names);
  return usage_error(
      "no topology is named \"" + what + "\"",
      (near.empty() ? "there are: " + join(names, ", ") : near) + "; a path to a .toml file will do too");
}

}  // namespace

std::vector<std::string> topology_names() {
  std::vector<std::string> names;
  const Result<std::string> where = folder();
  if (!where) return names;
  std::error_code code;
  for (const fs::directory_entry& entry : fs::directory_iterator(*where, code)) {
    if (entry.path().extension() == ".toml") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<Topology> load_topology(const std::string& what) {
  const Result<std::string> path = path_of(what);
  if (!path) return path.error();
  const Result<std::string> text = read_file(*path);
  if (!text) return text.error();
  const toml::parse_result parsed = toml::parse(*text, *path);
  if (!parsed) {
    const toml::parse_error& error = parsed.error();
    return input_error(*path, static_cast<int>(error.source().begin.line), std::string(error.description()));
  }
  Topology result;
  result.name = fs::path(*path).stem().string();
  Reader reader(parsed.table(), *path);
  reader.text("summary", result.summary);
  reader.integer("", "max_pes", result.max_pes);
  reader.integer("gpu", "sms", result.sms);
  reader.number("gpu", "clock_ghz", result.clock_ghz);
  reader.number("gpu", "issue_per_cycle", result.issue_per_cycle);
  reader.number("gpu", "issue_per_warp", result.issue_per_warp);
  reader.number("gpu", "tensor_flops_per_cycle", result.tensor_flops_per_cycle);
  reader.number("gpu", "float_per_cycle", result.float_per_cycle);
  reader.number("gpu", "integer_per_cycle", result.integer_per_cycle);
  reader.number("gpu", "double_per_cycle", result.double_per_cycle);
  reader.number("gpu", "special_per_cycle", result.special_per_cycle);
  reader.number("gpu", "memory_per_cycle", result.memory_per_cycle);
  reader.number("gpu", "shared_wavefronts_per_cycle", result.shared_wavefronts_per_cycle);
  reader.number("gpu", "l2_gb_s", result.l2_gb_s);
  reader.number("gpu", "dram_gb_s", result.dram_gb_s);
  reader.number("gpu", "launch_us", result.launch_us, true);
  reader.number("link", "bandwidth_gb_s", result.link_gb_s);
  reader.number("link", "latency_us", result.link_latency_us, true);
  reader.number("link", "message_us", result.message_us, true);
  reader.flag("link", "by_adapter", result.by_adapter);
  reader.nothing_else();
  if (reader.error) return *reader.error;
  return result;
}

}  // namespace echolo::timing
