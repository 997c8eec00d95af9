#include "agent/options.hpp"

#include <nlohmann/json.hpp>

#include "judge/kept.hpp"

namespace echolo::agent {

std::string options_to_text(const OptimizeOptions& options) {
  nlohmann::json out = judge::options_json(options.check);
  out["proposer"] = options.proposer;
  out["start"] = options.start;
  out["budget"] = options.budget;
  return out.dump();
}

Result<OptimizeOptions> options_from_text(const std::string& text) {
  try {
    const nlohmann::json in = nlohmann::json::parse(text);
    OptimizeOptions options;
    in.at("proposer").get_to(options.proposer);
    in.at("start").get_to(options.start);
    in.at("budget").get_to(options.budget);
    Result<judge::CheckOptions> check = judge::check_options_from(in);
    if (!check) return check.error();
    options.check = std::move(*check);
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
