#include "agent/options.hpp"

#include <nlohmann/json.hpp>

namespace echolo::agent {

std::string options_to_text(const OptimizeOptions& options) {
  const judge::CheckOptions& check = options.check;
  const nlohmann::json out = {
      {"proposer", options.proposer},   {"start", options.start}, {"budget", options.budget},
      {"world", check.world},           {"dtype", check.dtype},   {"sizes", check.sizes},
      {"settings", check.settings},     {"seeds", check.n_seeds}, {"seed", check.seed},
      {"schedules", check.n_schedules}, {"fabric", check.fabric}, {"timeout_ms", check.timeout.count()}};
  return out.dump();
}

Result<OptimizeOptions> options_from_text(const std::string& text) {
  try {
    const nlohmann::json in = nlohmann::json::parse(text);
    OptimizeOptions options;
    judge::CheckOptions& check = options.check;
    in.at("proposer").get_to(options.proposer);
    in.at("start").get_to(options.start);
    in.at("budget").get_to(options.budget);
    in.at("world").get_to(check.world);
    in.at("dtype").get_to(check.dtype);
    in.at("sizes").get_to(check.sizes);
    in.at("settings").get_to(check.settings);
    in.at("seeds").get_to(check.n_seeds);
    in.at("seed").get_to(check.seed);
    in.at("schedules").get_to(check.n_schedules);
    in.at("fabric").get_to(check.fabric);
    check.timeout = std::chrono::milliseconds(in.at("timeout_ms").get<std::int64_t>());
    return options;
  } catch (const nlohmann::json::exception& fault) {
    return machine_error(std::string("the run's options in the store are damaged: ") + fault.what());
  }
}

Status use_store(store::Store& store, judge::CheckOptions& options) {
  const std::pair<const char*, std::string*> folders[] = {{"compile", &options.compile_cache},
                                                          {"reference", &options.reference_cache},
                                                          {"work", &options.work_folder}};
  for (const auto& [name, path] : folders) {
    Result<std::string> folder = store.cache_directory(name);
    if (!folder) return folder.error();
    *path = *folder;
  }
  return {};
}

}  // namespace echolo::agent
